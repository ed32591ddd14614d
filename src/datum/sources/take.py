"""Rows of columns by their numbers, without making Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
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
        items, splits = _find_items(self.row_splits, numbers)
        rows = np.repeat(np.arange(len(numbers)), np.diff(splits))
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

    >>> take_rows(Ragged.from_rows([[1], [2, 3], []]), np.array([2, 1])).to_list()
    [[], [2, 3]]
    """
    if isinstance(column, np.ndarray):
        return column[run] if run is not None else column.take(numbers, axis=0)
    if isinstance(column, Masked):
        present = take_rows(column.present, numbers, run)
        return Masked(take_rows(column.values, numbers, run), present)
    if isinstance(column, BytesColumn):
        return _take_strings(column, numbers, run)
    if isinstance(column, Ragged):
        if run is not None:
            return column[run]
        items, splits = _find_items(column.row_splits, numbers)
        return Ragged(take_rows(column.values, items), splits)
    if isinstance(column, SparseRows):
        return column.take(numbers)
    if isinstance(column, Sparse):
        return SparseRows(column).take(numbers)
    if isinstance(column, (list, tuple)):
        return list(column[run]) if run is not None else [column[i] for i in numbers.tolist()]
    return column[numbers]


def _take_strings(
    column: BytesColumn, numbers: NDArray[np.int64], run: slice | None
) -> BytesColumn:
    slices = column.slices.reshape(*column.shape, 2)
    taken = slices[run] if run is not None else slices.take(numbers, axis=0)
    shape = (len(taken), *column.shape[1:])
    return BytesColumn(column.buffer, taken, is_text=column.is_text, shape=shape)


def _find_items(
    row_splits: NDArray[np.int64], numbers: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the items of these rows lie, and the splits of the rows taken."""
    starts = row_splits[numbers]
    lengths = row_splits[numbers + 1] - starts
    splits = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    items = np.arange(splits[-1]) + np.repeat(starts - splits[:-1], lengths)
    return items, splits
