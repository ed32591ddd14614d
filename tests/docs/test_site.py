"""The documentation site is complete, builds without warnings and loads nothing external."""

import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import datum
from tests.docs.fences import ROOT
from tests.docs.shell import environment
from tests.docs.site import (
    Page,
    broken_links,
    is_external,
    loaded_by_styles,
    reachable,
    read_site,
)

BUILDS_WITHIN_S = 300  # far more than it takes
COMPLAINT = re.compile(r"(WARNING|ERROR) +-")  # as MkDocs begins a line; frameworks log others


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of the site, and the output of the build."""
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    ran = subprocess.run(
        call,
        cwd=ROOT,
        env={**environment(), "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=BUILDS_WITHIN_S,
    )
    assert ran.returncode == 0, ran.stdout
    return folder, ran.stdout


@pytest.fixture(scope="module")
def site(built: tuple[Path, str]) -> dict[Path, Page]:
    return read_site(built[0])


def test_it_builds_without_a_warning(built):
    assert [line for line in built[1].splitlines() if COMPLAINT.match(line)] == []


def test_every_page_is_in_the_site(built, site):
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert {built[0] / page.with_suffix(".html") for page in pages} <= set(site)
    assert len(pages) > 30


def test_the_navigation_reaches_every_page(built, site):
    assert set(site) - reachable(site, built[0] / "index.html") == set()


def test_no_link_or_anchor_is_broken(site):
    assert broken_links(site) == []
    assert sum(len(page.links) for page in site.values()) > 1000


def test_nothing_external_is_loaded(built, site):
    loaded = {target for page in site.values() for target in page.resources}
    assert loaded
    assert {target for target in loaded if is_external(target)} == set()
    assert loaded_by_styles(built[0]) == []


def test_every_example_has_a_page(site):
    shown = {path.stem for path in site if path.parent.name == "examples"}
    assert {script.stem for script in (ROOT / "examples").glob("*.py")} < shown


# The reference.


def anchors(site: dict[Path, Page]) -> set[str]:
    return {
        name for path, page in site.items() if path.parent.name == "reference" for name in page.ids
    }


def test_every_public_name_is_in_the_reference(site):
    names = {f"datum.{name}" for name in datum.__all__ if name != "__version__"}
    assert names - anchors(site) == set()


def test_every_name_of_a_public_module_is_in_the_reference(site):
    modules = [name for name in datum.__all__ if isinstance(getattr(datum, name), types.ModuleType)]
    assert len(modules) > 5
    for name in modules:
        module = importlib.import_module(f"datum.{name}")
        listed = {f"datum.{name}.{public}" for public in module.__all__}
        assert listed - anchors(site) == set(), name


def test_the_reference_documents_public_names_only():
    pages = (ROOT / "docs/reference").glob("*.md")
    names = [
        name
        for page in pages
        for name in re.findall(r"^::: datum\.(\S+)", page.read_text(), re.MULTILINE)
    ]
    assert len(names) > 40
    assert [name for name in names if not is_public(name)] == []


def is_public(name: str) -> bool:
    """Whether `datum.NAME` is listed in `__all__` of Datum, or of one of its public modules."""
    first, _, rest = name.partition(".")
    return first in datum.__all__ and (
        not rest or rest in importlib.import_module(f"datum.{first}").__all__
    )


def test_the_reference_lists_every_name_with_a_summary(built, site):
    text = site[built[0] / "reference/index.html"].text
    assert all(f"datum.{name}" in text for name in datum.__all__)


def test_the_reference_lists_every_command_with_its_options(built, site):
    import typer

    from datum.cli.app import app

    page = site[built[0] / "reference/command-line.html"]
    program = typer.main.get_command(app)
    context = typer.Context(program)
    assert len(program.list_commands(context)) > 5
    for name in program.list_commands(context):
        command = program.get_command(context, name)
        assert name in page.ids
        options = [opt for parameter in command.params for opt in parameter.opts if "-" in opt]
        shown = page.text.replace("--[no-]", "--")
        assert [option for option in options if option not in shown] == [], name


def test_the_reference_draws_the_tree_of_errors(built, site):
    tree = inspect.getdoc(datum.errors).split("\n\n")[1]
    assert tree in site[built[0] / "reference/errors.html"].text


def test_doctests_are_shown_as_code(site):
    assert [path.name for path, page in site.items() if "&gt;&gt;&gt;" in page.text] == []
    quotes = [path.name for path in site if "<blockquote>\n<blockquote>" in path.read_text()]
    assert quotes == []


# Tests of the checks.


@pytest.fixture
def small(tmp_path):
    (tmp_path / "a.html").write_text(
        '<nav><a href="b.html#x">b</a></nav><a href="#y">y</a><a href="https://e.org">e</a>'
        '<p id="y"></p><script src="https://e.org/s.js"></script>'
    )
    (tmp_path / "b.html").write_text('<p id="x"></p><a href="a.html#z"></a><a href="c.html"></a>')
    (tmp_path / "d.html").write_text("<p></p>")
    return tmp_path


def test_broken_links_are_found(small):
    assert broken_links(read_site(small)) == ["b.html: a.html#z", "b.html: c.html"]


def test_unreachable_pages_are_found(small):
    site = read_site(small)
    assert set(site) - reachable(site, small / "a.html") == {small / "d.html"}


def test_external_resources_are_found(small):
    (small / "s.css").write_text("a{b:url(x.png)} @font-face{src:url('https://e.org/f')}")
    assert read_site(small)[small / "a.html"].resources == ["https://e.org/s.js"]
    assert loaded_by_styles(small) == ["url('https://e.org/f'"]


def test_the_reference_lists_each_option(built: tuple[Path, str]) -> None:
    folder, _ = built
    for page, function, option in (
        ("writing", "write", "records_per_shard"),
        ("remaking", "reshard", "records_per_shard"),
        ("reading", "Dataset.to_torch", "batch_tokens"),
    ):
        text = (folder / "reference" / f"{page}.html").read_text("utf-8")
        assert option in text, f"{function} lacks {option}"
