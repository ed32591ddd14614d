"""Columns filled up to dense arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datum._load.padding import Pad, Padder
from datum.columns import BytesColumn, Ragged, Sparse
from datum.schema import Feature
from tests.unit.load.memory_source import MemorySource, finish, load, plan

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


# Pads: lengths, multiples, masks.


def pad_one(column: Any, pad: Any) -> dict[str, Any]:
    made = Padder({"x": pad}).pad({"x": column})
    return {name: array.tolist() for name, array in made.items()}


def test_a_number_is_the_length_of_every_ragged_column_and_adds_masks() -> None:
    dense = np.ones(2)
    made = Padder(3).pad({"n": NUMBERS, "d": dense, "w": WORDS})
    assert list(made) == ["n", "n_mask", "d", "w", "w_mask"]
    assert made["n"].tolist() == [[1, 0, 0], [2, 3, 0]]
    assert made["n"].dtype == np.uint8
    assert made["n_mask"].tolist() == [[True, False, False], [True, True, False]]
    assert made["n_mask"].dtype == np.bool_
    assert made["w"].tolist() == [["a", "", ""], ["b", "c", ""]]
    assert made["d"] is dense


def test_in_a_dict_a_number_is_the_value_and_a_pad_says_more() -> None:
    made = Padder({"n": 3, "w": Pad(length=3, value="-")}).pad({"n": NUMBERS, "w": WORDS})
    assert list(made) == ["n", "w", "w_mask"]
    assert made["n"].tolist() == [[1, 3], [2, 3]]
    assert made["w"].tolist() == [["a", "-", "-"], ["b", "c", "-"]]


@pytest.mark.parametrize(
    ("lengths", "multiple", "expected"),
    [([1, 2], 2, 2), ([1, 3], 2, 4), ([0, 0], 4, 4), ([], 4, 4), ([5], 1, 5)],
)
def test_a_multiple_holds_the_longest_row_and_is_at_least_one(
    lengths: list[int], multiple: int, expected: int
) -> None:
    column = Ragged.from_rows([[1] * n for n in lengths], dtype=np.int64)
    made = Padder(Pad(multiple=multiple)).pad({"x": column})
    assert made["x"].shape == made["x_mask"].shape == (len(lengths), expected)
    assert made["x_mask"].sum(axis=1).tolist() == lengths


def test_a_pad_without_numbers_adds_masks_to_the_longest_row() -> None:
    assert pad_one(NUMBERS, Pad()) == {"x": [[1, 0], [2, 3]], "x_mask": [[True, False], [True] * 2]}
    assert pad_one(NUMBERS, Pad(length=3, mask=False)) == {"x": [[1, 0, 0], [2, 3, 0]]}


def test_longer_rows_are_cut_only_where_asked() -> None:
    assert pad_one(NUMBERS, Pad(length=1, truncate=True)) == {
        "x": [[1], [2]],
        "x_mask": [[True], [True]],
    }
    with pytest.raises(ValueError, match="row 1, feature 'x': expected at most 1 values") as caught:
        pad_one(NUMBERS, Pad(length=1))
    assert "got 2\nhint: datum.Pad(length=1, truncate=True)" in str(caught.value)


def test_a_row_that_is_too_long_is_named_by_its_record() -> None:
    rows = [{"tokens": [1] * n} for n in (2, 1, 5, 1)]
    source = MemorySource(rows, {"tokens": Feature("int64", (None,))}, lost=(1,))
    message = "memory: record 2 at byte 20, feature 'tokens': expected at most 4 values.*got 5"
    for options in ({}, {"map": lambda record: record}, {"remainder": "pad"}):
        with pytest.raises(ValueError, match=message):
            load(source, [0, 1, 2, 3], pad=4, on_error="skip", **options)


GRID = Feature("float32", (None, None), encoding="raw")


def test_tensors_that_happen_to_be_alike_are_padded_too() -> None:
    rows = [{"grid": np.ones((2, 3), np.float32)}] * 2 + [{"grid": np.ones((1, 5), np.float32)}]
    source = MemorySource(rows, {"grid": GRID})
    for pad in (Pad(length=(4, 8)), {"grid": Pad(length=(4, 8))}, Pad(multiple=(4, 8))):
        alike, unlike = load(source, [0, 1], [1, 2], pad=pad)
        assert alike["grid"].shape == unlike["grid"].shape == (2, 4, 8)
        assert alike["grid_mask"].sum(axis=(1, 2)).tolist() == [6, 6]
        assert unlike["grid_mask"].sum(axis=(1, 2)).tolist() == [6, 5]
    with pytest.raises(ValueError, match=r"feature 'grid': expected `length` of 2 number\(s\)"):
        load(source, [0], pad=8)


def test_columns_that_map_makes_are_padded_by_name_even_if_they_are_alike() -> None:
    source = MemorySource([{"n": n} for n in (1, 2, 2)], {"n": Feature("int64")})
    for pad in ({"new": Pad(length=4)}, {"new": Pad(multiple=4)}):
        unlike, alike = load(source, [0, 1], [1, 2], pad=pad, map=lambda r: {"new": [5] * r["n"]})
        assert unlike["new_mask"].sum(axis=1).tolist() == [1, 2]
        assert alike["new"].tolist() == [[5, 5, 0, 0]] * 2
        assert alike["new_mask"].sum(axis=1).tolist() == [2, 2]
    with pytest.raises(ValueError, match="column 'n': expected rows of 1 or more dimensions"):
        load(source, [0], pad={"n": Pad(length=4)}, map=lambda record: record)


def test_what_has_one_shape_takes_no_pad_by_name() -> None:
    source = MemorySource([{"n": 1}], {"n": Feature("int64")})
    with pytest.raises(ValueError, match="feature 'n': expected `pad` with a length for what diff"):
        load(source, [0], pad={"n": Pad(length=4)})
    (batch,) = load(source, [0], pad=4)
    assert list(batch) == ["n"]


def test_a_sparse_column_becomes_dense_without_a_mask() -> None:
    assert pad_one(SPARSE, Pad(length=9, value=-1)) == {"x": [[-1, 5]]}
    assert list(Padder(9).pad({"s": SPARSE})) == ["s"]


def test_a_column_that_has_the_name_of_a_mask_is_refused() -> None:
    features = {"x": Feature("int64", (None,)), "x_mask": Feature("int64")}
    source = MemorySource([{"x": [1], "x_mask": 1}], features)
    for pad in (4, Pad(), {"x": Pad(length=4)}):
        for options in ({}, {"map": lambda record: record}):
            with pytest.raises(
                ValueError, match="expected no column 'x_mask' beside 'x'"
            ) as caught:
                load(source, [0], pad=pad, **options)
            assert "datum.Pad(mask=False)" in str(caught.value)
    (batch,) = load(source, [0], pad=Pad(length=4, mask=False))
    assert batch["x_mask"].tolist() == [1]


def test_masks_need_names() -> None:
    made = Padder(Pad(length=2, mask=False)).pad((NUMBERS, {"n": NUMBERS}))
    assert made[0].tolist() == made[1]["n"].tolist() == [[1, 0], [2, 3]]
    assert list(Padder(2).pad(({"n": NUMBERS},))[0]) == ["n", "n_mask"]
    with pytest.raises(ValueError, match=r"a `pad` that adds masks.*got a tuple"):
        Padder(2).pad((NUMBERS, NUMBERS))


def test_records_that_fill_up_a_batch_have_masks_of_their_own() -> None:
    rows = [{"tokens": [1] * n} for n in (2, 1, 3)]
    source = MemorySource(rows, {"tokens": Feature("int64", (None,))})
    plans = [plan([2, 0, 1], real=1)]
    (finished,) = finish(source, plans, pad=4, remainder="pad")
    assert finished.batch["batch_mask"].tolist() == [True, False, False]
    assert finished.batch["tokens_mask"].sum(axis=1).tolist() == [3, 2, 1]


def test_a_batch_without_a_sound_record_has_the_same_columns() -> None:
    source = MemorySource(
        [{"tokens": [1], "grid": np.ones((1, 1), np.float32)}],
        {"tokens": Feature("int64", (None,)), "grid": GRID},
        lost=(0,),
    )
    pad = {"tokens": Pad(length=4), "grid": Pad(length=(2, 2))}
    (batch,) = load(source, [0], pad=pad, on_error="skip")
    shapes = {name: column.shape for name, column in batch.items()}
    masks = {"tokens_mask": (0, 4), "grid_mask": (0, 2, 2)}
    assert shapes == {"tokens": (0, 4), "grid": (0, 2, 2), **masks}


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"length": 0}, ValueError),
        ({"length": 1.5}, TypeError),
        ({"length": (2, 0)}, ValueError),
        ({"multiple": -1}, ValueError),
        ({"length": 4, "multiple": 4}, ValueError),
        ({"truncate": 1}, TypeError),
        ({"mask": None}, TypeError),
    ],
)
def test_pads_that_make_no_sense_are_refused(wrong: dict[str, Any], error: Any) -> None:
    with pytest.raises(error, match="expected"):
        Pad(**wrong)


@pytest.mark.parametrize("length", [2**45, 2**62, 2**70])
@pytest.mark.parametrize("option", ["length", "multiple"])
def test_a_size_that_no_memory_holds_is_refused_by_the_name_of_the_option(
    length: int, option: str
) -> None:
    wide = Ragged(np.zeros(3, np.int64), np.array([0, 1, 3]))
    for column in (wide, [np.zeros(2), np.zeros(3)]):
        pad: Any = Pad(**{option: (length,)})
        with pytest.raises(ValueError, match="feature 'x': expected `pad` to a size that memory"):
            Padder({"x": pad}).pad({"x": column})
