"""Schemas inferred from records."""

import enum
import functools
import itertools
import json
import pathlib
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import (
    BytesColumn,
    Feature,
    Masked,
    MissingDependencyError,
    Ragged,
    Schema,
    SchemaError,
    Sparse,
)
from datum.format import encode, parse
from datum.schema import (
    DTYPES,
    ImageBytes,
    SchemaGuess,
    ValueGuess,
    guess_value,
    infer_feature,
    infer_schema,
    numpy_dtype,
)
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, STRINGS, TIMES
from datum.schema.infer import (
    MAX_LISTED_VALUES,
    common_dtype,
    drop_contained,
    guess_array,
    is_contained,
)


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
        with pytest.raises(SchemaError, match="feature 'x': expected a feature that can"):
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


PICTURE = Feature("uint8", (None, None, None), encoding="image")


@pytest.mark.parametrize(
    ("value", "feature"),
    [
        (pathlib.Path("a.jpg"), PICTURE),
        (ImageBytes(b"a"), PICTURE),
        ([ImageBytes(b"a")] * 2, Feature("uint8", (2, None, None, None), encoding="image")),
        (np.datetime64("2020-01-01", "h"), Feature("datetime64[h]")),
        ([np.datetime64("NaT", "s"), np.datetime64(1, "ms")], Feature("datetime64[ms]", (2,))),
        (
            Sparse(np.array([[1]]), np.array([0.5]), (4,)),
            Feature("float64", (4,), encoding="sparse"),
        ),
        ([[0.1], [0.2, 0.3]], Feature("float64", (None, None), encoding="values")),
        ([[[0.1, 1.0]], []], Feature("float64", (None, None, 2), encoding="values")),
        ([np.zeros((2, 3)), np.zeros((2, 4))], Feature("float64", (None,) * 3, encoding="values")),
        ([0.5, float(np.uint64(0x7FF8 << 48 | 1).view(np.float64))], Feature("float64", (2,))),
        ([0.5, float("nan")], Feature("float64", (2,))),
    ],
    ids=str,
)
def test_a_value_says_what_holds_it(value, feature):
    assert guess_value(value).to_feature() == feature


def test_pictures_of_pillow_are_of_their_depth():
    pillow = pytest.importorskip("PIL.Image")
    assert guess_value(pillow.new("RGB", (2, 3))).to_feature() == PICTURE
    assert guess_value(pillow.new("I;16", (2, 3))).to_feature().dtype == "uint16"


def test_a_picture_may_come_as_the_bytes_of_its_file():
    picture = guess_value(pathlib.Path("a.jpg"))
    for one, other in ((picture, guess_value(b"a")), (guess_value(b"a"), picture)):
        assert one.merge(other).to_feature() == PICTURE
    for value in ("a", [b"a"], np.zeros((2, 2, 3), np.uint8)):
        with pytest.raises(SchemaError, match="expected .*, got "):
            picture.merge(guess_value(value))


def test_sparse_values_go_with_sparse_ones_of_their_shape():
    small, large = (Sparse(np.array([[1]]), np.array([2]), (n,)) for n in (3, 4))
    halves = Sparse(np.array([[1]]), np.array([0.5]), (3,))
    assert guess_value(small).merge(guess_value(halves)).to_feature() == Feature(
        "float64", (3,), encoding="sparse"
    )
    for other in (large, [1, 2, 3]):
        with pytest.raises(SchemaError, match="expected sparse int64 of shape"):
            guess_value(small).merge(guess_value(other))


@pytest.mark.parametrize(
    "value",
    [
        [Sparse(np.array([[1]]), np.array([2]), (3,))],
        [[pathlib.Path("a.jpg")]],
        np.array(["2020"], "datetime64[Y]"),
        np.datetime64("NaT"),
        np.zeros(2, [("a", int)]),
        None,
    ],
    ids=str,
)
def test_what_no_feature_holds_is_refused(value):
    with pytest.raises(SchemaError, match="expected "):
        guess_value(value)


def test_a_negative_integer_never_joins_uint64():
    guesses = [guess_value(value) for value in (np.uint64(1), -1, 0.5)]
    for order in itertools.permutations(guesses):
        with pytest.raises(SchemaError, match="expected integers from 0 on, as one is uint64"):
            functools.reduce(ValueGuess.merge, order)


