import gc
import re

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
from datum.format import Parser, RecordFile, Records, encode, frame, parse

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
        "expected a value, got none\nhint: mark the feature optional=True, or give it a default",
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
        " got bytes that are no such message"
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
