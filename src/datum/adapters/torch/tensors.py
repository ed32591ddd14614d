"""Batches of NumPy arrays as batches of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from datum._optional import require
from datum.columns import BytesColumn, Ragged, Sparse
from datum.columns.tensors import to_tensor

__all__ = ["replace_columns", "to_own_tensors", "to_pinned", "to_tensors"]

torch: Any = require("torch", purpose="`to_torch`")


def to_tensors(batch: Any) -> Any:
    """Make tensors of the arrays of a batch, and of those in its dicts, tuples and lists.

    Strings make lists. A `Ragged` of numbers makes a nested tensor, or stays one over a tensor
    where it has several ragged levels; a `Sparse` of numbers makes a sparse tensor. All else stays
    as it is.
    """
    return replace_columns(batch, _to_tensor)


def _to_tensor(column: Any) -> Any:
    if isinstance(column, np.generic):  # of a single record
        column = np.asarray(column)
    if isinstance(column, np.ndarray):
        return column.tolist() if column.dtype.kind in "OSU" else to_tensor(column)
    if isinstance(column, BytesColumn):
        return column.to_list()
    if isinstance(column, Sparse) and isinstance(column.values, BytesColumn):
        return column
    return column.to_torch() if isinstance(column, (Ragged, Sparse)) else column


def to_own_tensors(record: Any) -> Any:
    """Make tensors of a record, in memory of its own: what is sent takes all of it along."""
    return replace_columns(record, lambda value: _to_tensor(_copy_of(value)))


def _copy_of(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def to_pinned(batch: Any) -> Any:
    """Copy the tensors of a batch into memory that a GPU copies from by itself."""
    return replace_columns(batch, _to_pinned)


def _to_pinned(column: Any) -> Any:
    if isinstance(column, Ragged):
        return Ragged(_to_pinned(column.values), column.row_splits)
    return column.pin_memory() if isinstance(column, torch.Tensor) else column


def replace_columns(batch: Any, make: Callable[[Any], Any]) -> Any:
    """The same dicts, tuples and lists, with what `make` makes of each thing in them."""
    if isinstance(batch, dict):
        return {name: replace_columns(column, make) for name, column in batch.items()}
    if isinstance(batch, tuple):
        parts = [replace_columns(part, make) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    if isinstance(batch, list):
        return [replace_columns(part, make) for part in batch]
    return make(batch)
