"""Rows and columns encoded as records."""

import collections
import dataclasses
import enum
import io
import pathlib
import pickle
import re
import threading
import types

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from datum import BytesColumn, Feature, Masked, Ragged, Schema, SchemaError, Sparse
from datum._core import Fault, RowCollector
from datum.format import RowEncoder, encode, parse
from datum.format.encode import collect, collect_guessing
from datum.format.row_input import (
    GivenPlan,
    GuessedPlan,
    collect_rows,
    is_collectable,
    row_feature,
    skipped_feature,
)
from datum.format.statistics import MAX_DISTINCT, Counts, Statistics
from datum.schema import DTYPES, ImageBytes, SchemaGuess, guess_value, numpy_dtype
from datum.schema.feature import STRINGS, TIMES

NUMBERS = [dtype for dtype in DTYPES if dtype not in (*STRINGS, *TIMES)]
INTEGERS = [dtype for dtype in NUMBERS if "int" in dtype]
LISTED = [dtype for dtype in NUMBERS if dtype not in ("float64", "complex64", "complex128")]
STORED = [*((dtype, "values") for dtype in LISTED), *((dtype, "raw") for dtype in NUMBERS)]


class Color(enum.IntEnum):
    RED = 1


def round_trip(value, feature: Feature):
    """What one record gives back."""
    return parse(encode([{"x": value}], {"x": feature}), {"x": feature})["x"]


def refusal(rows, feature: Feature) -> str:
    """The message with which rows of one feature are refused."""
    with pytest.raises(SchemaError) as caught:
        encode([{"x": row} for row in rows], {"x": feature})
    return str(caught.value)


# Bytes.
def test_an_example_has_the_bytes_of_protobuf():
    schema = {"b": Feature("float32", (2,)), "a": Feature("int64"), "c": Feature("bytes")}
    (payload,) = encode([{"c": b"xy", "a": -1, "b": [1, 0.5]}], schema)
    assert payload == bytes.fromhex(
        "0a 35"
        "0a 13 0a 01 61 12 0e 1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01"
        "0a 11 0a 01 62 12 0c 12 0a 0a 08 00 00 80 3f 00 00 00 3f"
        "0a 0b 0a 01 63 12 06 0a 04 0a 02 78 79"
    )


def test_a_sequence_example_has_the_bytes_of_protobuf_context_first():
    schema = {"t": Feature("int64", (None,), sequence=True), "z": Feature("int64")}
    (payload,) = encode([{"z": 1, "t": [2, 3]}], schema)
    assert payload == bytes.fromhex(
        "0a 0c 0a 0a 0a 01 7a 12 05 1a 03 0a 01 01"
        "12 15 0a 13 0a 01 74 12 0e 0a 05 1a 03 0a 01 02 0a 05 1a 03 0a 01 03"
    )


def test_keys_are_written_sorted_by_their_bytes():
    names = ["b", "a", "B", "ä", "aa", ""]
    schema = {name: Feature("int64") for name in names}
    (payload,) = encode([dict.fromkeys(names, 1)], schema)
    places = [
        payload.index(b"\x0a" + bytes([len(n.encode())]) + n.encode() + b"\x12") for n in names
    ]
    order = [name for _, name in sorted(zip(places, names, strict=True))]
    assert order == sorted(names, key=str.encode)


def test_rows_and_columns_have_the_same_bytes_in_any_order_of_keys():
    schema = Schema({"x": Feature("int64"), "y": Feature("str")})
    expected = encode([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}], schema).to_bytes()
    other = Schema({"y": Feature("str"), "x": Feature("int64")})
    assert encode([{"y": "a", "x": 1}, {"y": "b", "x": 2}], other).to_bytes() == expected
    assert encode({"y": ["a", "b"], "x": np.array([1, 2])}, schema).to_bytes() == expected


def test_what_is_absent_is_not_written():
    schema = {"x": Feature("int64", optional=True), "y": Feature("str", (None,), optional=True)}
    empty = b"\x0a\x00"
    assert list(encode([{}, {"x": None, "y": None}], schema)) == [empty, empty]
    masked = Masked(np.array([1]), np.array([False]))
    assert list(encode({"x": masked, "y": [None]}, schema)) == [empty]
    assert list(encode({"y": [None]}, schema)) == [empty]


def test_a_default_is_not_written():
    schema = {"x": Feature("int64", default=7)}
    assert list(encode([{}], schema)) == [b"\x0a\x00"]


def test_nothing_gives_nothing():
    for data in ([], {}, {"x": []}, {"x": np.empty(0)}):
        assert encode(data, {"x": Feature("float32")} if data else None).to_bytes() == b""
    assert len(encode([], {"x": Feature("int64")})) == 0


def test_rows_without_features_are_records():
    assert len(encode([{}, {}], {})) == 2


@pytest.mark.parametrize("threads", [2, 4, 7])
def test_the_bytes_do_not_depend_on_threads(threads):
    rng = np.random.default_rng(0)
    columns = {
        "x": rng.integers(-(2**60), 2**60, (5000, 20)),
        "y": Ragged.from_rows([rng.random(i % 50).astype(np.float32) for i in range(5000)]),
        "z": [f"text {i}" * (i % 9) for i in range(5000)],
    }
    expected = encode(columns, threads=1)
    found = encode(columns, threads=threads)
    assert found.to_bytes() == expected.to_bytes()
    assert found.offsets.tolist() == expected.offsets.tolist()


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused(threads):
    with pytest.raises(ValueError, match=f"expected `threads` of 1 or more, got {threads}"):
        encode([{"x": 1}], threads=threads)


# What rows may be.
@pytest.mark.parametrize(
    "row",
    [
        {"x": 1, "y": "a"},
        collections.OrderedDict(y="a", x=1),
        collections.defaultdict(int, x=1, y="a"),
        collections.ChainMap({"x": 1}, {"y": "a"}),
        types.MappingProxyType({"x": 1, "y": "a"}),
    ],
    ids=lambda row: type(row).__name__,
)
def test_a_row_is_any_mapping(row):
    schema = {"x": Feature("int64"), "y": Feature("str")}
    expected = encode([{"x": 1, "y": "a"}], schema).to_bytes()
    assert encode([row], schema).to_bytes() == expected
    assert encode(iter([row]), schema).to_bytes() == expected
    assert encode([row]).to_bytes() == expected


