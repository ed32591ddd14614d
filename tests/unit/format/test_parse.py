"""Records parsed into columns."""

import datetime as dt
import gc
import gzip
import re
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import (
    BytesColumn,
    CorruptRecordError,
    Feature,
    Masked,
    Ragged,
    Schema,
    SchemaError,
    Sparse,
)
from datum.format import (
    Parser,
    RecordFile,
    Records,
    RecordWriter,
    encode,
    frame,
    parse,
    read_batches,
    reencode,
    stores_alike,
)
from datum.format.column_input import gather, stack_values
from datum.format.file import as_records
from datum.format.layout import lower
from datum.format.parse import RowError, Stored, assemble

X = {"x": Feature("int64")}


def written(rows, **features) -> list[bytes]:
    """Payloads of a schema of the test's own."""
    return list(encode(rows, features))


def plain(column):
    """Nested lists of Python values."""
    if hasattr(column, "to_list"):
        return column.to_list()
    return column.tolist() if isinstance(column, (np.ndarray, np.generic)) else column


# Columns.
def test_a_scalar_feature_is_an_array():
    column = parse(written([{"x": 1}, {"x": 2}], **X), X)["x"]
    assert isinstance(column, np.ndarray)
    assert column.dtype == np.int64
    assert column.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("feature", "rows", "kind"),
    [
        (Feature("float32", (2, 1)), [[[1], [2]], [[3], [4]]], np.ndarray),
        (Feature("float64", (2,)), [[0.1, 0.2], [0.3, 0.4]], np.ndarray),
        (Feature("str"), ["a", "ü"], BytesColumn),
        (Feature("bytes", (2,)), [[b"a", b""], [b"", b"b"]], BytesColumn),
        (Feature("int8", (None,)), [[1, 2], []], Ragged),
        (Feature("int8", (None, 2)), [[[1, 2]], []], Ragged),
        (Feature("str", (None, None)), [[["a"], []], []], Ragged),
        (Feature("float64", (None,)), [[0.1], []], Ragged),
        (Feature("int8", (None, None, None)), [[[[1], []], []], []], Ragged),
        (Feature("int8", (None,), sequence=True), [[1, 2], []], Ragged),
        (Feature("str", (None, None), sequence=True), [[["a"], []], []], Ragged),
        (Feature("float64", (None, 2), sequence=True), [[[1, 2]], []], Ragged),
    ],
    ids=repr,
)
def test_a_feature_is_a_column_of_its_kind(feature, rows, kind):
    column = parse(encode([{"x": row} for row in rows], {"x": feature}), {"x": feature})["x"]
    assert type(column) is kind
    assert plain(column) == rows
    assert len(column) == 2


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32", "uint8", "bool", "float32"])
def test_arrays_are_of_the_very_types_of_numpy(dtype):
    feature = Feature(dtype, (None,))
    column = parse(encode([{"x": [1]}], {"x": feature}), {"x": feature})["x"]
    # NumPy has two types of 64 bits that are equal, but only one that prints as such.
    assert column.values.dtype.char == np.dtype(dtype).char
    assert column.row_splits.dtype.char == np.dtype(np.int64).char


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "str"])
def test_features_of_no_values_keep_their_shape(dtype, shape):
    feature = Feature(dtype, shape)
    value = np.empty(shape, object if dtype == "str" else dtype).tolist()
    column = parse(encode([{"x": value}] * 3, {"x": feature}), {"x": feature})["x"]
    assert column.shape == (3, *shape)
    optional = Feature(dtype, shape, optional=True)
    assert parse([b"", b""], {"x": optional})["x"].values.shape == (2, *shape)


def test_raw_tensors_of_differing_shape_are_an_array_of_arrays():
    feature = Feature("uint8", (None, 2, None), encoding="raw")
    rows = [np.ones((1, 2, 3), np.uint8), np.zeros((0, 2, 5), np.uint8)]
    column = parse(encode([{"x": row} for row in rows], {"x": feature}), {"x": feature})["x"]
    assert column.dtype == object
    for found, row in zip(column, rows, strict=True):
        assert found.dtype == np.uint8
        assert found.shape == row.shape
        assert np.array_equal(found, row)


def test_a_sparse_feature_is_sorted_by_index():
    feature = Feature("float32", (4, 4), encoding="sparse", keys=("i", "j", "v"))
    stored = {
        "i": Feature("int64", (None,)),
        "j": Feature("int64", (None,)),
        "v": Feature("float32", (None,)),
    }
    rows = [{"i": [3, 0, 0], "j": [1, 2, 1], "v": [1, 2, 3]}, {"i": [], "j": [], "v": []}]
    column = parse(encode(rows, stored), {"x": feature})["x"]
    assert isinstance(column, Sparse)
    assert column.indices.tolist() == [[0, 0, 1], [0, 0, 2], [0, 3, 1]]
    assert column.values.tolist() == [3, 2, 1]
    assert column.dense_shape == (2, 4, 4)


def test_a_sparse_feature_that_is_absent_has_no_values():
    column = parse([b""], {"x": Feature("str", (4,), encoding="sparse")})["x"]
    assert column.to_dense().tolist() == [["", "", "", ""]]


@pytest.mark.parametrize(
    ("feature", "value", "blank"),
    [
        (Feature("int64", optional=True), 7, 0),
        (Feature("float64", (2,), optional=True), [1, 2], [0, 0]),
        (Feature("str", optional=True), "a", ""),
        (Feature("bytes", (2,), optional=True), [b"a", b"b"], [b"", b""]),
        (Feature("int64", (None,), optional=True), [1], []),
        (Feature("str", (None, None), optional=True), [["a"]], []),
        (Feature("int64", (None,), sequence=True, optional=True), [1], []),
        (Feature("float64", (None, None), optional=True), [[1.0]], None),
    ],
    ids=repr,
)
def test_an_optional_feature_is_masked(feature, value, blank):
    column = parse(encode([{"x": value}, {}], {"x": feature}), {"x": feature})["x"]
    assert isinstance(column, Masked)
    assert column.present.tolist() == [True, False]
    assert column[1] is None
    assert plain(column[0]) == value
    assert plain(column.values[1]) == blank


def test_a_feature_without_a_kind_is_absent():
    payload = b"\x0a\x07\x0a\x05\x0a\x01x\x12\x00"  # the key is there, the value holds nothing
    assert parse([payload], {"x": Feature("int64", optional=True)})["x"][0] is None
    with pytest.raises(SchemaError, match="expected a value, got none"):
        parse([payload], X)


