"""Features and the values they take."""

import array
import dataclasses
import datetime as dt
import decimal
import enum
import json
import math
import pathlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import BytesColumn, Feature, Ragged, SchemaError, Sparse
from datum.schema import (
    DTYPES,
    ImageBytes,
    InexactError,
    as_array,
    cast_exactly,
    numpy_dtype,
    plain_row,
    plain_value,
)
from datum.schema.feature import STRINGS, TIMES
from datum.schema.plain import is_image, plain_times, sparse_from_scipy

IN_LISTS = [d for d in DTYPES if d not in ("float64", "complex64", "complex128")]


def test_a_feature_is_a_scalar_that_must_be_there_unless_told():
    feature = Feature("int64")
    assert feature.shape == ()
    assert feature.keys == ()
    assert not feature.sequence
    assert not feature.optional
    assert feature.default is None


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_dtype_is_stored_in_a_list_if_that_is_exact_and_raw_if_not(dtype):
    assert Feature(dtype).encoding == ("values" if dtype in IN_LISTS else "raw")


def test_a_shape_may_be_any_sequence_of_integers_and_none():
    assert Feature("int8", [2, None], encoding="raw").shape == (2, None)
    assert Feature("int8", (np.int64(2),)).shape == (2,)


def test_a_default_makes_a_feature_optional():
    assert Feature("int64", default=0).optional


def test_features_are_values():
    assert Feature("int64", (2,)) == Feature("int64", [2])
    assert Feature("int64") != Feature("int32")
    assert len({Feature("int64"), Feature("int64")}) == 1


@pytest.mark.parametrize("default", [[1, 2], (1, 2), np.array([1, 2])], ids=repr)
def test_features_with_a_default_are_values_too(default):
    feature = Feature("int64", (2,), default=default)
    assert feature == Feature("int64", (2,), default=[1, 2])
    assert feature != Feature("int64", (2,), default=[1, 3])
    assert len({feature, Feature("int64", (2,), default=default)}) == 1


@pytest.mark.parametrize("dtype", [np.float32, np.dtype("float32"), np.dtype("<f4")])
def test_a_numpy_dtype_is_taken_by_its_name(dtype):
    assert Feature(dtype) == Feature("float32")
    assert Feature(dtype).dtype == "float32"


@pytest.mark.parametrize("dtype", [str, bytes, np.str_, np.bytes_])
def test_types_of_strings_are_taken_too(dtype):
    assert Feature(dtype).is_string


def test_a_default_is_filled_up_to_the_shape():
    assert Feature("int64", (2, 2), default=7) == Feature("int64", (2, 2), default=[[7, 7], [7, 7]])


def test_an_unknown_dtype_is_refused_and_the_nearest_named():
    with pytest.raises(SchemaError, match="got 'flaot32'\nhint: did you mean 'float32'?"):
        Feature("flaot32")
    with pytest.raises(SchemaError, match="^expected a dtype of bool, int8, .*, got 'qqq'$"):
        Feature("qqq")


@pytest.mark.parametrize(
    "dtype", [None, 3, object, "object", "datetime64[Y]", "datetime64", ["int64"]]
)
def test_whatever_is_no_dtype_is_refused(dtype):
    with pytest.raises(SchemaError, match="expected a dtype of"):
        Feature(dtype)


def test_an_image_may_be_of_any_size_and_any_number_of_channels():
    for shape in ((None, None, None), (None, None, 3), (4, 5, 1)):
        feature = Feature("uint16", shape, encoding="image", keys=("image/encoded",))
        assert Feature.from_json(feature.to_json()) == feature
        assert repr(feature) == f"Feature('uint16', {shape}, encoding='image', keys={feature.keys})"


def test_what_lists_cannot_hold_lies_as_raw_bytes():
    for feature in (
        Feature("float64"),
        Feature("uint8", encoding="raw"),
        Feature("float64", (5,), encoding="sparse"),
        Feature("complex64", (None, None), encoding="values"),
    ):
        assert feature.is_raw
    for dtype in ("float32", "int64", "str", "datetime64[us]"):
        assert not Feature(dtype).is_raw