@pytest.mark.parametrize("row", [3, "ab", None, [("x", 1)], ("x", 1)], ids=repr)
def test_a_row_that_is_no_mapping_is_refused(row):
    with pytest.raises(SchemaError, match="^record 1: expected a dict of values, got <class"):
        encode([{"x": 1}, row], {"x": Feature("int64")})


@pytest.mark.parametrize(
    "data", [{"x": 1}, {"x": np.array(5)}, {"x": "ab"}, {"x": b"ab"}], ids=repr
)
def test_a_row_in_place_of_rows_is_refused_with_the_way_out(data):
    message = "^feature 'x': expected a column, got <class .*>\nhint: for a single row, pass a list"
    with pytest.raises(SchemaError, match=message):
        encode(data)


def test_a_key_that_no_feature_has_is_refused():
    schema = {"x": Feature("int64"), "y": Feature("float64", optional=True)}
    message = (
        "record 1: expected features x, y, got 'z' too\n"
        "hint: add it to the schema, or drop it from the rows"
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        encode([{"x": 1}, {"x": 1, "z": 2}], schema)
    with pytest.raises(SchemaError, match="record 0: expected names that are str, got 3"):
        encode([{"x": 1, 3: 1}], schema)
    with pytest.raises(SchemaError, match="expected features x, y, got 'z'"):
        encode({"x": [1], "z": [2]}, schema)


@pytest.mark.parametrize(
    "feature", [Feature("int64"), Feature("float64"), Feature("int8", (None, None))]
)
@pytest.mark.parametrize("row", [{}, {"x": None}])
def test_a_required_value_that_is_missing_is_refused(feature, row):
    value = [[1]] if feature.shape else 1
    message = (
        "record 1, feature 'x': expected a value, got none\nhint: mark the feature optional=True"
    )
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}$"):
        encode([{"x": value}, row], {"x": feature})


def test_a_required_column_that_is_missing_is_refused():
    with pytest.raises(SchemaError, match="^feature 'y': expected a column, got none$"):
        encode({"x": [1]}, {"x": Feature("int64"), "y": Feature("int64")})


def test_columns_must_have_one_length():
    with pytest.raises(SchemaError, match="expected columns of one length, got {'x': 1, 'y': 2}"):
        encode({"x": [1], "y": [1, 2]})


def test_two_features_under_one_key_are_refused():
    schema = {"x": Feature("int64"), "y": Feature("int64", keys=("x",))}
    for data in ([{"x": 1, "y": 1}], {"x": [1], "y": [1]}):
        with pytest.raises(SchemaError, match="use the same key 'x'"):
            encode(data, schema)


def test_the_schema_may_be_any_mapping():
    with pytest.raises(SchemaError, match="expected names and features, got 'x': 'int64'"):
        encode([{"x": 1}], {"x": "int64"})
    schema = types.MappingProxyType({"x": Feature("int64")})
    assert len(encode([{"x": 1}], schema)) == 1


# Without a schema.
def test_without_a_schema_types_are_taken_from_the_data():
    rows = [{"x": 1, "name": "a", "v": [0.5]}, {"x": 2, "name": "b", "v": [1.5, 2.5]}]
    schema = {"x": Feature("int64"), "name": Feature("str"), "v": Feature("float32", (None,))}
    assert encode(rows).to_bytes() == encode(rows, schema).to_bytes()
    columns = {
        "x": np.array([1, 2]),
        "name": ["a", "b"],
        "v": Ragged.from_rows([[0.5], [1.5, 2.5]]),
    }
    columns["v"].values = columns["v"].values.astype(np.float32)
    assert encode(columns).to_bytes() == encode(rows).to_bytes()


def test_a_feature_that_is_none_everywhere_is_left_out():
    expected = encode([{"y": 1}]).to_bytes()
    assert encode([{"x": None, "y": 1}]).to_bytes() == expected
    assert encode({"x": [None], "y": [1]}).to_bytes() == expected


@pytest.mark.parametrize("dtype", NUMBERS)
def test_a_typed_column_keeps_its_dtype_but_float64(dtype):
    column = np.zeros((3, 2), numpy_dtype(dtype))
    stored = "float32" if dtype == "float64" else dtype
    expected = encode({"x": column}, {"x": Feature(stored, (2,))}).to_bytes()
    assert encode({"x": column}).to_bytes() == expected
    assert encode([{"x": row} for row in column]).to_bytes() == expected


@pytest.mark.parametrize(
    ("column", "feature"),
    [
        (Masked(np.array([1, 2]), [True, False]), Feature("int64", optional=True)),
        (BytesColumn.from_values(["a", "b"]), Feature("str")),
        (BytesColumn.from_values([b"a", b"b"]), Feature("bytes")),
        (np.array(["a", "b"]), Feature("str")),
        (np.array([[1], [2]]), Feature("int64", (1,))),
        (Ragged.from_rows([["a"], []]), Feature("str", (None,))),
        (Ragged.from_rows([[[1]], []], levels=2), Feature("int64", (None, None))),
        (Ragged.from_rows([[0.1], []]), Feature("float32", (None,))),
        (
            Sparse(np.array([[0, 1]]), np.array([1.5], np.float32), (2, 3)),
            Feature("float32", (3,), encoding="sparse"),
        ),
        (
            Sparse(np.array([[0, 1]]), BytesColumn.from_values(["a"]), (2, 3)),
            Feature("str", (3,), encoding="sparse"),
        ),
        ([np.zeros((1, 2)), np.zeros((3, 2))], Feature("float32", (None, 2))),
        ([None, "a"], Feature("str", optional=True)),
    ],
    ids=repr,
)
def test_a_column_tells_its_feature(column, feature):
    assert encode({"x": column}).to_bytes() == encode({"x": column}, {"x": feature}).to_bytes()


