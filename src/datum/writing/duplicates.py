"""Keys that two records share: found by hash, told by text, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum.sources import Reject
from datum.writing.order import Hashes, as_utf8

__all__ = ["KeyLedger", "find_duplicates"]

_PASS_RECORDS = 2**24  # hashes sorted at once: 128 MiB
_HELD_RECORDS = 2**20  # keys kept in memory before they go to the file


def find_duplicates(
    hashes: Hashes, key_of: Callable[[int], str], numbers: NDArray[np.int64] | None = None
) -> list[Reject]:
    """A reject for every record whose key an earlier one has."""
    rejects = []
    passes = -(-len(hashes) // _PASS_RECORDS)
    for number in range(passes):
        mine = np.flatnonzero(hashes % np.uint64(passes) == np.uint64(number))
        order = mine[np.argsort(hashes[mine], kind="stable")]
        is_same = hashes[order[1:]] == hashes[order[:-1]]
        for at in np.flatnonzero(is_same).tolist():
            first, second = int(order[at]), int(order[at + 1])
            key = key_of(second)
            if key_of(first) != key:
                continue  # two keys of one hash
            records = (first, second) if numbers is None else numbers[[first, second]].tolist()
            reason = f"expected keys that differ, got the key of record {records[0]} again"
            rejects.append(Reject(records[1], key, "", reason))
    return sorted(rejects, key=lambda reject: reject.record)


class KeyLedger:
    """Notes the key of every record that comes; the texts lie in a file, once they are many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hashes: list[Hashes] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._ends: list[NDArray[np.int64]] = []
        self._held: list[str] = []
        self._total = 0

    def add(self, hashes: Hashes, numbers: NDArray[np.int64], keys: Sequence[str]) -> None:
        """Note some records."""
        self._hashes.append(hashes)
        self._numbers.append(numbers)
        keys = list(map(as_utf8, keys))
        sizes = np.fromiter((len(key.encode()) for key in keys), np.int64, len(keys))
        self._ends.append(self._total + np.cumsum(sizes))
        self._total += int(sizes.sum())
        self._held += keys
        if len(self._held) >= _HELD_RECORDS:
            self._flush()

    def _flush(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab") as file:
            file.write("".join(self._held).encode())
        self._held = []

    def find_duplicates(self) -> list[Reject]:
        """A reject for every record whose key an earlier one has."""
        if not self._hashes:
            return []
        ends = np.concatenate([[0], *self._ends])
        hashes, numbers = np.concatenate(self._hashes), np.concatenate(self._numbers)
        if len(np.unique(hashes)) == len(hashes):
            return []
        self._flush()
        with self._path.open("rb") as file:

            def key_of(at: int) -> str:
                file.seek(int(ends[at]))
                return file.read(int(ends[at + 1] - ends[at])).decode()

            return find_duplicates(hashes, key_of, numbers)
