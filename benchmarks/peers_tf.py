"""TensorFlow's readers: the pipelines people write by hand, and the one of TFDS."""

import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from benchmarks.reader import BATCHED_INSIDE, HAND_WRITTEN, ONE_BY_ONE, SHUFFLED, Reader
from benchmarks.workloads import Array, Columns, Lists, Workload

AUTOTUNE = tf.data.AUTOTUNE
DTYPES = {"float": tf.float32, "int": tf.int64, "bytes": tf.string}
SHUFFLE_BYTES = 64 << 20  # 8192 records, but no more of the large ones than fit in this


def _spec(workload: Workload) -> dict[str, Any]:
    """For `parse_example`: ragged as RaggedFeature, the one with row splits."""
    return {
        field.name: tf.io.RaggedFeature(DTYPES[field.kind], row_splits_dtype=tf.int64)
        if field.is_ragged
        else tf.io.FixedLenFeature(field.shape, DTYPES[field.kind])
        for field in workload.fields
    }


def _spec_of_one(workload: Workload) -> dict[str, Any]:
    """For `parse_single_example`: ragged as FixedLenSequenceFeature, as TFDS has it."""
    return {
        field.name: tf.io.FixedLenSequenceFeature((), DTYPES[field.kind], allow_missing=True)
        if field.is_ragged
        else tf.io.FixedLenFeature(field.shape, DTYPES[field.kind])
        for field in workload.fields
    }


def _records(paths: Sequence[Path]) -> Any:
    files = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])
    return files.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=AUTOTUNE)


def _parsed(batches: Any, workload: Workload) -> Any:
    spec = _spec(workload)
    parse = batches.map(lambda raw: tf.io.parse_example(raw, spec), num_parallel_calls=AUTOTUNE)
    return parse.prefetch(AUTOTUNE)


def hand_written(workload: Workload, paths: Sequence[Path]) -> Any:
    """The dataset of batches that people write by hand."""
    return _parsed(_records(paths).batch(workload.batch_records), workload)


def shuffled(workload: Workload, paths: Sequence[Path]) -> Any:
    """The same for training."""
    record_bytes = sum(path.stat().st_size for path in paths) // workload.records
    buffered = min(8192, SHUFFLE_BYTES // record_bytes)
    records = _records(paths).shuffle(buffered, seed=0)
    return _parsed(records.batch(workload.batch_records), workload)


def _batched_inside(workload: Workload, paths: Sequence[Path]) -> Any:
    files = tf.data.Dataset.from_tensor_slices([str(path) for path in paths])
    batches = files.interleave(
        lambda file: tf.data.TFRecordDataset(file).batch(workload.batch_records),
        cycle_length=4,
        num_parallel_calls=AUTOTUNE,
    )
    return _parsed(batches, workload)


def _one_by_one(workload: Workload, paths: Sequence[Path]) -> Any:
    spec = _spec_of_one(workload)
    rows = _records(paths).map(
        lambda raw: tf.io.parse_single_example(raw, spec), num_parallel_calls=AUTOTUNE
    )
    is_ragged = any(field.is_ragged for field in workload.fields)
    batch = rows.ragged_batch if is_ragged else rows.batch
    return batch(workload.batch_records).prefetch(AUTOTUNE)


def counting(path: Path) -> Callable[[], int]:
    """Counts the records of a file inside the graph, in batches: the fastest that tf.data has."""
    batches = tf.data.TFRecordDataset(str(path)).batch(1024).prefetch(AUTOTUNE)
    return lambda: int(batches.reduce(np.int64(0), lambda n, raw: n + tf.size(raw, tf.int64)))


def count_in_graph(dataset: Any) -> int:
    """Goes through all batches without Python, as a training step in a `tf.function` does."""

    def add(count: Any, batch: dict[str, Any]) -> Any:
        tensor = next(iter(batch.values()))
        return count + (
            tensor.nrows() if isinstance(tensor, tf.RaggedTensor) else tf.shape(tensor, tf.int64)[0]
        )

    return int(dataset.reduce(np.int64(0), add))


def length_of(batch: dict[str, Any]) -> int:
    """How many records a batch has."""
    return int(next(iter(batch.values())).shape[0])


def columns_of(batch: dict[str, Any]) -> Columns:
    """The tensors of a batch as NumPy arrays."""
    return {name: _column(tensor) for name, tensor in batch.items()}


def _column(tensor: Any) -> Array | Lists:
    if isinstance(tensor, tf.RaggedTensor):
        return Lists(tensor.values.numpy(), tensor.row_splits.numpy())
    array: Array = tensor.numpy()
    return array


def _reader(make: Callable[[Workload, Sequence[Path]], Any]) -> Reader[dict[str, Any]]:
    return Reader(
        lambda workload, paths: partial(iter, make(workload, paths)), length_of, columns_of
    )


READERS = {
    HAND_WRITTEN: _reader(hand_written),
    SHUFFLED: _reader(shuffled),
    BATCHED_INSIDE: _reader(_batched_inside),
    ONE_BY_ONE: _reader(_one_by_one),
}