def test_a_record_above_what_protobuf_allows_is_refused():
    chunk = 64 * 2**20
    slices = np.array([[0, chunk]] * 33)  # the same bytes again and again
    column = BytesColumn(np.zeros(chunk, np.uint8), slices, shape=(1, 33))
    with pytest.raises(
        SchemaError, match="^record 0: expected at most 2 GiB, the limit of protobuf"
    ):
        encode({"x": column}, {"x": Feature("bytes", (33,))})


# Kinds of values.
@pytest.mark.parametrize(("dtype", "encoding"), STORED)
@pytest.mark.parametrize(
    "make",
    [
        lambda dtype: dtype.type(1),
        lambda dtype: np.ones((), dtype),
        lambda dtype: np.ones((), dtype.newbyteorder(">")),
        lambda _: True,
        lambda _: 1,
        lambda _: Color.RED,
        lambda _: np.bool_(True),
        lambda _: np.int8(1),
        lambda _: np.uint64(1),
    ],
    ids=["scalar", "0-d", "swapped", "bool", "int", "IntEnum", "np.bool_", "np.int8", "np.uint64"],
)
def test_a_scalar_may_be_any_kind_of_number(dtype, encoding, make):
    found = round_trip(make(numpy_dtype(dtype)), Feature(dtype, encoding=encoding))
    assert found.dtype == numpy_dtype(dtype)
    assert found.tolist() == [1]


def rearranged(array: np.ndarray) -> dict[str, object]:
    """The same values in every form that memory and Python have for them."""
    readonly = array.copy()
    readonly.flags.writeable = False
    return {
        "array": array,
        "list": array.tolist(),
        "tuples": tuple(map(tuple, array.tolist())),
        "list of arrays": list(array),
        "list of lists of scalars": [list(row) for row in array],
        "Fortran": np.asfortranarray(array),
        "strided": np.repeat(np.repeat(array, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": array[::-1, ::-1].copy()[::-1, ::-1],
        "byte-swapped": array.astype(array.dtype.newbyteorder(">")),
        "read-only": readonly,
    }


@pytest.mark.parametrize(("dtype", "encoding"), STORED)
@pytest.mark.parametrize("shape", [(2, 3), (None, 3), (None, None)], ids=str)
def test_an_array_may_have_any_form(dtype, encoding, shape):
    feature = Feature(dtype, shape, encoding=encoding)
    array = np.array([[0, 1, 1], [1, 0, 1]]).astype(numpy_dtype(dtype))
    expected = encode([{"x": array}], {"x": feature}).to_bytes()
    for form, value in rearranged(array).items():
        if dtype == "bfloat16" and form in ("list", "tuples"):
            value = [[float(item) for item in row] for row in value]
        assert encode([{"x": value}], {"x": feature}).to_bytes() == expected, form
    column = parse(encode([{"x": array}] * 2, {"x": feature}), {"x": feature})["x"]
    found = column[1].to_list() if isinstance(column[1], Ragged) else column[1].tolist()
    assert found == array.tolist()


@pytest.mark.parametrize("dtype", ["bytes", "str"])
@pytest.mark.parametrize("shape", [(2, 2), (None, 2), (None, None)], ids=str)
def test_strings_may_have_any_form(dtype, shape):
    words = [["a", "ü"], ["", "日本"]]
    if dtype == "bytes":
        words = [[word.encode() for word in row] for row in words]
    feature = Feature(dtype, shape)
    expected = encode([{"x": words}], {"x": feature}).to_bytes()
    forms = [tuple(map(tuple, words)), np.array(words, object), list(np.array(words, object))]
    if dtype == "str":
        forms.append(np.array(words))
    for form in forms:
        assert encode([{"x": form}], {"x": feature}).to_bytes() == expected
    column = parse(encode([{"x": words}], {"x": feature}), {"x": feature})["x"]
    assert column.to_list() == [words]


ONE_STRING = {
    "()": (Feature("bytes"), lambda value: value),
    "(1,)": (Feature("bytes", (1,)), lambda value: [value]),
    "(None,)": (Feature("bytes", (None,)), lambda value: [value]),
    "(None, None)": (Feature("bytes", (None, None)), lambda value: [[value]]),
    "sequence": (Feature("bytes", (None,), sequence=True), lambda value: [value]),
}


@pytest.mark.parametrize(("feature", "wrap"), ONE_STRING.values(), ids=ONE_STRING)
@pytest.mark.parametrize(
    "make", [bytes, bytearray, memoryview, np.bytes_, lambda b: memoryview(b"." + b)[1:]]
)
def test_bytes_may_be_in_any_buffer(feature, wrap, make):
    expected = encode([{"x": wrap(b"ab\xff")}], {"x": feature}).to_bytes()
    assert encode([{"x": wrap(make(b"ab\xff"))}], {"x": feature}).to_bytes() == expected


def test_memory_that_changes_later_does_not_change_what_was_encoded():
    memory = bytearray(b"before")
    array = np.array([1, 2])
    framed = encode(
        [{"x": memory, "y": array}], {"x": Feature("bytes"), "y": Feature("int64", (2,))}
    )
    expected = framed.to_bytes()
    memory[:] = b"after!"
    array[:] = 9
    assert framed.to_bytes() == expected


@pytest.mark.parametrize("value", [np.str_("ab"), np.array("ab"), np.array("ab", object)], ids=repr)
def test_text_may_be_of_numpy(value):
    assert round_trip(value, Feature("str"))[0] == "ab"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text):
    assert round_trip(text, Feature("str"))[0] == text
    assert round_trip([text], Feature("str", (None,), sequence=True)).to_list() == [[text]]


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("str"), "a\ud800"),
        (Feature("str", (2,)), ["ok", "\udfff"]),
        (Feature("str", (None,)), ["\ud800"]),
        (Feature("str", (None, None)), [["\ud800"]]),
        (Feature("str", (None,), sequence=True), ["\ud800"]),
        (Feature("str", (3,), encoding="sparse"), ([1], ["\ud800"])),
    ],
    ids=repr,
)
def test_a_lone_surrogate_is_refused(feature, value):
    assert refusal([None, value], Feature(**options(feature))).startswith("record 1, feature 'x': ")