@pytest.mark.parametrize(
    ("feature", "value", "default"),
    [
        (Feature("int64", default=7), 1, 7),
        (Feature("int64", default=0), 1, 0),
        (Feature("bool", default=True), False, True),
        (Feature("uint64", default=2**64 - 1), 1, 2**64 - 1),
        (Feature("float32", default=-0.5), 1, -0.5),
        (Feature("float16", default=0.1), 1, float(np.float16(0.1))),
        (Feature("bfloat16", default=256.0), 1, 256),
        (Feature("float64", default=0.1), 1, 0.1),
        (Feature("float16", encoding="raw", default=1.5), 1, 1.5),
        (Feature("bfloat16", (2,), encoding="raw", default=1.5), [1, 2], [1.5, 1.5]),
        (Feature("float16", (None, 1), encoding="raw", default=[[1.5]]), [[1]], [[1.5]]),
        (Feature("bool", (2,), encoding="raw", default=True), [False, True], [True, True]),
        (Feature("int8", (2, 2), default=[[1, 2], [3, 4]]), [[0] * 2] * 2, [[1, 2], [3, 4]]),
        (Feature("int8", (2,), default=7), [0, 0], [7, 7]),
        (Feature("int8", (None,), default=[1, 2, 3]), [0], [1, 2, 3]),
        (Feature("int8", (None,), default=[]), [0], []),
        (Feature("float64", (None, 2), default=[[1, 2]]), [], [[1, 2]]),
        (Feature("str", default="grün"), "a", "grün"),
        (Feature("str", default=""), "a", ""),
        (Feature("bytes", default=b"\xff"), b"a", b"\xff"),
    ],
    ids=repr,
)
def test_a_default_fills_in_what_is_absent(feature, value, default):
    column = parse(encode([{"x": value}, {}, {"x": value}, {}], {"x": feature}), {"x": feature})[
        "x"
    ]
    assert not isinstance(column, Masked)
    found = column.to_list() if hasattr(column, "to_list") else column.tolist()
    assert found == [value, default, value, default]
    column = parse([b"", b""], {"x": feature})["x"]
    assert (column.to_list() if hasattr(column, "to_list") else column.tolist()) == [default] * 2


def test_a_default_of_nan_fills_in():
    assert np.isnan(parse([b""], {"x": Feature("float32", default=np.nan)})["x"][0])


def test_defaults_that_differ_little_are_told_apart():
    for default in (np.array([0.123456789]), np.array([0.1234567891])):
        schema = {"x": Feature("float64", (1,), default=default)}
        assert parse([b""], schema)["x"].tolist() == [default.tolist()]


def test_no_records_make_empty_columns():
    schema = Schema(
        {
            "a": Feature("int64"),
            "b": Feature("float32", (3,)),
            "c": Feature("str", (2,)),
            "d": Feature("int64", (None, None)),
            "e": Feature("float32", (9,), encoding="sparse"),
            "f": Feature("int8", optional=True),
            "g": Feature("uint8", (None, None), encoding="raw"),
            "h": Feature("int64", (None, None), sequence=True),
        }
    )
    batch = parse([], schema)
    assert all(len(column) == 0 for column in batch.values())
    assert batch["b"].shape == (0, 3)
    assert batch["c"].shape == (0, 2)
    assert batch["d"].to_list() == []
    assert batch["e"].dense_shape == (0, 9)
    assert isinstance(batch["f"], Masked)
    assert encode(batch, schema).to_bytes() == b""


# Options.
def test_columns_are_in_the_order_of_the_schema():
    schema = {"b": Feature("int64"), "a": Feature("int64")}
    assert list(parse(written([{"a": 1, "b": 2}], **schema), schema)) == ["b", "a"]


def test_only_the_columns_asked_for_are_touched():
    payloads = written([{"x": 1, "y": "a"}], x=Feature("int64"), y=Feature("str"))
    schema = {"x": Feature("int64"), "y": Feature("float32"), "missing": Feature("int64")}
    assert list(parse(payloads, schema, columns=["x"])) == ["x"]
    with pytest.raises(SchemaError, match="feature 'y'"):
        parse(payloads, schema, columns=["y"])


def test_columns_are_in_the_order_asked():
    schema = {"a": Feature("int64"), "b": Feature("int64")}
    assert list(parse(written([{"a": 1, "b": 2}], **schema), schema, columns=("b", "a"))) == [
        "b",
        "a",
    ]


def test_an_unknown_column_names_the_nearest():
    with pytest.raises(SchemaError, match="got 'lable'\nhint: did you mean 'label'?"):
        parse([], {"label": Feature("int64")}, columns=["lable"])


def test_a_string_is_no_list_of_columns():
    with pytest.raises(TypeError, match="expected names of features, got the one string 'x'"):
        parse([], X, columns="x")


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused(threads):
    with pytest.raises(ValueError, match=f"expected `threads` of 1 or more, got {threads}"):
        parse([], X, threads=threads)


def test_columns_do_not_depend_on_threads():
    count = 4000
    rng = np.random.default_rng(1)
    schema = {
        "fixed": Feature("float32", (50,)),
        "ragged": Feature("int64", (None,)),
        "nested": Feature("int16", (None, None)),
        "steps": Feature("int8", (None, None), sequence=True),
        "text": Feature("str", (None,)),
        "maybe": Feature("float64", (3,), optional=True),
        "default": Feature("uint8", default=9),
        "sparse": Feature("float32", (100,), encoding="sparse"),
    }
    rows = [
        {
            "fixed": rng.random(50, np.float32),
            "ragged": np.arange(i % 70),
            "nested": [[1] * (i % 3)] * (i % 4),
            "steps": [[i % 100] * (i % 2)] * (i % 3),
            "text": [f"{i}"] * (i % 5),
            "maybe": None if i % 3 else rng.random(3),
            "default": None if i % 2 else 1,
            "sparse": ([i % 100], [0.5]) if i % 2 else ([], []),
        }
        for i in range(count)
    ]
    framed = encode(rows, schema)
    assert framed.nbytes > 4 * 256 * 1024  # enough for several threads to be worth it
    expected = parse(framed, schema, threads=1)
    for threads in (2, 3, 8):
        found = parse(framed, schema, threads=threads)
        assert encode(found, schema).to_bytes() == encode(expected, schema).to_bytes()
        assert np.array_equal(found["maybe"].present, expected["maybe"].present)
        assert np.array_equal(found["fixed"], expected["fixed"])
        assert found["steps"].to_list() == expected["steps"].to_list()
        assert found["text"].to_list() == expected["text"].to_list()