@pytest.mark.parametrize("shape", [3, (1.5,), ("a",), "ab", None])
def test_a_shape_of_anything_but_integers_and_none_is_refused(shape):
    with pytest.raises(SchemaError, match="expected a shape of integers and None, got"):
        Feature("int64", shape)


@pytest.mark.parametrize("shape", [(2**62,), (2**32, 2**32), (None, 2**62), (2**70,)], ids=str)
def test_a_shape_beyond_all_memory_is_refused(shape):
    with pytest.raises(SchemaError, match="expected a shape of at most [0-9]+ values"):
        Feature("int64", shape)


def test_a_negative_length_is_refused():
    with pytest.raises(SchemaError, match=re.escape("without negative numbers, got (-1,)")):
        Feature("int64", (-1,))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (dict(dtype="int64", encoding="row"), "expected an encoding of values, raw, sparse, im"),
        (dict(dtype="float64", encoding="values"), "float64 has no exact list type; use encoding="),
        (dict(dtype="complex64", encoding="values"), "complex64 has no exact list type; use"),
        (dict(dtype="str", encoding="raw"), "strings are stored as values, not raw"),
        (dict(dtype="int8", encoding="sparse"), "needs the length of every dimension"),
        (dict(dtype="int8", shape=(None,), encoding="sparse"), "needs the length of every"),
        (dict(dtype="float64", shape=(None,), encoding="values"), "float64 has no exact list type"),
        (
            dict(dtype="int8", shape=(1, 1, 1), encoding="image"),
            "an image has dtype uint8 or",
        ),
        (dict(dtype="uint8", shape=(None, None), encoding="image"), "(height, width, channels)"),
        (dict(dtype="uint8", shape=(0, 1, 1), encoding="image"), "(height, width, channels)"),
        (
            dict(dtype="uint8", shape=(None, 1, 1), encoding="image", sequence=True),
            "a sequence cannot be image",
        ),
        (
            dict(dtype="uint8", shape=(1, 1, 1), encoding="image", default=1),
            "cannot have a default",
        ),
        (
            dict(dtype="uint8", shape=(1, 1, 1), encoding="image", keys=("a", "b")),
            "expected 1 keys",
        ),
        (dict(dtype="datetime64[s]", default=1), "cannot have a default"),
        (dict(dtype="int8", shape=(3,), encoding="sparse", default=0), "cannot have a default"),
        (dict(dtype="complex64", default=0), "complex features cannot have a default"),
        (dict(dtype="str", shape=(2,), default="a"), "strings can have a default only in shape ()"),
        (
            dict(dtype="float64", shape=(2, None), default=[[1], [2]]),
            "only the first dimension",
        ),
        (dict(dtype="int8", shape=(None, 3), encoding="sparse", sequence=True), "needs the length"),
        (dict(dtype="int8", shape=(3,), encoding="sparse", sequence=True), "cannot be sparse"),
        (dict(dtype="int8", shape=(2, None)), "only leading dimensions of stored values may be"),
        (dict(dtype="int8", shape=(None, 3, None)), "only leading dimensions of stored values"),
        (dict(dtype="int8", shape=(None, 0)), "a ragged feature cannot have rows of no values"),
        (dict(dtype="int8", sequence=True), "a sequence needs None, its steps, as first dimension"),
        (dict(dtype="int8", shape=(3,), sequence=True), "a sequence needs None, its steps"),
        (dict(dtype="int8", shape=(None, None, None), sequence=True), "can have 2 None dimension"),
        (dict(dtype="float64", shape=(None, None), sequence=True), "can have 1 None dimension"),
        (dict(dtype="int8", shape=(None,), sequence=True, default=[1]), "cannot have a default"),
        (dict(dtype="int8", keys=("a", "b")), "expected 1 keys, got ('a', 'b')"),
        (dict(dtype="int8", shape=(None, None), keys=("a",)), "expected 2 keys, got ('a',)"),
        (dict(dtype="int8", shape=(2,), encoding="sparse", keys=("a",)), "expected 2 keys"),
        (dict(dtype="float64", shape=(None, None), keys=("a",)), "expected 2 keys"),
        (dict(dtype="int8", keys=(3,)), "expected 1 keys, got (3,)"),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused_and_shown(arguments, problem):
    with pytest.raises(SchemaError, match=re.escape(problem)) as caught:
        Feature(arguments.pop("dtype"), arguments.pop("shape", ()), **arguments)
    assert str(caught.value).startswith("Feature(")


