import io

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import datum
from datum.cli.stats_page import render
from datum.cli.terminal import UNICODE

TO = UNICODE.to


def png(side):
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "out"
    rows = [
        {
            "x": float(n),
            "label": ["cat", "dog"][n % 2],
            "text": "again" if n % 5 == 0 else f"text {n}",
            "tokens": [n] * (n % 4),
            "day": np.datetime64("2024-01-01") + n,
            "image": png(5 + n % 3),
        }
        | ({"some": np.nan} if n % 2 else {})
        for n in range(100)
    ]
    schema = {"image": datum.Feature("uint8", (None, None, 3), encoding="image")}
    datum.write(rows, path, progress=False, schema=schema | inferred())
    return datum.profile(path)


def inferred():
    return {
        "x": datum.Feature("float32"),
        "label": datum.Feature("str"),
        "text": datum.Feature("str"),
        "tokens": datum.Feature("int64", (None,)),
        "day": datum.Feature("datetime64[D]"),
        "some": datum.Feature("float32", optional=True),
    }


def text_of(profile, width=90, encoding="utf-8"):
    file = io.TextIOWrapper(io.BytesIO(), encoding, newline="")
    page = render(profile, title="data")  # its path may be longer than a line
    Console(file=file, width=width).print(page, soft_wrap=True, highlight=False)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def block_of(profile, name, width=90):
    lines = text_of(profile, width).splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith(f"{name}  "))
    return lines[start : lines.index("", start)]


def test_numbers_have_facts_quantiles_and_a_chart(profile):
    block = block_of(profile, "x")
    assert block[0] == "x  float32  float list"
    assert block[1] == "  100 records · 100 distinct values"
    assert block[2].startswith(f"  0{TO}99 · mean 49.5 · std 28.87 · 1.0 % zeros")
    assert block[3].split() == ["5", "%", "25", "%", "50", "%", "75", "%", "95", "%"]
    assert block[4].split() == ["4.95", "24.75", "49.5", "74.25", "94.05"]
    assert len(block) == 10
    assert block[-1].split() == ["0", "99"]


def test_labels_have_bars_and_no_other_chart(profile):
    block = block_of(profile, "label")
    assert len(block) == 4
    assert block[2].split() == ["cat", "█" * 24, "50", "50.0", "%"]


def test_texts_have_sizes_those_that_occur_again_and_examples(profile):
    block = block_of(profile, "text")
    assert block[1] == "  100 records · 81 distinct values"
    again = [line.split()[0] for line in block if "█" in line and "%" in line]
    assert again == ["again"]
    assert any(line.startswith("  e.g. ") for line in block)


def test_lists_have_lengths(profile):
    assert any(f"0{TO}3 items" in line for line in block_of(profile, "tokens"))


def test_times_are_dates(profile):
    block = block_of(profile, "day")
    assert block[2].startswith(f"  2024-01-01 {TO} 2024-04-09 · mean 2024-02-19")


def test_images_are_told_by_their_headers(profile):
    sides = f"5{TO}7 {UNICODE.times} 5{TO}7"
    assert f"  100 PNG · {sides} pixels · 3 channels: 100" in block_of(profile, "image")


def test_nan_is_told_where_there_is_nothing_else(profile):
    block = block_of(profile, "some")
    assert block[1:] == ["  50 records · 50 lack it (50.0 %)", "  50 NaN"]


def test_the_end_tells_duplicates_and_warnings(profile):
    text = text_of(profile)
    assert "duplicates: 0 within, 0 across splits" in text
    assert "! NaN and infinities" in text


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_no_line_is_longer_than_the_terminal_is_wide(profile, width):
    assert max(map(len, text_of(profile, width).splitlines())) <= width


def test_a_terminal_of_ascii_gets_ascii(profile):
    assert "?" not in text_of(profile, encoding="ascii").replace("? x ? x 3", "").replace("  ?", "")
