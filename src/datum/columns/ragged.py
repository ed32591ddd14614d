"""Rows of differing length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.columns.strings import BytesColumn
from datum.columns.tensors import to_tensor

__all__ = ["Ragged", "positions_of"]


class Ragged:
    """Row i is `values[row_splits[i]:row_splits[i + 1]]`; `values` may itself be ragged.

    >>> ragged = Ragged(np.array([1, 2, 3]), np.array([0, 2, 2, 3]))
    >>> ragged.to_list()
    [[1, 2], [], [3]]
    >>> ragged.to_padded()
    array([[1, 2],
           [0, 0],
           [3, 0]])
    """

    __slots__ = ("row_splits", "values")

    def __init__(
        self, values: NDArray[Any] | BytesColumn | Ragged, row_splits: NDArray[np.int64]
    ) -> None:
        row_splits = np.require(row_splits, np.int64, ["C", "A"])
        is_sound = row_splits.ndim == 1 and len(row_splits) > 0 and row_splits[0] == 0
        if not is_sound or row_splits[-1] != len(values) or (np.diff(row_splits) < 0).any():
            raise ValueError(
                "expected `row_splits` to rise from 0 to the number of values,"
                f" got {row_splits!r} for {len(values)} values"
            )
        self.values = values
        self.row_splits = row_splits

    @classmethod
    def from_rows(cls, rows: Sequence[Any], *, dtype: Any = None, levels: int = 1) -> Ragged:
        """Join rows (arrays, lists of numbers, `bytes` or `str`), ragged in `levels` dimensions."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        splits = np.concatenate([[0], np.cumsum(lengths)])
        if levels > 1:
            inner = [item for row in rows for item in row]
            return cls(cls.from_rows(inner, dtype=dtype, levels=levels - 1), splits)
        first = next((row[0] for row in rows if len(row)), None)
        if isinstance(first, (bytes, str)):
            return cls(BytesColumn.from_values(item for row in rows for item in row), splits)
        arrays = [np.asarray(row, dtype) for row in rows if len(row)]
        values = np.concatenate(arrays) if arrays else np.empty(0, dtype or np.float32)
        return cls(values, splits)

    @property
    def row_lengths(self) -> NDArray[np.int64]:
        """The length of each row."""
        return np.diff(self.row_splits)

    @property
    def shape(self) -> tuple[int | None, ...]:
        """Like an array's, with None for the ragged dimensions."""
        return (len(self), None, *self.values.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the innermost values; `object` for strings."""
        return np.dtype(object) if isinstance(self.values, BytesColumn) else self.values.dtype

    def __len__(self) -> int:
        return len(self.row_splits) - 1

    def __getitem__(self, at: int | slice | NDArray[Any]) -> Any:
        if isinstance(at, np.ndarray):
            lengths = self.row_lengths[at]
            places = positions_of(self.row_splits[:-1][at], lengths)
            return Ragged(self.values[places], np.concatenate([[0], np.cumsum(lengths)]))
        if isinstance(at, slice):
            first, last, step = at.indices(len(self))
            if step != 1:
                raise ValueError(f"expected a slice with step 1, got {at!r}")
            splits = self.row_splits[first : max(first, last) + 1]
            return Ragged(self.values[splits[0] : splits[-1]], splits - splits[0])
        if not -len(self) <= at < len(self):
            raise IndexError(f"row {at} of {len(self)}")
        row = at % len(self)
        return self.values[self.row_splits[row] : self.row_splits[row + 1]]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """Make nested lists of Python values."""
        is_own = isinstance(self.values, (BytesColumn, Ragged))  # otherwise an array or a tensor
        return [row.to_list() if is_own else row.tolist() for row in self]

    def to_padded(self, *, fill: Any = None, length: int | None = None) -> NDArray[Any]:
        """Make a dense array, rows filled up (or cut) to `length`, by default the longest's.

        They are filled with `fill`, by default 0 or the empty string.
        """
        if fill is None:
            fill = _blank(self)
        rows: Any = self.values
        rows = rows.to_padded(fill=fill) if isinstance(rows, Ragged) else np.asarray(rows)
        lengths = self.row_lengths
        width = int(lengths.max(initial=0)) if length is None else length
        dense = np.full((len(self), width, *rows.shape[1:]), fill, rows.dtype)
        columns = np.arange(width)
        is_there = columns < lengths[:, None]
        dense[is_there] = rows[(self.row_splits[:-1, None] + columns)[is_there]]
        return dense

    def to_torch(self) -> Any:
        """Make a nested tensor of the jagged layout, in the memory of the values.

        Of several ragged levels it makes a `Ragged` whose innermost values are a tensor; of strings
        it makes nested lists.
        """
        if isinstance(_innermost(self), BytesColumn):
            return self.to_list()
        over = _over_tensor(self)
        if isinstance(over.values, Ragged):
            return over
        torch = require("torch", purpose="Ragged.to_torch")
        return torch.nested.nested_tensor_from_jagged(over.values, to_tensor(self.row_splits))

    def __repr__(self) -> str:
        return f"Ragged({self.dtype}, shape={self.shape})"


def positions_of(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the items of runs lie that have these starts and lengths.

    >>> positions_of(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def _over_tensor(ragged: Ragged) -> Ragged:
    values: Any = ragged.values
    if isinstance(values, Ragged):
        values = _over_tensor(values)
    elif isinstance(values, np.ndarray):
        values = to_tensor(values)
    return Ragged(values, ragged.row_splits)


def _innermost(ragged: Ragged) -> Any:
    values: Any = ragged.values
    while isinstance(values, Ragged):
        values = values.values
    return values


def _blank(ragged: Ragged) -> Any:
    values = _innermost(ragged)
    if not isinstance(values, BytesColumn):
        return 0
    return "" if values.is_text else b""
