"""`make test` installs all that the tests use: nothing is left to another target of make."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
USED = [  # by tests, or run by them
    path for folder in ("tests", "examples", "docs/hooks") for path in (ROOT / folder).rglob("*.py")
]
OWN = {"datum", "tests", *(path.stem for path in (ROOT / "examples").glob("*.py"))}


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def installed_by(needs: list[str]) -> set[str]:
    """The distributions that pip installs for these requirements, theirs included."""
    found: set[str] = set()
    waiting = [Requirement(need) for need in needs]
    seen = set()
    while waiting:
        need = waiting.pop()
        extras = {"", *need.extras}
        if str(need) in seen or not is_needed(need, {""}):
            continue
        seen.add(str(need))
        found.add(canonicalize_name(need.name))
        try:
            theirs = [Requirement(text) for text in requires(need.name) or []]
        except PackageNotFoundError:
            continue
        for one in theirs:
            if is_needed(one, extras):
                one.marker = None
                waiting.append(one)
    return found


def is_needed(need: Requirement, extras: set[str]) -> bool:
    return need.marker is None or any(need.marker.evaluate({"extra": name}) for name in extras)


def imported(path: Path) -> Iterator[str]:
    """The top-level modules that a file imports, or asks pytest for."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "importorskip":
            named = node.args[0]
            yield str(named.value).partition(".")[0] if isinstance(named, ast.Constant) else ""


def test_every_package_that_a_test_imports_is_installed_for_tests():
    declared = project()
    needs = [*declared["dependencies"], *declared["optional-dependencies"]["test"]]
    there = installed_by(needs)
    given_by = packages_distributions()
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in USED
        for name in imported(path)
        if name and name not in sys.stdlib_module_names and name not in OWN
        if not {canonicalize_name(one) for one in given_by.get(name, [])} & there
    }
    assert missing == set()


def test_what_builds_the_documentation_is_installed_for_tests():
    extras = project()["optional-dependencies"]
    assert set(extras["docs"]) <= set(extras["test"])


def test_a_tool_has_one_version_whoever_installs_it():
    pins: dict[str, set[str]] = {}
    for need in (one for extra in project()["optional-dependencies"].values() for one in extra):
        name, pin, version = re.match(r"([\w-]+)(?:\[\w+\])?(==)?([^;]*)", need).groups()
        if pin:
            pins.setdefault(name, set()).add(version)
    assert {name: found for name, found in pins.items() if len(found) > 1} == {}


def test_continuous_integration_runs_the_tests_before_anything_else_is_installed():
    steps = re.findall(r"^make (\w+)", (ROOT / ".ci/run").read_text(), re.MULTILINE)
    assert steps == ["test", "check"]