def test_the_first_misfit_is_named_for_any_number_of_threads():
    rows = [{"x": b"." * 5000} for _ in range(1000)]
    payloads = written(rows, x=Feature("bytes"))
    payloads[600] = payloads[300] = written([{"x": 1}], x=Feature("int64"))[0]
    for threads in (1, 2, 8):
        with pytest.raises(SchemaError, match="<memory>: record 300, feature 'x': expected bytes"):
            parse(payloads, {"x": Feature("bytes")}, threads=threads)


def test_a_parser_can_be_kept():
    parser = Parser(Schema(X))
    for value in (1, 2):
        records = Records.of(written([{"x": value}], **X))
        assert parser.parse(records)["x"].tolist() == [value]
        assert parser.parse(records, threads=1)["x"].tolist() == [value]


def test_records_of_every_form_are_parsed(tmp_path):
    framed = encode([{"x": 1}, {"x": 2}], X)
    (tmp_path / "a.tfrecord").write_bytes(framed.to_bytes())
    file = RecordFile(tmp_path / "a.tfrecord")
    sources = [framed, framed.records(), list(framed), iter(framed), file, next(file.chunks())]
    for source in sources:
        assert parse(source, X)["x"].tolist() == [1, 2]
    assert parse(file.records([1]), X)["x"].tolist() == [2]


# Refusals.
MISFITS = {
    "missing": (
        {"y": (Feature("int64"), 1)},
        Feature("int64"),
        "expected a value, got none\nhint: mark the feature optional=True, or set its default",
    ),
    "kind": (
        {"x": (Feature("float32"), 1)},
        Feature("int64"),
        ", feature 'x': expected int64 values, got float values",
    ),
    "kind of strings": (
        {"x": (Feature("bytes"), b"a")},
        Feature("float32"),
        ", feature 'x': expected float values, got bytes values",
    ),
    "count": (
        {"x": (Feature("int64", (2,)), [1, 2])},
        Feature("int64", (3,)),
        "expected 3 values, got 2\nhint: use None in the shape for a length that differs",
    ),
    "count of strings": (
        {"x": (Feature("str", (2,)), ["a", "b"])},
        Feature("str"),
        ", feature 'x': expected 1 values, got 2\nhint: use None",
    ),
    "multiple": (
        {"x": (Feature("int64", (4,)), [1, 2, 3, 4])},
        Feature("int64", (None, 3)),
        ", feature 'x': expected a multiple of 3 values, got 4\nhint: use None",
    ),
    "range": (
        {"x": (Feature("int64"), 300)},
        Feature("uint8"),
        ", feature 'x': expected uint8, got 300",
    ),
    "sign": ({"x": (Feature("int64"), -1)}, Feature("uint32"), "expected uint32, got -1"),
    "bool": ({"x": (Feature("int64"), 2)}, Feature("bool"), "expected bool, got 2"),
    "float16": (
        {"x": (Feature("float32"), 70000)},
        Feature("float16"),
        ", feature 'x': expected float16, got 70000.0",
    ),
    "ragged float16": (
        {"x": (Feature("float32", (None, 2)), [[1, 2], [3, 70000]])},
        Feature("float16", (None, 2)),
        ", feature 'x': expected float16, got 70000.0",
    ),
    "raw bytes": (
        {"x": (Feature("bytes"), b"1234567")},
        Feature("float64"),
        ", feature 'x': expected 8 bytes of float64, got 7",
    ),
    "ragged raw bytes": (
        {"x": (Feature("bytes"), b"1234567")},
        Feature("float64", (None,)),
        ", feature 'x': expected a multiple of 8 bytes of float64, got 7",
    ),
    "raw bool": (
        {"x": (Feature("bytes"), b"\x02")},
        Feature("bool", encoding="raw"),
        "expected bool",
    ),
    "raw strings": (
        {"x": (Feature("bytes", (2,)), [b"", b""])},
        Feature("float64"),
        ", feature 'x': expected 1 values, got 2",
    ),
    "text": (
        {"x": (Feature("bytes"), b"\xff")},
        Feature("str"),
        ", feature 'x': expected text in UTF-8, got other bytes\nhint: use dtype bytes",
    ),
    "key": (
        {"k": (Feature("float32"), 1)},
        Feature("int64", keys=("k",)),
        ", feature 'x', key 'k': expected int64 values, got float values",
    ),
    "step": (
        {"x": (Feature("int64", (None, None), sequence=True), [[1], [1, 2]])},
        Feature("int64", (None,), sequence=True),
        ", feature 'x', step 1: expected 1 values, got 2",
    ),
    "step kind": (
        {"x": (Feature("str", (None,), sequence=True), ["a"])},
        Feature("int64", (None,), sequence=True),
        ", feature 'x', step 0: expected int64 values, got bytes values",
    ),
    "step multiple": (
        {"x": (Feature("int64", (None, None), sequence=True), [[1]])},
        Feature("int64", (None, None, 3), sequence=True),
        ", feature 'x', step 0: expected a multiple of 3 values, got 1",
    ),
    "context for sequence": (
        {"x": (Feature("int64"), 1)},
        Feature("int64", (None,), sequence=True),
        ", feature 'x': expected a value, got none",
    ),
    "row lengths": (
        {"x": (Feature("int64", (None,)), [1, 2]), "x_lengths_1": (Feature("int64", (None,)), [3])},
        Feature("int64", (None, None)),
        ", feature 'x': expected row lengths ",
    ),
    "row lengths of less": (
        {
            "x": (Feature("int64", (None,)), [1, 2]),
            "x_lengths_1": (Feature("int64", (None,)), [1, 0]),
        },
        Feature("int64", (None, None)),
        ", feature 'x': expected row lengths that sum to 2, got 1",
    ),
    "negative row length": (
        {
            "x": (Feature("int64", (None,)), [1, 2]),
            "x_lengths_1": (Feature("int64", (None,)), [3, -1]),
        },
        Feature("int64", (None, None)),
        ", feature 'x': expected row lengths ",
    ),
    "row lengths that overflow": (
        {
            "x": (Feature("int64", (None,)), []),
            "x_lengths_1": (Feature("int64", (None,)), [2**63 - 1, 2**63 - 1, 2]),
        },
        Feature("int64", (None, None)),
        ", feature 'x': expected row lengths ",
    ),
    "shape": (
        {"x": (Feature("bytes"), bytes(24)), "x_shape": (Feature("int64", (None,)), [2, 2])},
        Feature("float64", (None, None)),
        ", feature 'x': expected (None, None) of 3 items, got (2, 2)",
    ),
    "shape of other rank": (
        {"x": (Feature("bytes"), bytes(24)), "x_shape": (Feature("int64", (None,)), [3])},
        Feature("float64", (None, None)),
        ", feature 'x': expected (None, None) of 3 items, got (3,)",
    ),
    "huge shape": (
        {"x": (Feature("bytes"), b""), "x_shape": (Feature("int64", (None,)), [2**62, 0])},
        Feature("float64", (None, None)),
        ", feature 'x': expected (None, None) of 0 items, got (4611686018427387904, 0)",
    ),
    "sparse counts": (
        {
            "x_index": (Feature("int64", (None,)), [1, 2]),
            "x_value": (Feature("float32", (None,)), [1]),
        },
        Feature("float32", (4,), encoding="sparse"),
        ", feature 'x': expected 1 indices, one a value, got 2",
    ),
    "sparse indices": (
        {
            "x_index": (Feature("int64", (None,)), [4]),
            "x_value": (Feature("float32", (None,)), [1]),
        },
        Feature("float32", (4,), encoding="sparse"),
        ", feature 'x': expected indices within (4,), got (4,)",
    ),
}


