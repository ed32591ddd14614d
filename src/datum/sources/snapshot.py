"""Rows as they were when they came: whoever gave them may use their memory again."""

from __future__ import annotations

import array
import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from datum import _core

__all__ = ["take_snapshots"]


def take_snapshots(rows: Iterable[Any]) -> Iterator[Any]:
    """Copies of rows, made as each of them comes: of dicts, lists, arrays and what they hold.

    >>> row = {}
    >>> def reuse():
    ...     for row["x"] in range(3):
    ...         yield row
    >>> list(take_snapshots(reuse()))
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """
    return map(_snapshot, rows)


def _snapshot(row: Any) -> Any:
    try:
        return _core.snapshot(row, _copy)
    except RecursionError:  # it holds itself, which whoever takes its values will say
        return row


def _copy(value: Any) -> Any:
    """A copy of what is no container of Python's own, if it can change."""
    if isinstance(value, np.ndarray):
        return _core.snapshot(value.tolist(), _copy) if value.dtype.hasobject else value.copy()
    if isinstance(value, (np.generic, str, bytes, int, float)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return _core.snapshot(dict(value), _copy)
    if isinstance(value, tuple):  # a named one
        return tuple.__new__(type(value), [_core.snapshot(item, _copy) for item in value])
    if hasattr(value, "clone"):  # a tensor
        return value.clone()
    return _copy_object(value)


def _copy_object(value: Any) -> Any:
    """A copy of an object with attributes, such as a dataclass, or of one that is an array."""
    try:
        if isinstance(value, array.array) or hasattr(value, "__array__"):
            return np.array(value)
        copied = copy.copy(value)
        names = [field.name for field in fields(value)] if is_dataclass(value) else vars(copied)
        for name in names:
            attribute = getattr(copied, name)
            kept = _core.snapshot(attribute, _copy)
            if kept is not attribute:
                object.__setattr__(copied, name, kept)
    except Exception:  # an object that does not let itself be copied is taken as it is
        return value
    return copied
