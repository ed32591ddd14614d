"""Columns of a batch beyond plain NumPy arrays: ragged, sparse, masked, and strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._optional import require

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "BytesColumn",
    "Masked",
    "Ragged",
    "Sparse",
    "positions_of",
    "to_tensor",
]


class BytesColumn:
    """Byte strings in one buffer, converted to `bytes` (or `str`, for text) on access.

    `shape` is that of the column: `(n,)`, or more for features of several strings.

    >>> column = BytesColumn.from_values([b"cat", b"", b"dog"])
    >>> column[2]
    b'dog'
    >>> column.to_numpy()
    array([b'cat', b'', b'dog'], dtype=object)
    """

    __slots__ = ("_buffer", "_slices", "is_text", "shape")

    def __init__(
        self,
        buffer: Buffer | NDArray[Any],
        slices: NDArray[np.int64],
        *,
        is_text: bool = False,
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Use the strings at `slices`, pairs of start and length, of `buffer`."""
        self._buffer = buffer
        self._slices = slices.reshape(-1, 2)
        self.is_text = is_text
        self.shape = (len(self._slices),) if shape is None else shape

    @classmethod
    def from_values(cls, values: Iterable[bytes | str]) -> BytesColumn:
        """Copy strings, all `bytes` or all `str`, into one buffer."""
        items = list(values)
        is_text = bool(items) and isinstance(items[0], str)
        if any(isinstance(item, str) != is_text for item in items):
            raise TypeError("expected all bytes or all str, got both")
        encoded = [item.encode() if isinstance(item, str) else item for item in items]
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        starts = np.cumsum(lengths) - lengths
        return cls(b"".join(encoded), np.stack([starts, lengths], axis=1), is_text=is_text)

    @property
    def buffer(self) -> Buffer | NDArray[Any]:
        """The memory that contains the strings."""
        return self._buffer

    @property
    def slices(self) -> NDArray[np.int64]:
        """Start and length of each string in `buffer`, a row each."""
        return self._slices

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The size of each string in bytes, in the shape of the column."""
        return self._slices[:, 1].reshape(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice | NDArray[Any]) -> BytesColumn: ...
    def __getitem__(self, at: int | slice | NDArray[Any]) -> Any:
        slices = self._slices.reshape(*self.shape, 2)
        if isinstance(at, np.ndarray) and at.dtype.kind in "iu":
            slices = slices.take(at, axis=0)  # faster than indexing
            return BytesColumn(self._buffer, slices, is_text=self.is_text, shape=slices.shape[:-1])
        slices = slices[at]
        if slices.ndim > 1:
            return BytesColumn(
                self._buffer, slices.copy(), is_text=self.is_text, shape=slices.shape[:-1]
            )
        return _core.take_strings(self._buffer, np.ascontiguousarray(slices), self.is_text)[0]

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            yield from self._take()
        else:
            for i in range(len(self)):
                yield self[i]

    def _take(self) -> list[Any]:
        flat = np.ascontiguousarray(self._slices).reshape(-1)
        return _core.take_strings(self._buffer, flat, self.is_text)

    def to_numpy(self) -> NDArray[np.object_]:
        """Return an object array of `bytes` or `str`."""
        array = np.empty(len(self._slices), dtype=object)
        array[:] = self._take()
        return array.reshape(self.shape)

    def to_list(self) -> list[Any]:
        """Return a list of `bytes` or `str`, nested by `shape`."""
        if len(self.shape) == 1:
            return self._take()
        nested: list[Any] = self.to_numpy().tolist()
        return nested

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("strings cannot be converted to an array without copying")
        array = self.to_numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        kind = "str" if self.is_text else "bytes"
        first = f", first={self._first_shortened()}" if len(self._slices) else ""
        return f"BytesColumn({kind}, shape={self.shape}{first})"

    def _first_shortened(self) -> str:
        start, length = self._slices[0].tolist()
        place = np.array([start, min(length, 24)])
        value: Any = _core.take_strings(self._buffer, place, False)[0]
        shown = value.decode(errors="replace") if self.is_text else value
        return repr(shown) + ("..." if length > 24 else "")


class Masked:
    """A column with a mask of the records that have a value; for others `values` has a blank.

    >>> masked = Masked(np.array([1, 0]), np.array([True, False]))
    >>> masked[1] is None
    True
    >>> masked.filled(-1)
    array([ 1, -1])
    """

    __slots__ = ("present", "values")

    def __init__(self, values: Any, present: NDArray[np.bool_]) -> None:
        present = np.asarray(present, np.bool_)
        if present.shape != (len(values),):
            raise ValueError(f"expected {len(values)} items in `present`, got {present.shape}")
        self.values = values
        self.present = present

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, at: int | slice | NDArray[Any]) -> Any:
        if isinstance(at, (slice, np.ndarray)):
            return Masked(self.values[at], self.present[at])
        return self.values[at] if self.present[at] else None

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """Return a list of Python values, with None where there is none."""
        values = (
            self.values.tolist() if isinstance(self.values, np.ndarray) else self.values.to_list()
        )
        return [value if there else None for value, there in zip(values, self.present, strict=True)]

    def filled(self, value: Any) -> NDArray[Any]:
        """Return the values as an array, with `value` where there is none; not if ragged."""
        if not isinstance(self.values, (np.ndarray, BytesColumn)):
            raise TypeError(f"expected values that form an array, got {self.values!r}")
        array = np.array(self.values)
        array[~self.present] = value
        return array

    def __repr__(self) -> str:
        return f"Masked({self.values!r}, present={int(self.present.sum())} of {len(self)})"


OF_A_PACKAGE = 2  # `isbuiltin` of types that packages such as ml_dtypes add to NumPy


def to_tensor(array: NDArray[Any]) -> Any:
    """Return a tensor that shares the memory of an array; a copy if it is read-only or strided.

    Times become int64, counts of their unit; NaT is the smallest. The types of `ml_dtypes` become
    those of the same name.

    >>> to_tensor(np.array(["1970-01-03"], "datetime64[D]"))
    tensor([2])
    """
    torch = require("torch", purpose="a tensor")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "mM":
        array = array.view(np.int64)
    # Tensors cannot be read-only.
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = array.copy()
    name = array.dtype.name
    if array.dtype.isbuiltin == OF_A_PACKAGE and hasattr(torch, name):
        return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(getattr(torch, name))
    return torch.from_numpy(array)


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
                "expected `row_splits` to increase from 0 to the number of values,"
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
        """The shape as of an array, with None for the ragged dimensions."""
        return (len(self), None, *self.values.shape[1:])

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the innermost values; `object` for strings."""
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
        """Return nested lists of Python values."""
        is_own = isinstance(self.values, (BytesColumn, Ragged))  # otherwise an array or a tensor
        return [row.to_list() if is_own else row.tolist() for row in self]

    def to_padded(self, *, fill: Any = None, length: int | None = None) -> NDArray[Any]:
        """Return a dense array, rows padded (or cut) to `length`, by default the longest's.

        They are padded with `fill`, by default 0 or the empty string.
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
        """Return a nested tensor of the jagged layout that shares the memory of the values.

        Several ragged levels become a `Ragged` whose innermost values are a tensor; strings become
        nested lists.
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
    """Return the positions of the items of runs with these starts and lengths.

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


class Sparse:
    """An array of `dense_shape` with `values[k]` at `indices[k]` and zeros elsewhere.

    >>> sparse = Sparse(np.array([[0, 1], [1, 2]]), np.array([5.0, 7.0]), (2, 3))
    >>> sparse.to_dense()
    array([[0., 5., 0.],
           [0., 0., 7.]])
    """

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(
        self,
        indices: NDArray[np.int64],
        values: NDArray[Any] | BytesColumn,
        dense_shape: tuple[int, ...],
    ) -> None:
        indices = np.asarray(indices, np.int64)
        if indices.shape != (len(values), len(dense_shape)):
            raise ValueError(
                f"expected `indices` of shape {(len(values), len(dense_shape))},"
                f" one row for each value, got {indices.shape}"
            )
        self.indices = indices
        self.values = values
        self.dense_shape = tuple(dense_shape)

    def __len__(self) -> int:
        return self.dense_shape[0]

    def __getitem__(self, at: int | slice | NDArray[Any]) -> Sparse:
        """Return row `at`, without the first dimension; or the rows of a slice or an array."""
        if isinstance(at, (slice, np.ndarray)):
            return self._take(np.arange(len(self))[at])
        if not -len(self) <= at < len(self):
            raise IndexError(f"row {at} of {len(self)}")
        is_here = self.indices[:, 0] == at % len(self)
        return Sparse(self.indices[is_here, 1:], self.values[is_here], self.dense_shape[1:])

    def _take(self, rows: NDArray[np.int64]) -> Sparse:
        order = np.argsort(self.indices[:, 0], kind="stable")
        counts = np.bincount(self.indices[:, 0], minlength=len(self))
        starts = np.cumsum(counts) - counts
        places = order[positions_of(starts[rows], counts[rows])]
        indices = self.indices[places]
        indices[:, 0] = np.repeat(np.arange(len(rows)), counts[rows])
        return Sparse(indices, self.values[places], (len(rows), *self.dense_shape[1:]))

    def __iter__(self) -> Iterator[Sparse]:
        return (self[i] for i in range(len(self)))

    def to_list(self) -> list[Any]:
        """Return nested lists of the whole array."""
        dense: list[Any] = self.to_dense().tolist()
        return dense

    def to_dense(self) -> NDArray[Any]:
        """Return the whole array; if an index occurs twice, the last value wins."""
        values: Any = self.values
        fill: Any = 0
        if isinstance(values, BytesColumn):
            fill = "" if values.is_text else b""
            values = values.to_numpy()
        dense = np.full(self.dense_shape, fill, values.dtype)
        dense[tuple(self.indices.T)] = values
        return dense

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.csr_array` of numbers in two dimensions; duplicates are summed.

        Its indices have 32 bits if that is enough: parts of scikit-learn accept no others.
        """
        if len(self.dense_shape) != 2 or isinstance(self.values, BytesColumn):
            raise ValueError(f"expected numbers in two dimensions, got {self!r}")
        scipy_sparse = require("scipy.sparse", purpose="Sparse.to_scipy")
        is_small = max(*self.dense_shape, len(self.values)) < 2**31
        rows, columns = self.indices.T.astype(np.int32 if is_small else np.int64)
        return scipy_sparse.csr_array((self.values, (rows, columns)), shape=self.dense_shape)

    def to_torch(self) -> Any:
        """Return a sparse tensor of numbers, in COO layout, that shares the memory of the values.

        If an index occurs twice, PyTorch adds the values.
        """
        if isinstance(self.values, BytesColumn):
            raise ValueError(f"expected numbers, got strings: {self!r}")
        torch = require("torch", purpose="Sparse.to_torch")
        values: Any = self.values
        if isinstance(values, np.ndarray):
            values = to_tensor(values)
        places = to_tensor(np.ascontiguousarray(self.indices.T))
        # Validated, since PyTorch reads and writes wherever indices point to.
        return torch.sparse_coo_tensor(places, values, self.dense_shape, check_invariants=True)

    def __repr__(self) -> str:
        return f"Sparse(shape={self.dense_shape}, values={len(self.values)})"
