"""Columns and rows that lie about themselves: refused before anything is written."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from datum import BytesColumn, DatumError, Feature, Masked, Ragged, Schema, SchemaError, Sparse
from datum.format import encode, parse

INT64 = Schema({"x": Feature("int64")})
RAGGED = Schema({"x": Feature("int64", (None,))})
NESTED = Schema({"x": Feature("int64", (None, None))})
STEPS = Schema({"x": Feature("int64", (None, None), sequence=True)})


def unchecked(kind: type, **attributes: Any) -> Any:
    """A column made past its constructor."""
    column = kind.__new__(kind)
    for name, value in attributes.items():
        object.__setattr__(column, name, value)
    return column


SPLITS = [
    [0, 5, 2], [0, 4], [0, -1, 3], [-1, 3], [1, 0], [0, 2**62], [-(2**63), 3], [0, 2**63 - 1, 3],
]  # fmt: skip


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("schema", [RAGGED, None], ids=["given", "inferred"])
def test_splits_that_fall_or_overshoot_are_refused(splits, schema):
    column = unchecked(Ragged, values=np.arange(3), row_splits=np.array(splits))
    with pytest.raises((SchemaError, ValueError)):
        encode({"x": column}, schema)


@pytest.mark.parametrize("splits", SPLITS)
@pytest.mark.parametrize("schema", [NESTED, STEPS], ids=["nested", "steps"])
def test_inner_splits_that_fall_or_overshoot_are_refused(splits, schema):
    inner = unchecked(Ragged, values=np.arange(3), row_splits=np.array(splits))
    outer = unchecked(Ragged, values=inner, row_splits=np.array([0, len(splits) - 1]))
    with pytest.raises((SchemaError, ValueError, IndexError)):
        encode({"x": outer}, schema)
    inner = Ragged(np.arange(3), np.array([0, 2, 3, 3]))
    outer = unchecked(Ragged, values=inner, row_splits=np.array(splits))
    with pytest.raises((SchemaError, ValueError, IndexError)):
        encode({"x": outer}, schema)


@pytest.mark.parametrize(
    ("values", "splits"),
    [([1, 2], []), ([1, 2], [[0, 2]]), ([1, 2], [0, 3]), ([1, 2], [0, 2, 1]), ([1, 2], [-1, 2])],
)
def test_ragged_columns_check_their_splits(values, splits):
    with pytest.raises(ValueError, match="row_splits"):
        Ragged(np.array(values), np.array(splits, np.int64))


@pytest.mark.parametrize(
    "slices", [[0, 4], [4, 0], [-1, 1], [1, -1], [2**62, 2**62], [0, 2**63 - 1], [-(2**63), 1]]
)
def test_slices_outside_their_buffer_are_refused(slices):
    column = BytesColumn(b"abc", np.array(slices))
    for use in (
        lambda: encode({"x": column}, Schema({"x": Feature("bytes")})),
        column.to_list,
        lambda: column[0],
    ):
        with pytest.raises((IndexError, ValueError)):
            use()


@pytest.mark.parametrize("index", [[0, -1], [0, 5], [-1, 0], [2, 0], [0, 2**62]])
def test_sparse_places_outside_are_refused(index):
    column = Sparse(np.array([index]), np.ones(1), (2, 5))
    with pytest.raises(SchemaError, match="expected indices within"):
        encode({"x": column}, Schema({"x": Feature("float32", (5,), encoding="sparse")}))


def test_columns_of_differing_length_are_refused():
    with pytest.raises(SchemaError, match="one length"):
        encode({"a": np.zeros(3), "b": np.zeros(2)})
    with pytest.raises(ValueError, match="present"):
        Masked(np.zeros(3), np.ones(2, bool))
    masked = unchecked(Masked, values=np.zeros(3, np.int64), present=np.ones(2, bool))
    with pytest.raises((SchemaError, ValueError)):
        encode({"x": masked}, Schema({"x": Feature("int64", optional=True)}))


def test_bools_that_are_neither_0_nor_1_are_true():
    odd = np.frombuffer(b"\x02\x00\xff", bool)
    schema = Schema({"x": Feature("bool")})
    for data in ({"x": odd}, [{"x": value} for value in odd]):
        assert parse(encode(data, schema), schema)["x"].tolist() == [True, False, True]
    rows = Schema({"x": Feature("bool", (3,))})
    assert parse(encode([{"x": odd}], rows), rows)["x"].tolist() == [[True, False, True]]


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "<i4", ">u2", "<f4", ">f4", "<f8", ">f8", ">c16"])
def test_arrays_of_any_alignment_stride_and_byte_order_are_written_right(dtype):
    plain = np.arange(24, dtype=dtype)
    shifted = np.frombuffer(b"x" + plain.tobytes(), dtype, offset=1)
    assert not shifted.flags.aligned or shifted.itemsize == 1
    strided = np.repeat(plain, 3)[::3]
    reverse = plain[::-1].copy()[::-1]
    expected = encode({"x": plain}).to_bytes()
    for array in (shifted, strided, reverse):
        assert encode({"x": array}).to_bytes() == expected
    rows = encode([{"x": plain.reshape(4, 6)}]).to_bytes()
    for array in (shifted, strided, reverse, np.asfortranarray(plain.reshape(4, 6)).reshape(24)):
        assert encode([{"x": array.reshape(4, 6)}]).to_bytes() == rows
    assert encode([{"x": np.asfortranarray(plain.reshape(4, 6))}]).to_bytes() == rows


@pytest.mark.parametrize(
    "value",
    [
        object(), print, {}, {1}, 1j, "text", b"x", [[1]], [1, [2]], [None], 2**64,
        -(2**63) - 1, 1.5, float("nan"), np.datetime64(1, "s"), np.array(["a"]), np.zeros((2, 2)),
        np.array([1, "a"], object), np.array([], object), np.zeros(3, "V5"),
        np.ma.masked, np.zeros(2, [("a", "i4")]), [1] * 70_000, [True, 2.5],
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(value):
    for schema in (INT64, Schema({"x": Feature("int64", (3,))})):
        with pytest.raises(SchemaError, match="record 1, feature 'x'"):
            encode([{"x": 0 if schema is INT64 else [1, 2, 3]}, {"x": value}], schema)


def test_arrays_of_items_of_any_size_are_refused_where_numbers_are_wanted():
    schema = Schema({"x": Feature("int64", (3,))})
    for size in (*range(1, 50), 4096, 65536):
        for kind in "VSU":
            array = np.zeros(3, f"{kind}{size}")
            for given in (array, array[::-1], np.repeat(array, 2)[::2]):
                with pytest.raises(SchemaError, match="record 0, feature 'x'"):
                    encode([{"x": given}], schema)
                with pytest.raises(SchemaError, match="feature 'x'"):
                    encode({"x": given[None]}, schema)


def test_lists_nested_without_end_are_refused():
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, deep):
        for schema in (INT64, RAGGED, NESTED, STEPS):
            with pytest.raises((SchemaError, RecursionError)):
                encode([{"x": value}], schema)
        with pytest.raises((SchemaError, RecursionError)):
            encode([{"x": value}])


def test_rows_that_are_no_rows_are_refused():
    for rows in ([5], [None], ["text"], [[1]], [{1: 2}], [{None: 1}], [{"x": 1, "y": 2}]):
        with pytest.raises((SchemaError, TypeError, ValueError)):
            encode(rows, INT64)


class Shrinking(bytearray):
    """A number that empties the list it is in while it is being read."""

    def __init__(self, home: list[Any]) -> None:
        super().__init__()
        self.home = home

    def __index__(self) -> int:
        self.home.clear()
        return 1


def test_lists_that_change_while_they_are_read_do_no_harm():
    values: list[Any] = []
    values += [Shrinking(values), 2, 3, 4]
    with pytest.raises(DatumError):
        encode([{"x": values}], Schema({"x": Feature("int64", (4,))}))
    rows: list[Any] = []
    rows += [{"x": Shrinking(rows)}, {"x": 2}]
    with contextlib.suppress(DatumError):
        encode(rows, INT64)


def test_nothing_of_what_was_refused_is_kept():
    big = [2**62] * 1000
    for _ in range(3):
        with pytest.raises(SchemaError):
            encode([{"x": big}, {"x": "text"}], RAGGED)
    assert parse(encode([{"x": [1]}], RAGGED), RAGGED)["x"].to_list() == [[1]]
