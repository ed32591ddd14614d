"""The shape of the source tree."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("src", "native")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".py", ".pyi", ".h", ".cc")
)
TEXTS = sorted(
    {*SOURCES, *(ROOT / "tests").rglob("*.py"), *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_there_are_sources():
    assert len(SOURCES) > 30


@pytest.mark.parametrize("path", TEXTS, ids=name_of)
def test_nothing_is_left_to_do(path):
    if path == Path(__file__):
        return
    left = re.findall(r"\b(?:TODO|FIXME|XXX|HACK)\b", path.read_text())
    assert left == []


def test_every_module_has_its_layer():
    contracts = project()["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    listed = {name for layer in layers for name in re.split(r"\s*[|:]\s*", layer)}
    package = ROOT / "src/datum"
    modules = {
        path.stem
        for path in package.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert modules - {"__init__"} == listed


def test_native_code_without_python_has_none():
    for path in (ROOT / "native").glob("*.[hc]*"):
        assert not re.search(r"Python\.h|nanobind|\bPy[A-Z_]", path.read_text()), name_of(path)


def test_the_dependencies_are_few():
    names = [re.split(r"[<>=;\[]", need)[0] for need in project()["project"]["dependencies"]]
    assert sorted(names) == [
        "defusedxml",
        "isal",
        "numpy",
        "pillow",
        "pyarrow",
        "pyyaml",
        "rich",
        "simplejpeg",
        "typer",
    ]


def test_the_readme_tells_how_to_try_and_how_to_test():
    readme = (ROOT / "README.md").read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_targets_that_are_documented_exist():
    makefile = (ROOT / "Makefile").read_text()
    for name in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"`make (\w+)", (ROOT / name).read_text()):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"{name}: make {target}"


@pytest.mark.parametrize("name", ["LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"])
def test_a_project_has_these_files(name):
    assert (ROOT / name).read_text().strip()