@pytest.mark.parametrize(("stored", "feature", "message"), MISFITS.values(), ids=MISFITS)
def test_a_record_that_does_not_fit_is_named(tmp_path, stored, feature, message):
    sound_feature = Feature(
        feature.dtype,
        feature.shape,
        encoding=feature.encoding,
        sequence=feature.sequence,
        keys=feature.keys,
    )
    blank = _blank(sound_feature)
    sound = encode([{"x": blank}] * 2, {"x": sound_feature})
    misfit = encode(
        [{name: value for name, (_, value) in stored.items()}],
        {name: own for name, (own, _) in stored.items()},
    )
    path = tmp_path / "a.tfrecord"
    path.write_bytes(sound.to_bytes() + misfit.to_bytes())
    with pytest.raises(SchemaError) as caught:
        parse(RecordFile(path), {"x": feature})
    assert str(caught.value).startswith(f"{path}: record 2 at byte {sound.nbytes}, feature 'x'")
    assert message in str(caught.value)


def _blank(feature: Feature):
    if feature.encoding == "sparse":
        return [], []
    if not feature.is_string:
        return np.zeros([n or 0 for n in feature.shape], feature.dtype)
    return "" if not feature.shape else []


@pytest.mark.parametrize("payload", [b"\xff", b"\x0a\x05", b"\x0a\x02\x0a\x05", b"\x00"])
def test_bytes_that_are_no_message_are_named(tmp_path, payload):
    sound = encode([{"x": 1}], X)
    path = tmp_path / "a.tfrecord"
    path.write_bytes(sound.to_bytes() + frame([payload]).to_bytes())
    message = (
        f"{path}: record 1 at byte {sound.nbytes}: expected a tf.train.Example or SequenceExample,"
        " got other bytes"
    )
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}$"):
        parse(RecordFile(path), X)


def test_records_outside_their_buffer_are_refused():
    records = Records(b"abc", np.array([1]), np.array([5]), np.array([0]))
    with pytest.raises(IndexError, match="outside the buffer"):
        parse(records, X)


@given(st.binary(max_size=60))
def test_no_bytes_do_harm(payload):
    schema = {
        "x": Feature("int64", (None, None), optional=True),
        "y": Feature("str", (None, None), sequence=True, optional=True),
        "z": Feature("float64", (None, None), optional=True),
    }
    try:
        parse([payload], schema)
    except (CorruptRecordError, SchemaError) as error:
        assert "<memory>: record 0" in str(error)  # noqa: PT017


# Memory.
def test_columns_outlive_their_records():
    schema = {
        "raw": Feature("float64", (3,)),
        "text": Feature("str", (None,)),
        "name": Feature("bytes"),
    }
    rows = [{"raw": [i] * 3, "text": [f"{i}"] * 2, "name": b"%d" % i} for i in range(100)]
    records = encode(rows, schema).records()
    batch = parse(records, schema)
    texts, names = batch["text"][10:20], batch["name"][3:4]
    del records
    raw = batch.pop("raw")
    del batch
    gc.collect()
    np.arange(100_000)  # something to reuse the memory, were it free
    assert raw.tolist() == [[i] * 3 for i in range(100)]
    assert texts.to_list() == [[f"{i}"] * 2 for i in range(10, 20)]
    assert names.to_list() == [b"3"]


def test_strings_are_not_copied():
    records = encode([{"x": b"some bytes"}], {"x": Feature("bytes")}).records()
    assert parse(records, {"x": Feature("bytes")})["x"].buffer is records.buffer


def test_arrays_can_be_written_to():
    payloads = written([{"x": 1}], **X)
    column = parse(payloads, X)["x"]
    column[0] = 5
    assert parse(payloads, X)["x"].tolist() == [1]


SCHEMA = {"x": Feature("int64"), "name": Feature("str"), "tags": Feature("int64", (None,))}
FILES = 3
EACH = 10
THREADS = [1, 2, 5]


def rows(first: int, last: int) -> list[dict]:
    return [{"x": i, "name": f"row {i}", "tags": [i] * (i % 3)} for i in range(first, last)]


@pytest.fixture
def paths(tmp_path):
    """Three files of ten records each."""
    found = []
    for k in range(FILES):
        found.append(tmp_path / f"{k}.tfrecord")
        found[-1].write_bytes(encode(rows(k * EACH, (k + 1) * EACH), SCHEMA).to_bytes())
    return found


def damage(path, record: int, at: int = 14) -> int:
    """Flip a bit in a record, and tell where it starts."""
    k = int(path.stem)
    offset = int(encode(rows(k * EACH, (k + 1) * EACH), SCHEMA).offsets[record])
    data = bytearray(path.read_bytes())
    data[offset + at] ^= 1
    path.write_bytes(data)
    return offset


def numbers(reader) -> list[list[int]]:
    return [batch["x"].tolist() for batch in reader]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("batch_size", [1, 3, 4, 10, 15, 30, 31, 1000])
def test_batches_go_over_the_ends_of_files(paths, batch_size, threads):
    reader = read_batches(paths, SCHEMA, batch_size=batch_size, threads=threads)
    expected = [list(range(i, min(i + batch_size, 30))) for i in range(0, 30, batch_size)]
    assert numbers(reader) == expected
    assert reader.damage == []


@pytest.mark.parametrize("threads", THREADS)
def test_every_column_is_right(paths, threads):
    for batch in read_batches(paths, SCHEMA, batch_size=7, threads=threads):
        first = batch["x"][0]
        expected = rows(first, first + len(batch["x"]))
        assert list(batch) == list(SCHEMA)
        assert batch["name"].to_list() == [row["name"] for row in expected]
        assert batch["tags"].to_list() == [row["tags"] for row in expected]


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("batch_size", "batches"), [(4, 7), (30, 1), (31, 0), (10, 3)])
def test_the_remainder_can_be_dropped(paths, batch_size, batches, threads):
    reader = read_batches(
        paths, SCHEMA, batch_size=batch_size, threads=threads, drop_remainder=True
    )
    found = numbers(reader)
    assert len(found) == batches
    assert all(len(batch) == batch_size for batch in found)


