import enum
import json
import re

import numpy as np
import pytest

from datum import BytesColumn, Feature, Masked, Ragged, Schema, SchemaError, Sparse
from datum.format import encode, parse
from datum.schema import DTYPES, SchemaGuess, infer_feature, infer_schema, numpy_dtype
from datum.schema.infer import MAX_LISTED_VALUES


class Color(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (True, Feature("bool")),
        (7, Feature("int64")),
        (Color.RED, Feature("int64")),
        (-(2**63), Feature("int64")),
        (2**63, Feature("uint64")),
        (2**64 - 1, Feature("uint64")),
        (0.5, Feature("float32")),
        (float("nan"), Feature("float32")),
        (float("inf"), Feature("float32")),
        (0.1, Feature("float32")),
        (2.0**24 + 0.5, Feature("float64")),
        (1e300, Feature("float64")),
        (1j, Feature("complex128")),
        ("a", Feature("str")),
        (b"a", Feature("bytes")),
        (bytearray(b"a"), Feature("bytes")),
        pytest.param(memoryview(b"a"), Feature("bytes"), id="memoryview"),
        (np.str_("a"), Feature("str")),
        (np.bytes_(b"a"), Feature("bytes")),
        ([1, 2], Feature("int64", (2,))),
        ((1, 2), Feature("int64", (2,))),
        ([1, 2.5], Feature("float32", (2,))),
        ([[1, 2], [3, 4]], Feature("int64", (2, 2))),
        ([[1, 2], [3]], Feature("int64", (None, None))),
        ([[[1, 2]], [[3, 4], [5, 6]]], Feature("int64", (None, None, 2))),
        ([[], [1]], Feature("int64", (None, None))),
        ([[], []], Feature("float32", (None, None))),
        (["a", "b"], Feature("str", (2,))),
        ([["a"], []], Feature("str", (None, None))),
        ([], Feature("float32", (None,))),
        (np.array("a"), Feature("str")),
        (np.array(["a", "b"]), Feature("str", (2,))),
        (np.array([b"a", b"b"]), Feature("bytes", (2,))),
        (np.array(["a", "b"], object), Feature("str", (2,))),
        (np.array([["a"], ["b"]], object), Feature("str", (2, 1))),
        (np.zeros((2, 0), np.int8), Feature("int8", (2, 0))),
    ],
    ids=repr,
)
def test_a_value_has_the_feature_that_it_is_stored_as(value, feature):
    assert infer_feature(value) == feature


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bytes", "str")])
def test_arrays_and_scalars_of_numpy_keep_their_dtype(dtype):
    array = np.zeros((2, 3), numpy_dtype(dtype))
    assert infer_feature(array, floats="float64") == Feature(dtype, (2, 3))
    assert infer_feature(array[0, 0], floats="float64") == Feature(dtype)
    stored = "float32" if dtype == "float64" else dtype
    assert infer_feature(array) == Feature(stored, (2, 3))


def test_an_array_of_many_floats_is_stored_in_a_list():
    assert infer_feature(np.zeros(MAX_LISTED_VALUES + 1)).encoding == "values"
    assert infer_feature(np.zeros(MAX_LISTED_VALUES + 1, np.float16)).encoding == "values"


def test_an_array_of_many_integers_is_stored_raw():
    assert infer_feature(np.zeros(MAX_LISTED_VALUES, np.uint8)).encoding == "values"
    assert infer_feature(np.zeros(MAX_LISTED_VALUES + 1, np.uint8)).encoding == "raw"


@pytest.mark.parametrize(
    "value",
    [
        *(None, {}, {1}, ..., 2**64, -(2**63) - 1, [None], [{}], [1, "a"], ["a", b"a"]),
        *(np.array(["2020"], "datetime64[Y]"), np.zeros(1, [("a", "i4")]), np.longdouble(1)),
    ],
    ids=repr,
)
def test_a_value_that_no_feature_holds_is_refused(value):
    with pytest.raises(SchemaError, match="expected .*, got "):
        infer_feature(value)


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        (1, 0.1, Feature("float32")),
        (2**24 + 1, 0.5, Feature("float64")),
        (1e300, 0.5, Feature("float64")),
        (True, np.int8(1), Feature("int8")),
        (np.int8(1), np.uint8(1), Feature("int16")),
        (np.float16(1), np.float32(1), Feature("float32")),
        (np.float32(1), np.complex64(1), Feature("complex64")),
        ([1] * 3, [1] * 5, Feature("int64", (None,))),
        ([[1] * 3] * 2, [[1] * 3] * 4, Feature("int64", (None, 3))),
        ([[1] * 3] * 2, [[1] * 4] * 2, Feature("int64", (None, None))),
        (np.zeros((2, 3)), np.zeros((2, 4)), Feature("float32", (None, None))),
        (["a"], ["a", "b"], Feature("str", (None,))),
        (
            np.zeros(2, np.uint8),
            np.zeros(900, np.uint8),
            Feature("uint8", (None,), encoding="raw"),
        ),
    ],
    ids=repr,
)
def test_two_values_have_the_feature_that_holds_both(first, second, merged):
    for one, other in ((first, second), (second, first)):
        assert infer_schema([{"x": one}, {"x": other}]) == Schema({"x": merged})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, "a"),
        ("a", b"a"),
        (1, [1, 2]),
        ([], 1),
        ([1, 2], [[1, 2]]),
        ([[]], [1]),
        (np.zeros((), numpy_dtype("bfloat16")), 1),
    ],
    ids=repr,
)
def test_two_values_that_nothing_holds_are_refused(first, second):
    for one, other in ((first, second), (second, first)):
        with pytest.raises(SchemaError, match="^record 1, feature 'x': expected .*, got "):
            infer_schema([{"x": one}, {"x": other}])