@pytest.mark.parametrize(
    ("dtype", "shape", "default"),
    [
        ("uint8", (), 300),
        ("uint8", (), -1),
        ("int64", (), 2**63),
        ("int64", (), 1.5),
        ("float32", (), 1e300),
        ("float32", (), "a"),
        ("float32", (), ...),
        ("int64", (2,), [1, 2, 3]),
        ("int64", (None,), 1),
        ("str", (), b"bytes"),
        ("str", (), 5),
        ("bytes", (), "text"),
        ("str", (), "\ud800"),
    ],
)
def test_a_default_that_the_feature_cannot_hold_is_refused_at_once(dtype, shape, default):
    with pytest.raises(SchemaError, match="expected"):
        Feature(dtype, shape, default=default)


@pytest.mark.parametrize(
    ("shape", "ragged_rank"), [((), 0), ((2,), 0), ((None,), 1), ((None, 3), 1), ((None, None), 2)]
)
def test_the_ragged_rank_counts_leading_none_dimensions(shape, ragged_rank):
    assert Feature("int64", shape).ragged_rank == ragged_rank


def test_strings_are_told_from_numbers():
    assert Feature("str").is_string
    assert Feature("bytes").is_string
    assert not Feature("uint8").is_string


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (Feature("int64"), "Feature('int64')"),
        (Feature("float32", (None, 4)), "Feature('float32', (None, 4))"),
        (Feature("float64", (2,)), "Feature('float64', (2,))"),
        (Feature("uint8", (2,), encoding="raw"), "Feature('uint8', (2,), encoding='raw')"),
        (Feature("str", (9,), encoding="sparse"), "Feature('str', (9,), encoding='sparse')"),
        (Feature("int8", (None,), sequence=True), "Feature('int8', (None,), sequence=True)"),
        (Feature("int8", optional=True), "Feature('int8', optional=True)"),
        (Feature("int8", keys=("a",)), "Feature('int8', keys=('a',))"),
    ],
)
def test_repr_shows_what_differs_from_the_default(feature, text):
    assert repr(feature) == text
    assert eval(text) == feature


FEATURES = [
    Feature("int64"),
    Feature("float64", (None, None, 3)),
    Feature("uint8", (None, 3), encoding="raw", optional=True),
    Feature("str", (None, None), sequence=True),
    Feature("bfloat16", (4, 5), encoding="sparse", keys=("i", "j", "v")),
    Feature("int64", default=7),
    Feature("int64", default=0),
    Feature("float32", default=0.0),
    Feature("bool", default=False),
    Feature("float32", (2,), default=[0.5, -math.inf]),
    Feature("int32", (2, 2), default=np.arange(4).reshape(2, 2)),
    Feature("int16", (None,), default=[]),
    Feature("float16", default=np.float16(0.5)),
    Feature("uint64", default=2**64 - 1),
    Feature("str", default=""),
    Feature("str", default="grün"),
    Feature("bytes", default=b""),
    Feature("bytes", default=b"\xff\x00"),
]


@pytest.mark.parametrize("feature", FEATURES, ids=repr)
def test_json_brings_back_the_same_feature(feature):
    assert Feature.from_json(json.loads(json.dumps(feature.to_json()))) == feature


def test_json_brings_back_a_default_of_nan():
    feature = Feature("float32", default=math.nan)
    found = Feature.from_json(json.loads(json.dumps(feature.to_json())))
    assert found.optional
    assert math.isnan(found.default)


def test_json_leaves_out_what_stands_at_its_default():
    assert Feature("int64").to_json() == {"dtype": "int64", "shape": [], "encoding": "values"}


