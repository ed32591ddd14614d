"""Datum's side: reading into batches, and writing from rows and from columns."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import datum
import datum.format
from benchmarks.reader import LEFT_IN_COLUMN, ONE_THREAD, TWO_THREADS, Reader
from benchmarks.workloads import Column, Columns, Field, Lists, Workload

DTYPES = {"float": "float32", "int": "int64", "bytes": "bytes"}


def schema_of(fields: Sequence[Field]) -> datum.Schema:
    """The schema of records with these fields."""
    return datum.Schema(
        {field.name: datum.Feature(DTYPES[field.kind], field.shape) for field in fields}
    )


def _columns_of_bytes(
    workload: Workload, paths: Sequence[Path], threads: int
) -> Iterator[dict[str, Any]]:
    """Batches in which bytes are still one buffer with offsets."""
    return iter(
        datum.format.read_batches(
            paths,
            schema_of(workload.fields),
            batch_size=workload.batch_records,
            threads=threads,
        )
    )


def _batches(workload: Workload, paths: Sequence[Path], threads: int) -> Iterator[dict[str, Any]]:
    """Batches with bytes as NumPy arrays of objects, like those of TensorFlow's `numpy()`."""
    for batch in _columns_of_bytes(workload, paths, threads):
        yield {
            name: column.to_numpy() if isinstance(column, datum.BytesColumn) else column
            for name, column in batch.items()
        }


def _reader(
    batches: Callable[[Workload, Sequence[Path], int], Iterator[dict[str, Any]]], threads: int
) -> Reader[dict[str, Any]]:
    def prepare(
        workload: Workload, paths: Sequence[Path]
    ) -> Callable[[], Iterator[dict[str, Any]]]:
        return partial(batches, workload, paths, threads)

    return Reader(prepare, length_of, columns_of)


def length_of(batch: dict[str, Any]) -> int:
    """How many records a batch has."""
    return len(next(iter(batch.values())))


def columns_of(batch: dict[str, Any]) -> Columns:
    """The columns of a batch as NumPy arrays."""
    return {name: _column(column) for name, column in batch.items()}


def _column(column: Any) -> Column:
    if isinstance(column, datum.Ragged):
        return Lists(np.asarray(column.values), column.row_splits)
    array: Column = column.to_numpy() if isinstance(column, datum.BytesColumn) else column
    return array


READERS = {
    ONE_THREAD: _reader(_batches, 1),
    TWO_THREADS: _reader(_batches, 2),
    LEFT_IN_COLUMN: _reader(_columns_of_bytes, 2),
}


def write(
    path: Path,
    rows_or_columns: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    schema: datum.Schema,
    *,
    threads: int,
) -> int:
    """Encodes and writes everything; returns the number of records."""
    framed = datum.format.encode(rows_or_columns, schema, threads=threads)
    with datum.format.RecordWriter(path) as writer:
        writer.write_framed(framed)
    return len(framed)


def as_datum(column: Column) -> Any:
    """A generated column as a program would hand it to Datum."""
    return datum.Ragged(column.values, column.row_splits) if isinstance(column, Lists) else column
