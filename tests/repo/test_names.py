"""Public names: complete, documented. Ruff keeps them sorted."""

import ast
import importlib
import inspect
import pkgutil
import types
from importlib.metadata import version
from pathlib import Path

import pytest

import datum
from datum import _core

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ["datum", *(found.name for found in pkgutil.walk_packages(datum.__path__, "datum."))]
)
MODULES = [name for name in MODULES if "._" not in name]  # the others are nobody's to import
PACKAGES = [name for name in MODULES if hasattr(importlib.import_module(name), "__path__")]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_what_it_owns_and_what_is_public(name):
    module = importlib.import_module(name)
    assert module.__doc__
    assert module.__doc__.strip().splitlines()[0].endswith((".", ":"))
    assert isinstance(module.__all__, list)
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, public) for public in module.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_the_public_names_of_a_package_are_complete(name):
    package = importlib.import_module(name)
    found = {
        public
        for public, value in vars(package).items()
        if not public.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert found <= set(package.__all__)


def public_objects() -> list[tuple[str, object]]:
    found = {}
    for name in MODULES:
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if isinstance(value, (type, types.FunctionType)) and value.__module__ == name:
                found[f"{name}.{public}"] = value
    return sorted(found.items())


@pytest.mark.parametrize(("name", "value"), public_objects(), ids=[n for n, _ in public_objects()])
def test_a_public_object_has_a_docstring(name, value):
    assert value.__doc__, name
    assert not value.__doc__.startswith(f"{value.__name__}("), "dataclasses write this themselves"
    if not isinstance(value, type):
        return
    for member, found in vars(value).items():
        target = getattr(found, "__func__", getattr(found, "fget", found))
        if not member.startswith("_") and inspect.isfunction(target):
            assert target.__doc__, f"{name}.{member}"


def test_everything_a_user_needs_is_at_the_top_or_in_format():
    assert {"Feature", "Schema", "DatumError", "format"} <= set(datum.__all__)
    assert {"encode", "parse", "discover", "read_batches", "RecordFile"} <= set(
        datum.format.__all__
    )


def test_every_error_is_public():
    errors = {name for name in datum.errors.__all__ if name.endswith("Error")}
    assert errors <= set(datum.__all__)


def test_the_stub_of_the_core_names_what_the_core_has():
    tree = ast.parse((ROOT / "src/datum/_core.pyi").read_text())
    stubbed = {node.name for node in tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    found = {name for name in vars(_core) if not name.startswith("__")}
    assert stubbed == found


def test_the_stub_of_the_core_names_the_members_of_its_classes():
    tree = ast.parse((ROOT / "src/datum/_core.pyi").read_text())
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            stubbed = {
                part.name
                for part in node.body
                if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")
            }
            own = getattr(_core, node.name)
            found = {
                name
                for name, value in vars(own).items()
                if not name.startswith("_") and not isinstance(value, own)
            }
            assert stubbed == found, node.name


def test_the_version_is_that_of_the_package():
    assert datum.__version__ == version("datum")
    assert f'version = "{datum.__version__}"' in (ROOT / "pyproject.toml").read_text()


def test_the_package_is_typed():
    assert (ROOT / "src/datum/py.typed").exists()
    assert (Path(datum.__file__).parent / "py.typed").exists()
