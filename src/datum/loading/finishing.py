"""Parsed columns into those of a batch: strings, presence, and rows that have no one shape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.loading.options import present_name
from datum.schema import Feature, Schema, numpy_dtype

__all__ = ["Finisher", "as_objects", "cast_column", "stack_or_list"]

Step = tuple[str, Callable[[Any], Any] | None, str | None]


class Finisher:
    """Makes the columns of a batch from what `Parser.parse` made.

    Arrays, `Ragged` and `Sparse` stay as they are. Strings become object arrays, and of an optional
    feature there are two columns: values, and which records have one. Tensors that need not have
    one shape are kept as an object array until `settle`, so that rows can be chosen before.

    Args:
        schema: of the columns.
        encoded: those to be decoded, as images; they are left out here.
        casts: the type that features are cast to, where that is not their own.

    Attributes:
        names: all columns of a batch, in order.
        casts: those that were given.
        loose: features whose rows need not have one shape, with what stands for an absent one.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        encoded: Mapping[str, Feature],
        casts: Mapping[str, str] | None = None,
    ) -> None:
        self.casts = casts or {}
        self._steps: list[Step] = []
        self._encoded = [(name, present_name(name, schema[name])) for name in encoded]
        self.loose: dict[str, NDArray[Any]] = {}
        self._lists = {name for name, one in encoded.items() if one.holds_images}
        self.names: list[str] = []
        for name, feature in schema.items():
            present = present_name(name, feature)
            if present is not None and present in schema:
                raise SchemaError(
                    f"expected no feature {present!r} beside the optional {name!r}, since a column"
                    " of that name tells which records have it",
                    hint="leave one out with `columns`",
                    feature=present,
                )
            self.names += [name] if present is None else [name, present]
            if name in encoded or _is_shaped(feature):
                found = encoded.get(name, feature)
                zero = self.cast(name, np.zeros((), numpy_dtype(found.dtype)))
                # One zero, whatever the shape: it is copied only where it is needed.
                self.loose[name] = np.broadcast_to(zero, [n or 0 for n in found.shape])
            if name not in encoded:
                make = functools.partial(self.cast, name) if name in self.casts else None
                self._steps.append((name, make or _maker_of(feature), present))

    def cast(self, name: str, column: Any) -> Any:
        """The values of a feature in the type that they are asked for."""
        return cast_column(column, self.casts[name]) if name in self.casts else column

    def finish(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The columns of a batch, but for those that are still encoded."""
        batch: dict[str, Any] = {}
        for name, make, present in self._steps:
            column = columns[name]
            if present is not None:
                column, batch[present] = _unmask(column)
            batch[name] = column if make is None else make(column)
        for name, present in self._encoded:
            if present is not None:
                batch[present] = _unmask(columns[name])[1]
        return batch

    def settle(self, batch: dict[str, Any]) -> dict[str, Any]:
        """All columns in their order, those of loose rows as one array or as a list."""
        return {
            name: self.settle_rows(name, batch[name]) if name in self.loose else batch[name]
            for name in self.names
        }

    def settle_rows(self, name: str, rows: Any) -> Any:
        """A column of loose rows as one array, as a `Ragged`, or as a list."""
        if name in self._lists:
            return _join_lists(rows, self.loose[name])
        return stack_or_list(rows, self.loose[name])


def cast_column(column: Any, dtype: str) -> Any:
    """A column, or rows of one that have no one shape, with elements of another type.

    >>> cast_column(np.array([1, 2]), "float32")
    array([1., 2.], dtype=float32)
    """
    if isinstance(column, Ragged):
        return Ragged(cast_column(column.values, dtype), column.row_splits)
    if isinstance(column, Sparse):
        return Sparse(column.indices, cast_column(column.values, dtype), column.dense_shape)
    if column.dtype == object:
        return as_objects([None if row is None else cast_column(row, dtype) for row in column])
    with np.errstate(over="ignore"):  # to infinity, as every framework has it
        return column.astype(numpy_dtype(dtype), copy=False)


def _maker_of(feature: Feature) -> Callable[[Any], Any] | None:
    is_text = feature.is_string and not feature.ragged_rank and feature.encoding != "sparse"
    is_image = feature.encoding == "image" and not (feature.holds_images and feature.ragged_rank)
    return BytesColumn.to_numpy if is_text or is_image else None


def _is_shaped(feature: Feature) -> bool:
    """Whether its rows are tensors that each have a shape beside them."""
    return feature.encoding == "raw" and None in feature.shape[1:]


def _unmask(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    if isinstance(column, Masked):
        return column.values, column.present
    return column, np.ones(len(column), np.bool_)


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """An object array of values as they are; NumPy itself would look into arrays."""
    array = np.empty(len(values), object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def _join_lists(rows: Any, blank: NDArray[Any]) -> Any:
    """Images of records, one array or a list for each, as `Ragged` where all are of one size.

    Of lists that have one known length, as `blank` tells, they are one array. Images of several
    sizes stay as they are, in a list.
    """
    if rows.dtype != object:
        return rows
    if len(blank):
        are_arrays = all(row is None or isinstance(row, np.ndarray) for row in rows)
        return stack_or_list(rows, blank) if are_arrays else list(rows)
    found = [blank if row is None else row for row in rows]
    full = [row for row in found if len(row)]
    are_alike = all(
        isinstance(row, np.ndarray) and row.shape[1:] == full[0].shape[1:] for row in full
    )
    if not are_alike:
        return found
    lengths = [len(row) for row in found]
    return Ragged(np.concatenate(full or [blank]), np.cumsum([0, *lengths]))


def stack_or_list(rows: Any, blank: NDArray[Any]) -> Any:
    """One array where all rows have the same shape, otherwise a list of arrays.

    Rows that are None become zeros of the shape that all others have, or else `blank`. What is one
    array already stays as it is.

    >>> rows = as_objects([np.ones(2), None])
    >>> stack_or_list(rows, np.zeros(0))
    array([[1., 1.],
           [0., 0.]])
    """
    if rows.dtype != object:
        return rows
    there = [row for row in rows if row is not None]
    is_alike = all(row.shape == there[0].shape for row in there)
    if there and is_alike:
        blank = np.zeros_like(there[0])
    found = [blank.copy() if row is None else row for row in rows]
    if not found:
        return np.zeros((0, *blank.shape), blank.dtype)
    return np.stack(found) if is_alike else found