@pytest.mark.parametrize(
    ("value", "absorbed", "not_absorbed"),
    [
        (1, ["bool", "int8", "int64"], ["uint64", "float32", "str"]),
        (np.int16(1), ["bool", "int8", "uint8", "int16"], ["uint16", "int32", "int64"]),
        (np.float32(0.5), ["bool", "int16", "float16", "float32"], ["int64", "float64"]),
        (0.1, ["int64", "float64"], ["uint64", "complex64"]),
        (2**63, ["uint8", "uint64"], ["int8", "int64"]),
        ("a", ["str"], ["bytes", "int64"]),
        ([], [], ["int64", "str"]),
    ],
    ids=str,
)
def test_types_that_another_holds_leave_a_guess_as_it_is(value, absorbed, not_absorbed):
    guess = guess_value(value)
    assert [dtype for dtype in (*absorbed, *not_absorbed) if guess.absorbs(dtype)] == absorbed


def test_an_array_without_items_has_its_dtype():
    assert guess_array(np.zeros((0, 3), np.int8)) == ValueGuess(("int8",), (0, 3))


def test_a_guessed_schema_survives_json():
    for value in ([[0.1], []], -5, 2**63, np.zeros(300, np.int8), pathlib.Path("a"), []):
        guess = guess_value(value)
        assert ValueGuess.from_json(json.loads(json.dumps(guess.to_json()))) == guess
    for found in (3, {}, {"dtypes": []}):
        with pytest.raises(SchemaError, match="expected a guess as JSON"):
            ValueGuess.from_json(found)


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bytes", "str", "bfloat16")])
def test_a_numeric_dtype_is_numpys_of_the_same_name(dtype):
    assert numpy_dtype(dtype) == np.dtype(dtype)
    assert numpy_dtype(dtype).name == dtype


@pytest.mark.parametrize("dtype", ["bytes", "str"])
def test_strings_are_objects(dtype):
    assert numpy_dtype(dtype) == np.dtype(object)


def test_bfloat16_is_that_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert numpy_dtype("bfloat16") == np.dtype(ml_dtypes.bfloat16)


def test_bfloat16_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(MissingDependencyError, match="bfloat16 needs the package `ml_dtypes`"):
        numpy_dtype("bfloat16")


def test_every_dtype_of_numpy_that_records_can_hold_is_there():
    assert set(DTYPES) == {
        "bool",
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("bytes", "str"),
        *(
            f"{kind}64[{unit}]"
            for kind in ("datetime", "timedelta")
            for unit in ("D", "h", "m", "s", "ms", "us", "ns")
        ),
    }


NUMBERS = [*INTEGERS, "float16", "float32", "float64", "complex64", "complex128"]


def test_two_numbers_are_promoted_as_numpy_does():
    for pair in itertools.product(NUMBERS, repeat=2):
        if "uint64" in pair and any(dtype.startswith("int") for dtype in pair):
            assert common_dtype(pair) == "uint64"  # NumPy would round them to floats
        else:
            assert common_dtype(pair) == np.promote_types(*pair).name


def test_times_take_the_finer_unit_and_do_not_mix():
    assert common_dtype(("datetime64[D]", "datetime64[ms]", "datetime64[s]")) == "datetime64[ms]"
    assert common_dtype(("datetime64[D]", "timedelta64[D]")) is None
    assert common_dtype(("datetime64[D]", "int64")) is None


@pytest.mark.parametrize("dtype", [*STRINGS, "bfloat16"])
def test_some_types_go_with_no_other(dtype):
    for other in DTYPES:
        assert common_dtype((dtype, other)) == (dtype if other == dtype else None)


@given(st.lists(st.sampled_from([*NUMBERS, *TIMES, *STRINGS, *FLOATS_ON_WIRE]), min_size=1))
def test_only_those_that_no_other_holds_matter(dtypes):
    kept = drop_contained(dtypes)
    assert set(kept) <= set(dtypes)
    assert kept == drop_contained(reversed(dtypes)) == drop_contained((*kept, *dtypes))
    assert common_dtype(kept) == common_dtype(tuple(dtypes))


def test_a_type_that_holds_another_holds_its_extremes():
    for dtype, other in itertools.product(NUMBERS[1:9], NUMBERS[1:9]):
        given_range, other_range = np.iinfo(dtype), np.iinfo(other)
        holds = other_range.min <= given_range.min and given_range.max <= other_range.max
        assert is_contained(dtype, other) == holds
