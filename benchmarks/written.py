"""Reading back what a writer wrote, by TensorFlow alone."""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks.equality import OutputDiffersError
from benchmarks.workloads import Array, Column, Columns, Field, Lists

BATCH_RECORDS = 4096
DTYPES = {"float": tf.float32, "int": tf.int64, "bytes": tf.string}
RAW_FLOATS: dict[int, np.dtype[Any]] = {8: np.dtype("<f8"), 4: np.dtype("<f4")}  # by item bytes


def read(paths: Sequence[Path], fields: Sequence[Field]) -> list[Columns]:
    """The columns of all records, in batches; floats have the type they were stored with."""
    records = tf.data.TFRecordDataset([str(path) for path in paths])
    raw = _raw_floats(next(iter(records)).numpy(), fields)
    spec = {field.name: _spec(field, is_raw=field.name in raw) for field in fields}
    batches = records.batch(BATCH_RECORDS).map(lambda batch: tf.io.parse_example(batch, spec))
    return [
        {name: _column(tensor, raw.get(name)) for name, tensor in batch.items()}
        for batch in batches
    ]


def narrowed(name: str, batches: Sequence[Columns], wanted: Columns) -> list[Columns]:
    """The batches with floats in single precision where `wanted` has them so.

    Raises if that would change a value.
    """
    return [
        {column: _narrowed(name, batch[column], wanted[column]) for column in wanted}
        for batch in batches
    ]


def _raw_floats(record: bytes, fields: Sequence[Field]) -> dict[str, np.dtype[Any]]:
    """Floats stored as raw bytes, which preserves double precision."""
    stored = tf.train.Example.FromString(record).features.feature
    return {
        field.name: RAW_FLOATS[len(stored[field.name].bytes_list.value[0]) // _items(field)]
        for field in fields
        if field.kind == "float" and stored[field.name].WhichOneof("kind") == "bytes_list"
    }


def _items(field: Field) -> int:
    """How many values a record has; a ragged list has no such number."""
    return math.prod(size for size in field.shape if size is not None)


def _spec(field: Field, *, is_raw: bool) -> Any:
    if is_raw:
        return tf.io.FixedLenFeature((), tf.string)
    if field.is_ragged:
        return tf.io.RaggedFeature(DTYPES[field.kind], row_splits_dtype=tf.int64)
    return tf.io.FixedLenFeature(field.shape, DTYPES[field.kind])


def _column(tensor: Any, raw: np.dtype[Any] | None) -> Column:
    if isinstance(tensor, tf.RaggedTensor):
        return Lists(tensor.values.numpy(), tensor.row_splits.numpy())
    column: Array = tensor.numpy()
    if raw is None:
        return column
    values = np.frombuffer(b"".join(column), raw).reshape(len(column), -1)
    return values[:, 0] if values.shape[1] == 1 else values


def _narrowed(name: str, column: Column, wanted: Column) -> Column:
    if isinstance(column, Lists) or isinstance(wanted, Lists) or wanted.dtype != np.float32:
        return column
    single = column.astype(np.float32)
    if not np.array_equal(single, column):
        raise OutputDiffersError(f"{name}: got floats that were not written")
    return single
