"""Rows gathered into blocks, numbered as they come."""

from __future__ import annotations

from typing import Any

import numpy as np

from datum import _core
from datum.errors import Message
from datum.sources.nested_rows import NestedLists
from datum.sources.source import Block, Reject

__all__ = ["BLOCK_RECORDS", "RowBlocks"]

BLOCK_RECORDS = 4096
BLOCK_BYTES = 8 * 2**20  # several blocks are in memory at a time


class RowBlocks:
    """Gathers rows, all with a key or none, and those that cannot be read.

    Lists of dicts are taken apart: see `NestedLists`.

    >>> blocks = RowBlocks(has_keys=False)
    >>> blocks.add({"x": 1})
    >>> blocks.reject("a.jsonl, line 2", "expected an object, got a number")
    >>> blocks.add({"x": 3})
    >>> blocks.take().numbers
    array([0, 2])
    """

    def __init__(self, *, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._first = 0
        self.nested = NestedLists()
        self._clear()

    def _clear(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._keys: list[str] = []
        self._places: list[tuple[Any, int]] = []
        self._rejects: list[Reject] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows) + len(self._rejects)

    @property
    def is_full(self) -> bool:
        """Whether it is time to take a block."""
        return len(self) >= BLOCK_RECORDS or self._bytes >= BLOCK_BYTES

    def add(self, row: dict[str, Any], key: str = "", *, place: tuple[Any, int] = ("", 0)) -> None:
        """Add the next record; `place` is its file and line."""
        self._rows.append(row)
        self._places.append(place)
        self._bytes += _core.size_of(row)
        self._keys.append(key)

    def reject(self, where: str, reason: str | Message, key: str | None = None) -> None:
        """Count a record that cannot be read."""
        told = Message(reason)
        self._rejects.append(Reject(self._first + len(self), key, where, told.line, told.hint))

    def take(self) -> Block:
        """What was gathered since the last time."""
        numbers = np.arange(self._first, self._first + len(self))
        numbers = np.delete(numbers, [reject.record - self._first for reject in self._rejects])
        self.nested.learn(self._rows)
        rows = self.nested.flatten(self._rows)
        places = self._places
        block = Block(
            rows,
            numbers,
            self._keys if self._has_keys else None,
            self._rejects,
            lambda at: f"{places[at][0]}, line {places[at][1]}" if places[at][1] else "",
        )
        self._first += len(self)
        self._clear()
        return block