@pytest.mark.parametrize(
    ("rows", "feature"),
    [
        ([[1.5], [1.5, 2.5], [1, 2]], Feature("float32", (None,))),
        ([[], [1, 2]], Feature("int64", (None,))),
        ([[1, 2], []], Feature("int64", (None,))),
        ([[], ["a"]], Feature("str", (None,))),
        ([[[0.1]], [[0.1, 0.2], [0.3]]], Feature("float32", (None, None))),
        ([[[]], [], [[1, 2]]], Feature("int64", (None, None))),
        ([np.zeros((2, 0)), np.zeros((3, 0))], Feature("float32", (None, None))),
        ([[], [0.5]], Feature("float32", (None,))),
        ([[], [[1, 2]]], Feature("int64", (None, 2))),
        ([[], [[0.5, 1.5]]], Feature("float32", (None, 2))),
        ([[], []], Feature("float32", (None,))),
        ([[], [1], [], [0.1]], Feature("float32", (None,))),
    ],
    ids=repr,
)
def test_rows_have_the_feature_that_holds_them_all(rows, feature):
    assert infer_schema([{"x": row} for row in rows]) == Schema({"x": feature})


@pytest.mark.parametrize("rows", [[2**63, 1], [1, 2**64 - 1], [2**63, -1]], ids=repr)
def test_integers_beyond_int64_among_others_are_exact_or_refused(rows):
    rows = [{"x": value} for value in rows]
    try:
        schema = infer_schema(rows)
    except SchemaError as error:
        assert str(error).startswith("record 1, feature 'x': expected ")  # noqa: PT017
    else:
        assert parse(encode(rows), schema)["x"].tolist() == [row["x"] for row in rows]


def test_rows_are_merged_and_features_that_some_lack_are_optional():
    rows = [{"x": 1, "y": None}, {"x": 2.5, "tag": "a"}, {"x": 3, "y": [1]}]
    assert infer_schema(rows) == Schema(
        {
            "x": Feature("float32"),
            "tag": Feature("str", optional=True),
            "y": Feature("int64", (1,), optional=True),
        }
    )


def test_no_rows_have_no_features():
    assert infer_schema([]) == Schema({})
    assert infer_schema([{}, {}]) == Schema({})


def test_rows_may_come_from_a_generator():
    assert infer_schema({"x": i} for i in range(3)) == Schema({"x": Feature("int64")})


def test_a_misfit_is_named_with_its_record_and_feature():
    message = "record 2, feature 'x': expected int64, got str"
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}"):
        infer_schema([{"x": 1}, {"x": 2}, {"x": "a"}])


@pytest.mark.parametrize("value", [{1}, ..., 2**64, [None]], ids=repr)
def test_a_value_of_no_type_is_named_with_its_record_and_feature(value):
    with pytest.raises(SchemaError, match="^record 1, feature 'x': expected "):
        infer_schema([{"x": 1}, {"x": value}])


@pytest.mark.parametrize(
    "rows",
    [
        [True, False],
        [1, -(2**63)],
        [2**64 - 1, 0],
        [0.5, float("-inf")],
        [1, 0.25],
        [1, 1e300],
        [[1], [2, 3]],
        [[[1], []], []],
        ["a", ""],
        [[b"a"], []],
        [1j, 2],
        [None, "a"],
        [np.zeros((2, 3)), np.ones((2, 4))],
    ],
    ids=repr,
)
def test_what_is_inferred_reads_back_what_was_written(rows):
    rows = [{"x": value} for value in rows]
    column = parse(encode(rows), infer_schema(rows))["x"]
    for i, row in enumerate(rows):
        found = column[i]
        found = found.to_list() if hasattr(found, "to_list") else found
        assert (found is row["x"] is None) or np.array_equal(found, row["x"]) or found == row["x"]


def guess_of(*rows):
    guess = SchemaGuess()
    guess.add_rows(rows)
    return guess


def test_what_is_known_does_not_depend_on_how_rows_were_parted():
    rows = [{"x": np.int16(1)}, {"x": np.uint16(1), "y": [1]}, {"x": np.float16(1), "y": []}]
    whole = guess_of(*rows).to_schema()
    assert whole["x"] == Feature("float32")
    first, second, third = map(guess_of, rows)
    assert first.merge(second).merge(third).to_schema() == whole
    assert first.merge(second.merge(third)).to_schema() == whole
    assert third.merge(first).merge(second).to_schema().select(whole) == whole


