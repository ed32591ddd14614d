"""Names of frameworks, and those that are not there."""

import logging
import os
import sys
import warnings

import numpy as np
import pytest

from datum._inspect.measure.contenders import choose_frameworks, find_version, quiet
from datum.errors import MissingDependencyError


@pytest.mark.parametrize("asked", [None, "all"])
def test_none_is_all_that_are_installed(asked):
    assert choose_frameworks(asked) is None


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("tf", ["tf"]),
        ("tf, torch", ["torch", "tf"]),
        (["TensorFlow", "pytorch", "numpy", "torch"], ["numpy", "torch", "tf"]),
        ([], []),
    ],
)
def test_names_come_in_one_order(asked, expected):
    assert choose_frameworks(asked) == expected


@pytest.mark.parametrize(
    ("asked", "hint"),
    [("tensorflw", "did you mean 'tensorflow'"), ("q", "there are numpy, torch, jax, tf")],
)
def test_an_unknown_name_is_refused(asked, hint):
    with pytest.raises(ValueError, match=f"expected .* got '{asked}'\nhint: {hint}"):
        choose_frameworks(asked)


def test_a_framework_tells_its_version():
    assert find_version("numpy") == np.__version__


def test_what_is_not_installed_is_missing_or_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    assert find_version("jax") is None
    with pytest.raises(MissingDependencyError, match="measuring jax needs the package `jax`"):
        find_version("jax", is_needed=True)


def test_quiet_silences_and_leaves_all_as_it_was(monkeypatch, caplog):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with quiet():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
        warnings.warn("chatter", stacklevel=1)
        logging.getLogger("torch").warning("chatter")
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ
    assert caplog.text == ""
    logging.getLogger("torch").warning("heard again")
    assert "heard again" in caplog.text
    with pytest.warns(UserWarning, match="heard again"):
        warnings.warn("heard again", stacklevel=1)


def test_what_the_user_set_stays(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with quiet():
        assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