def options(feature: Feature) -> dict:
    """The feature's own, but optional."""
    return {
        "dtype": feature.dtype,
        "shape": feature.shape,
        "encoding": feature.encoding,
        "sequence": feature.sequence,
        "optional": True,
    }


# Exactness.
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
)
@pytest.mark.parametrize("shape", [(), (1,), (None,)])
def test_nan_infinity_and_negative_zero_are_exact(dtype, shape):
    for value in (np.nan, np.inf, -np.inf, -0.0, 0.0):
        for given_value in (value, np.array(value).astype(numpy_dtype(dtype))[()]):
            column = round_trip([given_value] if shape else given_value, Feature(dtype, shape))
            (found,) = np.ravel(column.values if isinstance(column, Ragged) else column)
            assert found.tobytes() == np.array(value).astype(numpy_dtype(dtype)).tobytes()


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [
        ("float16", np.array([0x7E01, 0xFE00, 0x0001, 0x8001, 0x7BFF], np.uint16)),
        ("bfloat16", np.array([0x7FC1, 0xFFC0, 0x0001, 0x8001, 0x7F7F], np.uint16)),
        ("float32", np.array([0x7FC00001, 0xFFC00000, 0x7F800001, 1, 0x80000001], np.uint32)),
        ("float64", np.array([0x7FF8000000000001, 0x7FF0000000000001, 1], np.uint64)),
    ],
)
def test_payloads_of_nan_and_subnormals_are_exact(dtype, bits):
    array = bits.view(numpy_dtype(dtype))
    schema = {"x": Feature(dtype, (len(array),))}
    for framed in (encode([{"x": array}], schema), encode({"x": array[None]}, schema)):
        assert parse(framed, schema)["x"].view(bits.dtype).tolist() == [bits.tolist()]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("encoding", ["values", "raw"])
def test_the_ends_of_integers_are_exact(dtype, encoding):
    ends = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    feature = Feature(dtype, (2,), encoding=encoding)
    assert round_trip(ends, feature).tolist() == [ends]
    assert round_trip(np.array(ends, dtype), feature).tolist() == [ends]


FORMS = {
    "()": (lambda dtype: Feature(dtype), lambda value: value),
    "(2,)": (lambda dtype: Feature(dtype, (2,)), lambda value: [1, value]),
    "(None,)": (lambda dtype: Feature(dtype, (None,)), lambda value: [value]),
    "(None, None)": (
        lambda dtype: Feature(dtype, (None, None), encoding="raw" if "64" in dtype else None),
        lambda value: [[1, value]],
    ),
    "raw": (lambda dtype: Feature(dtype, encoding="raw"), lambda value: value),
    "sequence": (lambda dtype: Feature(dtype, (None,), sequence=True), lambda value: [1, value]),
    "array": (lambda dtype: Feature(dtype, (2,)), lambda value: np.array([1, value])),
    "0-d": (lambda dtype: Feature(dtype), np.array),
}


@pytest.mark.parametrize(("make", "wrap"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300),
        ("uint8", -1),
        ("int8", 128),
        ("int32", 2**31),
        ("int64", 2**63),
        ("int64", 2**70),
        ("uint64", 2**64),
        ("uint64", -1),
        ("bool", 2),
        ("bool", -1),
        ("float32", 1e300),
        ("float32", 2**24 + 1),
        ("float16", 70000.0),
        ("float16", 2049),
        ("float64", 2**53 + 1),
        ("complex64", 1e300),
    ],
)
def test_a_value_out_of_range_is_refused_by_record_and_feature(make, wrap, dtype, value):
    message = refusal([wrap(1), wrap(1), wrap(value)], make(dtype))
    assert message.startswith(f"record 2, feature 'x': expected {dtype}, got ")


@pytest.mark.parametrize(("make", "wrap"), FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("int64", "1"),
        ("int64", 1.0),
        ("int64", 1.5),
        ("int64", np.float32(1)),
        ("int64", 1j),
        ("float32", "a"),
        ("float32", b"a"),
        ("float64", "a"),
        ("float32", 1j),
        ("int64", {}),
        ("int64", {1}),
        ("float64", ...),
        ("bool", "yes"),
        ("uint8", b"\x01"),
        ("int64", np.datetime64("2020-01-01")),
    ],
    ids=repr,
)
def test_a_value_of_another_type_is_refused_by_record_and_feature(make, wrap, dtype, value):
    message = refusal([wrap(1), wrap(1), wrap(value)], make(dtype))
    assert message.startswith("record 2, feature 'x': expected ")
    assert ", got " in message


@pytest.mark.parametrize(
    ("feature", "sound", "value"),
    [
        (Feature("str"), "a", b"a"),
        (Feature("str"), "a", 3),
        (Feature("str"), "a", ["a"]),
        (Feature("bytes"), b"a", "a"),
        (Feature("bytes"), b"a", 3),
        (Feature("bytes"), b"a", np.array([1, 2])),
        (Feature("str", (2,)), ["a", "b"], "ab"),
        (Feature("str", (None,)), ["a"], "ab"),
        (Feature("bytes", (None,)), [b"a"], b"ab"),
        (Feature("str", (None,)), ["a"], [b"a"]),
        (Feature("str", (None,)), ["a"], [["a"]]),
        (Feature("str", (None,)), ["a"], [None]),
        (Feature("str", (None, None)), [["a"]], ["ab"]),
        (Feature("str", (None,), sequence=True), ["a"], [b"a"]),
        (Feature("str", (None,), sequence=True), ["a"], "ab"),
        (Feature("int64", (2,)), [1, 2], [1]),
        (Feature("int64", (2,)), [1, 2], 1),
        (Feature("int64", (2,)), [1, 2], [1, 2, 3]),
        (Feature("int64", (2,)), [1, 2], [[1, 2]]),
        (Feature("int64", (2,)), [1, 2], np.array([[1, 2]])),
        (Feature("int64", (2, 2)), [[1, 2]] * 2, [[1, 2], [3]]),
        (Feature("int64", (None, 2)), [[1, 2]], [[1, 2], [3]]),
        (Feature("int64", (None,)), [1], 1),
        (Feature("int64", (None,)), [1], [None]),
        (Feature("int64"), 1, [1]),
        (Feature("int64"), 1, np.array([1])),
        (Feature("int64", (None, None)), [[1]], [1]),
        (Feature("int64", (None, None)), [[1]], [[[1]]]),
        (Feature("int64", (None, None)), [[1]], 1),
        (Feature("int64", (None,), sequence=True), [1], [[1, 2]]),
        (Feature("int64", (None,), sequence=True), [1], 1),
        (Feature("int64", (None, 2), sequence=True), [[1, 2]], [[1]]),
        (Feature("float64", (2,)), [1, 2], [1]),
        (Feature("float64", (2,)), [1, 2], [[1], [2, 3]]),
        (Feature("float64", (None, None)), [[1]], [1]),
        (Feature("float64", (None, None)), [[1]], [[1], [2, 3]]),
        (Feature("float64", (None, 2)), [[1, 2]], np.ones((1, 3))),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), [0, 1, 0, 0]),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), ([1, 2], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), ([4], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), ([-1], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), ([1.5], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([1], [1.0]), ([2**70], [1.0])),
        (Feature("uint8", (4,), encoding="sparse"), ([1], [1]), ([1], [300])),
    ],
    ids=repr,
)
def test_a_value_of_another_shape_or_type_is_refused_by_record_and_feature(feature, sound, value):
    message = refusal([sound, sound, value], feature)
    assert message.startswith("record 2, feature 'x': expected ")
    assert ", got " in message


