from pathlib import Path

import numpy as np
import pytest

from datum import Feature
from datum.cli.record_page import Page
from datum.cli.record_places import Found, Place
from datum.cli.record_values import Cell

FOUND = Found(Place("train", 1200, Path("folder/a.tfrecord"), 3), b"")
CELLS = [
    Cell("label", Feature("int64"), np.int64(1), ["cat", "dog"]),
    Cell("a_feature_with_a_long_name", Feature("str"), "x" * 300),
    Cell("absent", Feature("int64", optional=True), None),
]


@pytest.fixture
def lines(capsys):
    return lambda: capsys.readouterr().out.splitlines()


def test_in_a_file_nothing_is_cut(lines):
    Page().write_features(FOUND, CELLS, "")
    assert lines() == [
        "train 1,200  a.tfrecord, record 3",
        "  label                       int64  1 (dog)",
        f'  a_feature_with_a_long_name  str    "{"x" * 300}"',
        "  absent                      int64  absent",
        "",
    ]


def test_a_narrow_page_has_no_types_and_cuts_names_and_values(lines):
    Page(width=50).write_features(FOUND, CELLS, "")
    shown = lines()
    assert max(map(len, shown)) <= 50
    assert shown[1].split() == ["label", "1", "(dog)"]
    assert "…ith_a_long_name" in shown[2]
    assert shown[2].endswith('…" (300 characters)')


def test_a_stream_of_ascii_gets_ascii(lines, monkeypatch):
    monkeypatch.setattr("datum.cli.record_page.is_plain", lambda console: True)
    Page(width=60).write_features(FOUND, CELLS, "")
    shown = lines()
    assert all(line.isascii() for line in shown)
    assert "...re_with_a_long_name" in shown[2]
    assert shown[2].endswith('..." (300 characters)')


def test_problems_stand_under_the_heading(lines):
    Page().write_damage(Found(FOUND.place, None, "damaged: payload checksum"))
    assert lines()[1] == "  damaged: payload checksum"
    Page().write_payload(FOUND, b"hello", "expected int64")
    assert lines()[1:3] == ["  expected int64", '  text of 5 bytes: "hello"']


def test_what_could_steer_a_terminal_is_spelt_out(lines):
    odd = [Cell("\x1b[31mname", Feature("str"), "[bold]\x1b[2J")]
    Page().write_features(FOUND, odd, "")
    shown = lines()[1]
    assert "\x1b" not in shown
    assert "\\x1b[31mname" in shown
    assert '"[bold]\\x1b[2J"' in shown
