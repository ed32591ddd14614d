"""`datum demo`, all of it."""

import sys
import tempfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from datum.cli import demo_steps as demo_steps
from datum.cli.app import app


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """Speed is measured for a moment only; temporary folders can be looked at.

    TensorFlow has files of its own there, which it removes when the process ends.
    """
    monkeypatch.setattr(demo_steps, "COPIES", 1)
    monkeypatch.setattr(demo_steps, "TURNS", 1)
    monkeypatch.setattr(demo_steps, "SECONDS", 0.01)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


def run(*words: str):
    return CliRunner().invoke(app, ["demo", *words])


def test_the_whole_of_it_with_training(quick):
    before = Path.cwd()
    result = run("--train")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    headings = [line for line in result.stdout.splitlines() if line[:1].isdigit()]
    assert [heading[:2] for heading in headings] == [f"{n}." for n in range(1, 8)]
    assert "epoch 12/12" in result.stdout
    assert "same order in both: 1,438 of 1,438" in result.stdout
    assert result.stdout.count("hand-written tf.data") == 2
    assert "\x1b" not in result.stdout
    assert not any(line.endswith(" ") for line in result.stdout.splitlines())
    assert [path for path in quick.iterdir() if "autograph" not in path.name] == []
    assert Path.cwd() == before


def test_a_model_below_95_per_cent_is_a_failure(quick):
    result = run("--train", "--epochs", "1")
    assert result.exit_code == 1
    assert "less than the 95% expected" in result.stdout
    assert "7. Go on" in result.stdout


@pytest.mark.usefixtures("without_tensorflow")
def test_without_tensorflow_the_rest_is_shown(quick):
    result = run()
    assert result.exit_code == 0, result.output
    assert result.stdout.count("hint: pip install tensorflow") == 2
    assert "Train a model on it, too:" in result.stdout
    assert list(quick.iterdir()) == []


@pytest.mark.usefixtures("without_tensorflow")
def test_training_that_was_asked_for_and_could_not_be_is_a_failure(quick):
    result = run("--train")
    assert result.exit_code == 1
    assert "7. Go on" in result.stdout


@pytest.mark.usefixtures("without_tensorflow")
def test_what_is_kept_can_be_played_with(quick, monkeypatch):
    result = run("--keep", "a playground")
    assert result.exit_code == 0, result.output
    assert "$ cd 'a playground'" in result.stdout
    assert {path.name for path in Path("a playground").iterdir()} == {"digits", "images"}

    monkeypatch.chdir("a playground")
    shown = [
        line.split("#")[0].split()[2:] for line in result.stdout.splitlines() if "$ datum" in line
    ]
    tried = [words for words in shown if words[0] not in ("bench", "demo")]
    assert {words[0] for words in tried} >= {"write", "info", "head", "verify", "export-to"}
    for words in tried:
        extra = ["--overwrite"] if words[0] == "write" else []
        result = CliRunner().invoke(app, [*words, *extra])
        assert result.exit_code == 0, (words, result.output)
        assert result.stdout


@pytest.mark.usefixtures("quick")
def test_a_folder_with_files_is_not_written_to(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    for name in ("mine", "mine/file"):
        result = run("--keep", name)
        assert result.exit_code == 1
        assert result.stderr == (
            f"error: {name}: expected a new or empty folder\nhint: name another\n"
        )
    assert [path.name for path in Path("mine").iterdir()] == ["file"]


def test_without_scikit_learn_it_says_what_to_install(quick, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    result = run("--keep", "new")
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.endswith("hint: pip install scikit-learn\n")
    assert not Path("new").exists()


@pytest.mark.parametrize("epochs", ["0", "-1", "many"])
def test_epochs_are_a_number(epochs):
    result = run("--epochs", epochs)
    assert result.exit_code == 2
    assert "--epochs" in result.stderr