@pytest.mark.parametrize(
    "found",
    [{}, {"shape": []}, {"dtype": "int64", "size": 3}, {"dtype": "int64", "shape": 3}],
)
def test_json_that_is_no_feature_is_refused(found):
    with pytest.raises(SchemaError, match=re.escape(f"a feature as JSON, got {found}")):
        Feature.from_json(found)


@pytest.mark.parametrize(
    "found",
    [
        {"dtype": None},
        {"dtype": "int64", "shape": [None, "a"]},
        {"dtype": "int64", "keys": 3},
        {"dtype": "int64", "encoding": 3},
        {"dtype": "int64", "default": {}},
    ],
    ids=str,
)
def test_json_of_wrong_types_is_a_schema_error(found):
    with pytest.raises(SchemaError, match="expected"):
        Feature.from_json(found)


NUMBERS = [dtype for dtype in DTYPES if dtype not in (*STRINGS, *TIMES)]
INTEGERS = [dtype for dtype in NUMBERS if "int" in dtype]


@pytest.mark.parametrize("dtype", NUMBERS)
def test_an_array_of_the_dtype_is_not_copied(dtype):
    array = np.zeros(3, numpy_dtype(dtype))
    assert np.shares_memory(cast_exactly(array, dtype), array)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_strided_and_byte_swapped_arrays_are_made_plain(dtype):
    wanted = numpy_dtype(dtype)
    array = np.arange(2).astype(wanted).repeat(2)[::2]
    swapped = array.astype(wanted.newbyteorder(">"))
    for given_array in (array, swapped, np.asfortranarray(np.stack([array, array]))):
        cast = cast_exactly(given_array, dtype)
        assert cast.dtype == wanted
        assert cast.flags.c_contiguous
        assert cast.dtype.isnative
        assert np.array_equal(cast, given_array.astype(wanted))


@pytest.mark.parametrize("given_dtype", INTEGERS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_go_where_they_fit(given_dtype, dtype):
    given_range, wanted_range = np.iinfo(given_dtype), np.iinfo(dtype)
    for value in (0, 1, given_range.min, given_range.max, wanted_range.max, wanted_range.min):
        if not given_range.min <= value <= given_range.max:
            continue
        array = np.array([0, value], given_dtype)
        if wanted_range.min <= value <= wanted_range.max:
            assert cast_exactly(array, dtype).tolist() == [0, value]
        else:
            with pytest.raises(InexactError, match=f"^{value}$") as caught:
                cast_exactly(array, dtype)
            assert caught.value.position == 1


def test_times_change_their_unit_where_nothing_is_lost():
    days = np.array(["2020-02-29", "NaT", "1600-01-01"], "datetime64[D]")
    for dtype in ("datetime64[h]", "datetime64[us]"):
        cast = cast_exactly(days, dtype)
        assert cast.dtype == dtype
        assert cast_exactly(cast, "datetime64[D]").tolist() == days.tolist()
    with pytest.raises(InexactError, match="^1600-01-01$") as caught:
        cast_exactly(days, "datetime64[ns]")
    assert caught.value.position == 2
    with pytest.raises(InexactError, match="^61 seconds$"):
        cast_exactly(np.array([60, 61], "timedelta64[s]"), "timedelta64[m]")


@pytest.mark.parametrize("given_array", [np.array([1]), np.array([1], "timedelta64[s]")])
def test_only_dates_are_dates(given_array):
    with pytest.raises(InexactError, match="values$"):
        cast_exactly(given_array, "datetime64[s]")


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from(["float16", "float32", "float64"]))
def test_integers_go_into_floats_only_unchanged(value, dtype):
    with np.errstate(over="ignore"):
        is_exact = (
            np.isfinite(np.dtype(dtype).type(value)) and int(np.dtype(dtype).type(value)) == value
        )
    if is_exact:
        assert int(cast_exactly(np.array([value]), dtype)[0]) == value
    else:
        with pytest.raises(InexactError, match=f"^{value}$"):
            cast_exactly(np.array([value]), dtype)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2**53 + 1, "float64"),
        (2**63 - 1, "float64"),
        (2**24 + 1, "float32"),
        (2049, "float16"),
        (257, "bfloat16"),
        (2**24 + 1, "complex64"),
        (2**53 + 1, "complex128"),
    ],
)
def test_the_first_integers_that_floats_miss_are_refused(value, dtype):
    for sign in (1, -1):
        with pytest.raises(InexactError):
            cast_exactly(np.array([sign * value]), dtype)