@given(st.integers(-(2**70), 2**70))
@example(2**54 - 1)  # to double, and then to float, it rounds to a power of two
@example(2**24 + 1)
@example(2**60)
def test_an_integer_is_written_exactly_or_refused(value):
    for dtype in (*INTEGERS, "float32", "float64"):
        for encoding in ("values", "raw"):
            if dtype == "float64" and encoding == "values":
                continue
            try:
                found = round_trip(value, Feature(dtype, encoding=encoding))[0]
            except SchemaError:
                if dtype in INTEGERS:
                    assert not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max
            else:
                assert int(found) == value


# Objects.
class Explosive:
    """Pickles to something that fails loudly if it is ever executed."""

    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


def test_objects_in_arrays_are_refused_not_executed():
    pickled = pickle.dumps(Explosive())
    for value in (np.array([Explosive()], object), np.array([None], object), [Explosive()]):
        for dtype in ("int64", "float64", "bytes"):
            with pytest.raises(SchemaError, match="record 0, feature 'x': expected "):
                encode([{"x": value}], {"x": Feature(dtype, (1,))})
        with pytest.raises(SchemaError):
            encode([{"x": value}])
    assert round_trip(pickled, Feature("bytes"))[0] == pickled


def test_a_pickled_array_is_only_bytes():
    file = io.BytesIO()
    np.save(file, np.array([Explosive()], object), allow_pickle=True)
    framed = encode([{"x": file.getvalue()}])
    assert parse(framed, {"x": Feature("bytes")})["x"][0] == file.getvalue()


def guess(data, known=None):
    return collect_guessing(data, known or SchemaGuess(), {})


def test_columns_of_every_kind_are_guessed_together():
    found = guess(
        {
            "typed": np.array([1, 2], np.int8),
            "list": [1, None],
            "objects": np.array(["a", None], object),
            "masked": Masked(np.array(["a", "b"]), np.array([True, False])),
            "nothing": [None, None],
        }
    )
    assert dict(found.schema) == {
        "list": Feature("int64", optional=True),
        "objects": Feature("str", optional=True),
        "masked": Feature("str", optional=True),
        "typed": Feature("int8"),
    }
    assert found.count == 2
    assert set(found.sources) == set(found.schema)


def test_the_guess_given_stays_as_it_was():
    known = SchemaGuess()
    known.add_rows([{"x": 1}])
    found = guess({"x": np.array([0.5])}, known)
    assert known.to_schema() == Schema({"x": Feature("int64")})
    assert found.guess is not None
    assert found.guess.to_schema() == found.schema == Schema({"x": Feature("float64")})


def test_columns_that_others_have_are_optional():
    known = SchemaGuess()
    known.add_rows([{"x": 1, "y": 1}])
    assert guess({"x": [2]}, known).schema["y"] == Feature("int64", optional=True)


def test_whatever_makes_an_array_is_a_column():
    pandas = pytest.importorskip("pandas")
    found = guess({"x": pandas.Series([1, 2]), "y": pandas.Series(["a", "b"], dtype=object)})
    assert dict(found.schema) == {"y": Feature("str"), "x": Feature("int64")}


@pytest.mark.parametrize("schema", [None, Schema({"x": Feature("int64")})])
@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        (
            {"x": np.ma.masked_array([1], [True])},
            "feature 'x': expected a column without a NumPy",
        ),
        ({"x": [1], "y": [1, 2]}, "expected columns of one length, got {'x': 1, 'y': 2}"),
        ({"x": 3}, "feature 'x': expected a column, got <class 'int'>"),
        ({"x": "ab"}, "feature 'x': expected a column, got <class 'str'>"),
    ],
    ids=str,
)
def test_what_is_no_column_is_refused(columns, problem, schema):
    with pytest.raises(SchemaError, match=problem):
        guess(columns) if schema is None else collect(columns, schema)


def test_two_features_that_would_lie_under_one_key_are_refused():
    with pytest.raises(SchemaError, match="use the same key 'x_lengths_1'"):
        guess([{"x": [[1], [2, 3]], "x_lengths_1": 1}])


def test_text_that_is_not_utf8_is_refused():
    from datum import BytesColumn

    slices = np.array([[0, 1], [1, 2]])
    column = BytesColumn(b"a\xff\xfe", slices, is_text=True)
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected text in UTF-8"
    ) as caught:
        guess({"x": column})
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_a_schema_given_is_kept_and_enforced():
    schema = Schema({"x": Feature("int64"), "s": Feature("str", optional=True)})
    encoder = RowEncoder(schema)
    rows = [{"x": 1}, {"x": 2, "s": "a"}]
    block = encoder.encode(rows)
    assert block.framed.to_bytes() == encode(rows, schema).to_bytes()
    assert block.schema is schema
    assert encoder.guess is None
    with pytest.raises(SchemaError, match="record 0, feature 'x': expected int64"):
        encoder.encode([{"x": 0.5}])


