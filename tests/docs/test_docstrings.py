"""Every example in a docstring is run."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import datum

MODULES = sorted(
    ["datum", *(found.name for found in pkgutil.walk_packages(datum.__path__, "datum."))]
)
PRINT_OPTIONS = {"edgeitems": 3, "linewidth": 75, "precision": 8, "threshold": 1000}


def run_doctest(test: doctest.DocTest) -> None:
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    with np.printoptions(**PRINT_OPTIONS):
        failed = runner.run(test, out=report.append).failed
    assert not failed, "".join(report)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_are_correct(name, tmp_path, monkeypatch):
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
