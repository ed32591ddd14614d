"""Bars in terminals of any width, in colour or not."""

import io

import pytest
from rich.console import Console

from datum._inspect.measure.measurement import Speed
from datum.cli.bench_page import show
from tests.unit.measure.made import make_measurement


def shown(found, *, width=100, encoding="utf-8", terminal=False):
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding=encoding, errors="replace", newline="\n")
    console = Console(
        file=file, width=width, force_terminal=terminal, color_system=None, legacy_windows=False
    )
    show(found, console)
    file.flush()
    return buffer.getvalue().decode(encoding)


def test_everything_is_shown():
    text = shown(make_measurement())
    assert text.startswith("photos: split train: 12,345 records, 10 shards, 1.2 GB\nSome CPU, ")
    for words in (
        "90 %",
        "records/s so far",
        "at first, beside it: inflating 12.5 µs a record, the disk gives 500 MB/s, opening 300 µs",
        "DataLoader, 2 workers",
        "2,000   200  ±4 %",
        "to_tf graph: no such <format>",
        "not installed: jax",
        "Bottleneck: decoding takes 90 % of the time: 900 µs.",
        "longer than 32.0 ms does not wait for data (to_numpy).",
        "1. 12x measured: images fit in memory\n     ds.to_numpy(..., cache=True)\n",
        "Note: the machine is busy.",
    ):
        assert words in text, words


@pytest.mark.parametrize("width", [40, 60, 72, 80, 110, 200])
@pytest.mark.parametrize("terminal", [False, True])
def test_no_line_is_longer_than_the_terminal_is_wide(width, terminal):
    text = shown(make_measurement(), width=width, terminal=terminal)
    assert max(map(len, text.splitlines())) <= width
    assert "decode" in text
    assert "900" in text
    assert "2,000" in text


def test_what_a_stage_does_is_told_where_there_is_room():
    assert "images into pixels" in shown(make_measurement(), width=120)
    assert "images into pixels" not in shown(make_measurement(), width=80)


def test_narrow_terminals_keep_shares_and_speeds():
    text = shown(make_measurement(), width=60)
    assert "so far" not in text
    assert "90 %" in text
    assert "2,000" in text


def test_ascii_has_other_bars_and_units():
    text = shown(make_measurement(), encoding="ascii")
    assert "?" not in text
    assert "####" in text
    assert "us/record" in text
    assert "+-4 %" in text


def test_files_get_no_blanks_at_the_ends_of_lines():
    lines = shown(make_measurement(), width=4096).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_names_are_never_markup_and_never_steer_the_terminal():
    speed = Speed("tf", "to_tf graph", "", problem="[bold]x[/] \x1b[2J")
    found = make_measurement(path="[red]pets[/red]\x1b[2J", speeds=(speed,))
    text = shown(found)
    assert "[red]pets[/red]\\x1b[2J" in text
    assert "[bold]x[/] \\x1b[2J" in text
    assert "\x1b" not in text


def test_a_long_path_has_a_line_of_its_own():
    path = "/a/" + "long/" * 30
    assert f"{path}:\nsplit train" in shown(make_measurement(path=path), width=120).replace(
        "\nlong", "long"
    ).replace(path[:120] + "\n", path[:120])


def test_stages_alone():
    text = shown(make_measurement(speeds=(), advice=(), bottleneck=None, missing=()))
    assert "What a program gets" not in text
    assert "What to change" not in text
    assert "stands out" not in text


def test_nothing_to_change_is_said():
    assert "Nothing to change stands out." in shown(make_measurement(advice=()))