def test_one_path_need_not_be_a_list(paths):
    assert numbers(read_batches(paths[1], SCHEMA)) == [list(range(10, 20))]
    assert numbers(read_batches(str(paths[1]), SCHEMA)) == [list(range(10, 20))]


def test_paths_may_come_from_a_generator_and_be_read_again(paths):
    reader = read_batches((path for path in paths), SCHEMA, batch_size=30)
    assert numbers(reader) == numbers(reader) == [list(range(30))]
    assert reader.paths == [str(path) for path in paths]


def test_files_are_read_in_the_order_given(paths):
    (batch,) = numbers(read_batches([paths[2], paths[0]], SCHEMA))
    assert batch == [*range(20, 30), *range(10)]


def test_no_files_have_no_batches():
    assert numbers(read_batches([], SCHEMA)) == []


def test_empty_files_add_nothing(paths, tmp_path):
    (tmp_path / "empty").touch()
    paths.insert(1, tmp_path / "empty")
    assert numbers(read_batches(paths, SCHEMA, batch_size=20))[0] == list(range(20))


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_compressed_files_mix_with_others(paths, tmp_path, compression):
    with RecordWriter(tmp_path / "packed", compression=compression) as writer:
        writer.write_framed(encode(rows(30, 40), SCHEMA))
    reader = read_batches([*paths, tmp_path / "packed"], SCHEMA, batch_size=16)
    assert [i for batch in numbers(reader) for i in batch] == list(range(40))


def test_only_the_columns_asked_for_are_read(paths):
    (batch,) = read_batches(paths, SCHEMA, columns=["tags", "x"])
    assert list(batch) == ["tags", "x"]
    (batch,) = read_batches(paths, SCHEMA, columns=(name for name in ["name"]))
    assert list(batch) == ["name"]


def test_each_iteration_starts_afresh(paths):
    reader = read_batches(paths, SCHEMA, batch_size=4)
    first, second = iter(reader), iter(reader)
    assert next(first)["x"].tolist() == next(second)["x"].tolist() == [0, 1, 2, 3]
    assert next(first)["x"].tolist() == [4, 5, 6, 7]
    assert len(numbers(reader)) == 8


@pytest.mark.parametrize("threads", THREADS)
def test_an_iteration_may_be_abandoned(paths, threads):
    before = threading.active_count()
    batches = iter(read_batches(paths, SCHEMA, batch_size=1, threads=threads))
    next(batches)
    batches.close()
    assert threading.active_count() == before
    assert list(batches) == []


def test_an_iteration_that_was_never_begun_costs_nothing(paths):
    before = threading.active_count()
    batches = iter(read_batches(paths, SCHEMA, threads=5))
    del batches
    assert threading.active_count() == before


def test_batches_outlive_reader_and_files(paths):
    batches = list(read_batches(paths, SCHEMA, batch_size=8))
    for path in paths:
        path.unlink()
    names = [name for batch in batches for name in batch["name"]]
    assert names == [f"row {i}" for i in range(30)]


@pytest.mark.parametrize("threads", THREADS)
def test_damage_ends_the_reading_after_the_batches_before_it(paths, threads):
    offset = damage(paths[1], 5)
    reader = read_batches(paths, SCHEMA, batch_size=2, threads=threads)
    batches = iter(reader)
    for i in range(7):
        assert next(batches)["x"].tolist() == [2 * i, 2 * i + 1]
    message = (
        f"{paths[1]}: record 5 at byte {offset}: expected an intact record, got damage: payload"
    )
    with pytest.raises(CorruptRecordError, match=f"^{re.escape(message)}"):
        next(batches)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(("at", "kind"), [(14, "payload checksum"), (0, "length checksum")])
def test_damage_in_the_middle_is_stepped_over_and_listed(paths, threads, at, kind):
    offset = damage(paths[1], 5, at)
    reader = read_batches(paths, SCHEMA, batch_size=4, threads=threads, recovery="skip")
    for _ in range(2):
        assert [i for batch in numbers(reader) for i in batch] == [i for i in range(30) if i != 15]
        (found,) = reader.damage
        assert (found.file, found.offset, found.record) == (str(paths[1]), offset, 5)
        assert found.kind == kind


@pytest.mark.parametrize("threads", THREADS)
def test_torn_files_are_read_up_to_their_tails(paths, threads):
    for path in paths:
        path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CorruptRecordError, match=r"0.tfrecord: record 9 .*torn payload"):
        numbers(read_batches(paths, SCHEMA, threads=threads))
    reader = read_batches(paths, SCHEMA, threads=threads, recovery="tail")
    assert numbers(reader) == [[*range(9), *range(10, 19), *range(20, 29)]]
    assert [found.file for found in reader.damage] == [str(path) for path in paths]
    assert {found.kind for found in reader.damage} == {"torn payload"}


@pytest.mark.parametrize("threads", THREADS)
def test_damage_within_is_an_error_where_only_tails_may_be_torn(paths, threads):
    damage(paths[1], 5)
    with pytest.raises(CorruptRecordError, match=r"1.tfrecord: record 5 .*payload checksum"):
        numbers(read_batches(paths, SCHEMA, threads=threads, recovery="tail"))


def test_checksums_can_be_left_unchecked(paths):
    damage(paths[0], 2, at=-1)  # the checksum of the payload of record 1
    with pytest.raises(CorruptRecordError):
        numbers(read_batches(paths, SCHEMA))
    assert len(numbers(read_batches(paths, SCHEMA, check_crc=False))[0]) == 30


@pytest.mark.parametrize("threads", THREADS)
def test_a_record_that_does_not_fit_is_named_in_its_own_file(paths, threads):
    misfit = encode(rows(0, 3), SCHEMA).to_bytes() + encode([{"x": 1}]).to_bytes()
    paths[1].write_bytes(misfit)
    offset = encode(rows(0, 3), SCHEMA).nbytes
    reader = read_batches(paths, SCHEMA, batch_size=30, threads=threads)
    message = f"{paths[1]}: record 3 at byte {offset}, feature 'name': expected a value, got none"
    with pytest.raises(SchemaError, match=f"^{re.escape(message)}"):
        numbers(reader)


