"""Columns collated into batches: padding, missing values."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

import datum
from datum._load.collate import collate, empty_like
from datum._load.missing import fill_missing, required_features
from datum._load.padding import Pad, Padder
from datum.columns import BytesColumn, Ragged, Sparse
from datum.schema import Feature, Schema
from tests.unit.load.memory_source import MemorySource, finish, load, plan


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
            "here 1: expected the same keys .* here 0, got 'a' missing, 'b' extra",
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
    with pytest.raises(ValueError, match="feature 'n': expected `pad` with a length for a feature"):
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
        with pytest.raises(ValueError, match="feature 'x': expected `pad` to a size that fits"):
            Padder({"x": pad}).pad({"x": column})


def fill_one(column: Any, pad: Any) -> dict[str, Any]:
    made = Padder({"x": pad}).pad({"x": column})
    return {name: array.tolist() for name, array in made.items()}


def test_nested_rows_have_a_length_for_each_level() -> None:
    nested = Ragged(NUMBERS, np.array([0, 2, 2]))  # [[1], [2, 3]], []
    made = fill_one(nested, Pad(length=(3, 2), value=9))
    assert made["x"] == [[[1, 9], [2, 3], [9, 9]], [[9, 9]] * 3]
    assert made["x_mask"] == [
        [[True, False], [True, True], [False, False]],
        [[False, False]] * 3,
    ]
    cut = fill_one(nested, Pad(length=(1, 1), truncate=True))
    assert cut == {"x": [[[1]], [[0]]], "x_mask": [[[True]], [[False]]]}
    assert np.shape(fill_one(nested, Pad(multiple=4))["x"]) == (2, 4, 4)
    assert np.shape(fill_one(nested, Pad(multiple=(4, 3)))["x"]) == (2, 4, 3)
    with pytest.raises(ValueError, match=r"`length` of 2 number\(s\).*got 3") as caught:
        fill_one(nested, Pad(length=3))
    assert "datum.Pad(length=(64, 64))" in str(caught.value)
    with pytest.raises(ValueError, match="row 0, feature 'x': expected at most 1 values.*got 2"):
        fill_one(nested, Pad(length=(2, 1)))


def test_dimensions_that_do_not_differ_have_no_mask() -> None:
    pairs = Ragged(np.arange(6).reshape(3, 2), np.array([0, 1, 3]))
    made = Padder(Pad(length=2)).pad({"x": pairs})
    assert made["x"].tolist() == [[[0, 1], [0, 0]], [[2, 3], [4, 5]]]
    assert made["x_mask"].tolist() == [[True, False], [True, True]]


IMAGES = [np.ones((1, 3, 1), np.uint8), np.full((2, 2, 1), 2, np.uint8)]


def test_images_are_padded_to_height_and_width() -> None:
    made = Padder({"x": Pad(length=(2, 4), value=7)}).pad({"x": IMAGES})
    assert made["x"][..., 0].tolist() == [[[1, 1, 1, 7], [7] * 4], [[2, 2, 7, 7]] * 2]
    assert made["x_mask"].astype(int).tolist() == [[[1, 1, 1, 0], [0] * 4], [[1, 1, 0, 0]] * 2]
    cut = Padder({"x": Pad(length=(1, 2), truncate=True)}).pad({"x": IMAGES})
    assert cut["x"][..., 0].tolist() == [[[1, 1]], [[2, 2]]]
    assert cut["x_mask"].all()
    with pytest.raises(ValueError, match="row 1, feature 'x': expected at most 1 values.*got 2"):
        Padder({"x": Pad(length=(1, 3))}).pad({"x": IMAGES})
    with pytest.raises(ValueError, match="a number for each variable dimension"):
        Padder(Pad(multiple=2)).pad({"x": IMAGES})


@pytest.fixture(scope="module")
def ds(tmp_path_factory):
    rows = [
        {"id": i, "age": i / 2, "label": i % 3, "name": f"n{i}", "tokens": [i] * (i % 3)}
        for i in range(30)
    ]
    for row in rows:
        if row["id"] % 2:
            del row["age"]
        if row["id"] % 5 == 0:
            del row["label"]
        if row["id"] % 7 == 0:
            del row["name"]
    out = tmp_path_factory.mktemp("missing") / "rows"
    schema = {"age": Feature("float32", optional=True)}
    datum.write(rows, out, schema=schema, shuffle=False, progress=False, shards=3)
    return datum.load(out)


def test_absent_floats_are_nan_and_need_no_mask(ds):
    (batch,) = ds.to_numpy(batch_size=30, columns=["id", "age"])
    assert list(batch) == ["id", "age"]
    assert np.isnan(batch["age"]).tolist() == [i % 2 == 1 for i in range(30)]
    assert batch["age"].dtype == np.float32


def test_absent_integers_and_texts_have_a_mask_beside_them(ds):
    (batch,) = ds.to_numpy(batch_size=30)
    assert batch["label_present"].tolist() == [i % 5 != 0 for i in range(30)]
    assert batch["name_present"].tolist() == [i % 7 != 0 for i in range(30)]


def test_a_mask_can_be_asked_for(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing="mask")
    assert batch["age"][1] == 0
    assert not batch["age_present"][1]


def test_a_value_takes_the_place_without_a_mask(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing={"label": -1, "name": "nobody", "age": 40})
    assert {"label_present", "name_present", "age_present"}.isdisjoint(batch)
    assert batch["label"][:6].tolist() == [-1, 1, 2, 0, 1, -1]
    assert batch["name"][7] == "nobody"
    assert batch["age"][1] == 40


def test_a_record_that_lacks_a_feature_can_be_an_error(ds):
    with pytest.raises(datum.SchemaError, match="record 0 .*feature 'label': expected a value"):
        list(ds.to_numpy(missing={"label": "error"}))
    assert list(ds.to_numpy(missing={"id": "error"}))  # nothing lacks it


@pytest.mark.parametrize("shuffle", [False, True, "blocks"])
def test_records_that_lack_a_feature_can_be_dropped(ds, shuffle):
    loader = ds.to_numpy(batch_size=4, shuffle=shuffle, missing={"label": "drop"})
    batches = list(loader)
    assert len(loader) == len(batches) == 6
    assert [len(batch["id"]) for batch in batches] == [4] * 6
    ids = np.concatenate([batch["id"] for batch in batches])
    assert sorted(ids) == [i for i in range(30) if i % 5]
    assert "label_present" not in batches[0]


def test_the_order_without_some_records_is_that_of_all(ds):
    everything = ds.to_numpy(batch_size=30, shuffle=True, seed=3)
    some = ds.to_numpy(batch_size=30, shuffle=True, seed=3, missing={"label": "drop"})
    for _ in range(2):
        (whole,), (part,) = everything, some
        assert part["id"].tolist() == [i for i in whole["id"] if i % 5]


def test_dropping_by_all_features_looks_at_those_that_are_read(ds):
    (batch,) = ds.to_numpy(batch_size=30, missing="drop", columns=["id", "name"])
    assert batch["id"].tolist() == [i for i in range(30) if i % 7]
    (batch,) = ds.to_numpy(batch_size=30, missing="drop")
    assert batch["id"].tolist() == [i for i in range(0, 30, 2) if i % 5 and i % 7]


def test_a_state_of_other_records_is_refused(ds):
    state = ds.to_numpy().state_dict()
    with pytest.raises(datum.StateError, match="without records that lack label"):
        ds.to_numpy(missing={"label": "drop"}).load_state_dict(state)


def test_a_mix_of_splits_can_drop_records(ds):
    mixed = datum.mix({ds["train[:15]"]: 1, ds["train[15:]"]: 1})
    batches = list(mixed.to_numpy(batch_size=6, missing={"label": "drop"}))
    ids = np.concatenate([batch["id"] for batch in batches])
    assert len(ids) == 24
    assert all(i % 5 for i in ids)


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("fill", "expected `missing` to be 'mask', 'error', 'drop' or a dict"),
        ({"labl": 1}, "did you mean 'label'"),
        ({"label": "many"}, "a value that Feature.'int64', optional=True. can have, got 'many'"),
        ({"label": 0.5}, "got 0.5"),
    ],
)
def test_what_makes_no_sense_is_refused(ds, wrong, problem):
    with pytest.raises(ValueError, match=problem):
        ds.to_numpy(missing=wrong)


def test_only_floats_of_a_fixed_shape_become_nan():
    schema = Schema(
        {
            "row": Feature("float32", (3,), optional=True),
            "double": Feature("float64", optional=True),
            "half": Feature("bfloat16", optional=True),
            "list": Feature("float32", (None,), optional=True),
            "filled": Feature("float32", default=1.0),
            "bag": Feature("float32", (9,), encoding="sparse", optional=True),
        }
    )
    filled = fill_missing(schema, None)
    assert all(map(math.isnan, filled["row"].default))
    assert math.isnan(filled["double"].default)
    assert math.isnan(filled["half"].default)
    assert [filled[name] for name in ("list", "filled", "bag")] == [
        schema[name] for name in ("list", "filled", "bag")
    ]
    assert fill_missing(schema, None) == filled  # a NaN equals itself here


def test_an_absent_sparse_feature_is_masked_or_dropped():
    schema = Schema({"bag": Feature("float32", (9,), encoding="sparse", optional=True)})
    for rule in ("mask", "drop"):
        assert fill_missing(schema, {"bag": rule}) == schema
    assert required_features(schema, "drop") == ["bag"]
    for rule in ("error", 0.5):
        with pytest.raises(ValueError, match="which is sparse, to be 'mask' or 'drop', got"):
            fill_missing(schema, {"bag": rule})
