"""The tensors of a feature from what is stored under its keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from datum._core import Layout
from datum._optional import require
from datum.adapters.tensorflow.checks import checked
from datum.adapters.tensorflow.elements import cast_listed, decode_each, decode_joined
from datum.adapters.tensorflow.keys import Key
from datum.adapters.tensorflow.stored import Stored, count_records, pad_rows
from datum.schema import numpy_dtype

__all__ = ["assemble", "nest_by_shape"]

tf: Any = require("tensorflow", purpose="`to_tf`")

_MAX_EXTENT = 2**31 - 1  # of a raw tensor with a shape of its own


def assemble(name: str, keys: Sequence[Key], parts: Sequence[Stored], serialized: Any) -> Any:
    """The column of a feature of these records: a Tensor, RaggedTensor or SparseTensor."""
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


def _assemble_fixed(name: str, key: Key, stored: Stored, serialized: Any) -> Any:
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


def _read_units(name: str, key: Key, stored: Stored) -> tuple[Any, Any]:
    """The rows of a variable dimension of all records, and where those of each start."""
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
    """Splits of values as those of units of values."""
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


def _nest(name: str, column: Any, below: Any, levels: Sequence[Stored]) -> Any:
    """Rows cut into the lengths of each level, from the outermost in; `below` cuts the values."""
    problem = f"feature `{name}`: expected row lengths that sum to what is there, got others"
    for level in reversed(levels):
        lengths, splits = level.values, level.splits
        is_sound = tf.logical_and(lengths >= 0, lengths <= below[-1])
        inner = _to_splits(checked(lengths, is_sound, problem))
        column = _ragged(column, checked(inner, tf.equal(tf.gather(inner, splits), below), problem))
        below = splits
    return _ragged(column, below)


def _assemble_steps(name: str, key: Key, stored: Stored) -> Any:
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


def _assemble_shaped(name: str, key: Key, parts: Sequence[Stored], serialized: Any) -> Any:
    """Raw tensors whose shape lies beside them: ragged up to their last variable dimension."""
    feature, records = key.feature, count_records(serialized)
    values, items = decode_joined(name, feature, parts[0].values, key.column.unit)
    extents = _find_extents(name, key, parts, items, records)
    return nest_by_shape(values, extents, feature.shape, records)


def nest_by_shape(values: Any, extents: Any, shape: tuple[int | None, ...], records: Any) -> Any:
    """The items of tensors end to end, as the lengths of all dimensions of each tensor say."""
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


def _find_extents(name: str, key: Key, parts: Sequence[Stored], items: Any, records: Any) -> Any:
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


def _assemble_sparse(name: str, key: Key, parts: Sequence[Stored], serialized: Any) -> Any:
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
    """Values by their places, those at one place in the order they had."""
    strides = [math.prod(shape[dim:]) for dim in range(len(shape) + 1)]
    position = tf.reduce_sum(places * tf.constant(strides, tf.int64), axis=1)

    def reorder() -> tuple[Any, Any]:
        order = tf.argsort(position, stable=True)
        return tf.gather(places, order), tf.gather(values, order)

    is_sorted = tf.reduce_all(position[1:] >= position[:-1])
    sorted_places, sorted_values = tf.cond(is_sorted, lambda: (places, values), reorder)
    return sorted_places, sorted_values
