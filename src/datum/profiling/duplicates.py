"""Records whose bytes are those of another record, within a split and across splits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from datum.format import Records
from datum.profiling.results import Duplicates

__all__ = ["HashedRecords", "find_duplicates", "hash_payloads"]

SHOWN_PAIRS = 5


@dataclass(frozen=True, slots=True)
class HashedRecords:
    """The hashes of some payloads of a split, and the numbers of their records."""

    hashes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    is_all: bool


def hash_payloads(records: Records) -> NDArray[np.int64]:
    """64 bits of each payload: two of a billion that differ share them once in 40 datasets."""
    return np.fromiter(map(hash, records), np.int64, len(records))


def find_duplicates(splits: Mapping[str, HashedRecords]) -> tuple[Duplicates, ...]:
    """What each split holds more than once, and what it shares with those before it."""
    found = [_within(name, split) for name, split in splits.items()]
    found += [
        _across(name, other, splits[name], splits[other]) for other, name in combinations(splits, 2)
    ]
    return tuple(one for one in found if one.records)


def _within(name: str, split: HashedRecords) -> Duplicates:
    order = np.argsort(split.hashes, kind="stable")
    again = np.flatnonzero(split.hashes[order[1:]] == split.hashes[order[:-1]])
    # Hashes differ from run to run, and the order of them: told are the first in the split.
    first = again[np.argsort(order[again + 1])[:SHOWN_PAIRS]]
    pairs = np.stack([split.numbers[order[first + 1]], split.numbers[order[first]]], axis=1)
    examples = tuple((number, twin) for number, twin in pairs.tolist())
    return Duplicates(name, name, len(again), examples, split.is_all)


def _across(name: str, other: str, split: HashedRecords, before: HashedRecords) -> Duplicates:
    order = np.argsort(before.hashes, kind="stable")
    places = np.searchsorted(before.hashes, split.hashes, sorter=order)
    inside = places < len(order)
    twins = order[np.minimum(places, max(0, len(order) - 1))] if len(order) else places
    is_shared = inside.copy()
    if len(order):
        is_shared &= before.hashes[twins] == split.hashes
    shared = np.flatnonzero(is_shared)
    examples = tuple(_pairs(split, before, shared, twins))
    return Duplicates(name, other, len(shared), examples, split.is_all and before.is_all)


def _pairs(
    split: HashedRecords,
    before: HashedRecords,
    shared: NDArray[np.int64],
    twins: NDArray[np.int64],
) -> Iterator[tuple[int, int]]:
    for at in shared[:SHOWN_PAIRS].tolist():
        yield int(split.numbers[at]), int(before.numbers[twins[at]])