def test_an_error_leaves_the_guess_as_it_was():
    guess = guess_of({"x": 1})
    before = guess.to_json()
    for add in (
        lambda: guess.add_rows([{"y": 2}, {"x": "a"}]),
        lambda: guess.add_columns({"y": [1], "x": ["a"]}),
        lambda: guess.merge(guess_of({"x": "a"})),
    ):
        with pytest.raises(SchemaError, match="feature 'x': expected int64, got str") as caught:
            add()
        assert caught.value.feature == "x"
        assert guess.to_json() == before


@pytest.mark.parametrize(
    ("column", "feature"),
    [
        (np.zeros((2, 3), np.int8), Feature("int8", (3,))),
        (np.zeros((2, 300), np.int8), Feature("int8", (300,), encoding="raw")),
        (np.zeros((0, 3)), Feature("float64", (3,))),
        (np.array(["2020", "2021"], "datetime64[D]"), Feature("datetime64[D]")),
        (np.array(["a", "b"]), Feature("str")),
        (np.array([b"a", b"b"]), Feature("bytes")),
        (np.array(["a", None], object), Feature("str", optional=True)),
        ([1, 2.5], Feature("float64")),
        ([None, [1]], Feature("int64", (1,), optional=True)),
        (BytesColumn.from_values(["a", "b"]), Feature("str")),
        (Masked(np.zeros(2), np.array([True, False])), Feature("float64", optional=True)),
        (Masked(np.zeros(2), np.array([True, True])), Feature("float64")),
        (Ragged(np.zeros(3, np.int8), np.array([0, 1, 3])), Feature("int8", (None,))),
        (
            Ragged(Ragged(np.zeros(3), np.array([0, 1, 3])), np.array([0, 1, 2])),
            Feature("float64", (None, None), encoding="values"),
        ),
        (
            Sparse(np.array([[0, 1]]), np.array([1.5]), (2, 3)),
            Feature("float64", (3,), encoding="sparse"),
        ),
        (
            Sparse(np.empty((0, 2)), BytesColumn.from_values([]), (2, 3)),
            Feature("bytes", (3,), encoding="sparse"),
        ),
    ],
    ids=str,
)
def test_columns_tell_what_they_hold(column, feature):
    guess = SchemaGuess()
    guess.add_columns({"x": column})
    assert guess.to_schema() == Schema({"x": feature})
    assert guess.records == len(column)


def test_a_matrix_of_scipy_is_sparse():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    guess = SchemaGuess()
    guess.add_columns({"x": scipy_sparse.csr_matrix(np.eye(3))})
    assert guess.to_schema()["x"] == Feature("float64", (3,), encoding="sparse")
    assert guess.records == 3


def test_columns_and_rows_go_together():
    guess = guess_of({"x": 1, "y": -1})
    guess.add_columns({"x": np.array([0.5, 1.5])})
    assert guess.records == 3
    assert dict(guess.to_schema()) == {
        "x": Feature("float64"),
        "y": Feature("int64", optional=True),
    }
    with pytest.raises(SchemaError, match="feature 'y': expected integers from 0 on"):
        guess.add_columns({"y": np.array([1], np.uint64)})


def test_a_guess_survives_json():
    guess = guess_of({"x": 1, "y": [[0.1], []]}, {"x": -5})
    again = SchemaGuess.from_json(json.loads(json.dumps(guess.to_json())))
    assert again.to_json() == guess.to_json()
    assert again.to_schema() == guess.to_schema()
    assert again.features["x"].has_negative
    for found in (
        None,
        {},
        {"records": 1, "features": {"x": {}}},
        {"records": "a", "features": {}},
    ):
        with pytest.raises(SchemaError, match="expected a guess as JSON"):
            SchemaGuess.from_json(found)


def test_a_guess_goes_on_from_a_schema_that_was_inferred():
    rows = [{"x": 1, "y": [[0.1], []], "z": np.zeros(300, np.int8)}, {"x": 2, "s": "a"}]
    schema = infer_schema(rows)
    guess = SchemaGuess.from_schema(schema, records=2)
    assert guess.to_schema() == schema
    guess.add_rows([{"x": 0.5}])
    assert guess.to_schema()["x"] == Feature("float64")
    assert SchemaGuess.from_schema(schema, records=0).to_schema() == Schema({})


def test_a_schema_that_could_not_be_inferred_is_refused():
    for feature in (Feature("int64", keys=("k",)), Feature("int64", default=3)):
        with pytest.raises(SchemaError, match="feature 'x': expected what could be inferred"):
            SchemaGuess.from_schema(Schema({"x": feature}), records=1)


def test_a_copy_is_added_to_on_its_own():
    guess = guess_of({"x": 1})
    other = guess.copy()
    other.add_rows([{"y": 1}])
    assert list(guess.to_schema()) == ["x"]
    assert repr(other) == "SchemaGuess(2 features of 2 records)"


def test_columns_of_differing_lengths_are_refused():
    with pytest.raises(SchemaError, match="expected columns of one length, got {'x': 1, 'y': 2}"):
        SchemaGuess().add_columns({"x": [1], "y": np.zeros(2)})
