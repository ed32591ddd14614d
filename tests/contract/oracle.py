"""What google.protobuf and TensorFlow make of records, as plain values to compare ours with."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from datum import BytesColumn, Masked, Ragged, SchemaError, Sparse
from datum.format import DiscoveredFeature, Discovery, discover, parse

tf = pytest.importorskip("tensorflow")
from google.protobuf.message import DecodeError  # noqa: E402 - comes with TensorFlow

KINDS = {"bytes_list": "bytes", "float_list": "float", "int64_list": "int64", None: None}
TF_COMPRESSION = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}

# A kind and its values (floats as bits), or (None, []) for a Feature with no kind set.
Value = tuple[str | None, list[Any]]


@dataclass(frozen=True)
class Message:
    """An Example or SequenceExample as protobuf reads it."""

    context: dict[str, Value] = field(default_factory=dict)
    lists: dict[str, list[Value]] = field(default_factory=dict)


def read_protobuf(payload: bytes, *, is_sequence: bool = False) -> Message | None:
    """The message that protobuf finds in `payload`; None if it refuses."""
    kind = tf.train.SequenceExample if is_sequence else tf.train.Example
    try:
        found = kind.FromString(payload)
    except DecodeError:
        return None
    if not is_sequence:
        return Message(_read_map(found.features.feature))
    lists = {
        key: [_read_feature(step) for step in steps.feature]
        for key, steps in found.feature_lists.feature_list.items()
    }
    return Message(_read_map(found.context.feature), lists)


def _read_map(features: Any) -> dict[str, Value]:
    return {key: _read_feature(feature) for key, feature in features.items()}


def _read_feature(feature: Any) -> Value:
    member = feature.WhichOneof("kind")
    if member is None:
        return None, []
    values = list(getattr(feature, member).value)
    if member == "float_list":  # as `float_bits`, but quick for the few values that most have
        values = list(struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values)))
    return KINDS[member], values


def without_unknown_fields(payload: bytes) -> bytes:
    """A SequenceExample as protobuf writes it once it forgets what it does not know."""
    message = tf.train.SequenceExample.FromString(payload)
    whole = message.SerializeToString()
    message.DiscardUnknownFields()
    cleaned = message.SerializeToString()
    assert len(cleaned) < len(whole), "there were no unknown fields"
    return cleaned


def make_example(context: dict[str, Any]) -> bytes:
    """An Example serialized by protobuf, of (kind, values) or None under each key."""
    return tf.train.Example(features=_make_features(context)).SerializeToString()


def make_sequence_example(context: dict[str, Any], lists: dict[str, Any]) -> bytes:
    """A SequenceExample serialized by protobuf, of a list of such values under each key."""
    made = {
        key: tf.train.FeatureList(feature=[_make_feature(step) for step in steps])
        for key, steps in lists.items()
    }
    return tf.train.SequenceExample(
        context=_make_features(context), feature_lists=tf.train.FeatureLists(feature_list=made)
    ).SerializeToString()


def _make_features(context: dict[str, Any]) -> Any:
    made = {key: _make_feature(value) for key, value in context.items()}
    return tf.train.Features(feature=made)


def _make_feature(value: tuple[str, list[Any]] | None) -> Any:
    if value is None:
        return tf.train.Feature()
    kind, values = value
    lists = {"bytes": "BytesList", "float": "FloatList", "int64": "Int64List"}
    return tf.train.Feature(**{f"{kind}_list": getattr(tf.train, lists[kind])(value=values)})


def float_bits(values: Any) -> list[int]:
    """Floats as bits, NaNs made quiet: Python's own floats cannot hold a signalling one."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    is_nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(is_nan, bits | 0x00400000, bits).tolist()


def rows_of(column: Any, *, exact: bool = False) -> list[Any]:
    """What each record has in a column: nested lists, None where masked.

    Floats come as bits, like `float_bits`; with `exact` every number comes as its bytes.
    """
    if isinstance(column, Masked):
        rows = rows_of(column.values, exact=exact)
        return [row if there else None for row, there in zip(rows, column.present, strict=True)]
    if isinstance(column, (Ragged, tf.RaggedTensor)):
        rows = rows_of(column.values, exact=exact)
        splits = np.asarray(column.row_splits).tolist()
        return [rows[first:last] for first, last in itertools.pairwise(splits)]
    if isinstance(column, BytesColumn):
        return column.to_list()
    if isinstance(column, (Sparse, tf.SparseTensor)):
        return _sparse_rows(column, exact)
    array = np.asarray(column)
    if array.dtype == object:
        tensors = [isinstance(item, np.ndarray) for item in array.flat]
        return [rows_of(item, exact=exact) for item in array] if any(tensors) else array.tolist()
    if exact:
        return array.copy().view(f"V{array.dtype.itemsize}").tolist()
    return float_bits(array) if array.dtype == np.float32 else array.tolist()


