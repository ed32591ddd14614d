"""`datum stats`: statistics of features and splits."""

import io
import json

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

import datum
from datum._inspect.profile.results import ProfileWarning
from datum.cli.app import app
from datum.cli.feature_table import balance, balanced_features, bar, densities, rows, sparkline
from datum.cli.info_page import show_warnings
from datum.cli.stats_page import render
from datum.cli.terminal import ASCII, UNICODE
from datum.format import Manifest, RecordWriter


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    datum.write(
        {"x": np.arange(300, dtype=np.float32), "y": np.arange(300) % 5}, "out", progress=False
    )
    return tmp_path


def stats(*arguments):
    found = CliRunner().invoke(app, ["stats", *map(str, arguments)])
    assert found.exception is None or isinstance(found.exception, SystemExit)
    return found


def test_every_feature_has_a_block(folder):
    found = stats("out")
    assert found.exit_code == 0
    assert "\nx  float32  float list\n" in found.stdout
    assert "\ny  int64  int64 list\n" in found.stdout


def test_some_features_can_be_chosen(folder):
    assert list(json.loads(stats("out", "--columns", "y", "--json").stdout)["features"]) == ["y"]
    found = stats("out", "--columns", "z")
    assert found.exit_code == 1
    assert "expected a feature of the schema, got 'z'" in found.stderr


def test_json_holds_the_whole_profile(folder):
    document = json.loads(stats("out", "--json").stdout)
    assert document["complete"]
    assert document["features"]["y"]["counts"]["distinct"] == 5


def test_a_sample_is_told_as_such(folder):
    assert "read 10 of 300 records" in stats("out", "--sample", 10).stdout


def test_statistics_can_be_kept(folder):
    manifest = Manifest.load("out")
    Manifest(manifest.schema, manifest.splits).save("out")
    found = stats("out", "--save", "--json")
    assert found.exit_code == 0
    assert "saved: " in found.stderr
    assert Manifest.load("out").statistics == manifest.statistics


def test_there_is_no_place_to_keep_those_of_bare_files(folder):
    for file in (folder / "out").glob("*.json"):
        file.unlink()
    found = stats("out", "--save")
    assert found.exit_code == 1
    assert "hint:" in found.stderr


def test_records_of_another_kind_are_told_by_their_bytes(folder):
    with RecordWriter("text.tfrecord") as writer:
        writer.write(b"only text")
    found = stats("text.tfrecord")
    assert found.exit_code == 0
    assert "plain text" in found.stdout


def test_it_names_no_option_that_it_has_not(folder):
    found = stats("out", "--sample", 10)
    assert "read 10 of 300 records" in found.stdout
    assert "--full" not in found.stdout


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


@pytest.fixture
def unbalanced(tmp_path):
    rng = np.random.default_rng(0)

    def rows(count, start):
        labels = rng.permutation([min(n % 40, 14) for n in range(count)]).tolist()
        return [{"id": start + n, "label": f"class {label}"} for n, label in enumerate(labels)]

    splits = {"train": rows(400, 0), "val": rows(80, 1000)}
    datum.write(None, tmp_path / "out", splits=splits, progress=False)
    return datum.profile(tmp_path / "out")


def lines_of(profile, width=120, signs=UNICODE, shown=10):
    return [line.plain for line in balance(profile, "label", width, signs, shown=shown)]


def test_frequent_classes_come_first_and_the_rest_is_summed(unbalanced):
    lines = lines_of(unbalanced, shown=3)
    assert lines[0] == f"label  15 values · most frequent 26.0 {UNICODE.times} the rarest"
    assert lines[1].split() == [
        "class",
        "14",
        "█" * 24,
        "312",
        "65.0",
        "%",
        "train",
        "260",
        "val",
        "52",
    ]
    assert lines[-1].split() == ["…", "12", "more", "144", "30.0", "%"]
    assert len(lines) == 5


def test_all_classes_may_be_shown(unbalanced):
    assert len(lines_of(unbalanced, shown=50)) == 16


