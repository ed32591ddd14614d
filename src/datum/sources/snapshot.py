"""Rows as they were when they came: whoever gave them may use their memory again."""

from __future__ import annotations

import array
import copy
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from datum import _core

__all__ = ["take_snapshots"]

MAX_BYTES = 8 * 2**20  # of rows in one block: several blocks are in memory at a time


def take_snapshots(rows: Iterator[Any], items: list[Any], limit: int) -> None:
    """Add at most `limit` rows, or 8 MiB of them, to `items`, each as it is when it comes.

    Dicts, lists, arrays and what they hold are copied, unless nobody else holds them. If the
    iterator raises, the rows that came before are in `items`.

    >>> row, items = {}, []
    >>> def reuse():
    ...     for row["x"] in range(3):
    ...         yield row
    >>> take_snapshots(reuse(), items, 10)
    >>> items
    [{'x': 0}, {'x': 1}, {'x': 2}]
    """
    _core.take_items(rows, items, limit, MAX_BYTES, _copy)


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
