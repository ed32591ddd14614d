"""Columns filled up to dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datum.columns import BytesColumn, Ragged, Sparse
from datum.loading.padding import Padder
from datum.schema import Feature
from tests.unit.loading.memory_source import MemorySource, load

NUMBERS = Ragged(np.array([1, 2, 3], np.uint8), np.array([0, 1, 3]))
WORDS = Ragged(BytesColumn.from_values(["a", "b", "c"]), np.array([0, 1, 3]))
SPARSE = Sparse(np.array([[0, 1]]), np.array([5.0]), (1, 2))


def padded(column: Any, value: Any) -> Any:
    return Padder({"x": value}).pad({"x": column})["x"].tolist()


def test_all_columns_are_filled_with_zeros_and_empty_strings() -> None:
    dense = np.ones(2)
    batch = {"n": NUMBERS, "w": WORDS, "s": SPARSE, "d": dense, "t": (NUMBERS, dense)}
    made = Padder(True).pad(batch)
    assert made["n"].tolist() == [[1, 0], [2, 3]]
    assert made["w"].tolist() == [["a", ""], ["b", "c"]]
    assert made["s"].tolist() == [[0, 5]]
    assert made["d"] is dense
    assert made["t"][0].tolist() == [[1, 0], [2, 3]]


def test_columns_are_filled_with_values_by_name() -> None:
    made = Padder({"n": 7, "w": None}).pad({"n": NUMBERS, "w": WORDS, "s": SPARSE})
    assert made["n"].tolist() == [[1, 7], [2, 3]]
    assert made["n"].dtype == np.uint8
    assert made["w"].tolist() == [["a", ""], ["b", "c"]]
    assert made["s"] is SPARSE


def test_every_kind_takes_a_value() -> None:
    assert padded(WORDS, "-") == [["a", "-"], ["b", "c"]]
    assert padded(SPARSE, -1) == [[-1, 5]]
    nested = Ragged(NUMBERS, np.array([0, 2, 2]))
    assert padded(nested, 9) == [[[1, 9], [2, 3]], [[9, 9], [9, 9]]]


def test_lists_of_arrays_are_filled_to_the_largest() -> None:
    images = [np.ones((1, 3, 1), np.uint8), np.full((2, 2, 1), 2, np.uint8)]
    made = Padder(True).pad({"image": images})["image"]
    assert made.dtype == np.uint8
    assert made[..., 0].tolist() == [[[1, 1, 1], [0, 0, 0]], [[2, 2, 0], [2, 2, 0]]]
    assert Padder({"image": 255}).pad({"image": images})["image"].max() == 255


def test_lists_of_anything_else_stay() -> None:
    for values in ([], ["a", 1], [np.ones(1), np.ones((1, 1))]):
        assert Padder(True).pad({"x": values})["x"] is values


def test_without_pad_the_batch_is_as_it_was() -> None:
    batch = {"n": NUMBERS}
    assert Padder(False).pad(batch) is batch
    assert Padder({}).pad(batch) is batch


@pytest.mark.parametrize(
    ("column", "value"),
    [(NUMBERS, 1.5), (NUMBERS, -1), (NUMBERS, "a"), (WORDS, 1), (WORDS, b"a"), (NUMBERS, [1])],
)
def test_values_that_do_not_fit_are_refused(column: Ragged, value: Any) -> None:
    with pytest.raises(ValueError, match="expected `pad` of 'x' to be a value of"):
        padded(column, value)


def test_unknown_names_are_refused_with_the_nearest() -> None:
    source = MemorySource([{"tokens": [1]}], {"tokens": Feature("int64", (None,))})
    with pytest.raises(ValueError, match="expected `pad` to name features, got 'token'") as caught:
        load(source, [0], pad={"token": 0})
    assert "did you mean 'tokens'?" in str(caught.value)
    with pytest.raises(ValueError, match="got 'token'"):
        load(source, [0], pad={"token": 0}, map=lambda record: record)


def test_names_can_be_those_that_map_makes() -> None:
    source = MemorySource([{"n": 1}, {"n": 2}], {"n": Feature("int64")})
    (batch,) = load(source, [0, 1], pad={"new": -1}, map=lambda r: {"new": [5] * int(r["n"])})
    assert batch["new"].tolist() == [[5, -1], [5, 5]]


def test_names_need_dicts() -> None:
    with pytest.raises(ValueError, match="expected dicts from `map` with `pad` by name, got tuple"):
        Padder({"x": 0}).pad((NUMBERS,))
