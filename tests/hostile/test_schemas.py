"""Schemas that ask for the impossible, are no schemas, or do not fit the data."""

from __future__ import annotations

import contextlib

import pytest

from datum import DatumError, Feature, Schema, SchemaError
from datum.format import encode, parse
from tests.contract import wire
from tests.hostile.shards import MIB, run_measured

HUGE = [2**31, 2**40, 2**59, 2**60, 2**61, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 2**100]
EMPTY = wire.example()
LISTS = [
    wire.example(wire.entry(b"x", make(content)))
    for make in (wire.int64_list, wire.float_list, wire.bytes_list)
    for content in (b"", wire.delimited(1), wire.delimited(1, bytes(8)), wire.delimited(1) * 2)
]


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "float64", "str"])
@pytest.mark.parametrize("length", HUGE)
def test_shapes_beyond_any_memory_meet_no_record_but_an_empty_one(length, dtype):
    for shape in ((length,), (length, 2), (length, length), (2, length, 0), (None, length)):
        met = 0
        for payload in [EMPTY, *LISTS]:
            with contextlib.suppress(DatumError):
                parse([payload, payload], Schema({"x": Feature(dtype, shape)}))
                met += 1
        assert met == 0 or 0 in shape or None in shape


def test_a_blank_beyond_any_memory_is_refused():
    body = """
found = []
for length in map(int, args):
    for dtype in ("bool", "int64", "float32", "float64", "str"):
        try:
            schema = Schema({"x": Feature(dtype, (length,), optional=True)})
            found.append(str(parse([b"", b""], schema)))
        except (SchemaError, MemoryError) as error:
            found.append(type(error).__name__)
return found"""
    lengths = [length for length in HUGE if length >= 2**44]  # no machine has that much
    found, growth = run_measured(body, *lengths)
    assert set(found) <= {"SchemaError", "MemoryError"}
    assert growth < 16 * MIB


def test_a_value_of_2_to_the_40_is_refused_without_memory():
    body = """
found = []
for shape in ((2**40,), (None, 2**40), (2**20, 2**20)):
    for dtype in ("int64", "float32", "str", "float64"):
        schema = Schema({"x": Feature(dtype, shape)})
        value = "text" if dtype == "str" else 1
        for use in (
            lambda: parse([b""] * 100, schema),
            lambda: parse(encode([{"x": [value] * 100}] * 100), schema),
            lambda: encode([{"x": [value] * 100}] * 100, schema),
        ):
            try:
                use()
                found.append("read")
            except SchemaError:
                found.append("SchemaError")
return found"""
    found, growth = run_measured(body)
    assert set(found) == {"SchemaError"}
    assert growth < 16 * MIB


@pytest.mark.parametrize(
    "arguments",
    [
        ("int65",), (None,), (5,), (["int64"],), ("object",), ("V8",), (b"\xff",),
        ("int64", 5), ("int64", "ab"), ("int64", (-1,)), ("int64", (1.5,)), ("int64", ("2",)),
        ("int64", (float("nan"),)), ("int64", ((1,),)), ("int64", {"a": 1}), ("int64", (-(2**70),)),
        ("int64", (3, None)), ("str", (None, 0)), ("str", (2, None)),
    ],
)  # fmt: skip
def test_what_is_no_feature_is_refused(arguments):
    with pytest.raises(SchemaError):
        Feature(*arguments)


@pytest.mark.parametrize(
    "options",
    [
        {"encoding": "zip"}, {"encoding": 3}, {"encoding": "sparse"}, {"sequence": True},
        {"keys": (1,)}, {"keys": ("a", "b")}, {"keys": (b"a",)}, {"keys": (None,)},
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(options):
    with pytest.raises(SchemaError):
        Feature("int64", **options)


@pytest.mark.parametrize(
    "found",
    [
        {}, {"dtype": "int64", "shape": 3}, {"dtype": "int64", "shape": None},
        {"dtype": "int64", "shape": [[1]]}, {"dtype": "int64", "shape": ["1"]},
        {"dtype": "int64", "shape": [1e300]}, {"dtype": "int64", "shape": [2.5]},
        {"dtype": ["int64"]}, {"dtype": {}}, {"dtype": None}, {"dtype": "int64", "extra": 1},
        {"dtype": "int64", "_": 1}, {"dtype": "int64", "keys": "ab"}, {"dtype": "int64", "keys": 5},
        {"dtype": "int64", "keys": {"a": 1}}, {"dtype": "int64", "encoding": ["raw"]},
        {"dtype": "int64", "sequence": "yes"}, {"dtype": "int64", "optional": "no"}, None, 5, [],
        "int64",
    ],
)  # fmt: skip
def test_json_that_is_no_feature_is_refused(found):
    with pytest.raises(SchemaError):
        Schema.from_json({"x": found})


@pytest.mark.parametrize("found", [None, 5, [], "x", {"x": 5}, {"x": None}, [["x", {}]]])
def test_json_that_is_no_schema_is_refused(found):
    with pytest.raises(SchemaError):
        Schema.from_json(found)


@pytest.mark.parametrize(
    "name", ["", "\0", "a\0b", "\ud800", "x" * 100_000, "../../etc", "\U0010ffff"]
)
def test_odd_names_are_written_and_read_or_refused(name):
    try:
        schema = Schema({name: Feature("int64")})
        records = list(encode([{name: 7}], schema))
    except DatumError:
        assert name == "\ud800"
        return
    assert parse(records, schema)[name].tolist() == [7]


def test_two_features_under_one_key_are_refused():
    with pytest.raises(SchemaError, match="use the same key"):
        parse([EMPTY], Schema({"a": Feature("int64"), "b": Feature("int64", keys=("a",))}))
    ragged = Feature("int64", (None, None), keys=("a", "a"))
    with pytest.raises(SchemaError):
        parse([EMPTY], Schema({"x": ragged}))


@pytest.mark.parametrize(
    ("dtype", "shape", "default"),
    [
        ("int64", (2,), [1, 2, 3]), ("int8", (), 1000), ("int64", (), "text"), ("uint8", (), -1),
        ("int64", (), 1.5), ("int64", (), {"a": 1}), ("str", (), 5), ("bytes", (), "text"),
        ("bool", (), 7), ("int64", (), 2**70), ("float32", (2, 2), [[1, 2], [3]]),
        ("float32", (), 1e300), ("str", (), "\ud800"), ("int64", (), object()),
    ],
)  # fmt: skip
def test_defaults_that_do_not_fit_are_refused(dtype, shape, default):
    with pytest.raises(SchemaError):
        parse([EMPTY], Schema({"x": Feature(dtype, shape, default=default)}))


def test_a_schema_of_many_features_is_read():
    schema = Schema({f"x{i}": Feature("int64", optional=True) for i in range(5000)})
    assert len(parse([EMPTY, EMPTY], schema)) == 5000