@pytest.mark.parametrize("batch_size", [0, -1])
def test_batches_of_no_records_are_refused(paths, batch_size):
    with pytest.raises(ValueError, match=f"expected `batch_size` of 1 or more, got {batch_size}"):
        read_batches(paths, SCHEMA, batch_size=batch_size)


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused_for_batches(paths, threads):
    with pytest.raises(ValueError, match=f"expected `threads` of 1 or more, got {threads}"):
        read_batches(paths, SCHEMA, threads=threads)


def test_an_unknown_recovery_is_refused_at_once(paths):
    with pytest.raises(ValueError, match="expected `recovery` strict, tail or skip, got 'lazy'"):
        read_batches(paths, SCHEMA, recovery="lazy")


def test_an_unknown_column_is_refused_at_once(paths):
    with pytest.raises(SchemaError, match="got 'nam'\nhint: did you mean 'name'?"):
        read_batches(paths, SCHEMA, columns=["nam"])


def test_a_missing_file_is_a_missing_file(paths, tmp_path):
    with pytest.raises(FileNotFoundError):
        numbers(read_batches([*paths, tmp_path / "missing"], SCHEMA))


def test_many_records_are_the_same_for_any_number_of_threads(tmp_path):
    path = tmp_path / "many.tfrecord"
    count = 20_000
    columns = {"x": np.arange(count), "name": [f"row {i}" for i in range(count)]}
    schema = {"x": SCHEMA["x"], "name": SCHEMA["name"]}
    path.write_bytes(encode(columns, schema).to_bytes())
    for threads in THREADS:
        batches = list(read_batches(path, schema, batch_size=999, threads=threads))
        assert np.array_equal(np.concatenate([b["x"] for b in batches]), columns["x"])
        assert [name for b in batches for name in b["name"]] == columns["name"]


def test_values_are_stacked():
    column, present = gather("x", Feature("float64", (2,)), [[1, 2], np.array([3.5, 4])])
    assert column.tolist() == [[1, 2], [3.5, 4]]
    assert present.tolist() == [True, True]


def test_what_is_none_is_not_present():
    column, present = gather("x", Feature("float64"), [None, 1.5, None])
    assert present.tolist() == [False, True, False]
    assert len(column) == 3
    assert column[1] == 1.5


def test_no_values_make_an_empty_column_of_the_shape():
    column, present = gather("x", Feature("float64", (2, 3)), [])
    assert column.shape == (0, 2, 3)
    assert present.shape == (0,)


def test_strings_are_joined():
    column, _ = gather("x", Feature("str", (2,), sequence=False), [["a", "b"], ("c", "d")])
    assert isinstance(column, BytesColumn)
    assert column.to_list() == [["a", "b"], ["c", "d"]]


def test_rows_of_differing_length_become_ragged():
    column, present = gather("x", Feature("int64", (None, None)), [[[1], [2, 3]], [], None])
    assert isinstance(column, Ragged)
    assert column.to_list() == [[[1], [2, 3]], [], []]
    assert present.tolist() == [True, True, False]


def test_raw_tensors_of_differing_shape_stay_apart():
    column, _ = gather("x", Feature("float64", (None, None)), [np.ones((1, 2)), [[1.0]], None])
    assert [np.shape(item) for item in column[:2]] == [(1, 2), (1, 1)]
    assert column[2] is None


@pytest.mark.parametrize(
    "row",
    [
        ([3, 1], [7.0, 5.0]),
        (np.array([3, 1]), np.array([7.0, 5.0], np.float32)),
        ([[3], [1]], [7.0, 5.0]),
        Sparse(np.array([[3], [1]]), np.array([7.0, 5.0]), (4,)),
    ],
    ids=["lists", "arrays", "columns", "Sparse"],
)
def test_sparse_rows_in_every_form(row):
    column, _ = gather("x", Feature("float32", (4,), encoding="sparse"), [row, ([], []), None])
    assert isinstance(column, Sparse)
    assert column.dense_shape == (3, 4)
    assert column.to_dense().tolist() == [[0, 5, 0, 7], [0] * 4, [0] * 4]


def test_sparse_rows_of_two_dimensions():
    feature = Feature("str", (2, 3), encoding="sparse")
    column, _ = gather("x", feature, [([[0, 1], [1, 2]], ["a", "b"]), ([], [])])
    assert column.indices.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert column.values.to_list() == ["a", "b"]


@pytest.mark.parametrize("make", ["csr_array", "coo_array", "csc_matrix"])
def test_sparse_rows_of_scipy(make):
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    row = getattr(sparse, make)(np.array([[0, 5, 0, 7]], np.float32))
    column, _ = gather("x", Feature("float32", (4,), encoding="sparse"), [row, row])
    assert column.to_dense().tolist() == [[0, 5, 0, 7], [0, 5, 0, 7]]


def test_sparse_matrices_of_scipy_are_features_of_two_dimensions():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    matrix = sparse.csr_array(np.array([[0, 5], [7, 0]], np.float32))
    column, _ = gather("x", Feature("float32", (2, 2), encoding="sparse"), [matrix])
    assert column.to_dense().tolist() == [[[0, 5], [7, 0]]]


@pytest.mark.parametrize("shape", [(2, 4), (1, 3), (1, 5)])
def test_sparse_rows_of_scipy_of_another_shape_are_refused(shape):
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    row = sparse.csr_array(np.eye(*shape, dtype=np.float32))
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected "):
        gather("x", Feature("float32", (4,), encoding="sparse"), [([], []), row])


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("float64", (2,)), [1.0]),
        (Feature("float64", (2,)), [[1.0], [2.0, 3.0]]),
        (Feature("float64"), [1.0]),
        (Feature("int64", (None, None)), 3),
        (Feature("int64", (None, None)), [1]),
        (Feature("int64", (None,), sequence=True), "ab"),
        (Feature("str", (None, None)), [[b"bytes"]]),
        (Feature("bytes", (None, None)), [["text"]]),
        (Feature("str", (None, None)), [[3]]),
        (Feature("str", (None,), sequence=True), ["\ud800"]),
        (Feature("str", (None, None, 2)), [[["a"]]]),
        (Feature("float32", (4,), encoding="sparse"), ([1, 2], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), [0, 1, 0, 0]),
        (Feature("float32", (4,), encoding="sparse"), ([1.5], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([2**70], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), (["a"], [1.0])),
    ],
    ids=repr,
)
def test_a_value_that_does_not_fit_is_named_with_its_record(feature, value):
    sound = None
    with pytest.raises(SchemaError, match="^record 2, feature 'x': "):
        gather("x", feature, [sound, sound, value, sound])


