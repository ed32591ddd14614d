"""`python -m datum`."""

import runpy
import sys

import pytest

import datum


def test_the_package_runs_as_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["datum", "--version"])
    monkeypatch.delitem(sys.modules, "datum.__main__", raising=False)  # of other tests
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("datum", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"datum {datum.__version__}\n"
