"""How far a write has come."""

import sys

import pytest

from datum._write import report
from datum._write.report import show_progress


def test_nothing_is_said_when_nothing_is_wanted(capfd):
    with show_progress(False) as shown:
        shown.stage("writing", 10)
        shown.advance(10, 100)
    assert capfd.readouterr() == ("", "")
    assert (shown.records, shown.nbytes) == (10, 100)


def test_without_a_terminal_there_is_a_line_now_and_then(capfd, monkeypatch):
    monkeypatch.setattr(report, "LINE_SECONDS", 0.0)
    with show_progress(None) as shown:
        shown.stage("writing", 10)
        shown.advance(5, 100)
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("writing: 5 of 10 records, ")
    assert err.count("\n") == 1


def test_a_short_write_says_nothing_without_a_terminal(capfd):
    with show_progress(None) as shown:
        shown.stage("writing", None)
        shown.advance(5, 100)
    assert capfd.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(capfd, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with show_progress(None) as shown:
        shown.stage("writing", 10)
        shown.advance(5, 100)
    out, err = capfd.readouterr()
    assert out == ""
    assert "writing" in err
    assert "5/10" in err
    assert "records/s" in err


def test_a_stage_starts_to_count_anew():
    with show_progress(False) as shown:
        shown.advance(5, 100)
        shown.stage("writing", 10)
        assert shown.records == 0
        shown.advance(1, 10)
        records, nbytes = shown.rates
    assert nbytes == pytest.approx(10 * records)
