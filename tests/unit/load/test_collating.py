"""Values of many records into columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from datum._load.collate import collate, empty_like
from datum.columns import BytesColumn, Ragged, Sparse


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([1, 2.5], "float64"),
        ([True, False], "bool"),
        ([np.float32(1), np.float32(2)], "float32"),
        ([np.datetime64("2020-01-01"), np.datetime64("2020-01-02")], "datetime64[D]"),
    ],
)
def test_numbers_are_stacked(values: list[Any], dtype: str) -> None:
    column = collate(values)
    assert column.dtype == dtype
    assert column.tolist() == np.array(values).tolist()


def test_arrays_of_one_shape_are_stacked() -> None:
    column = collate([np.ones((2, 3), np.uint8), np.zeros((2, 3), np.uint8)])
    assert column.shape == (2, 2, 3)
    assert column.dtype == np.uint8


def test_rows_of_differing_length_are_ragged() -> None:
    column = collate([np.ones((2, 3)), np.ones((0, 3)), np.ones((1, 3))])
    assert isinstance(column, Ragged)
    assert column.row_lengths.tolist() == [2, 0, 1]


def test_arrays_that_differ_in_more_are_listed() -> None:
    values = [np.ones((2, 3)), np.ones((2, 4))]
    column = collate(values)
    assert isinstance(column, list)
    assert column[1] is values[1]
    assert isinstance(collate([np.ones(2), np.ones((2, 2))]), list)


def test_lists_count_as_arrays() -> None:
    assert collate([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    ragged = collate([[1], [], [2, 3]])
    assert ragged.dtype == np.int64
    assert ragged.to_list() == [[1], [], [2, 3]]
    assert collate([[], []]).shape == (2, 0)
    assert collate([[[1], [1, 2]], [[1]]]) == [[[1], [1, 2]], [[1]]]


def test_texts_and_bytes_make_object_arrays() -> None:
    for values in (["a", "bc"], [b"a", b""]):
        column = collate(values)
        assert column.dtype == object
        assert column.tolist() == values


def test_lists_of_texts_are_stacked_or_ragged() -> None:
    assert collate([["a", "b"], ["c", "d"]]).tolist() == [["a", "b"], ["c", "d"]]
    ragged = collate([["a", "b"], [], np.array(["c"], object)])
    assert ragged.to_list() == [["a", "b"], [], ["c"]]
    assert collate([np.array(["ab", "c"]), np.array(["d", "e"])]).dtype == object
    column = BytesColumn.from_values(["x", "y"])
    assert collate([column, column]).tolist() == [["x", "y"], ["x", "y"]]


def test_dicts_and_tuples_are_gone_into() -> None:
    made = collate([{"a": (1, {"b": "x"})}, {"a": (2, {"b": "y"})}])
    assert made["a"][0].tolist() == [1, 2]
    assert made["a"][1]["b"].tolist() == ["x", "y"]
    pair = collate([Pair(1, "a"), Pair(2, "b")])
    assert isinstance(pair, Pair)
    assert pair.right.tolist() == ["a", "b"]


def test_ragged_rows_get_one_level_more() -> None:
    first = Ragged(np.array([1, 2, 3]), np.array([0, 1, 3]))
    second = Ragged(np.array([4]), np.array([0, 1]))
    column = collate([first, second])
    assert column.to_list() == [[[1], [2, 3]], [[4]]] or [row.to_list() for row in column] == [
        [[1], [2, 3]],
        [[4]],
    ]
    words = Ragged(BytesColumn.from_values(["a", "b"]), np.array([0, 2]))
    none = Ragged(BytesColumn(b"", np.empty((0, 2), np.int64), is_text=True), np.array([0]))
    assert [row.to_list() for row in collate([words, none])] == [[["a", "b"]], []]
    assert isinstance(collate([first, Ragged(np.ones((1, 2)), np.array([0, 1]))]), list)


def test_sparse_rows_make_one_sparse() -> None:
    rows = [Sparse(np.array([[n]]), np.array([n + 1.0]), (3,)) for n in range(3)]
    assert collate(rows).to_dense().tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert isinstance(collate([rows[0], Sparse(np.array([[0]]), np.array([1.0]), (5,))]), list)


def test_all_else_makes_a_list() -> None:
    for values in ([None, None], [object(), object()], ["a", 1], [1, "a"], [{1}, {2}]):
        assert collate(values) == values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [{"a": 1}, {"b": 1}],
            "here 1: expected the same keys .* here 0, got 'a' missing, 'b' too",
        ),
        ([{"a": {"b": 1}}, {"a": {}}], r"in \['a'\], got 'b' missing"),
        ([{"a": 1}, 5], "expected a dict from `map` as for here 0, got int"),
        ([(1, 2), (1,)], "expected 2 parts from `map` as for here 0, got 1"),
        ([(1, 2), 3], "expected a tuple .* got int"),
    ],
)
def test_structures_that_differ_are_errors(values: list[Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        collate(values, describe="here {}".format)


def test_an_empty_batch_has_the_columns_of_another() -> None:
    ragged = Ragged(np.array([1]), np.array([0, 1]))
    sparse = Sparse(np.array([[0, 1]]), np.array([1.0]), (1, 3))
    batch = {"a": np.ones((1, 2)), "b": (ragged, [np.ones(1)]), "c": sparse, "p": Pair(ragged, 0)}
    batch["p"] = Pair(ragged, np.ones(1))
    empty = empty_like(batch)
    assert empty["a"].shape == (0, 2)
    assert len(empty["b"][0]) == len(empty["c"]) == len(empty["p"].right) == 0
    assert empty["b"][1] == []
