"""What we write, TensorFlow and protobuf read equal, and so do we."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import datum
from datum import Feature, Schema
from datum.format import RecordFile, RecordWriter, encode, parse
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS
from tests.contract.oracle import (
    read_protobuf,
    read_tfrecords,
    rows_of,
    tf,
    write_tfrecords,
)
from tests.contract.specification import read_with_tensorflow
from tests.contract.storage import as_stored, stored_message
from tests.contract.strategies import NAMES, arrays, examples, tables
from tests.contract.wire import delimited

COMPRESSIONS = [None, "gzip", "zlib"]


def _is_sequence(schema: Schema) -> bool:
    return any(feature.sequence for feature in schema.values())


@examples(100)
@given(tables())
def test_records_hold_the_lists_of_the_encoding_table(table: tuple[Schema, list[Any]]) -> None:
    schema, rows = table
    for payload, row in zip(encode(rows, schema), rows, strict=True):
        message = read_protobuf(payload, is_sequence=_is_sequence(schema))
        assert message == stored_message(schema, row)


@examples(100)
@given(tables())
def test_bytes_are_what_protobuf_writes_with_sorted_keys(table: tuple[Schema, list[Any]]) -> None:
    schema, rows = table
    for payload in encode(rows, schema):
        if _is_sequence(schema):
            found = tf.train.SequenceExample.FromString(payload)
            context = _in_order(tf.train.Features, "feature", found.context.feature)
            lists = found.feature_lists.feature_list
            steps = _in_order(tf.train.FeatureLists, "feature_list", lists)
            assert payload == delimited(1, *context) + delimited(2, *steps)
        else:
            features = tf.train.Example.FromString(payload).features.feature
            assert payload == delimited(1, *_in_order(tf.train.Features, "feature", features))


def _in_order(kind: Any, field: str, items: Any) -> list[bytes]:
    """Each entry of a map serialized alone: protobuf itself promises no order of keys."""
    return [
        kind(**{field: {key: items[key]}}).SerializeToString()
        for key in sorted(items, key=str.encode)
    ]


@examples(100)
@given(tables(keys=st.sampled_from(NAMES), allow_zero=False))
def test_tensorflow_parses_the_values_that_were_given(table: tuple[Schema, list[Any]]) -> None:
    schema, rows = table
    # TensorFlow takes no empty key and no shape of nothing, and of SequenceExamples neither an
    # empty batch nor a SparseFeature.
    has_sparse = any(feature.encoding == "sparse" for feature in schema.values())
    assume(not _is_sequence(schema) or (rows and not has_sparse))
    found = read_with_tensorflow(schema, list(encode(rows, schema)))
    for name, feature in schema.items():
        expected = [_as_parsed(feature, row[name]) for row in rows]
        got = found[name]
        for want, have in zip(expected, got, strict=True):
            assert want is None or have == want, name


def _as_parsed(feature: Feature, value: Any) -> Any:
    if value is None:
        return None
    if feature.encoding == "sparse":
        places, found = value
        items = as_stored(feature.dtype, found)
        return sorted(zip(places.tolist(), items, strict=True))
    if feature.encoding == "raw":
        return rows_of(value, exact=True)
    return as_stored(feature.dtype, value)


@examples(100)
@given(tables())
def test_datum_reads_back_the_bits_it_wrote(table: tuple[Schema, list[Any]]) -> None:
    schema, rows = table
    batch = parse(encode(rows, schema), schema)
    assert list(batch) == list(schema)
    for name, feature in schema.items():
        expected = [_as_given(feature, row[name]) for row in rows]
        assert rows_of(batch[name], exact=True) == expected, name


def _as_given(feature: Feature, value: Any) -> Any:
    if value is None:
        return None
    if feature.encoding == "sparse":
        places, found = value
        return sorted(zip(places.tolist(), _as_given(Feature(feature.dtype), found), strict=True))
    if isinstance(value, list):
        return [_as_given(feature, item) for item in value]
    return rows_of(value, exact=True) if isinstance(value, np.ndarray) else value


@examples(100)
@given(
    st.data(), st.sampled_from(["values", "raw"]), st.sampled_from([(), (2,), (None,), (None, 2)])
)
def test_records_that_lack_a_feature_read_its_default(
    data: Any, encoding: Any, shape: tuple[int | None, ...]
) -> None:
    dtypes = [*INTEGERS, *FLOATS_ON_WIRE, *(["float64"] if encoding == "raw" else [])]
    dtype = data.draw(st.sampled_from(dtypes))
    filled = tuple(data.draw(st.integers(1, 2)) if n is None else n for n in shape)
    default, value = data.draw(arrays(dtype, filled)), data.draw(arrays(dtype, filled))
    with np.errstate(invalid="ignore"):  # of a NaN that signals
        assume(not np.isnan(default).any())  # one NaN is as good as another
    feature = Feature(dtype, shape, encoding=encoding, default=default)
    rows = [{"a": None}, {"a": value}, {}]
    column = parse(encode(rows, {"a": feature}), {"a": feature})["a"]
    assert rows_of(column, exact=True) == [
        rows_of(item, exact=True) for item in (default, value, default)
    ]


@examples(100)
@given(tables())
def test_parsed_columns_encode_to_the_same_bytes(table: tuple[Schema, list[Any]]) -> None:
    schema, rows = table
    framed = encode(rows, schema)
    if not schema:
        return  # no column tells how many rows there are
    assert encode(parse(framed, schema), schema).to_bytes() == framed.to_bytes()


@examples(20)
@given(payloads=st.lists(st.binary(max_size=40), max_size=8))
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_our_files(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], compression: Any
) -> None:
    path = tmp_path_factory.mktemp("ours") / "records"
    with RecordWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    assert read_tfrecords(path, compression=compression) == payloads
    assert list(RecordFile(path)) == payloads


def test_plain_files_are_byte_for_byte_those_of_tensorflow(tmp_path: Path) -> None:
    payloads = [b"", b"x", b"record" * 1000, bytes(range(256))]
    theirs = write_tfrecords(tmp_path / "theirs", payloads)
    with RecordWriter(tmp_path / "ours") as writer:
        for payload in payloads:
            writer.write(payload)
    assert (tmp_path / "ours").read_bytes() == theirs.read_bytes()


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_parses_a_large_file_of_ours(tmp_path: Path, compression: Any) -> None:
    schema = Schema({"x": Feature("float32", (50,)), "id": Feature("int64")})
    rng = np.random.default_rng(0)
    values = rng.standard_normal((20_000, 50)).astype(np.float32)
    with RecordWriter(tmp_path / "records", compression=compression) as writer:
        writer.write_framed(encode({"x": values, "id": np.arange(20_000)}, schema))
    dataset = tf.data.TFRecordDataset(
        str(tmp_path / "records"), {None: "", "gzip": "GZIP", "zlib": "ZLIB"}[compression]
    )
    specs = {
        "x": tf.io.FixedLenFeature((50,), tf.float32),
        "id": tf.io.FixedLenFeature((), tf.int64),
    }
    batches = [tf.io.parse_example(batch, specs) for batch in dataset.batch(4096)]
    np.testing.assert_array_equal(np.concatenate([batch["x"] for batch in batches]), values)
    np.testing.assert_array_equal(np.concatenate([batch["id"] for batch in batches]), range(20_000))


@pytest.mark.parametrize(
    "pattern", ["out/*.tfrecord*", "out/train-*", "out/train*", "out/*-of-*", "*/train-*"]
)
def test_tensorflow_finds_our_shards_by_any_usual_pattern(tmp_path: Path, pattern: str) -> None:
    datum.write({"x": range(10)}, tmp_path / "out", shards=3, progress=False)
    pattern = str(tmp_path / pattern)
    for files in (tf.io.matching_files(pattern), tf.data.Dataset.list_files(pattern)):
        assert len(list(tf.data.TFRecordDataset(files))) == 10
