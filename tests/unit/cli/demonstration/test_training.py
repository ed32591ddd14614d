"""TensorFlow in the demo: quiet, optional, and good enough."""

import importlib.util
import os
import sys

import numpy as np
import pytest

import datum
from datum.cli import demo_steps as demo_training
from datum.cli.demo_steps import Story, load_tensorflow, read_digits, save_images, train


@pytest.fixture
def without_tensorflow(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    save_images(folder / "images", *read_digits())
    out = folder / "digits"
    splits = {"train": 0.8, "val": 0.2}
    datum.write(folder / "images", out, splits=splits, stratify="label", progress=False)
    return datum.load(out)


@pytest.mark.usefixtures("without_tensorflow")
def test_without_tensorflow_it_says_what_to_install():
    with pytest.raises(datum.MissingDependencyError, match="hint: pip install tensorflow"):
        load_tensorflow(purpose="training")


@pytest.mark.usefixtures("without_tensorflow")
def test_training_without_tensorflow_is_passed_over(capsys):
    assert train(Story(), None, 1) == 0
    assert "Passed over: training needs the package `tensorflow`" in capsys.readouterr().out


def test_native_code_is_silenced_and_heard_again(capfd):
    with demo_training._silenced():
        os.write(2, b"chatter")
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


CHATTERING = """
import os
from types import SimpleNamespace
def say(word): os.write(2, word.encode())
say("loaded, by " + os.environ["TF_CPP_MIN_LOG_LEVEL"])
config = SimpleNamespace(list_physical_devices=lambda: say("no GPU here"))
get_logger = lambda: SimpleNamespace(setLevel=say)
"""


def test_tensorflow_is_loaded_without_a_word(tmp_path, monkeypatch, capfd):
    """One that chatters on any processor, in the place of the real one."""
    (tmp_path / "tensorflow.py").write_text(CHATTERING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    load_tensorflow(purpose="x")
    sys.modules.pop("tensorflow")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    assert capfd.readouterr() == ("", "ERROR")


def test_the_model_learns_the_digits_the_same_way_each_time(digits, capsys):
    accuracies = [train(Story(), digits, 4) for _ in range(2)]
    assert accuracies[0] == accuracies[1] > 0.9
    out = capsys.readouterr().out
    assert "epoch 4/4" in out
    assert "ds.to_tf(" in out


def test_a_model_that_is_not_good_enough_is_told_with_a_hint(digits, capsys):
    accuracy = train(Story(), digits, 1)
    assert accuracy < demo_training.ACCURACY
    out = capsys.readouterr().out
    assert "less than the 95% expected" in out
    assert "datum demo --train --epochs 2" in out
    assert f"{round(accuracy * 359)} of 359" in out


def test_only_what_is_right_counts(digits):
    assert len(digits["val"]) == 359
    assert np.isclose(demo_training.ACCURACY, 0.95)
