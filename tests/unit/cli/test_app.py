"""The program: its commands, its options, how it ends."""

import sys

import pytest
from typer.testing import CliRunner

import datum
from datum.cli import main
from datum.cli.app import PANELS, app

COMMANDS = [name for names in PANELS.values() for name in names]


def run(*words: str):
    return CliRunner().invoke(app, list(words))


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(words)
    return ended.value.code


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told(flag):
    result = run(flag)
    assert (result.exit_code, result.stdout) == (0, f"datum {datum.__version__}\n")


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command_with_what_it_does(flag):
    result = run(flag)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    for panel in PANELS:
        assert panel in lines
    for command in COMMANDS:
        (line,) = (line for line in lines if line.split()[:1] == [command])
        assert len(line.split()) > 3


def test_without_a_command_help_is_shown():
    result = run()
    assert result.exit_code == 2
    assert result.stdout.startswith("Usage: datum COMMAND ...")


def test_a_module_is_loaded_when_its_command_is_called_for(monkeypatch):
    for name in list(sys.modules):
        if name in ("datum.cli.commands.head", "datum.cli.commands.index"):
            monkeypatch.delitem(sys.modules, name)
    assert run("--version").exit_code == 0
    assert "datum.cli.commands.head" not in sys.modules
    assert run("index", "--help").exit_code == 0
    assert "datum.cli.commands.index" in sys.modules
    assert "datum.cli.commands.head" not in sys.modules


def test_a_misspelt_command_names_the_nearest():
    result = run("inf")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "error: no such command 'inf'\nhint: did you mean info?\n"


def test_an_option_before_its_command_is_explained():
    result = run("--json", "info")
    assert result.exit_code == 2
    assert "hint: it follows a command: datum " in result.stderr


def test_what_is_not_there_ends_with_1_and_a_hint(capsys):
    assert code_of("info", "nowhere") == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: nowhere: expected a dataset, got no such folder or file\nhint: check the path\n"
    )


@pytest.mark.parametrize(
    "words",
    [
        ("--debug", "info", "nowhere"),
        ("info", "--debug", "nowhere"),
        ("info", "nowhere", "--debug"),
    ],
)
def test_debug_may_stand_anywhere(capsys, words):
    assert code_of(*words) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("hint: check the path\n")


def test_after_two_dashes_all_words_are_paths(capsys):
    assert code_of("info", "--", "--debug") == 1
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert "--debug: expected a dataset" in err


def test_the_exit_code_of_a_command_is_that_of_the_program(capsys):
    assert code_of("--version") == 0
    assert code_of("nonsense") == 2
    capsys.readouterr()


def test_an_interrupt_is_one_word(monkeypatch, capsys):
    def stop(path: str, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("datum.cli.arguments.datum.load", stop)
    assert code_of("info", "x") == 130
    assert capsys.readouterr() == ("", "stopped\n")