def test_each_block_is_written_under_what_is_known_by_then():
    encoder = RowEncoder()
    schemas = [encoder.encode(rows).schema for rows in ([{"x": 1}], [{"x": 0.5}], [{"y": "a"}])]
    assert [dict(schema) for schema in schemas] == [
        {"x": Feature("int64")},
        {"x": Feature("float32")},
        {"x": Feature("float32", optional=True), "y": Feature("str", optional=True)},
    ]
    assert encoder.schema == schemas[-1]
    assert encoder.guess.records == 3


def test_rows_and_columns_may_alternate():
    encoder = RowEncoder()
    encoder.encode({"x": np.array([1, 2], np.int16)})
    block = encoder.encode([{"x": 3}])
    assert block.schema == Schema({"x": Feature("int64")})
    assert parse(block.framed, block.schema)["x"].tolist() == [3]


def test_the_rows_of_the_caller_stay_as_they_are():
    row = {"a": {"b": 1}}
    rows = [row]
    RowEncoder().encode(rows)
    assert rows == [{"a": {"b": 1}}]
    assert rows[0] is row


def test_an_encoder_may_go_on_from_a_guess():
    guess = SchemaGuess.from_schema(Schema({"x": Feature("float64")}), records=5)
    encoder = RowEncoder(guess=guess)
    assert encoder.encode([{"x": 1}]).schema == Schema({"x": Feature("float32")})
    with pytest.raises(ValueError, match="expected `schema` or `guess`, got both"):
        RowEncoder(Schema({}), guess=guess)


def test_values_are_out_of_reach_once_collected():
    row = {"s": bytearray(b"abc"), "v": np.array([1, 2]), "l": ["a" * 5000]}
    collected = RowEncoder().collect([row])
    row["s"][:] = b"xyz"
    row["v"][:] = 9
    row["l"].clear()
    assert len(collected) == 1
    found = parse(collected.encode().framed, collected.schema)
    assert found["s"].to_list() == [b"abc"]
    assert found["v"].tolist() == [[1, 2]]
    assert found["l"].to_list() == [["a" * 5000]]


