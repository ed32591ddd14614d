"""Serialized records parsed into tensors by graph operations alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from datum._core import Layout
from datum._frameworks.tensorflow.ops import checked
from datum._frameworks.tensorflow.record_keys import (
    Key,
    KeyReader,
    KeyValues,
    count_records,
    pad_rows,
)
from datum._load.options import present_name
from datum._optional import require
from datum.errors import SchemaError
from datum.format.layout import check_keys, lower, stand_in
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.feature import TIMES

__all__ = [
    "GraphParser",
    "assemble",
    "cast_listed",
    "decode_each",
    "decode_joined",
    "nest_by_shape",
    "tensor_dtype",
]

tf: Any = require("tensorflow", purpose="`to_tf`")


class GraphParser:
    """Parses records of a schema: in `tf.data`, in a tf.function, or eagerly.

    Columns are tensors of the feature's dtype, times of int64; a tf.RaggedTensor for features of
    variable dimensions, a tf.SparseTensor for sparse ones. Images are strings, still encoded. A
    record that lacks an optional feature has zeros, empty strings or no items in its column, and
    False in the column of `present_name`.

    Records that lack a required list raise an error, and so do records that have an optional number
    without its value. To find them, records with an empty list or without the number are parsed
    once more, unless `is_trusted`, since Datum writes no such records.

    >>> from datum.format import encode
    >>> from datum.schema import Feature
    >>> schema = Schema({"x": Feature("uint8"), "words": Feature("str", (None,))})
    >>> records = list(encode([{"x": 1, "words": ["a"]}, {"x": 2, "words": []}], schema))
    >>> batch = GraphParser(schema).parse(tf.constant(records))
    >>> batch["x"].numpy(), batch["words"].to_list()
    (array([1, 2], dtype=uint8), [[b'a'], []])
    """

    def __init__(self, schema: Schema, *, is_trusted: bool = False) -> None:
        check_keys(schema)
        for name, feature in schema.items():
            beside = present_name(name, feature)
            if beside in schema:
                raise SchemaError(
                    f"feature {name!r} is optional, so a column {beside!r} marks the records that"
                    " have it; there is a feature of that name",
                    hint=f"set a default for {name!r}, or rename one of them",
                    feature=name,
                )
        self.schema = schema
        self._is_trusted = is_trusted
        self._keys = {
            name: [Key(column, stand_in(feature)) for column in lower(name, feature)]
            for name, feature in schema.items()
        }

    def parse(self, serialized: Any) -> dict[str, Any]:
        """Parse records, a string tensor of one dimension, into columns by name.

        A record that does not fit the schema raises a tf.errors.InvalidArgumentError that names
        the feature. Unlike the native parser, this one accepts text that is not UTF-8.
        """
        serialized = tf.convert_to_tensor(serialized, tf.string)
        if serialized.shape.rank != 1:
            raise ValueError(f"expected records in one dimension, got {serialized.shape}")
        reader = KeyReader(serialized, self._is_trusted)
        found = reader.read([key for keys in self._keys.values() for key in keys])
        batch = {}
        for name, feature in self.schema.items():
            parts = [found[key.name, feature.sequence] for key in self._keys[name]]
            batch[name] = assemble(name, self._keys[name], parts, serialized)
            beside = present_name(name, feature)
            if beside is not None:
                batch[beside] = parts[0].present
        return batch


_MAX_EXTENT = 2**31 - 1  # of a raw tensor with a shape of its own


def assemble(name: str, keys: Sequence[Key], parts: Sequence[KeyValues], serialized: Any) -> Any:
    """The column of a feature: a Tensor, RaggedTensor or SparseTensor."""
    key, stored = keys[0], parts[0]
    if key.feature.encoding == "sparse":
        return _assemble_sparse(name, key, parts, serialized)
    if key.feature.sequence:
        return _assemble_steps(name, key, stored)
    if key.column.layout == Layout.FIXED:
        return _assemble_fixed(name, key, stored, serialized)
    if len(keys) > 1 and keys[1].column.role == "shape":
        return _assemble_shaped(name, key, parts, serialized)
    values, splits = _read_units(name, key, stored)
    return _nest(name, values, splits, parts[1:])


def _ragged(values: Any, splits: Any) -> Any:
    return tf.RaggedTensor.from_row_splits(values, splits, validate=False)


def _assemble_fixed(name: str, key: Key, stored: KeyValues, serialized: Any) -> Any:
    feature = key.feature
    if key.is_raw:
        values = decode_each(name, feature, stored.values, key.column.unit)
    elif stored.splits is None:  # they have their shape already
        return cast_listed(name, feature, stored.values)
    else:
        problem = f"feature `{name}`: expected 0 values, got more"
        nothing = checked(stored.values, tf.equal(stored.splits, 0), problem)
        values = cast_listed(name, feature, nothing)
    return tf.reshape(values, (count_records(serialized), *feature.shape))


def _read_units(name: str, key: Key, stored: KeyValues) -> tuple[Any, Any]:
    """The rows of a variable dimension of all records, and where those of each record start."""
    feature = key.feature
    inner = feature.shape[feature.ragged_rank :]
    if key.is_raw:
        values, lengths = decode_joined(name, feature, stored.values, key.column.unit)
        return tf.reshape(values, (-1, *inner)), _to_splits(lengths)
    values, splits = cast_listed(name, feature, stored.values), stored.splits
    splits = _divide(name, splits, key.column.unit)
    values = tf.reshape(values, (-1, *inner)) if inner else values
    if stored.present is not None and feature.default:
        return _fill_default(key, values, splits, stored.present)
    return values, splits


def _to_splits(lengths: Any) -> Any:
    return tf.concat([[0], tf.cumsum(lengths)], axis=0)


def _divide(name: str, splits: Any, unit: int) -> Any:
    """Splits of values as splits of units of values."""
    if unit == 1:
        return splits
    problem = f"feature `{name}`: expected a multiple of {unit} values, got another number"
    return checked(splits // unit, tf.equal(splits % unit, 0), problem)


def _fill_default(key: Key, values: Any, splits: Any, present: Any) -> tuple[Any, Any]:
    default = np.array(key.feature.default, numpy_dtype(key.feature.dtype))
    choices = tf.concat([values, tf.constant(default, values.dtype)], axis=0)
    starts = tf.where(present, splits[:-1], splits[-1])
    lengths = tf.where(present, splits[1:] - splits[:-1], len(default))
    places = tf.ragged.range(starts, starts + lengths)
    return tf.gather(choices, places.values), places.row_splits


def _nest(name: str, column: Any, below: Any, levels: Sequence[KeyValues]) -> Any:
    """Rows nested by the lengths of each level, from the outermost in; `below` splits values."""
    problem = f"feature `{name}`: expected row lengths that add up to the number of values"
    for level in reversed(levels):
        lengths, splits = level.values, level.splits
        is_sound = tf.logical_and(lengths >= 0, lengths <= below[-1])
        inner = _to_splits(checked(lengths, is_sound, problem))
        column = _ragged(column, checked(inner, tf.equal(tf.gather(inner, splits), below), problem))
        below = splits
    return _ragged(column, below)


def _assemble_steps(name: str, key: Key, stored: KeyValues) -> Any:
    feature, unit = key.feature, key.column.unit
    inner, starts = feature.shape[feature.ragged_rank :], stored.inner_splits
    if key.column.layout == Layout.NESTED_STEPS:
        values = tf.reshape(cast_listed(name, feature, stored.values), (-1, *inner))
        return _ragged(_ragged(values, _divide(name, starts, unit)), stored.splits)
    count = 1 if key.is_raw else unit
    problem = f"feature `{name}`: expected {count} value(s) in every step, got another number"
    listed = checked(stored.values, tf.equal(starts[1:] - starts[:-1], count), problem)
    if key.is_raw:
        values = decode_each(name, feature, listed, unit)
    else:
        values = cast_listed(name, feature, listed)
    return _ragged(tf.reshape(values, (-1, *inner)), stored.splits)


def _assemble_shaped(name: str, key: Key, parts: Sequence[KeyValues], serialized: Any) -> Any:
    """Raw tensors that are stored with their shape: ragged up to the last variable dimension."""
    feature, records = key.feature, count_records(serialized)
    values, items = decode_joined(name, feature, parts[0].values, key.column.unit)
    extents = _find_extents(name, key, parts, items, records)
    return nest_by_shape(values, extents, feature.shape, records)


def nest_by_shape(values: Any, extents: Any, shape: tuple[int | None, ...], records: Any) -> Any:
    """Nest the items of tensors, which follow one another, by the shape of each tensor."""
    levels = len(shape) - shape[::-1].index(None)
    counts = [tf.ones_like(extents[:, 0])]  # for each record, the rows of each level
    for dim in range(levels):
        counts.append(counts[-1] * extents[:, dim])
    rows = [records, *(tf.reduce_sum(count) for count in counts[1:])]
    column = tf.reshape(values, (rows[-1], *shape[levels:]))
    for dim in reversed(range(levels)):
        extent = shape[dim]
        if extent is None:
            lengths = tf.repeat(extents[:, dim], counts[dim]) if dim else extents[:, 0]
            column = tf.RaggedTensor.from_row_lengths(column, lengths, validate=False)
        else:
            column = tf.RaggedTensor.from_uniform_row_length(
                column, extent, nrows=rows[dim], validate=False
            )
    return column


def _find_extents(name: str, key: Key, parts: Sequence[KeyValues], items: Any, records: Any) -> Any:
    """The lengths of all dimensions of each record's tensor."""
    shape, present, splits = key.feature.shape, parts[0].present, parts[1].splits
    found = pad_rows(parts[1], (records, len(shape)), blank=tf.zeros([], tf.int64))
    least = tf.constant([n or 0 for n in shape], tf.int64)
    most = tf.constant([_MAX_EXTENT if n is None else n for n in shape], tf.int64)
    # As floats, which do not wrap around; up to 2**53 they are exact.
    product = tf.reduce_prod(tf.cast(found, tf.float64), axis=1)
    is_sound = tf.logical_and(
        tf.reduce_all(tf.logical_and(found >= least, found <= most), axis=1),
        tf.logical_and(
            tf.equal(splits[1:] - splits[:-1], len(shape)),
            tf.equal(product, tf.cast(items, tf.float64)),
        ),
    )
    if present is not None:
        is_sound = tf.logical_or(is_sound, tf.logical_not(present))
        found = tf.where(present[:, tf.newaxis], found, least)
    problem = f"feature `{name}`: expected a shape {shape} of all items, got another"
    return checked(found, is_sound, problem)


