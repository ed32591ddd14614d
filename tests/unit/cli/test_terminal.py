"""Streams, consoles, JSON lines, bars."""

import io
import json
import os
import sys

import pytest
from rich.text import Text

from datum.cli import terminal
from datum.cli.terminal import (
    data,
    drop_output,
    is_plain,
    prepare_streams,
    print_json,
    show_bar,
    talk,
)


class AsciiStdout:
    """A stdout of ASCII alone; made in the test itself, as pytest sets its own before that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(self._written, "ascii"))

    def read(self) -> bytes:
        sys.stdout.flush()
        return self._written.getvalue()


def test_data_goes_to_stdout_and_talk_to_stderr(capsys):
    data().print("a record")
    talk().print("some talk")
    assert capsys.readouterr() == ("a record\n", "some talk\n")


def test_a_file_gets_no_colour_and_nothing_is_wrapped(capsys, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    data().print("word " * 500, style="bold red")
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "\x1b" not in out


def test_columns_of_the_environment_are_kept(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    assert data().width == 50


def test_colour_can_be_forced(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    data().print("x", style="red")
    assert "\x1b[31m" in capsys.readouterr().out


def test_a_terminal_of_ascii_is_plain(monkeypatch):
    AsciiStdout(monkeypatch)
    assert is_plain(data())


def test_what_an_encoding_cannot_hold_is_replaced(monkeypatch):
    stdout = AsciiStdout(monkeypatch)
    prepare_streams()
    data().print("ünï")
    assert stdout.read() == b"?n?\n"


def test_a_file_name_that_is_no_text_comes_out_as_its_bytes(monkeypatch):
    stdout = AsciiStdout(monkeypatch)
    prepare_streams()
    sys.stdout.write(os.fsdecode(b"b\xff.tfrecord"))
    assert stdout.read() == b"b\xff.tfrecord"


def test_closed_streams_swallow_what_is_written(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    prepare_streams()
    data().print("nobody")
    print_json([1])
    sys.stdout.close()
    sys.stderr.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold] text", "plain [bold] text"),
        ("two\nlines", "two\nlines"),
        ("\x1b[2J\x7f", "\\x1b[2J\\x7f"),
        ("a\u2028\u202eb", "a\\u2028\\u202eb"),
        ("\x9b31m", "\\x9b31m"),
        ("b\udcff", "b\\xff"),
        ("ü 字", "ü 字"),
    ],
)
def test_a_console_prints_no_controls_but_its_own(text, shown, capsys):
    data().print(Text(text), soft_wrap=True)
    talk().print(text, markup=False, soft_wrap=True)
    assert capsys.readouterr() == (f"{shown}\n", f"{shown}\n")


def test_json_is_a_value_a_line(capsys):
    print_json([{"a": 1}, [1.5, "ü"]])
    assert capsys.readouterr().out == '{"a": 1}\n[1.5, "ü"]\n'


def test_json_has_no_nan(capsys):
    print_json([{"a": [float("nan"), {"b": (float("inf"), -float("inf"), 2.0)}], 3: True}])
    line = capsys.readouterr().out
    assert json.loads(line) == {"a": [None, {"b": [None, None, 2.0]}], "3": True}


def test_json_for_an_ascii_stream_loses_nothing(monkeypatch):
    stdout = AsciiStdout(monkeypatch)
    print_json(["ü"])
    assert json.loads(stdout.read()) == "ü"


def test_json_can_hold_any_file_name(capsys):
    name = os.fsdecode(b"b\xff")
    print_json([name])
    line = capsys.readouterr().out
    assert line.isascii()
    assert json.loads(line) == name


def test_a_bar_is_silent_where_there_is_no_terminal(capsys):
    with show_bar("reading") as tell:
        tell(1, 2)
    assert capsys.readouterr() == ("", "")


def test_a_bar_shows_on_a_terminal_and_goes_away(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with show_bar("reading [x]") as tell:
        tell(1, 2)
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading [x]" in err
    assert "50 %" in err


def test_output_that_nobody_reads_ends_the_command(capsys):
    with pytest.raises(SystemExit) as ended:
        drop_output()
    assert ended.value.code == 128 + 13
    assert capsys.readouterr() == ("", "")


def test_a_console_without_a_reader_ends_the_command(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            data().print("a record")
    assert ended.value.code == terminal.READER_GONE
