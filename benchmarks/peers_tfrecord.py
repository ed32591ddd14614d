"""The reader of the `tfrecord` package, its rows joined to batches; it checks no checksum."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from google.protobuf import descriptor_pool

from benchmarks.reader import TFRECORD, Reader
from benchmarks.workloads import Array, Column, Columns, Field, Lists, Workload

# The package declares TensorFlow's messages again, which protobuf refuses in one process unless
# they are put in a pool of their own.
OWN_POOL = descriptor_pool.DescriptorPool()
with mock.patch.object(descriptor_pool, "Default", return_value=OWN_POOL):
    from tfrecord.reader import tfrecord_loader
    from tfrecord.tools.tfrecord2idx import create_index

__all__ = ["READERS", "create_index"]

KINDS = {"float": "float", "int": "int", "bytes": "byte"}


def _batches(workload: Workload, paths: Sequence[Path]) -> Iterator[Columns]:
    wanted = {field.name: KINDS[field.kind] for field in workload.fields}
    rows = chain.from_iterable(tfrecord_loader(str(path), None, wanted) for path in paths)
    while batch := list(islice(rows, workload.batch_records)):
        yield {field.name: _join(batch, field) for field in workload.fields}


def _join(rows: Sequence[Mapping[str, Any]], field: Field) -> Column:
    values = [row[field.name] for row in rows]
    if field.kind == "bytes":
        column = np.empty(len(values), dtype=object)
        column[:] = values
        return column
    joined: Array = np.concatenate(values)
    if field.is_ragged:
        return Lists(joined, np.cumsum([0, *map(len, values)]))
    return joined.reshape(len(values), *field.shape) if field.shape else joined


def _prepare(workload: Workload, paths: Sequence[Path]) -> Callable[[], Iterator[Columns]]:
    return partial(_batches, workload, paths)


def _length(batch: Columns) -> int:
    first = next(iter(batch.values()))
    return len(first.row_splits) - 1 if isinstance(first, Lists) else len(first)


READERS = {TFRECORD: Reader(_prepare, _length, lambda batch: batch)}