@pytest.mark.parametrize(
    ("value", "dtype"), [(2**30, "float32"), (4096, "float16"), (512, "bfloat16")]
)
def test_large_integers_that_floats_hold_are_taken(value, dtype):
    assert float(cast_exactly(np.array([value]), dtype)[0]) == value


@pytest.mark.parametrize(
    ("value", "given_dtype", "dtype"),
    [
        (1e300, "float64", "float32"),
        (70000.0, "float32", "float16"),
        (1e39, "float64", "bfloat16"),
        (1e300, "complex128", "complex64"),
        (1e300, "float64", "complex64"),
        (1e300j, "complex128", "complex64"),
    ],
)
def test_a_float_is_not_rounded_to_infinity(value, given_dtype, dtype):
    with pytest.raises(InexactError) as caught:
        cast_exactly(np.array([0, value], given_dtype), dtype)
    assert caught.value.position == 1


def test_a_float_may_be_rounded():
    assert cast_exactly(np.array([0.1]), "float32").tolist() == [np.float32(0.1)]
    assert cast_exactly(np.array([1e-300]), "float32").tolist() == [0.0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64"])
def test_nan_infinity_and_negative_zero_pass(dtype):
    cast = cast_exactly(np.array([np.nan, np.inf, -np.inf, -0.0]), dtype)
    assert np.isnan(cast[0])
    assert np.isinf(cast[1:3]).all()
    assert np.signbit(cast[3].real)


@pytest.mark.parametrize(
    ("given_dtype", "dtype"),
    [
        ("float64", "int64"),
        ("float32", "bool"),
        ("complex64", "float64"),
        ("complex64", "int8"),
        ("U3", "int64"),
        ("S3", "float32"),
        ("O", "int64"),
        ("datetime64[s]", "int64"),
    ],
)
def test_another_kind_of_number_is_refused_by_name(given_dtype, dtype):
    array = np.zeros(2, given_dtype)
    with pytest.raises(InexactError, match=array.dtype.name.split("[")[0].rstrip("0123456789")):
        cast_exactly(array, dtype)


def test_ones_and_zeros_are_taken_as_bools():
    assert cast_exactly(np.array([0, 1]), "bool").tolist() == [False, True]
    with pytest.raises(InexactError, match="^2$"):
        cast_exactly(np.array([0, 1, 2]), "bool")


def test_bools_are_taken_as_numbers():
    for dtype in NUMBERS:
        assert np.array_equal(cast_exactly(np.array([True, False]), dtype), [1, 0])


def test_no_values_can_be_cast():
    assert cast_exactly(np.empty((0, 3)), "float32").shape == (0, 3)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "uint8", 3),
        ([1, 2], "float32", [1, 2]),
        ([[1, 2], [3, 4]], "int16", [[1, 2], [3, 4]]),
        ([], "int64", []),
        ([[], []], "int64", [[], []]),
        ([2**63, 1], "uint64", [2**63, 1]),
        ([2**64 - 1, 0], "uint64", [2**64 - 1, 0]),
        ([-1, 1], "int64", [-1, 1]),
        (np.float32(0.5), "float64", 0.5),
        ((1, 2), "complex64", [1, 2]),
    ],
)
def test_lists_and_scalars_become_arrays_of_the_dtype(value, dtype, expected):
    array = as_array(value, dtype)
    assert array.dtype == numpy_dtype(dtype)
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (300, "uint8"),
        (2**64, "uint64"),
        ([1, 2**64], "uint64"),
        ([2**63, -1], "uint64"),
        ([1, 2.5], "int64"),
        ([1, None], "int64"),
        ([1, None], "float32"),
        ("1", "int64"),
        (["1", 2], "float32"),
        ([2**53 + 1], "float64"),
        ([2**53 + 1, 0.5], "float64"),
        (np.empty(0), "int64"),
        (np.array([1, 2], object), "int64"),
    ],
)
def test_lists_and_scalars_that_the_dtype_cannot_hold_are_refused(value, dtype):
    with pytest.raises(InexactError):
        as_array(value, dtype)


