"""Batches made of records in the graph: ragged, padded, or in buckets by length."""

from __future__ import annotations

from typing import Any

from datum._frameworks.tensorflow.ops import checked
from datum._frameworks.tensorflow.options import TfOptions
from datum._load.options import select_parts
from datum._load.padding import Pad, find_pad, mask_name
from datum._optional import require
from datum.errors import Message
from datum.transforms.graph import leave_as_is

__all__ = ["batch_records", "finish_batches", "pad_batches", "select_supervised", "unbatch"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def unbatch(batches: Any) -> Any:
    """Single records, even of columns without values, which crash TensorFlow's own `unbatch`."""
    hollow = {
        name: spec
        for name, spec in batches.element_spec.items()
        if isinstance(spec, tf.TensorSpec) and 0 in spec.shape[1:]
    }
    if not hollow:
        return batches.unbatch()

    def hide(batch: dict[str, Any]) -> dict[str, Any]:
        return {n: tf.zeros(tf.shape(c)[:1]) if n in hollow else c for n, c in batch.items()}

    def restore(record: dict[str, Any]) -> dict[str, Any]:
        empty = {name: tf.zeros(spec.shape[1:], spec.dtype) for name, spec in hollow.items()}
        return {**record, **empty}

    return batches.map(leave_as_is(hide)).unbatch().map(leave_as_is(restore))


def batch_records(records: Any, options: TfOptions, *, is_full: bool) -> Any:
    """Batches of records, in order or in buckets; `is_full` drops a short last one."""
    if options.bucket_fn is not None:
        return _batch_by_length(records, options)
    return _batch(records, options.batch_size, is_full=is_full)


def _batch(records: Any, size: Any, *, is_full: bool) -> Any:
    specs = tf.nest.flatten(records.element_spec)
    is_dense = isinstance(size, int) and size == 1  # no other record differs in length
    if is_dense or all(map(_has_static_shape, specs)):
        return records.batch(size, drop_remainder=is_full)
    return records.ragged_batch(size, drop_remainder=is_full)


def _has_static_shape(spec: Any) -> bool:
    return isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()


def _batch_by_length(records: Any, options: TfOptions) -> Any:
    bucket_fn, buckets = options.bucket_fn, options.bucket_op
    assert bucket_fn is not None
    assert buckets is not None
    bounds = tf.constant(list(buckets.bucket_boundaries), tf.int64)
    sizes = tf.constant(list(buckets.bucket_batch_sizes), tf.int64)

    def bucket_of(*record: Any) -> Any:
        length = tf.cast(bucket_fn(*record), tf.int64)
        return tf.reduce_sum(tf.cast(bounds <= length, tf.int64))

    return records.group_by_window(
        key_func=bucket_of,
        reduce_func=lambda bucket, window: _batch(
            window, sizes[bucket], is_full=options.remainder == "drop"
        ),
        window_size_func=lambda bucket: sizes[bucket],
    )


def finish_batches(batches: Any, options: TfOptions) -> Any:
    """Batches as they were parsed, with the columns that `batch_records` would return."""
    return pad_batches(_densify_single(batches, options), options)


def _densify_single(batches: Any, options: TfOptions) -> Any:
    """Batches of one record, without ragged columns where the record itself has none."""
    specs = tf.nest.flatten(batches.element_spec)
    if options.batch_size != 1 or not any(_is_list(spec) for spec in specs):
        return batches

    @leave_as_is
    def densify(batch: dict[str, Any]) -> dict[str, Any]:
        return {
            name: tf.expand_dims(column.values, 0) if _is_list(spec) else column
            for (name, column), spec in zip(batch.items(), spec_of.values(), strict=True)
        }

    spec_of = batches.element_spec
    return batches.map(densify, num_parallel_calls=tf.data.AUTOTUNE)


def _is_list(spec: Any) -> bool:
    return isinstance(spec, tf.RaggedTensorSpec) and spec.ragged_rank == 1


def pad_batches(batches: Any, options: TfOptions) -> Any:
    """Batches whose ragged and sparse columns are padded to dense ones, as the options say."""
    if options.pad is False:
        return batches

    @leave_as_is
    def pad(*batch: Any) -> Any:
        found = batch[0] if len(batch) == 1 else batch
        if isinstance(found, dict):
            return _pad_columns(found, options)
        how = find_pad(options.pad) or Pad(mask=False)
        if how.mask:
            raise ValueError(
                Message(
                    "expected dicts from `map` with a `pad` that adds masks, which are named after"
                    " their columns, got a tuple",
                    hint="datum.Pad(mask=False) adds none",
                )
            )
        return tf.nest.map_structure(lambda column: _dense(column, how, "")[0], found)

    if not any(map(_may_differ, tf.nest.flatten(batches.element_spec))):
        return batches
    return batches.map(pad, num_parallel_calls=tf.data.AUTOTUNE)


def _may_differ(column: Any) -> bool:
    """Whether the rows of a column or its spec may differ in length from other batches."""
    if not isinstance(column, (tf.Tensor, tf.TensorSpec)):
        return True
    return column.shape.rank is not None and None in column.shape[1:].as_list()


def _pad_columns(columns: dict[str, Any], options: TfOptions) -> dict[str, Any]:
    made = {}
    for name, column in columns.items():
        how = find_pad(options.pad, name)
        made[name], mask = (column, None) if how is None else _dense(column, how, name)
        if mask is None:
            continue
        if mask_name(name) in columns:
            raise ValueError(
                Message(
                    f"expected no column {mask_name(name)!r} beside {name!r}, whose mask has"
                    " that name",
                    hint="datum.Pad(mask=False) adds no mask; or leave one out with `columns`",
                )
            )
        made[mask_name(name)] = mask
    return made


def _dense(column: Any, pad: Pad, name: str) -> tuple[Any, Any]:
    """A column as a dense tensor, and its mask if it has one."""
    if isinstance(column, tf.SparseTensor):
        return tf.sparse.to_dense(column, _fill(pad.value, column.dtype, name)), None
    if not _may_differ(column):
        return column, None
    axes = [axis for axis, extent in enumerate(column.shape) if axis and extent is None]
    if not isinstance(column, tf.RaggedTensor):
        if pad.is_plain:
            return column, None
        column = tf.RaggedTensor.from_tensor(column, ragged_rank=axes[-1])
    fill, levels = _fill(pad.value, column.dtype, name), column.ragged_rank
    shape = _padded_shape(column, axes, pad, name)
    if pad.length is not None and not pad.truncate:
        for axis in range(1, levels + 1):
            if shape[axis] is not None:
                column = _refuse_longer(column, axis, shape[axis], name, pad)
    is_static = all(extent is None or isinstance(extent, int) for extent in shape)
    wanted = (
        shape if is_static else tf.stack([tf.cast(-1 if n is None else n, tf.int64) for n in shape])
    )
    dense = column.to_tensor(fill, shape=wanted)
    if not pad.mask:
        return dense, None
    is_there = tf.ones(tf.shape(column.flat_values)[:1], tf.bool)
    values = tf.RaggedTensor.from_nested_row_splits(
        is_there, column.nested_row_splits, validate=False
    )
    return dense, values.to_tensor(False, shape=wanted[: levels + 1])


def _padded_shape(column: Any, axes: list[int], pad: Pad, name: str) -> list[Any]:
    """The shape to pad to: None for that of the longest row, tensors for multiples."""
    shape: list[Any] = [None] * column.shape.rank
    for axis, number in zip(axes, pad.targets(len(axes), name=name), strict=True):
        shape[axis] = number
        if number is not None and pad.length is None:
            longest = tf.maximum(tf.cast(column.bounding_shape(axis=axis), tf.int64), 1)
            shape[axis] = -(-longest // number) * number
    return shape


def _refuse_longer(column: Any, axis: int, extent: int, name: str, pad: Pad) -> Any:
    problem = Message(
        f"expected at most {extent} values, the `length` to pad to, got more",
        where=f"feature `{name}`",
        hint=f"datum.Pad(length={pad.length}, truncate=True) cuts what is longer",
    )
    is_short = column.bounding_shape(axis=axis) <= extent
    return column.with_flat_values(checked(column.flat_values, is_short, problem))


def _fill(value: Any, dtype: Any, name: str) -> Any:
    try:
        return None if value is None else tf.convert_to_tensor(value, dtype)
    except (TypeError, ValueError):
        raise ValueError(
            f"expected `pad` of {name!r} to be a value of {dtype.name}, got {value!r}"
        ) from None


def select_supervised(batches: Any, options: TfOptions) -> Any:
    """`(inputs, targets)` tuples of dicts, as Keras takes them."""
    if options.supervised is None:
        return batches
    parts = options.supervised
    select_parts(batches.element_spec, parts)  # raises for unknown names

    @leave_as_is
    def select(batch: Any) -> Any:
        return select_parts(batch, parts)

    return batches.map(select, num_parallel_calls=tf.data.AUTOTUNE)