def _assemble_sparse(name: str, key: Key, parts: Sequence[KeyValues], serialized: Any) -> Any:
    feature = key.feature
    shape: Any = feature.shape
    stored, indices = parts[0], parts[1:]
    if key.is_raw:
        values, lengths = decode_joined(name, feature, stored.values, key.column.unit)
        splits = _to_splits(lengths)
    else:
        values, splits = cast_listed(name, feature, stored.values), stored.splits
    problem = f"feature `{name}`: expected an index for each value, got another number"
    places = tf.stack(
        [checked(part.values, tf.equal(part.splits, splits), problem) for part in indices], axis=1
    )
    is_inside = tf.logical_and(places >= 0, places < tf.constant(shape, tf.int64))
    problem = f"feature `{name}`: expected indices within {shape}, got others"
    places = checked(places, is_inside, problem)
    rows = _ragged(values, splits).value_rowids()
    places = tf.concat([rows[:, tf.newaxis], places], axis=1)
    places, values = _sort(places, values, shape)
    extents = (count_records(serialized), *shape)
    return tf.SparseTensor(places, values, tf.stack([tf.cast(n, tf.int64) for n in extents]))


def _sort(places: Any, values: Any, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Places and values sorted by place; values at one place keep their order."""
    strides = [math.prod(shape[dim:]) for dim in range(len(shape) + 1)]
    position = tf.reduce_sum(places * tf.constant(strides, tf.int64), axis=1)

    def reorder() -> tuple[Any, Any]:
        order = tf.argsort(position, stable=True)
        return tf.gather(places, order), tf.gather(values, order)

    is_sorted = tf.reduce_all(position[1:] >= position[:-1])
    sorted_places, sorted_values = tf.cond(is_sorted, lambda: (places, values), reorder)
    return sorted_places, sorted_values


# Types that tf.io.decode_raw lacks, or lacked, as others of the same width.
_DECODED = {"bfloat16": "uint16", "bool": "uint8", "uint32": "int32", "uint64": "int64"}


def tensor_dtype(feature: Feature) -> Any:
    """The type of a feature in TensorFlow: times are counts of their unit."""
    if feature.is_string:
        return tf.string
    return tf.int64 if feature.dtype in TIMES else tf.as_dtype(feature.dtype)


def cast_listed(name: str, feature: Feature, stored: Any) -> Any:
    """The elements of a list of strings, float32 or int64, in the type of their feature."""
    dtype = tensor_dtype(feature)
    if stored.dtype == dtype:
        return stored
    if feature.dtype == "uint64":
        return tf.bitcast(stored, dtype)
    if feature.dtype == "float16":
        cast = _to_float16(stored)
    elif feature.dtype == "bfloat16":
        cast = _to_bfloat16(stored)
    else:
        cast = tf.cast(stored, dtype)
        return checked(cast, tf.equal(tf.cast(cast, stored.dtype), stored), _misfit(name, feature))
    is_kept = tf.logical_or(tf.math.is_finite(cast), tf.logical_not(tf.math.is_finite(stored)))
    return checked(cast, is_kept, _misfit(name, feature))


def _misfit(name: str, feature: Feature) -> str:
    return f"feature `{name}`: expected {feature.dtype}, got a number outside of its range"


def _to_float16(stored: Any) -> Any:
    """Rounded numbers; NaNs keep the bits that fit, which a cast would lose."""
    bits = tf.bitcast(stored, tf.uint32)
    sign = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 16), 0x8000)
    payload = tf.bitwise.bitwise_and(tf.bitwise.right_shift(bits, 13), 0x3FF)
    payload = tf.maximum(payload, 1)  # without one it would be infinity
    nan = tf.bitwise.bitwise_or(tf.bitwise.bitwise_or(sign, payload), 0x7C00)
    nan = tf.bitcast(tf.cast(nan, tf.uint16), tf.float16)
    return tf.where(tf.math.is_nan(stored), nan, tf.cast(stored, tf.float16))


def _to_bfloat16(stored: Any) -> Any:
    """The upper half where the lower half is zero, also of NaNs; other numbers rounded."""
    halves = tf.bitcast(stored, tf.uint16)
    upper = tf.bitcast(halves[..., 1], tf.bfloat16)
    return tf.where(tf.equal(halves[..., 0], 0), upper, tf.cast(stored, tf.bfloat16))


def decode_each(name: str, feature: Feature, raw: Any, unit: int) -> Any:
    """The elements of raw strings of `unit` bytes each, a row for each string."""
    problem = f"feature `{name}`: expected {unit} bytes of {feature.dtype}, got another number"
    raw = checked(raw, tf.equal(tf.strings.length(raw), unit), problem)
    return _decode(name, feature, raw)


def decode_joined(name: str, feature: Feature, raw: Any, unit: int) -> tuple[Any, Any]:
    """The elements of all raw strings, and the number of units of bytes of each string."""
    lengths = tf.cast(tf.strings.length(raw), tf.int64)
    if unit > 1:
        problem = (
            f"feature `{name}`: expected a multiple of {unit} bytes of {feature.dtype},"
            " got another number"
        )
        lengths = checked(lengths // unit, tf.equal(lengths % unit, 0), problem)
        with tf.control_dependencies([lengths]):
            raw = tf.identity(raw)
    # One string is decoded, for tf.io.decode_raw wants all to be of one length.
    return _decode(name, feature, tf.strings.reduce_join(raw)), lengths


def _decode(name: str, feature: Feature, raw: Any) -> Any:
    dtype = tensor_dtype(feature)
    decoded = tf.io.decode_raw(raw, tf.as_dtype(_DECODED.get(feature.dtype, dtype.name)))
    if feature.dtype == "bool":
        problem = f"feature `{name}`: expected bytes 0 and 1 of bool, got others"
        return checked(tf.cast(decoded, dtype), tf.less_equal(decoded, 1), problem)
    return decoded if decoded.dtype == dtype else tf.bitcast(decoded, dtype)