EAST = dt.timezone(dt.timedelta(hours=2))


class Color(enum.Enum):
    RED = "red"
    NESTED = (1, dt.date(2020, 1, 2))


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Box:
    x: int
    color: Color = Color.RED


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            1,
            0.5,
            1j,
            "a",
            b"a",
            [1, [2.5]],
            (1, "a"),
            np.int8(1),
            np.datetime64(1, "s"),
        ),
        *(pathlib.Path("a.jpg"), ImageBytes(b"a"), np.zeros(3), np.array(["a"])),
    ],
    ids=repr,
)
def test_plain_values_are_left_alone(value):
    assert plain_value(value) is value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Color.RED, "red"),
        (Color.NESTED, (1, np.datetime64("2020-01-02"))),
        (Level.LOW, 1),
        ([Color.RED, "b"], ["red", "b"]),
        (bytearray(b"a"), b"a"),
        (memoryview(b"ab")[::-1], b"ba"),
        (dt.date(2020, 1, 2), np.datetime64("2020-01-02")),
        (dt.datetime(2020, 1, 2, 3, 4, 5, 6), np.datetime64("2020-01-02T03:04:05.000006")),
        (dt.datetime(2020, 1, 2, tzinfo=EAST), np.datetime64("2020-01-01T22:00:00.000000")),
        (dt.datetime(1, 1, 1, tzinfo=EAST), np.datetime64("0000-12-31T22:00:00.000000")),
        (dt.timedelta(days=1, microseconds=2), np.timedelta64(86_400_000_002, "us")),
        (dt.time(1, 2, 3, 4), np.timedelta64(3_723_000_004, "us")),
        (np.array([1, "a"], object), [1, "a"]),
        (np.array(Color.RED, object), "red"),
        (array.array("h", [1, 2]), np.array([1, 2], np.int16)),
        (BytesColumn.from_values(["a", "b"]), ["a", "b"]),
        (Ragged(np.array([1, 2], np.int8), np.array([0, 2])), [np.array([1, 2], np.int8)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_values_have_plain_ones_that_stand_for_them(value, plain):
    found = plain_value(value)
    assert type(found) is type(plain)
    assert np.array_equal(found, plain)
    assert getattr(found, "dtype", None) == getattr(plain, "dtype", None)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (decimal.Decimal(1), "Decimal'>\nhint: schema="),
        ({2, 1}, "set'>\nhint: convert it to a sorted list"),
        ([{"a": 1}], "dict'>\nhint: a list of dicts may contain nothing else"),
        (object(), "object'>\nhint: convert it to one of these, or leave it out"),
        (np.ma.masked_array([1], [True]), "expected an array without a mask"),
        (dt.time(1, tzinfo=EAST), "expected a time of day without a zone"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_nothing_stands_for_is_refused_with_a_hint(value, problem):
    with pytest.raises(SchemaError, match=problem):
        plain_value(value)


def test_a_released_view_is_refused():
    view = memoryview(b"a")
    view.release()
    with pytest.raises(SchemaError, match="expected bytes, got"):
        plain_value(view)


def test_values_that_hold_themselves_are_refused():
    endless: list[object] = []
    endless.append(endless)
    holder = np.empty((), object)
    holder[()] = holder
    row: dict[str, object] = {}
    row["x"] = row
    for value in (endless, holder):
        with pytest.raises(SchemaError, match="endless nesting"):
            plain_value(value)
    with pytest.raises(SchemaError, match="endless nesting"):
        plain_row(row)


def test_whatever_makes_an_array_is_one():
    class Tensor:
        def detach(self):
            return self

        def cpu(self):
            return np.array([1.5], np.float32)

        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("on a device")

    class Broken:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("no memory")

    assert plain_value(Tensor()).dtype == np.float32
    with pytest.raises(SchemaError, match=r"expected an array, got .*Broken'>: no memory"):
        plain_value(Broken())


def test_subclasses_of_arrays_are_made_plain(tmp_path):
    mapped = np.memmap(tmp_path / "a", np.uint8, "w+", shape=(2,))
    assert type(plain_value(mapped)) is np.ndarray


def test_times_of_pandas_keep_their_nanoseconds_and_missing_ones_are_absent():
    pandas = pytest.importorskip("pandas")
    stamp = pandas.Timestamp("2020-01-01 00:00:00.000000001", tz="UTC")
    assert plain_value(stamp) == np.datetime64("2020-01-01T00:00:00.000000001")
    assert plain_value(pandas.Timedelta(1, "ns")) == np.timedelta64(1, "ns")
    assert plain_value(pandas.NaT) is None
    assert plain_value(pandas.NA) is None


def test_rows_of_scipy_lose_their_first_dimension_and_duplicates_are_summed():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    row = plain_value(scipy_sparse.csr_array(np.array([[0, 5, 0, 7]])))
    assert isinstance(row, Sparse)
    assert row.dense_shape == (4,)
    assert row.to_dense().tolist() == [0, 5, 0, 7]
    assert plain_value(scipy_sparse.csr_array(np.eye(2))).dense_shape == (2, 2)
    twice = scipy_sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(1, 3))
    assert sparse_from_scipy(twice).values.tolist() == [3]
    assert twice.nnz == 2


def test_a_row_of_parts_is_flattened():
    row = {"id": 1, "box": Box(2), "meta": {"a": {"b": None}, "empty": {}}}
    assert plain_row(row) == {"id": 1, "box/x": 2, "box/color": "red", "meta/a/b": None}
    assert plain_row(Box(3)) == {"x": 3, "color": "red"}


@pytest.mark.parametrize(
    ("row", "feature", "problem"),
    [
        ({"a": {"b": 1}, "a/b": 2}, "a/b", "expected one value of this name, got two"),
        ({"a": {"b": {1}}}, "a/b", "expected numbers"),
        ({3: 1}, None, "expected names that are str, got 3"),
        ([("a", 1)], None, "expected a dict of values, got <class 'list'>"),
        (Box, None, "expected a dict of values, got <class 'type'>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_row_that_cannot_be_made_plain_names_its_feature(row, feature, problem):
    with pytest.raises(SchemaError, match=problem) as caught:
        plain_row(row)
    assert caught.value.feature == feature


def test_pictures_are_told_by_what_they_are():
    pillow = pytest.importorskip("PIL.Image")
    assert is_image(pathlib.Path("a.png"))
    assert is_image(pillow.new("RGB", (1, 1)))
    assert is_image(ImageBytes(b""))
    assert not is_image(b"")
    assert not is_image("a.png")


@pytest.mark.parametrize("zones", [[None, None], [EAST, dt.UTC], [EAST, None]])
def test_many_times_are_what_each_is(zones):
    stamps = [dt.datetime(1, 1, 1, tzinfo=zones[0]), dt.datetime(2020, 1, 2, 3, tzinfo=zones[1])]
    found = plain_times(stamps)
    assert found.dtype == "datetime64[us]"
    assert found.tolist() == np.array(list(map(plain_value, stamps))).tolist()


def test_only_times_of_one_kind_make_one_array():
    assert plain_times([dt.date(2020, 1, 2)]).dtype == "datetime64[D]"
    for mixed in ([dt.datetime(2020, 1, 2), dt.date(2020, 1, 2)], [None], [], [1]):
        assert plain_times(mixed) is None


@pytest.mark.parametrize("days", [106_751_992, -106_751_992, 999_999_999])
def test_a_time_span_beyond_64_bits_of_microseconds_is_refused(days):
    for value in (dt.timedelta(days), [dt.timedelta(1), dt.timedelta(days)]):
        with pytest.raises(SchemaError, match=r"time span of at most .* got -?\d+ days"):
            plain_value(value)
    assert plain_value(dt.timedelta(106_751_991)) == np.timedelta64(106_751_991, "D")
