"""Every example that the documentation shows is run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest

import datum

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ["datum", *(found.name for found in pkgutil.walk_packages(datum.__path__, "datum."))]
)
PAGES = sorted([*ROOT.glob("README.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINT_OPTIONS = {"edgeitems": 3, "linewidth": 75, "precision": 8, "threshold": 1000}


def run_doctest(test: doctest.DocTest) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    with np.printoptions(**PRINT_OPTIONS):
        failed = runner.run(test, out=report.append).failed
    assert not failed, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        run_doctest(test)


def test_the_main_functions_and_classes_show_an_example():
    finder = doctest.DocTestFinder()
    shown = {
        test.name.rsplit(".", 1)[-1]
        for name in MODULES
        for test in finder.find(importlib.import_module(name), name)
        if test.examples
    }
    expected = {"Feature", "Schema", "Ragged", "Sparse", "Masked", "BytesColumn", "RecordFile"}
    expected |= {"RecordWriter", "Records", "Framed", "Index", "encode", "parse", "discover"}
    assert expected <= shown


def blocks(page: Path) -> list[tuple[int, str]]:
    """The line that each block of Python starts on, and its text."""
    text = page.read_text()
    return [(text.count("\n", 0, found.start(1)), found[1]) for found in BLOCK.finditer(text)]


# Keras says so of every tf.data.Dataset that `fit` is called with.
@pytest.mark.filterwarnings("ignore:.shuffle=True. was passed:UserWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run_one_after_the_other(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scope = {"__name__": "__main__"}
    for line, code in blocks(page):
        if ">>> " in code:
            parser = doctest.DocTestParser()
            run_doctest(parser.get_doctest(code, scope, page.name, str(page), line))
            continue
        # Empty lines before, so that errors name the line of the page.
        exec(compile("\n" * line + code, str(page), "exec"), scope)


def test_the_readme_shows_python():
    assert blocks(ROOT / "README.md")
