import numpy as np
import pytest
from rich.cells import cell_len

from datum import Feature, Sparse
from datum.cli.record_values import (
    Cell,
    clean,
    describe_type,
    describe_value,
    shorten,
    shorten_name,
)


def describe(value, room=80, dtype="int64", shape=(), names=(), **options):
    return describe_value(Cell("x", Feature(dtype, shape), value, names), room, **options)


@pytest.mark.parametrize(
    ("feature", "told"),
    [
        (Feature("int64"), "int64"),
        (Feature("float32", (None, 3)), "float32 (?, 3)"),
        (Feature("uint8", (None, None, 3), encoding="image"), "image"),
        (Feature("uint16", (None, None, 1), encoding="image"), "image uint16"),
        (Feature("int64", (5,), encoding="sparse"), "sparse int64 (5)"),
        (Feature("str", (None,), sequence=True), "str (?) steps"),
    ],
)
def test_types_are_told_in_short(feature, told):
    assert describe_type(Cell("x", feature, None)) == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "absent"),
        (np.int64(-5), "-5"),
        (np.float32(0.1), "0.1"),
        (np.bool_(True), "true"),
        (np.datetime64("2024-01-02T03:04:05"), "2024-01-02 03:04:05"),
        (np.datetime64("NaT"), "no time"),
        (np.timedelta64(5, "s"), "5 seconds"),
        ("text", '"text"'),
        ("two\nlines\t.", '"two⏎lines ."'),
        (b"\x00", "1 B, 00"),
        (np.array([1, 2, 3]), "[1 2 3]"),
        (np.float32([[0.5, 2], [3, 4]]), "2 x 2: [[0.5 2] [3 4]]"),
        (np.zeros((0, 3)), "no values, 0 x 3"),
        (np.zeros(0), "no values"),
        ([], "no values"),
        (["a", "b"], '2 items: ["a" "b"]'),
        ([np.array([1]), np.array([], int)], "2 rows: [[1] []]"),
        ([["a"], []], '2 rows: [["a"] []]'),
        ([b"\x01", b"\x02"], "2 items of 1 B: 01 02"),
        ([b"12345", b"x"], '2 items, 6 B: 5 B, text "12345", 1 B, text "x"'),
    ],
)
def test_values_are_told_in_a_line(value, told):
    assert describe(value) == told


def test_ids_are_told_with_their_classes():
    assert describe(np.int64(1), names=["cat", "dog"]) == "1 (dog)"
    assert describe(np.int64(7), names=["cat", "dog"]) == "7"
    assert describe(np.array([1, 0]), names=["cat", "dog"]) == "[1 0]  dog, cat"
    many = np.array([1] * 9 + [0])
    assert describe(many, names=["cat", "dog"]).endswith("  9 dog, 1 cat")


def test_many_numbers_are_abbreviated_with_their_range():
    values = np.arange(1000)
    assert describe(values) == "1,000: [0 1 2 … 997 998 999]  0..999"
    assert describe(values, shape=(1000,), has_shape=True) == "[0 1 2 … 997 998 999]  0..999"
    assert describe(values, room=32) == "1,000: [0 1 … 998 999]  0..999"
    assert describe(values, room=24) == "1,000: 0..999"
    assert describe(np.full(50, 2.5)) == "50: [2.5 2.5 2.5 … 2.5 2.5 2.5]  all 2.5"
    odd = np.array([np.nan] * 3 + [1.0] * 50 + [2.0])
    assert describe(odd).endswith("  1..2, 3 not finite")
    assert "no number" in describe(np.full(50, np.nan))
    assert describe(np.arange(100).astype("datetime64[D]"), room=200).endswith(
        "  1970-01-01..1970-04-10"
    )


def test_sparse_values_are_told_by_their_places():
    one = Sparse(np.array([[1], [30]]), np.array([0.5, 2.0]), (1000,))
    assert describe(one) == "2 of 1,000: 1: 0.5, 30: 2"
    two = Sparse(np.array([[1, 2]]), np.array([5]), (3, 4))
    assert describe(two) == "1 of 12: (1, 2): 5"
    none = Sparse(np.zeros((0, 1), int), np.zeros(0), (9,))
    assert describe(none) == "0 of 9 values"


def test_long_texts_are_cut_and_counted():
    told = describe("word " * 1000, room=60)
    assert told.endswith('…" (5,000 characters)')
    assert len(told) <= 60
    assert describe("word " * 1000, room=20) == '"word word word wo…"'
    wide = describe("日本語" * 100, room=60)
    assert cell_len(wide) <= 60
    assert wide.endswith("(300 characters)")


@pytest.mark.parametrize("room", [12, 20, 40, 80])
def test_nothing_is_wider_than_its_room(room):
    values = [np.arange(5000.0).reshape(50, 100), ["text"] * 50, np.arange(9) * 10**9, b"x" * 500]
    values += [Sparse(np.arange(50)[:, None], np.arange(50), (10**6,)), [b"abcdefgh"] * 40]
    for value in values:
        assert cell_len(describe(value, room=room)) <= room + 2


def test_names_keep_their_ends():
    assert shorten_name("observation/walker/joints_pos", 14) == "…er/joints_pos"
    assert shorten_name("short", 14) == "short"
    assert shorten("abcdef", 3) == "ab…"


def test_controls_are_spelt_out():
    assert clean("\x00é\u202e") == "\\x00é\\u202e"