@pytest.mark.parametrize(
    "values",
    [
        [1j, 2 + 1j],
        [np.float16(1), np.float16(2)],
        [np.zeros((2, 3)), np.ones((2, 3))],
        [np.datetime64(1, "s"), np.datetime64("NaT", "s")],
        [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)],
    ],
    ids=str,
)
def test_values_that_are_alike_make_one_array(values):
    stacked = stack_values(values)
    assert isinstance(stacked, np.ndarray)
    assert stacked.tobytes() == np.array(values, stacked.dtype).tobytes()
    masked = stack_values([None, *values])
    assert isinstance(masked, Masked)
    assert masked.present.tolist() == [False, True, True]
    assert masked.values[1:].tobytes() == stacked.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [1, 2],
        [np.int8(1), np.int16(1)],
        [np.zeros(2), np.zeros(3)],
        [np.zeros(2), np.zeros(2, np.float32)],
        [np.array(["a"]), np.array(["b"])],
        [np.datetime64(1, "s"), np.datetime64(1, "ms")],
        ["a", "b"],
    ],
    ids=str,
)
def test_other_values_do_not(values):
    assert stack_values(values) is None


def integers(*rows: list[int]) -> Stored:
    """A variable stored column of int64, as the core hands it over."""
    splits = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.array([n for row in rows for n in row], np.int64), splits, None, None


def make(feature: Feature, *parts: Stored, rows: int = 2) -> object:
    records = Records.of([b""] * rows)
    return assemble(feature, lower("x", feature), list(parts), records)


def test_row_lengths_cut_values_into_nested_rows() -> None:
    column = make(Feature("int64", (None, None)), integers([1, 2], [3]), integers([0, 2], [1]))
    assert isinstance(column, Ragged)
    assert column.to_list() == [[[], [1, 2]], [[3]]]


@pytest.mark.parametrize(
    ("lengths", "row"), [(([2], [2]), 1), (([-1, 3], [1]), 0), (([2], [2**62]), 1)]
)
def test_row_lengths_that_do_not_fit_the_values_name_their_row(
    lengths: tuple[list[int], list[int]], row: int
) -> None:
    with pytest.raises(RowError, match="expected row lengths") as caught:
        make(Feature("int64", (None, None)), integers([1, 2], [3]), integers(*lengths))
    assert caught.value.row == row


def test_raw_tensors_take_the_shape_that_lies_beside_them() -> None:
    raw = np.array([1, 2, 3, 4], np.uint8), np.array([0, 2, 4]), None, None
    column = make(Feature("uint8", (None, None), encoding="raw"), raw, integers([1, 2], [2, 1]))
    assert isinstance(column, np.ndarray)
    assert [tensor.tolist() for tensor in column] == [[[1, 2]], [[3], [4]]]


def test_a_shape_of_another_size_names_its_row() -> None:
    raw = np.array([1, 2, 3, 4], np.uint8), np.array([0, 2, 4]), None, None
    feature = Feature("uint8", (None, None), encoding="raw")
    with pytest.raises(RowError, match="of 2 items") as caught:
        make(feature, raw, integers([1, 2], [2, 2]))
    assert caught.value.row == 1


def test_sparse_values_are_put_in_the_order_of_their_indices() -> None:
    feature = Feature("int64", (5,), encoding="sparse")
    column = make(feature, integers([10, 20], [30]), integers([4, 1], [0]))
    assert isinstance(column, Sparse)
    assert column.indices.tolist() == [[0, 1], [0, 4], [1, 0]]
    assert column.values.tolist() == [20, 10, 30]


@pytest.mark.parametrize(
    ("indices", "message", "row"),
    [(([1], [0]), "one a value", 0), (([1, 2], [5]), "within", 1), (([1, 2], [-1]), "within", 1)],
)
def test_indices_that_do_not_fit_name_their_row(
    indices: tuple[list[int], list[int]], message: str, row: int
) -> None:
    with pytest.raises(RowError, match=message) as caught:
        make(
            Feature("int64", (5,), encoding="sparse"), integers([10, 20], [30]), integers(*indices)
        )
    assert caught.value.row == row


def test_an_optional_column_is_masked_unless_it_has_a_default() -> None:
    values = np.array([7, 9]), None, None, np.array([True, False])
    masked = make(Feature("int64", optional=True), values)
    assert isinstance(masked, Masked)
    assert masked.to_list() == [7, None]
    assert isinstance(make(Feature("int64", default=9), values), np.ndarray)


def test_a_default_fills_strings() -> None:
    slices = np.array([0, 0, 0, 0]), None, None, np.array([True, False])
    column = make(Feature("str", default="none"), slices)
    assert isinstance(column, BytesColumn)
    assert column.to_list() == ["", "none"]


def test_an_image_comes_as_the_bytes_of_its_file() -> None:
    feature = Feature("uint16", (None, None, 3), encoding="image")
    column = make(feature, (np.array([0, 0]), None, None, None), rows=1)
    assert isinstance(column, BytesColumn)
    assert column.to_list() == [b""]


def test_integers_of_a_time_come_with_its_unit() -> None:
    feature = Feature("timedelta64[ms]", (2,))
    column = make(feature, (np.array([1, 2]), None, None, None), rows=1)
    assert isinstance(column, np.ndarray)
    assert column.dtype == "timedelta64[ms]"
    assert column.astype(np.int64).tolist() == [[1, 2]]


def test_a_raw_truth_value_other_than_0_and_1_names_its_row() -> None:
    raw = np.array([0, 1, 2, 0], np.uint8), None, None, None
    with pytest.raises(RowError, match="expected bool, got byte 2") as caught:
        make(Feature("bool", (2,), encoding="raw"), raw)
    assert caught.value.row == 1


PAYLOADS = [b"one", b"", b"three"]


def test_as_records_takes_whatever_holds_payloads():
    framed = frame(PAYLOADS)
    records = as_records(framed)
    assert list(records) == PAYLOADS
    assert as_records(records) is records
    assert list(as_records(PAYLOADS)) == PAYLOADS
    assert list(as_records(iter(PAYLOADS))) == PAYLOADS


