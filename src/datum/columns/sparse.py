"""Mostly empty arrays, as the places and values that are not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.columns.ragged import positions_of
from datum.columns.strings import BytesColumn
from datum.columns.tensors import to_tensor

__all__ = ["Sparse"]


class Sparse:
    """`values[k]` stands at `indices[k]` of an array of `dense_shape`; all else is zero.

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
        """Row `at`, whose indices lack the first dimension; or the rows of a slice or an array."""
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
        """Make nested lists of the whole array."""
        dense: list[Any] = self.to_dense().tolist()
        return dense

    def to_dense(self) -> NDArray[Any]:
        """Make the whole array; where an index occurs twice, the last value stands."""
        values: Any = self.values
        fill: Any = 0
        if isinstance(values, BytesColumn):
            fill = "" if values.is_text else b""
            values = values.to_numpy()
        dense = np.full(self.dense_shape, fill, values.dtype)
        dense[tuple(self.indices.T)] = values
        return dense

    def to_scipy(self) -> Any:
        """Make a `scipy.sparse.csr_array` of numbers in two dimensions; duplicates are summed.

        Its indices have 32 bits where that is enough: some of scikit-learn takes no others.
        """
        if len(self.dense_shape) != 2 or isinstance(self.values, BytesColumn):
            raise ValueError(f"expected numbers in two dimensions, got {self!r}")
        scipy_sparse = require("scipy.sparse", purpose="Sparse.to_scipy")
        is_small = max(*self.dense_shape, len(self.values)) < 2**31
        rows, columns = self.indices.T.astype(np.int32 if is_small else np.int64)
        return scipy_sparse.csr_array((self.values, (rows, columns)), shape=self.dense_shape)

    def to_torch(self) -> Any:
        """Make a sparse tensor of numbers, in the COO layout and the memory of the values.

        Where an index occurs twice, PyTorch adds the values up.
        """
        if isinstance(self.values, BytesColumn):
            raise ValueError(f"expected numbers, got strings: {self!r}")
        torch = require("torch", purpose="Sparse.to_torch")
        values: Any = self.values
        if isinstance(values, np.ndarray):
            values = to_tensor(values)
        places = to_tensor(np.ascontiguousarray(self.indices.T))
        # Checked, since PyTorch reads and writes wherever indices point to.
        return torch.sparse_coo_tensor(places, values, self.dense_shape, check_invariants=True)

    def __repr__(self) -> str:
        return f"Sparse(shape={self.dense_shape}, values={len(self.values)})"