def test_blocks_may_be_encoded_by_other_threads_while_more_are_collected():
    rows = [
        [{"x": n, "s": str(n), "f": n / 3} for n in range(k, k + 500)] for k in range(0, 5000, 500)
    ]
    encoder, wanted = RowEncoder(threads=2), RowEncoder(threads=1)
    found = [None] * len(rows)

    def work(at, collected):
        found[at] = collected.encode()

    threads = []
    for at, block in enumerate(rows):
        threads.append(threading.Thread(target=work, args=(at, encoder.collect(block))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    one, other = Statistics(), Statistics()
    for block, again in zip(found, map(wanted.encode, rows), strict=True):
        assert block.framed.to_bytes() == again.framed.to_bytes()
        one, other = one.merge(block.statistics), other.merge(again.statistics)
    assert one == other
    assert one.features["x"].counts == Counts({}, MAX_DISTINCT)


def test_pictures_come_as_the_bytes_of_their_files():
    encoder = RowEncoder()
    block = encoder.encode([{"x": ImageBytes(b"a")}, {"x": b"b"}])
    assert block.schema == Schema({"x": Feature("uint8", (None, None, None), encoding="image")})
    assert parse(block.framed, block.schema)["x"].to_list() == [b"a", b"b"]
    encoder = RowEncoder()
    encoder.encode([{"x": b"a"}])
    assert encoder.encode([{"x": b"b"}, {"x": ImageBytes(b"c")}]).schema == block.schema


@pytest.mark.parametrize(
    "schema", [None, Schema({"x": Feature("uint8", (1, 1, 1), encoding="image")})]
)
def test_a_picture_that_nobody_read_is_refused(schema):
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected bytes, got .*Path"
    ) as caught:
        RowEncoder(schema).encode([{"x": ImageBytes(b"a")}, {"x": pathlib.Path("a.jpg")}])
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_blocks_of_no_rows():
    encoder = RowEncoder()
    assert len(encoder.encode([]).framed) == 0
    assert len(encoder.encode({}).framed) == 0
    block = encoder.encode([{}, {}])
    assert list(block.framed) == [b"\n\x00"] * 2
    assert block.statistics == Statistics(2, {})
    assert encoder.schema == Schema({})


def test_only_features_that_records_have_are_looked_at():
    encoder = RowEncoder()
    for first in range(0, 50, 10):
        block = encoder.encode([{"id": at, f"key {at}": at} for at in range(first, first + 10)])
        assert len(block.statistics.features) == 11  # not those of the blocks before
    assert len(encoder.schema) == 51
    assert not encoder.schema["id"].optional
    assert encoder.schema["key 0"] == encoder.schema["key 49"] == Feature("int64", optional=True)


def test_a_feature_that_comes_back_in_another_form_keeps_what_is_known_of_it():
    encoder = RowEncoder()
    encoder.encode([{"box": {"x": 0.5}, "id": 1}])
    encoder.encode([{"id": 2}])
    for row in ({"box": {"x": 3}, "id": 3}, {"box/x": 3, "id": 4}):
        block = encoder.encode([row])
        assert block.schema["box/x"] == Feature("float32", optional=True)
        assert parse(block.framed.records(), block.schema)["box/x"].values.tolist() == [3.0]
    with pytest.raises(SchemaError, match="feature 'box/x': expected float64, got str"):
        encoder.encode([{"box": {"x": "wide"}}])


def collect_values(spec, *values):
    """How many values were taken, and why the next was not."""
    collector = RowCollector([spec], True)
    try:
        collector.collect([{"x": value} for value in values])
    except Fault as fault:
        return collector.rows_done, fault.args[0]
    return collector.rows_done, None


@pytest.mark.parametrize(
    ("feature", "is_native"),
    [
        (Feature("int8"), True),
        (Feature("float64", (None, 3)), True),
        (Feature("uint8", (None, None, 3), encoding="image"), True),
        (Feature("float16"), False),
        (Feature("datetime64[s]"), False),
        (Feature("int64", (None, None)), True),
        (Feature("float64", (None, None), encoding="values"), True),
        (Feature("float64", (None, None)), False),
        (Feature("uint8", (None, None), encoding="raw"), False),
        (Feature("int64", (3,), encoding="sparse"), False),
        (Feature("int64", (None,), sequence=True), False),
    ],
    ids=repr,
)
def test_what_lies_in_lists_or_whole_is_collected_natively(feature, is_native):
    assert is_collectable(feature) == is_native


def test_a_given_feature_takes_what_fits():
    spec = row_feature("x", Feature("float32"))
    assert collect_values(spec, 0.1, True, 2**24, 7, 2**24 + 1) == (4, "range")
    spec = row_feature("x", Feature("bool"))
    assert collect_values(spec, True, 0, 1, 2) == (3, "range")
    assert collect_values(row_feature("x", Feature("bytes")), b"a", bytearray(b"b"), "c") == (
        2,
        "type",
    )


def test_a_guessed_feature_takes_only_what_leaves_it_as_it_is():
    for seen, taken, refused in (
        (1, [5, True, -(2**63)], [0.5, "a", [1], 2**63]),
        (np.float32(0.5), [np.float32(1.5), True, np.float16(2)], [0.5, 1]),
        (0.1, [0.5, 3, float("nan")], [1j, "a"]),
        (b"a", [b"b"], ["b"]),
        ([1, 2], [[3, 4], (5, 6)], [[1], [], 1, [1, 0.5]]),
    ):
        guess = guess_value(seen)
        spec = row_feature("x", guess.to_feature(), guess)
        assert collect_values(spec, *taken) == (len(taken), None)
        for value in refused:
            assert collect_values(spec, value)[1] in ("type", "range", "shape"), value


def test_a_skipped_feature_may_be_anything():
    assert collect_values(skipped_feature("x"), 1, "a", object()) == (3, None)


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    y: float


def guess_from(rows, guess=None):
    plan = GuessedPlan(guess or SchemaGuess(), {})
    sources = collect_rows(rows, plan)
    found = (guess or SchemaGuess()).copy()
    found.add_guesses(plan.seen, len(rows))
    assert list(sources) == list(found.to_schema())
    return found.to_schema()


def test_rows_widen_the_guess_wherever_it_no_longer_fits():
    rows = [{"x": i, "l": [i], "s": "a"} for i in range(9)]
    rows[3] = {"x": 0.5, "l": [1, 2], "s": "b"}
    rows[5] = {"x": 1, "l": [], "new": b"c"}
    rows[7] = {"x": 0.1, "l": [3], "s": None, "new": b"d"}
    assert dict(guess_from(rows)) == {
        "x": Feature("float64"),
        "l": Feature("int64", (None,)),
        "s": Feature("str", optional=True),
        "new": Feature("bytes", optional=True),
    }


def test_keys_may_come_in_any_order_and_from_any_string():
    rows = [{"a": 1, "b": 2.5}, {"b": 3.5, "a": 4}, {"".join("a"): 5, "".join("b"): 0.5}]
    rows.append({np.str_("a"): 6, "b": 1.5})
    assert dict(guess_from(rows)) == {"a": Feature("int64"), "b": Feature("float64")}


def test_rows_that_are_not_plain_are_made_so_where_they_stand():
    rows = [{"c": "blue", "p/x": 1, "p/y": 0.5}, {"c": Colour.RED, "p": Point(2, 1.5)}]
    assert dict(guess_from(rows)) == {
        "c": Feature("str"),
        "p/x": Feature("int64"),
        "p/y": Feature("float64"),
    }
    assert rows[1] == {"c": "red", "p/x": 2, "p/y": 1.5}


def test_a_row_that_is_no_dict_is_made_one_or_refused():
    assert dict(guess_from([{"x": 1, "y": 0.5}, Point(2, 1.5)]))["x"] == Feature("int64")
    with pytest.raises(
        SchemaError, match="record 1: expected a dict of values, got .*int"
    ) as caught:
        guess_from([{"x": 1}, 3])
    assert caught.value.record == 1


def test_integers_that_were_collected_count_as_negative():
    guess = SchemaGuess()
    plan = GuessedPlan(guess, {})
    collect_rows(
        [{"x": 1, "f": 0.1, "v": np.array([1, 2])}] * 3 + [{"x": -1, "f": -3, "v": [-1, 1]}], plan
    )
    for name in ("x", "f", "v"):
        assert plan.seen[name][0].has_negative, name


def test_a_huge_integer_after_negative_ones_is_refused_by_name():
    with pytest.raises(SchemaError, match="feature 'x': expected integers from 0 on"):
        guess_from([{"x": 1}, {"x": -1}, {"x": 3}, {"x": 2**63}])
    assert guess_from([{"x": 1}, {"x": 2**63}])["x"] == Feature("uint64")


def test_only_some_features_may_be_looked_for():
    guess = SchemaGuess()
    guess.add_rows([{"x": 1, "y": 2}])
    plan = GuessedPlan(guess, {}, only={"y"})
    collect_rows([{"y": 0.5}], plan)
    assert {name: guess.dtype for name, (guess, _) in plan.seen.items()} == {"y": "float64"}


def test_a_value_that_only_python_can_judge_is_gathered_there():
    schema = Schema({"x": Feature("float32"), "y": Feature("int64")})
    rows = [{"x": 1, "y": np.array(2)}, {"x": 2**30, "y": np.array([[1]])[0, 0]}]
    sources = collect_rows(rows, GivenPlan(schema))
    assert {name: len(parts) for name, parts in sources.items()} == {"x": 1, "y": 1}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"x": 1, "z": 2}, "record 1: expected features x, y, got 'z' too"),
        ({"y": "a"}, "record 1, feature 'x': expected a value, got none"),
        ({"x": "a", "y": "a"}, "record 1, feature 'x': expected int64, got"),
        ({"x": 1, "y": "\ud800"}, "record 1, feature 'y': expected text that UTF-8 can encode"),
    ],
    ids=str,
)
def test_a_row_that_does_not_fit_a_schema_is_named(row, problem):
    schema = Schema({"x": Feature("int64"), "y": Feature("str", optional=True)})
    with pytest.raises(SchemaError, match=problem) as caught:
        collect_rows([{"x": 1}, row], GivenPlan(schema))
    assert caught.value.record == 1
    assert caught.value.feature is not None