def _sparse_rows(column: Any, exact: bool) -> list[Any]:
    """For each record its places and values, sorted: equal places have no order."""
    values = rows_of(column.values, exact=exact)
    rows: list[Any] = [[] for _ in range(int(column.dense_shape[0]))]
    for (row, *place), value in zip(np.asarray(column.indices).tolist(), values, strict=True):
        rows[row].append((place, value))
    return [sorted(row) for row in rows]


def flatten(row: Any) -> list[Any] | None:
    """The values of one row in order, whatever its shape."""
    if row is None:
        return None
    if not isinstance(row, list):
        return [row]
    return [value for item in row for value in flatten(item) or []]


def read_tfrecords(path: Any, *, compression: str | None = None) -> list[bytes]:
    """The records that TensorFlow reads from a file."""
    dataset = tf.data.TFRecordDataset(str(path), TF_COMPRESSION[compression])
    return [record for batch in dataset.batch(1 << 16) for record in batch.numpy().tolist()]


def tensorflow_reads(
    path: Path, content: bytes, compression: str | None = None
) -> list[bytes] | None:
    """What TensorFlow reads from a file of this content; None if it reports data loss."""
    path.write_bytes(content)
    try:
        return read_tfrecords(path, compression=compression)
    except tf.errors.DataLossError:
        return None


def write_tfrecords(path: Any, payloads: Iterable[bytes], *, compression: str | None = None) -> Any:
    """Write records with TensorFlow; returns the path."""
    with tf.io.TFRecordWriter(str(path), TF_COMPRESSION[compression]) as writer:
        for payload in payloads:
            writer.write(payload)
    return path


def assert_reads_as_protobuf(payloads: list[bytes], messages: list[Message]) -> None:
    """Every key found, and every value of every record equal to protobuf's.

    A key with values of two kinds has no schema; that has to be told, and the rest read.
    """
    found = discover(payloads)
    assert found.records == len(payloads)
    context = [message.context for message in messages]
    lists = [message.lists for message in messages]
    assert set(found.context) == {key for keys in context for key in keys}
    assert set(found.sequences) == {key for keys in lists for key in keys}
    for name, feature in found.context.items():
        values = [keys[name] for keys in context if name in keys]
        assert feature.steps is None
        assert feature.present == sum(kind is not None for kind, _ in values)
        _assert_measured(feature, values)
    for name, feature in found.sequences.items():
        steps = [keys[name] for keys in lists if name in keys]
        assert feature.steps == (min(map(len, steps)), max(map(len, steps)))
        assert feature.present == len(steps)
        _assert_measured(feature, [value for row in steps for value in row])
    readable = Discovery(found.records, _of_one_kind(found.context, found.records), {})
    for name, column in parse(payloads, readable.schema()).items():
        rows = [_flat_value(keys.get(name, (None, []))) for keys in context]
        assert [flatten(row) for row in rows_of(column)] == rows, name
    readable = Discovery(found.records, {}, _of_one_kind(found.sequences, found.records))
    for name, column in parse(payloads, readable.schema()).items():
        rows = [keys.get(name) for keys in lists]
        expected = [None if row is None else [values for _, values in row] for row in rows]
        got = [None if row is None else list(map(flatten, row)) for row in rows_of(column)]
        assert got == expected, name


def _flat_value(value: Value) -> list[Any] | None:
    return None if value[0] is None else value[1]


def _of_one_kind(
    features: dict[str, DiscoveredFeature], records: int
) -> dict[str, DiscoveredFeature]:
    for name, feature in features.items():
        if len(feature.kinds) > 1:
            with pytest.raises(SchemaError, match="expected one kind in all records"):
                Discovery(records, {name: feature}, {}).schema()
    return {name: feature for name, feature in features.items() if len(feature.kinds) <= 1}


def _assert_measured(feature: DiscoveredFeature, values: list[Value]) -> None:
    there = [(kind, items) for kind, items in values if kind is not None]
    assert set(feature.kinds) == {kind for kind, _ in there}
    lengths = [len(items) for _, items in there]
    assert feature.lengths == ((min(lengths), max(lengths)) if lengths else None)
    sizes = [len(item) for kind, items in there if kind == "bytes" for item in items]
    assert feature.sizes == ((min(sizes), max(sizes)) if sizes else None)