def test_as_records_of_a_file_keeps_where_they_are_from(tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(frame(PAYLOADS).to_bytes())
    records = as_records(RecordFile(path))
    assert list(records) == PAYLOADS
    assert records.locate(1) == (str(path), 1, 19)


def test_as_records_of_a_file_copies_nothing_if_it_can():
    data = np.frombuffer(frame(PAYLOADS).to_bytes(), np.uint8)
    assert as_records(RecordFile(data)).buffer is data


def test_as_records_of_a_compressed_file_keeps_where_they_are_from():
    payloads = [bytes(500_000)] * 9
    framed = frame(payloads)
    records = as_records(RecordFile(gzip.compress(framed.to_bytes(), 1)))
    assert list(records) == payloads
    assert [records.locate(i)[1:] for i in range(9)] == list(enumerate(framed.offsets.tolist()))


def test_as_records_of_a_damaged_file_keeps_the_numbers():
    framed = frame(PAYLOADS)
    data = bytearray(framed.to_bytes())
    data[13] ^= 1
    file = RecordFile(bytes(data), recovery="skip")
    records = as_records(file)
    assert list(records) == PAYLOADS[1:]
    assert records.locate(0) == ("<memory>", 1, 19)
    assert len(file.damage) == 1


def test_as_records_of_an_empty_file_is_empty():
    assert len(as_records(RecordFile(b""))) == 0


F = Feature


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        (F("int64"), F("int64"), True),
        (F("int64"), F("int64", optional=True), True),
        (F("int8"), F("int64"), True),
        (F("bool"), F("uint64"), True),
        (F("float16"), F("float32"), True),
        (F("int64", (3,)), F("int64", (None,)), True),
        (F("int64", (2, 3)), F("int64", (None, 3)), True),
        (F("float64", (3,)), F("float64", (None,)), True),
        (F("bytes"), F("uint8", (None, None, 3), encoding="image"), True),
        (
            F("uint8", (4, 4, 3), encoding="image"),
            F("uint16", (None, 4, 3), encoding="image"),
            True,
        ),
        (F("int64", (3,), encoding="sparse"), F("int8", (4,), encoding="sparse"), True),
        (F("int64"), F("float64"), False),
        (F("int64"), F("float32"), False),
        (F("float32"), F("float64"), False),
        (F("int64"), F("datetime64[s]"), False),
        (F("datetime64[D]"), F("datetime64[s]"), False),
        (F("int64", (3,)), F("int64", (3,), encoding="raw"), False),
        (F("uint8", (3,), encoding="raw"), F("int16", (3,), encoding="raw"), False),
        (F("int64", (2, 3)), F("int64", (None, None)), False),
        (F("float64", (2, 3)), F("float64", (2, None)), False),
        (F("float64", (None, None)), F("float64", (None, None), encoding="values"), False),
        (F("int64"), F("int64", (1,)), False),
        (F("int64"), F("int64", keys=("k",)), False),
        (F("int64", (None,)), F("int64", (None,), sequence=True), False),
    ],
    ids=repr,
)
def test_what_lies_the_same_in_a_record_is_alike(one, other, is_alike):
    assert stores_alike(Schema({"x": one}), Schema({"x": other})) == is_alike
    assert stores_alike(Schema({"x": other}), Schema({"x": one})) == is_alike


def test_a_feature_more_is_alike_if_records_may_lack_it():
    one = Schema({"x": F("int64")})
    assert stores_alike(one, Schema({"y": F("str", optional=True), "x": F("int64")}))
    assert not stores_alike(one, Schema({"x": F("int64"), "y": F("str")}))
    assert not stores_alike(Schema({"x": F("int64"), "y": F("str", optional=True)}), one)
    steps = F("int64", (None,), sequence=True, optional=True)
    assert not stores_alike(one, Schema({"x": F("int64"), "s": steps}))  # another message


@pytest.mark.parametrize(
    ("one", "other", "values"),
    [
        (F("int64"), F("float64"), [1, -(2**53)]),
        (F("float32", optional=True), F("float64", optional=True), [0.5, None]),
        (F("int64", (2,)), F("float64", (None,)), [[1, 2], [3, 4]]),
        (F("str", (2,)), F("str", (None,)), [["a", "b"], ["c", ""]]),
        (F("str", (2, 1)), F("str", (None, None)), [[["a"], ["b"]]]),
        (F("int64", (None, 2)), F("int64", (None, None)), [[[1, 2]], []]),
        (F("int64", (None, None)), F("float64", (None, None)), [[[1, 2], [3, 4]], [], [[5]]]),
        (F("int64", (2, 2)), F("int64", (2, None), encoding="raw"), [[[1, 2], [3, 4]]]),
        (
            F("float64", (1, None)),
            F("float64", (None, None), encoding="values"),
            [[[0.1, 0.2]], [[0.3]]],
        ),
        (
            F("float64", (1, None), optional=True),
            F("float64", (None, None), encoding="values", optional=True),
            [[[0.1, 0.2]], None],
        ),
        (F("float32", (None,)), F("str", (None, None)), [[], []]),
        (F("float32", (None,), optional=True), F("int64", (None,), optional=True), [[], None]),
        (
            F("datetime64[D]"),
            F("datetime64[us]"),
            [np.datetime64("2020-01-01"), np.datetime64("NaT", "D")],
        ),
        (F("bytes"), F("uint8", (None, None, 3), encoding="image"), [b"a", b"b"]),
    ],
    ids=repr,
)
def test_records_are_as_if_they_had_been_written_so_at_once(one, other, values):
    rows = [{"y": 1} if value is None else {"x": value, "y": 1} for value in values]
    before = Schema({"x": one, "y": F("int64")})
    after = Schema({"x": other, "y": F("int64"), "z": F("str", optional=True)})
    again = reencode(encode(rows, before).records(), before, after)
    assert again.to_bytes() == encode(rows, after).to_bytes()


def test_values_that_would_change_are_refused_by_record():
    before, after = Schema({"x": F("int64")}), Schema({"x": F("float64")})
    records = encode([{"x": 1}, {"x": 2**53 + 1}], before).records()
    with pytest.raises(
        SchemaError, match="record 1, feature 'x': expected float64, got 90"
    ) as caught:
        reencode(records, before, after)
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_no_records_and_records_of_nothing():
    empty, after = Schema({}), Schema({"x": F("int64", optional=True)})
    assert len(reencode(frame([]).records(), after, after)) == 0
    nothing = encode([{}, {}], empty)
    assert reencode(nothing.records(), empty, after).to_bytes() == nothing.to_bytes()


def test_sparse_values_that_are_absent_stay_so():
    before = Schema({"x": F("int64", (5,), encoding="sparse", optional=True)})
    after = Schema({"x": F("float64", (5,), encoding="sparse", optional=True)})
    rows = [{"x": ([1], [2])}, {}, {"x": ([], [])}]
    again = reencode(encode(rows, before).records(), before, after)
    assert again.to_bytes() == encode(rows, after).to_bytes()


def test_a_feature_cannot_be_dropped():
    before = Schema({"x": F("int64"), "y": F("int64")})
    with pytest.raises(SchemaError, match="feature 'y': expected it in both schemas"):
        reencode(encode([{"x": 1, "y": 2}], before).records(), before, before.select(["x"]))
