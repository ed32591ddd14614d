"""Exit codes, messages, warnings, signals."""

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import typer

from datum import CorruptRecordError, WriteError
from datum.cli.running import DEBUG, end_well, tell, tell_warnings, told_as_messages
from datum.errors import Message


@pytest.fixture
def debugging():
    token = DEBUG.set(True)
    yield
    DEBUG.reset(token)


def code_of(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as ended, told_as_messages():
        raise error
    return ended.value.exit_code


def test_what_goes_well_says_nothing(capsys):
    with told_as_messages():
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (
            CorruptRecordError("damaged", where="x", hint="repair it"),
            1,
            "error: x: damaged\nhint: re",
        ),
        (WriteError("out: expected no dataset"), 1, "error: out: expected no dataset"),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 1, "error: x.csv: no such"),
        (OSError("short"), 1, "error: short"),
        (ValueError("expected 1, got 2"), 2, "error: expected 1, got 2"),
        (KeyError("expected a split, got 'x'"), 2, "error: expected a split, got 'x'"),
        (TypeError("write() has no option 'x'"), 2, "error: write() has no option 'x'"),
        (ValueError("boom"), 1, "error: unexpected ValueError: boom\nhint: --debug"),
        (ZeroDivisionError("boom"), 1, "error: unexpected ZeroDivisionError: boom\nhint: --debug"),
        (MemoryError(), 1, "error: expected memory"),
        (KeyboardInterrupt(), 130, "stopped\n"),
        (BrokenPipeError(32, "Broken pipe"), 1, "error: [Errno 32] Broken pipe"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_becomes_a_message_and_a_code(capsys, error, code, told):
    assert code_of(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(told)
    assert "Traceback" not in err


def test_exits_and_usage_errors_are_left_to_typer():
    with pytest.raises(typer.Exit) as ended, told_as_messages():
        raise typer.Exit(7)
    assert ended.value.exit_code == 7
    with pytest.raises(typer.BadParameter), told_as_messages():
        raise typer.BadParameter("x")


@pytest.mark.usefixtures("debugging")
def test_debug_shows_where_an_error_came_from(capsys):
    code_of(ValueError("expected 1, got 2"))
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: expected 1, got 2\n")


@pytest.mark.parametrize("text", ["[bold]x[/bold] [/]", "100 % [link=x]"])
def test_messages_are_no_markup(capsys, text):
    tell("error", text)
    assert capsys.readouterr().err == f"error: {text}\n"


def test_a_message_cannot_steer_the_terminal(capsys):
    tell("error", "\x1b[2J")
    assert capsys.readouterr().err == "error: \\x1b[2J\n"


def test_warnings_are_told_without_lines_of_code(capsys):
    with tell_warnings():
        warnings.simplefilter("always")
        warnings.warn(Message("3 records were left out", hint="datum repair"), stacklevel=1)
    assert capsys.readouterr().err == ("warning: 3 records were left out\nhint: datum repair\n")


def test_a_reader_that_has_gone_is_not_an_error(monkeypatch, capsys):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended, told_as_messages():
            stream.write("x" * 100_000)
    assert ended.value.code == 141
    assert capsys.readouterr().err == ""


def test_what_cannot_be_kept_is_told(monkeypatch, capsys):
    with open("/dev/full", "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended, end_well(is_process=False):
            print("a record")
    assert ended.value.code == 1
    assert capsys.readouterr().err == "error: stdout: no space left on device\n"


@contextmanager
def handled(number: signal.Signals, action: Any) -> Iterator[None]:
    """A signal handled like this, whatever the tests inherited from who started them."""
    before = signal.signal(number, action)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_that_end_a_process_end_it_as_an_exit_does(number):
    with handled(number, signal.SIG_DFL):
        with pytest.raises(SystemExit) as ended, end_well():
            signal.raise_signal(number)
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_was_ignored_before_stays_ignored(number):
    with handled(number, signal.SIG_IGN):
        with end_well():
            signal.raise_signal(number)
        with pytest.raises(SystemExit), end_well():
            sys.exit(130)
        assert signal.getsignal(number) == signal.SIG_IGN


def test_after_an_interrupt_another_one_ends_it_at_once():
    with handled(signal.SIGINT, signal.default_int_handler):
        with pytest.raises(SystemExit), end_well():
            sys.exit(130)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL


def test_signals_of_others_are_left_alone():
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit), end_well(is_process=False):
        sys.exit(130)
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
