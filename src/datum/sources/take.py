"""Rows of columns by their numbers, without making Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Sparse
from datum.columns.ragged import positions_of
from datum.errors import SourceError

__all__ = ["SparseRows", "as_slice", "take_rows"]


class SparseRows:
    """A `Sparse` column whose values lie row after row, so that rows are found at once."""

    __slots__ = ("places", "row_splits", "shape", "values")

    def __init__(self, sparse: Sparse) -> None:
        order = np.argsort(sparse.indices[:, 0], kind="stable")
        rows = sparse.indices[order, 0]
        if len(rows) and not 0 <= rows[0] <= rows[-1] < len(sparse):
            raise SourceError(f"expected indices within {sparse.dense_shape}, got row {rows[-1]}")
        self.places = sparse.indices[order, 1:]
        self.values = sparse.values[order]
        self.row_splits = np.searchsorted(rows, np.arange(len(sparse) + 1)).astype(np.int64)
        self.shape = sparse.dense_shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def take(self, numbers: NDArray[np.int64]) -> Sparse:
        """The rows of these numbers."""
        starts = self.row_splits[numbers]
        lengths = self.row_splits[numbers + 1] - starts
        items = positions_of(starts, lengths)
        rows = np.repeat(np.arange(len(numbers)), lengths)
        indices = np.concatenate([rows[:, None], self.places[items]], axis=1)
        return Sparse(indices, self.values[items], (len(numbers), *self.shape[1:]))


def as_slice(numbers: NDArray[np.int64]) -> slice | None:
    """The numbers as a slice, if each is one more than the one before.

    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), None)
    """
    if not len(numbers):
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    is_run = last - first + 1 == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if is_run and first >= 0 else None


def take_rows(column: Any, numbers: NDArray[np.int64], run: slice | None = None) -> Any:
    """The rows of any column, in the order given; views where `run` (see `as_slice`) is given.

    >>> take_rows(["a", "b", "c"], np.array([2, 1]))
    ['c', 'b']
    """
    if isinstance(column, SparseRows):
        return column.take(numbers)
    if isinstance(column, (list, tuple)):
        return list(column[run]) if run is not None else [column[i] for i in numbers.tolist()]
    if isinstance(column, np.ndarray) and run is None:
        return column.take(numbers, axis=0)  # faster than with brackets
    return column[numbers if run is None else run]
