"""Objects of Python as rows: dicts, pairs of a key and a dict, dataclasses, tuples."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import Message
from datum.sources.nested_rows import NestedLists
from datum.sources.source import Block, Reject

__all__ = ["RowReader", "is_keyed"]


def is_keyed(item: Any) -> bool:
    """Whether it is a pair of a key and a row.

    >>> is_keyed(("a.jpg", {"x": 1})), is_keyed((1.5, 2.5))
    (True, False)
    """
    is_pair = type(item) is tuple and len(item) == 2
    return is_pair and _is_key(item[0]) and _is_record(item[1])


def _is_key(key: Any) -> bool:
    return isinstance(key, (str, int, np.integer)) and not isinstance(key, bool)


def _is_record(row: Any) -> bool:
    is_instance = dataclasses.is_dataclass(row) and not isinstance(row, type)
    return isinstance(row, Mapping) or is_instance or hasattr(row, "_fields")


class RowReader:
    """Makes blocks of rows; all of them have a key, or none.

    Lists of dicts are taken apart: see `NestedLists`.

    `names` are those of the values of plain tuples.
    """

    def __init__(self, names: tuple[str, ...] | None, *, is_keyed: bool) -> None:
        self._names = names
        self._is_keyed = is_keyed
        self._fields: dict[type, Callable[[Any], dict[str, Any]]] = {}
        self.nested = NestedLists()

    def __getstate__(self) -> tuple[Any, ...]:
        return self._names, self._is_keyed, self.nested

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._names, self._is_keyed, self.nested = state
        self._fields = {}

    def learn(self, items: list[Any]) -> None:
        """Find out which names hold lists of dicts, for all blocks alike."""
        rows: Any = self._read(items, np.arange(len(items)), ()).data
        self.nested.learn(rows)

    def read(
        self, items: list[Any], numbers: NDArray[np.int64], rejects: Sequence[Reject] = ()
    ) -> Block:
        """The block of these items; those that are no rows join the rejects."""
        block = self._read(items, numbers, rejects)
        rows: Any = block.data
        self.nested.learn(rows)
        flat = self.nested.flatten(rows)
        return block if flat is rows else replace(block, data=flat)

    def _read(
        self, items: list[Any], numbers: NDArray[np.int64], rejects: Sequence[Reject]
    ) -> Block:
        if not self._is_keyed and set(map(type, items)) <= {dict}:
            return Block(items, numbers, None, rejects)
        rows: list[dict[str, Any]] = []
        keys: list[str] = []
        bad: list[int] = []
        found = list(rejects)
        for at, item in enumerate(items):
            try:
                key, row = self._split(item)
                rows.append(row if type(row) is dict else self._to_dict(row))
            except TypeError as error:
                bad.append(at)
                told = Message.of(error)
                found.append(Reject(int(numbers[at]), None, "", told.line, told.hint))
                continue
            keys.append(key)
        kept = np.delete(numbers, bad) if bad else numbers
        return Block(rows, kept, keys if self._is_keyed else None, found)

    def key_of(self, item: Any, number: int) -> str:
        """The key of an item, or one that no other has if it is none."""
        return str(item[0]) if is_keyed(item) else f"record {number}"

    def _split(self, item: Any) -> tuple[str, Any]:
        if not self._is_keyed:
            return "", item
        if not is_keyed(item):
            raise TypeError(_refuse("a key and a dict, as before", item))
        return str(item[0]), item[1]

    def _to_dict(self, row: Any) -> dict[str, Any]:
        kind = type(row)
        if kind not in self._fields:
            self._fields[kind] = self._find_fields(row)
        return self._fields[kind](row)

    def _find_fields(self, row: Any) -> Callable[[Any], dict[str, Any]]:
        """How to make dicts of rows of this type."""
        if isinstance(row, Mapping):
            return dict
        if dataclasses.is_dataclass(row) and not isinstance(row, type):
            names = [field.name for field in dataclasses.fields(row)]
            return lambda row: {name: getattr(row, name) for name in names}
        if isinstance(row, tuple) and hasattr(row, "_fields"):
            return lambda row: dict(zip(row._fields, row, strict=True))
        if isinstance(row, tuple):
            return self._name_values
        raise TypeError(_refuse("a dict of values", row))

    def _name_values(self, row: tuple[Any, ...]) -> dict[str, Any]:
        names: Sequence[str] = self._names or ()
        if self._names is None:
            names = ("x", "y") if len(row) == 2 else [str(at) for at in range(len(row))]
        if len(names) != len(row):
            raise TypeError(f"expected a tuple of {len(names)} values, got {len(row)}")
        return dict(zip(names, row, strict=True))


def _refuse(expected: str, item: Any) -> Message:
    """What an item is, and what its giver may have meant."""
    got, hint = type(item).__name__, ""
    if isinstance(item, PurePath):
        hint = "rows of images are [{'image': path} for path in paths]"
    elif isinstance(item, (np.ndarray, list)) or np.isscalar(item):
        hint = "a row is a dict; columns are a dict: {'x': x, 'y': y}"
    elif type(item) is tuple:
        got = f"a tuple of {len(item)}"
    return Message(f"expected {expected}, got {got}", hint=hint)
