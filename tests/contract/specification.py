"""The tf.io feature specification of docs/concepts/format.md for each encoding, put to use."""

from __future__ import annotations

from typing import Any

import numpy as np

from datum import Feature, Schema
from datum.schema.feature import FLOATS_ON_WIRE, STRINGS
from tests.contract.oracle import rows_of, tf
from tests.contract.strategies import numpy_type

# Types that tf.io.decode_raw lacks, read as integers of the same width.
_DECODED = {"bfloat16": "uint16", "uint32": "int32", "uint64": "int64"}


def list_type(feature: Feature) -> Any:
    """The TensorFlow type of the list that a feature is stored in."""
    if feature.dtype in STRINGS or feature.encoding == "raw":
        return tf.string
    return tf.float32 if feature.dtype in FLOATS_ON_WIRE else tf.int64


def read_with_tensorflow(schema: Schema, payloads: list[bytes]) -> dict[str, list[Any]]:
    """The rows of each feature, as `rows_of` tells them; a feature that is absent is empty."""
    context: dict[str, Any] = {}
    lists: dict[str, Any] = {}
    for name, feature in schema.items():
        if feature.sequence:
            lists[name] = _sequence_spec(name, feature)
        else:
            context |= _context_specs(name, feature)
    serialized = tf.constant(payloads, tf.string, shape=(len(payloads),))
    lengths: dict[str, Any] = {}
    found: dict[str, Any] = {}
    if lists:
        context, sequences, lengths = tf.io.parse_sequence_example(serialized, context, lists)
        found = {**context, **sequences}
    elif context:
        found = tf.io.parse_example(serialized, context)
    return {
        name: _decode(name, feature, found, lengths.get(name)) for name, feature in schema.items()
    }


def _context_specs(name: str, feature: Feature) -> dict[str, Any]:
    kind = list_type(feature)
    if feature.encoding == "sparse":
        rank = len(feature.shape)
        keys = [f"{name}_index"] if rank == 1 else [f"{name}_index_{d}" for d in range(rank)]
        return {name: tf.io.SparseFeature(keys, f"{name}_value", kind, list(feature.shape))}
    if feature.encoding == "raw":
        specs = {name: tf.io.FixedLenFeature((), tf.string, default_value=b"")}
        if None in feature.shape[1:]:
            specs[f"{name}_shape"] = tf.io.RaggedFeature(tf.int64)
        return specs
    if feature.ragged_rank == 0:
        blank = np.full(feature.shape, b"" if kind is tf.string else 0).tolist()
        default = blank if feature.optional else None
        return {name: tf.io.FixedLenFeature(feature.shape, kind, default_value=default)}
    return {name: tf.io.RaggedFeature(kind, value_key=name, partitions=_partitions(name, feature))}


def _partitions(name: str, feature: Feature) -> list[Any]:
    rank = feature.ragged_rank
    lengths = [] if feature.sequence else [f"{name}_lengths_{level}" for level in range(1, rank)]
    return [
        *map(tf.io.RaggedFeature.RowLengths, lengths),
        *map(tf.io.RaggedFeature.UniformRowLength, feature.shape[rank:]),
    ]


def _sequence_spec(name: str, feature: Feature) -> Any:
    kind = list_type(feature)
    if feature.ragged_rank == 2:
        return tf.io.RaggedFeature(kind, value_key=name, partitions=_partitions(name, feature))
    shape = () if feature.encoding == "raw" else feature.shape[1:]
    return tf.io.FixedLenSequenceFeature(shape, kind, allow_missing=True)


def _decode(name: str, feature: Feature, found: dict[str, Any], lengths: Any) -> list[Any]:
    rows = rows_of(found[name])
    if lengths is not None:  # padded to the most steps
        rows = [row[:count] for row, count in zip(rows, lengths.numpy().tolist(), strict=True)]
    if feature.encoding != "raw":
        return rows
    if feature.sequence:
        return [[_decode_raw(feature, feature.shape[1:], step) for step in row] for row in rows]
    shapes = [tuple(-1 if n is None else n for n in feature.shape)] * len(rows)
    if None in feature.shape[1:]:
        shapes = rows_of(found[f"{name}_shape"])
    return [_decode_raw(feature, *pair) for pair in zip(shapes, rows, strict=True)]


def _decode_raw(feature: Feature, shape: Any, raw: bytes) -> list[Any] | None:
    """The items of a raw tensor as bytes, like rows_of(exact=True)."""
    if not raw and not {0, -1} & set(shape):
        return None  # a tensor that holds something has bytes: this one is absent
    decoded = tf.io.decode_raw(raw, _DECODED.get(feature.dtype, feature.dtype)).numpy()
    return rows_of(decoded.view(numpy_type(feature.dtype)).reshape(shape), exact=True)
