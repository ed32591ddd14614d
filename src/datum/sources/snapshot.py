"""Rows as they were when they came: whoever gave them may use their memory again."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
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
    return map(partial(_core.snapshot, copy_other=_copy), rows)


def _copy(value: Any) -> Any:
    """A copy of what is no container of Python's own, if it can change."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, (np.generic, str, bytes, int, float)):
        return value
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, Mapping):
        return _core.snapshot(dict(value), _copy)
    if hasattr(value, "clone"):  # a tensor
        return value.clone()
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return _copy_object(value)
    return value


def _copy_object(value: Any) -> Any:
    """A copy of an object with attributes, such as a dataclass."""
    try:
        copied = copy.copy(value)
        for name, attribute in vars(copied).items():
            kept = _core.snapshot(attribute, _copy)
            if kept is not attribute:
                object.__setattr__(copied, name, kept)
    except Exception:  # an object that does not let itself be copied is taken as it is
        return value
    return copied
