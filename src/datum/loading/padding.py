"""Columns of rows of differing length, and sparse ones, filled up to dense arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse
from datum.loading.checks import check_known

__all__ = ["Padder"]


class Padder:
    """Fills up the columns of a batch as the option `pad` says.

    Rows of a `Ragged` are filled up to the longest of the batch, a list of arrays to the largest in
    every dimension, and a `Sparse` to its dense shape. Columns that are dense stay as they are.

    Args:
        pad: True for all columns, with zeros and empty strings; or by name the value to fill with,
            None for these.
        names: the columns of a batch, if they are known before there is one.

    >>> column = Ragged(np.array([1, 2, 3]), np.array([0, 2, 3]))
    >>> Padder({"x": -1}).pad({"x": column})["x"]
    array([[ 1,  2],
           [ 3, -1]])
    """

    def __init__(self, pad: bool | Mapping[str, Any], names: Iterable[str] | None = None) -> None:
        self._values: Mapping[str, Any] = pad if isinstance(pad, Mapping) else {}
        self._is_all = pad is True
        if names is not None:
            check_known("pad", self._values, names)

    def pad(self, batch: Any) -> Any:
        """The batch, filled up."""
        if not self._is_all and not self._values:
            return batch
        if self._is_all:
            return _pad_all(batch)
        if not isinstance(batch, dict):
            raise ValueError(
                "expected dicts from `map` with `pad` by name, got"
                f" {type(batch).__name__}\nhint: pad=True fills up all there is"
            )
        check_known("pad", self._values, batch)
        return {
            name: _dense(column, self._values[name], name) if name in self._values else column
            for name, column in batch.items()
        }


def _pad_all(batch: Any) -> Any:
    if isinstance(batch, dict):
        return {name: _pad_all(column) for name, column in batch.items()}
    if isinstance(batch, tuple):
        parts = [_pad_all(column) for column in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return _dense(batch, None, "")


def _dense(column: Any, value: Any, name: str) -> Any:
    if isinstance(column, Ragged):
        return column.to_padded(fill=_fill(value, _innermost(column), name))
    if isinstance(column, Sparse):
        return _dense_sparse(column, _fill(value, column.values, name))
    if isinstance(column, list):
        return _dense_list(column, value, name)
    return column


def _innermost(column: Ragged) -> Any:
    values: Any = column.values
    while isinstance(values, Ragged):
        values = values.values
    return values


def _dense_sparse(column: Sparse, fill: Any) -> NDArray[Any]:
    if fill is None:
        return column.to_dense()
    values = np.asarray(column.values)
    dense = np.full(column.dense_shape, fill, values.dtype)
    dense[tuple(column.indices.T)] = values
    return dense


def _dense_list(rows: list[Any], value: Any, name: str) -> Any:
    """One array of all rows; what is no list of arrays alike in rank stays as it is."""
    if not rows or not all(isinstance(row, np.ndarray) for row in rows):
        return rows
    if len({row.ndim for row in rows}) > 1:
        return rows
    dtype = np.result_type(*{row.dtype for row in rows})
    shape = np.max([row.shape for row in rows], axis=0).tolist()
    fill = _fill(value, np.empty(0, dtype), name)
    dense = np.full((len(rows), *shape), 0 if fill is None else fill, dtype)
    for at, row in enumerate(rows):
        place: Any = (at, *map(slice, row.shape))
        dense[place] = row
    return dense


def _fill(value: Any, values: Any, name: str) -> Any:
    """The value, if such a column can hold it."""
    if value is None:
        return None
    if isinstance(values, BytesColumn):
        kind = str if values.is_text else bytes
        if isinstance(value, kind):
            return value
        raise _wrong(name, kind.__name__, value)
    wanted = np.asarray(value)
    if values.dtype == object:
        return value
    if wanted.ndim or wanted.dtype.kind not in "biufcmM":
        raise _wrong(name, str(values.dtype), value)
    try:
        made = wanted.astype(values.dtype)
    except (TypeError, ValueError):
        raise _wrong(name, str(values.dtype), value) from None
    if values.dtype.kind in "biu" and made != wanted:
        raise _wrong(name, str(values.dtype), value)
    return made[()]


def _wrong(name: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"expected `pad` of {name!r} to be a value of {expected}, got {value!r}")
