"""Records into batches, in the graph: ragged, padded, or in buckets by length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datum._optional import require
from datum.adapters.tensorflow.options import TfOptions
from datum.loading.supervised import select_parts
from datum.transforms.graph import leave_as_is

__all__ = ["batch_records", "densify_single", "pad_batches", "select_supervised", "unbatch"]

tf: Any = require("tensorflow", purpose="`to_tf`")


def unbatch(batches: Any) -> Any:
    """Single records. Columns without values make TensorFlow's own `unbatch` crash."""
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


def batch_records(records: Any, options: TfOptions) -> Any:
    """Batches of records, as they come or in buckets."""
    if options.bucket_fn is not None:
        return _batch_by_length(records, options)
    return _batch(records, options.batch_size, options)


def _batch(records: Any, size: Any, options: TfOptions) -> Any:
    specs = tf.nest.flatten(records.element_spec)
    is_dense = isinstance(size, int) and size == 1  # nothing differs from the only one
    if is_dense or all(map(_has_static_shape, specs)):
        return records.batch(size, drop_remainder=options.drop_remainder)
    return records.ragged_batch(size, drop_remainder=options.drop_remainder)


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
        reduce_func=lambda bucket, window: _batch(window, sizes[bucket], options),
        window_size_func=lambda bucket: sizes[bucket],
    )


def densify_single(batches: Any, options: TfOptions) -> Any:
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
    """Batches whose ragged and sparse columns are filled up to dense ones, where asked."""
    if options.pad is False:
        return batches
    values: Mapping[str, Any] = options.pad if isinstance(options.pad, Mapping) else {}
    is_all = options.pad is True

    @leave_as_is
    def pad(*batch: Any) -> Any:
        found = batch[0] if len(batch) == 1 else batch
        if isinstance(found, dict):
            return {
                name: _dense(column, values.get(name), name) if is_all or name in values else column
                for name, column in found.items()
            }
        return tf.nest.map_structure(lambda column: _dense(column, None, ""), found)

    specs = tf.nest.flatten(batches.element_spec)
    if not any(isinstance(spec, (tf.RaggedTensorSpec, tf.SparseTensorSpec)) for spec in specs):
        return batches
    return batches.map(pad, num_parallel_calls=tf.data.AUTOTUNE)


def _dense(column: Any, value: Any, name: str) -> Any:
    if isinstance(column, tf.RaggedTensor):
        return column.to_tensor(_fill(value, column.dtype, name))
    if isinstance(column, tf.SparseTensor):
        return tf.sparse.to_dense(column, _fill(value, column.dtype, name))
    return column


def _fill(value: Any, dtype: Any, name: str) -> Any:
    try:
        return None if value is None else tf.convert_to_tensor(value, dtype)
    except (TypeError, ValueError):
        raise ValueError(
            f"expected `pad` of {name!r} to be a value of {dtype.name}, got {value!r}"
        ) from None


def select_supervised(batches: Any, options: TfOptions) -> Any:
    """`(inputs, targets)` tuples out of dicts, as Keras takes them."""
    if options.supervised is None:
        return batches
    parts = options.supervised
    select_parts(batches.element_spec, parts)  # refuses names that are not there

    @leave_as_is
    def select(batch: Any) -> Any:
        return select_parts(batch, parts)

    return batches.map(select, num_parallel_calls=tf.data.AUTOTUNE)
