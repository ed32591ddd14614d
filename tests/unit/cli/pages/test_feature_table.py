import numpy as np
import pytest

import datum
from datum import Feature
from datum.cli.feature_table import (
    describe_shape,
    describe_stored,
    describe_values,
    feature_table,
)
from datum.cli.terminal import ASCII, UNICODE

TO = UNICODE.to


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "out"
    rng = np.random.default_rng(0)
    rows = [
        {
            "score": float(rng.normal()),
            "a/very/long/name/of/a/feature/that/ends/in/x": n % 2 == 0,
            "city": ["Bonn", "Ulm", "Köln"][n % 3],
            "label": n % 4,
            "tokens": list(range(n % 6)),
            "text": f"the text of record {n}",
        }
        | ({"some": n} if n % 4 else {})
        for n in range(100)
    ]
    datum.write(rows, path, progress=False)
    return datum.profile(path).features


def lines_of(features, width, signs=UNICODE):
    return [line.plain for line in feature_table(features, width, signs)]


def test_a_wide_table_shows_all_columns(features):
    heading = lines_of(features, 4096)[0].split("  ")
    titles = [title.strip() for title in heading if title.strip()]
    assert titles == [
        "feature",
        "type",
        "shape",
        "stored as",
        "missing",
        "values",
        "mean",
        "distribution",
    ]


@pytest.mark.parametrize("width", [200, 120, 100, 80, 60, 45, 30])
def test_every_width_has_room_for_every_feature(features, width):
    lines = lines_of(features, width)
    assert len(lines) == 1 + len(features)
    assert all(len(line) <= width for line in lines)


def test_how_it_is_stored_and_the_histogram_give_way_first(features):
    wide, narrow = lines_of(features, 130)[0], lines_of(features, 70)[0]
    assert "stored as" not in narrow
    assert "distribution" not in narrow
    assert "values" in narrow
    assert "distribution" in wide


def test_nothing_is_cut_where_there_is_room(features):
    lines = lines_of(features, 4096)
    assert lines[2].startswith("a/very/long/name/of/a/feature/that/ends/in/x  bool")
    assert "…" not in "".join(lines)


def test_ascii_is_ascii(features):
    lines = lines_of({name: one for name, one in features.items() if name != "city"}, 120, ASCII)
    assert all(line.isascii() for line in lines)


def test_features_without_missing_values_need_no_column_for_them(features):
    assert "missing" not in lines_of({"label": features["label"]}, 4096)[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("city", "3 values: Bonn 34.0 %, Köln 33.0 %, Ulm 33.0 %"),
        ("label", "4 values"),
        ("tokens", f"0{TO}4, 0{TO}5 a record"),
        ("a/very/long/name/of/a/feature/that/ends/in/x", "50.0 % true"),
        ("some", f"1{TO}99"),
    ],
)
def test_values_are_told_in_a_few_words(features, name, text):
    assert describe_values(features[name], UNICODE) == text


def test_texts_show_one_of_them(features):
    assert describe_values(features["text"], UNICODE).startswith(
        f'all differ, 20{TO}21 B, "the text'
    )


def test_shapes_and_storage_are_told():
    assert (
        describe_shape(Feature("uint8", (None, 1000, 3)), UNICODE)
        == f"? {UNICODE.times} 1,000 {UNICODE.times} 3"
    )
    assert describe_shape(Feature("int64"), UNICODE) == ""
    assert describe_stored(Feature("uint8", (8, 8), encoding="raw")) == "raw bytes"
    assert describe_stored(Feature("bfloat16")) == "float list"
    assert describe_stored(Feature("str", (None,), sequence=True)) == "bytes list, sequence"
    assert describe_stored(Feature("float64", (9,), encoding="sparse")) == "sparse, raw bytes"
    assert describe_stored(Feature("uint8", (1, 1, 3), encoding="image")) == "image file"


def test_a_name_that_steers_a_terminal_is_spelt_out(tmp_path):
    datum.write([{"a\x1b[2J": 1}], tmp_path / "out", progress=False)
    features = datum.profile(tmp_path / "out").features
    assert lines_of(features, 80)[1].startswith("a\\x1b[2J")