@pytest.mark.parametrize("width", [120, 80, 60, 40])
def test_splits_and_bars_give_way_on_narrow_terminals(unbalanced, width):
    assert all(len(line) <= width for line in lines_of(unbalanced, width)[1:])
    assert ("train" in "".join(lines_of(unbalanced, width))) == (width >= 80)


def test_ascii_is_ascii(unbalanced):
    assert all(line.isascii() for line in lines_of(unbalanced, signs=ASCII))


def test_counts_of_a_sample_are_told_as_such(tmp_path):
    rows = [{"id": n, "label": n % 30} for n in range(3000)]
    datum.write(rows, tmp_path / "out", progress=False)
    profile = datum.profile(tmp_path / "out", sample=300)
    assert "≈" in lines_of(profile)[1]


def test_only_labels_are_balanced(unbalanced):
    assert balanced_features(unbalanced.features) == ["label"]


def test_the_highest_bin_is_full_and_a_sliver_is_not_nothing():
    assert sparkline([1000, 1, 0, 500], UNICODE) == "█▁ ▄"
    assert sparkline([1000, 1, 0, 500], ASCII) == "%. ="
    assert sparkline([0, 0], UNICODE) == ""
    assert sparkline([], UNICODE) == ""


def test_neighbouring_bins_are_joined():
    assert densities(range(9), [1] * 8, 4) == [1.0] * 4
    assert len(densities(range(41), [1] * 40, 16)) == 14


def test_a_narrow_last_bin_is_as_high_as_the_others():
    assert densities([0, 3, 6, 7], [3, 3, 1], 10) == [1.0, 1.0, 1.0]


def test_bins_without_width_have_a_height():
    assert densities([5.0, 5.0], [7], 10) == [1.0]


def test_columns_stand_on_the_last_row():
    assert rows([1, 2, 4], 2, UNICODE) == ["  █", "▄██"]
    assert rows([0, 0], 2, UNICODE) == []


@pytest.mark.parametrize(("share", "text"), [(0, ""), (0.001, "▏"), (0.5, "██"), (1, "████")])
def test_bars_are_as_long_as_their_share(share, text):
    assert bar(share, 4, UNICODE) == text


def test_no_bar_is_longer_than_its_room():
    assert bar(1.7, 4, ASCII) == "####"


MISSING = [
    ProfileWarning("missing", f"{n} % lack it", "fill them in", f"feature {n}", figure=f"{n} %")
    for n in range(10)
]
LEAK = ProfileWarning("leakage", "2 records of val are in train too", "drop them", split="val")


def warning_lines(warnings, width=80, **options):
    return [line.plain for line in show_warnings(warnings, width, UNICODE, **options)]


def test_one_warning_has_a_title_a_sentence_and_a_hint():
    assert warning_lines([LEAK]) == [
        "! records in two splits",
        "  2 records of val are in train too",
        "  hint: drop them",
    ]


def test_a_warning_of_a_feature_names_it():
    assert warning_lines(MISSING[:1])[1] == "  feature 0: 0 % lack it"


def test_many_of_one_kind_are_one_list():
    text = " ".join(line.strip() for line in warning_lines(MISSING))
    assert text.startswith("! missing values 10 features: feature 0 (0 %), feature 1 (1 %),")
    assert "feature 5 (5 %) and 4 more" in text
    assert text.count("hint:") == 1


def test_in_a_file_nothing_is_cut_or_wrapped():
    lines = warning_lines(MISSING, 4096)
    assert len(lines) == 3
    assert "feature 9 (9 %)" in lines[1]


@pytest.mark.parametrize("width", [120, 60, 40])
def test_lines_are_as_long_as_the_terminal_is_wide(width):
    assert all(len(line) <= width for line in warning_lines([LEAK, *MISSING], width))


def test_names_of_strangers_cannot_steer_a_terminal():
    warning = ProfileWarning("missing", "5 % lack it", "fill in", "a\x1b[2J", figure="5 %")
    for warnings in ([warning], [warning, warning]):
        assert "\x1b" not in "".join(warning_lines(warnings))


def test_warnings_in_ascii_are_ascii():
    lines = show_warnings([LEAK, *MISSING], 80, ASCII)
    assert all(line.plain.isascii() for line in lines)