def test_a_key_that_no_feature_has_may_be_none():
    schema = Schema({"x": Feature("int64")})
    assert list(collect_rows([{"x": 1, "z": None}], GivenPlan(schema))) == ["x"]


def test_keys_that_change_the_rows_when_compared_do_no_harm():
    rows: list[object] = []

    class Key(str):
        __slots__ = ()

        def __hash__(self):
            return hash("x")

        def __eq__(self, other):
            rows.clear()
            return str.__eq__(self, other)

    rows += [{"x": [1.5] * 1000}, {Key("x"): [2.5] * 1000}, {"x": [3.5] * 1000}]
    collect_rows(rows, GivenPlan(Schema({"x": Feature("float32", (None,))})))


def test_many_rows_that_are_not_plain_are_made_so_at_once():
    rows: list[dict[str, object]] = [{"c": Colour.RED, "p": {"x": n}} for n in range(50)]
    assert dict(guess_from(rows)) == {"c": Feature("str"), "p/x": Feature("int64")}
    assert rows == [{"c": "red", "p/x": n} for n in range(50)]
    rows = [{"c": Colour.RED} for _ in range(50)]
    rows[30] = {"c": {1}}
    with pytest.raises(SchemaError, match="record 30, feature 'c': expected ") as caught:
        guess_from(rows)
    assert caught.value.record == 30


@pytest.mark.parametrize(
    ("values", "is_uneven"),
    [
        ([[[1, 2], [3, 4]], [[5]], []], False),
        ([[[1, 2], [3, 4]], [[5], []]], True),
        ([np.ones((2, 3), int), np.ones((1, 2), int), []], False),
        ([[np.array([1]), np.array([2, 3])], np.ones((2, 2), int), [[4]]], True),
    ],
    ids=str,
)
def test_nested_rows_are_collected_with_their_lengths(values, is_uneven):
    rows = [{"x": [[7, 8]]}, {"x": [[7], [8]]}, *({"x": value} for value in values)]
    encoder = RowEncoder()
    block = encoder.encode(rows)
    assert block.schema == Schema({"x": Feature("int64", (None, None))})
    assert encoder.guess.features["x"].is_uneven == is_uneven
    found = parse(block.framed, block.schema)["x"].to_list()
    assert found == [np.asarray(row["x"], object).tolist() for row in rows[:2]] + [
        [list(map(int, inner)) for inner in value] for value in values
    ]


def test_a_nested_row_that_does_not_fit_leaves_no_trace():
    rows = [{"x": [[1], [2, 3]]}, {"x": [[4], [5, "a"]]}, {"x": [[6]]}]
    schema = Schema({"x": Feature("int64", (None, None))})
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected "):
        encode(rows, schema)
    widened = [{"x": [[1], [2, 3]]}, {"x": [[4], [5, 0.5]]}, {"x": [[6]]}, {"x": None}]
    block = RowEncoder().encode(widened)
    found = parse(block.framed, block.schema)["x"]
    assert found.to_list() == [[[1], [2, 3]], [[4], [5, 0.5]], [[6]], None]


def test_three_levels_of_rows():
    values = [[[["a"], []], [["b", "c"]]], [], [[]], [[[]]]]
    schema = Schema({"x": Feature("str", (None, None, None), optional=True)})
    rows = [{}, *({"x": value} for value in values)]
    assert parse(encode(rows, schema), schema)["x"].to_list() == [None, *values]


def test_arrays_that_are_alike_but_fit_no_feature_are_named():
    guess = SchemaGuess()
    guess.add_rows([{"x": np.complex64(1)}])
    for values in ([np.zeros(2, np.complex64)] * 2, [np.longdouble(1)] * 2):
        with pytest.raises(SchemaError, match="record 0, feature 'x': expected ") as caught:
            guess_from([{"x": value} for value in values], guess)
        assert caught.value.record == 0


def test_negative_integers_among_floats_never_join_uint64():
    rows = [{"x": 0.1}, {"x": np.uint64(1)}, {"x": 0.2}]
    assert guess_from(rows)["x"] == Feature("float64")
    with pytest.raises(SchemaError, match="feature 'x': expected integers from 0 on"):
        guess_from([*rows, {"x": -1}])


def test_rows_whose_features_all_differ_change_the_plan_a_few_times_only():
    rows = [{f"k{i}": i, "x": 1} for i in range(300)]
    plan = GuessedPlan(SchemaGuess(), {})
    asked = []
    features = plan.features
    plan.features = lambda: asked.append(1) or features()
    collect_rows(rows, plan)
    assert len(plan.seen) == 301
    assert len(asked) < 30


def test_a_row_that_contradicts_is_told_of_in_its_turn_among_rows_that_all_widen():
    rows = [{f"k{i}": i, "x": 1} for i in range(50)]
    rows[30]["x"] = "text"
    rows[40]["x"] = object()
    with pytest.raises(SchemaError, match="record 30, feature 'x'"):
        guess_from(rows)


def test_rows_that_all_widen_are_guessed_as_if_one_by_one():
    rows = [{f"k{i % 40}": i * (0.5 if i % 3 else -1), "x": [i] * (i % 4)} for i in range(100)]
    rows[50] = {"x": None, "color": Colour.RED}
    whole = dict(guess_from([dict(row) for row in rows]))
    guess = SchemaGuess()
    for row in rows:
        plan = GuessedPlan(guess, {})
        collect_rows([dict(row)], plan)
        guess = guess.copy()
        guess.add_guesses(plan.seen, 1)
    assert whole == dict(guess.to_schema())
