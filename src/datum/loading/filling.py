"""Rows of differing length into one dense array, and a mask of what is there."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse
from datum.columns.ragged import positions_of
from datum.errors import Message

__all__ = ["Describe", "Filled", "Padding", "fill_arrays", "fill_ragged", "fill_sparse"]

Describe = Callable[[int], str]
Filled = tuple[NDArray[Any], NDArray[np.bool_] | None]


class Padding(Protocol):
    """What there is to know of a `Pad`."""

    @property
    def length(self) -> int | tuple[int, ...] | None:
        """What rows must not be longer than."""

    @property
    def value(self) -> Any:
        """What to fill up with."""

    @property
    def truncate(self) -> bool:
        """Whether rows that are too long are cut."""

    @property
    def mask(self) -> bool:
        """Whether there is a mask."""

    def extents(self, longest: Sequence[int], *, name: str) -> list[int]:
        """How long each dimension becomes that differs."""


# Lists of values.


def fill_ragged(column: Ragged, pad: Padding, name: str, describe: Describe) -> Filled:
    """Rows of values, nested or not, filled up or cut at every level; `describe` names a row."""
    levels = _levels(column)
    longest = [int(level.row_lengths.max(initial=0)) for level in levels]
    extents = pad.extents(longest, name=name)
    if not pad.truncate:
        for depth, extent in enumerate(extents):
            if longest[depth] > extent:
                row = _row_of(levels[: depth + 1], int(levels[depth].row_lengths.argmax()))
                raise _too_long(describe(row), name, extent, longest[depth], pad)
    values = levels[-1].values
    fill = _fill_value(pad.value, values, name)
    if fill is None:
        fill = ("" if values.is_text else b"") if isinstance(values, BytesColumn) else 0
    dense = _fill_levels(column, extents, fill)
    if not pad.mask:
        return dense, None
    mask: Any = np.ones(len(values), np.bool_)
    for level in reversed(levels):
        mask = Ragged(mask, level.row_splits)
    return dense, _fill_levels(mask, extents, False)


def _levels(column: Ragged) -> list[Ragged]:
    levels = [column]
    while isinstance(levels[-1].values, Ragged):
        levels.append(levels[-1].values)
    return levels


def _row_of(levels: Sequence[Ragged], row: int) -> int:
    """The record that a row of the innermost level belongs to."""
    for level in reversed(levels[:-1]):
        row = int(np.searchsorted(level.row_splits, row, "right")) - 1
    return row


def _fill_levels(column: Ragged, extents: Sequence[int], fill: Any) -> NDArray[Any]:
    values: Any = column.values
    if isinstance(values, Ragged):
        rows = _fill_levels(values, extents[1:], fill)
    else:
        rows = np.asarray(values)
    width, lengths = extents[0], column.row_lengths
    if lengths.max(initial=0) > width:
        lengths = np.minimum(lengths, width)
        rows = rows[positions_of(column.row_splits[:-1], lengths)]
    dense = _full((len(column), width, *rows.shape[1:]), fill, rows.dtype)
    dense[np.arange(width) < lengths[:, None]] = rows
    return dense


def _too_long(where: str, name: str, extent: int, got: int, pad: Padding) -> ValueError:
    return ValueError(
        Message(
            f"{where}, feature {name!r}: expected at most {extent} values, the `length` to pad to,"
            f" got {got}",
            hint=f"datum.Pad(length={pad.length}, truncate=True) cuts what is longer",
        )
    )


# Arrays.


def fill_arrays(
    rows: Sequence[NDArray[Any]] | NDArray[Any],
    pad: Padding,
    axes: tuple[int, ...] | None,
    name: str,
    describe: Describe,
) -> Filled:
    """One array of all rows, filled up in every dimension."""
    if isinstance(rows, np.ndarray):
        dtype, shapes = rows.dtype, np.array([rows.shape[1:]])
    else:
        dtype = np.result_type(*{row.dtype for row in rows})
        shapes = np.array([row.shape for row in rows])
    extents = shapes.max(axis=0).tolist()
    for axis, extent in zip(axes or (), _axis_extents(pad, axes, extents, name), strict=True):
        if extents[axis] > extent and not pad.truncate:
            where = describe(int(shapes[:, axis].argmax()))
            raise _too_long(where, name, extent, extents[axis], pad)
        extents[axis] = extent
    fill = _fill_value(pad.value, np.empty(0, dtype), name)
    if fill is None:
        fill = "" if dtype.kind == "O" else 0
    dense = _full((len(rows), *extents), fill, dtype)
    depth = axes[-1] + 1 if axes else 0
    mask = np.zeros((len(rows), *extents[:depth]), np.bool_) if pad.mask else None
    if isinstance(rows, np.ndarray):
        place: Any = (slice(None), *map(slice, map(min, extents, rows.shape[1:])))
        dense[place] = rows[place]
        if mask is not None:
            mask[place[: depth + 1]] = True
        return dense, mask
    for at, row in enumerate(rows):
        inside: Any = tuple(map(slice, map(min, extents, row.shape)))
        dense[(at, *inside)] = row[inside]
        if mask is not None:
            mask[(at, *inside[:depth])] = True
    return dense, mask


def _axis_extents(
    pad: Padding, axes: tuple[int, ...] | None, longest: Sequence[int], name: str
) -> list[int]:
    return [] if axes is None else pad.extents([longest[axis] for axis in axes], name=name)


def fill_sparse(column: Sparse, pad: Padding, name: str) -> NDArray[Any]:
    """The whole array."""
    fill = _fill_value(pad.value, column.values, name)
    if fill is None:
        return column.to_dense()
    values = np.asarray(column.values)
    dense = _full(column.dense_shape, fill, values.dtype)
    dense[tuple(column.indices.T)] = values
    return dense


def _full(shape: Sequence[int], fill: Any, dtype: Any) -> NDArray[Any]:
    """An array of one value; MemoryError, too, for a shape that no array can have."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if max(size, *shape) > sys.maxsize:
        raise MemoryError(f"{size:,} bytes")
    return np.full(shape, fill, dtype)


def _fill_value(value: Any, values: Any, name: str) -> Any:
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
