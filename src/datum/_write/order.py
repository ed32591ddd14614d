"""The split and the place of each record, from a hash of its key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._write.blocks import blocks_of
from datum._write.options import PlanOptions
from datum._write.serialized import columns_of
from datum.errors import Option, SchemaError, SourceError, SplitError, Text
from datum.sources import Block, IndexedPart, Reject
from datum.sources.protocol import Part, part_info

__all__ = [
    "Division",
    "Hashes",
    "KeyLedger",
    "as_utf8",
    "assign_splits",
    "check_fractions",
    "divide_part",
    "find_duplicates",
    "hash_records",
    "order_part",
    "shuffled_places",
    "split_of_reject",
]

Hashes = NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64's step, which separates neighbours before mixing
_SPLIT_SALT = 0x53504C4954  # so that splits and order are independent of one another
_ORDER_SALT = 0x4F52444552


def hash_records(numbers: NDArray[np.int64], keys: Sequence[str] | None) -> Hashes:
    """Hash the key of each record, or its number if records have no keys."""
    if keys is not None:
        return _core.hash_keys([as_utf8(key) for key in keys])
    return _mix((numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(_GOLDEN))


def as_utf8(key: str) -> str:
    r"""Escape what UTF-8 cannot encode in a key, as in \\ud800."""
    return key if key.isascii() else key.encode(errors="backslashreplace").decode()


def shuffled_places(hashes: Hashes, seed: int) -> Hashes:
    """Sort keys of records: a random order that depends only on their hashes and `seed`."""
    salt = _mix(np.array([(seed * _GOLDEN + _ORDER_SALT) % 2**64], np.uint64))
    return _mix(hashes ^ salt)


def check_fractions(fractions: Mapping[str, Any]) -> dict[str, float]:
    """Raise SplitError unless the fractions add up to 1."""
    checked = {}
    for name, fraction in fractions.items():
        is_number = isinstance(fraction, (int, float)) and not isinstance(fraction, bool)
        if not is_number or not 0 < fraction <= 1:
            raise SplitError(
                f"expected a fraction above 0 and up to 1, got {fraction!r}",
                where=f"split {name!r}",
                hint=Text(Option("splits", {"train": 0.8, "val": 0.2})),
            )
        checked[name] = float(fraction)
    total = sum(checked.values())
    if abs(total - 1) > 1e-6:
        raise SplitError(f"expected fractions that add up to 1, got {total:g}: {checked}")
    return checked


def assign_splits(
    hashes: Hashes, fractions: Mapping[str, float], labels: Sequence[Any] | None = None
) -> NDArray[np.intp]:
    """Assign each record a split: its position in `fractions`.

    The split depends only on the key, so a record keeps it when others are added. With `labels`,
    every class is divided as exactly as whole records allow, and records may move.

    >>> hashes = hash_records(np.arange(1000), None)
    >>> np.bincount(assign_splits(hashes, {"train": 0.9, "val": 0.1})).tolist()
    [901, 99]
    >>> np.bincount(assign_splits(hashes, {"train": 0.9, "val": 0.1}, [0] * 1000)).tolist()
    [900, 100]
    """
    salted = _mix(hashes ^ np.uint64(_SPLIT_SALT))
    bounds = np.cumsum(list(fractions.values()))[:-1]
    if labels is None:
        return np.searchsorted(bounds, (salted >> np.uint64(11)) * 2.0**-53, "right")
    members: dict[Any, list[int]] = {}
    for record, label in enumerate(labels):
        members.setdefault(label, []).append(record)
    assigned = np.empty(len(hashes), np.intp)
    for records in members.values():
        of_class = np.array(records)
        ranked = of_class[np.argsort(salted[of_class], kind="stable")]
        middles = (np.arange(len(ranked)) + 0.5) / len(ranked)
        assigned[ranked] = np.searchsorted(bounds, middles, "right")
    return assigned


def _mix(values: Hashes) -> Hashes:
    """Final mixing steps of SplitMix64."""
    with np.errstate(over="ignore"):
        values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return values ^ (values >> np.uint64(31))


_PASS_RECORDS = 2**24  # hashes sorted at once: 128 MiB
_HELD_RECORDS = 2**20  # keys held in memory before they are written to the file


def find_duplicates(
    hashes: Hashes, key_of: Callable[[int], str], numbers: NDArray[np.int64] | None = None
) -> list[Reject]:
    """Reject every record whose key occurred before."""
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
    """Keys of all records read so far; when they are many, their texts are in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hashes: list[Hashes] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._ends: list[NDArray[np.int64]] = []
        self._held: list[str] = []
        self._total = 0

    def add(self, hashes: Hashes, numbers: NDArray[np.int64], keys: Sequence[str]) -> None:
        """Add the keys of some records."""
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
        """Reject every record whose key occurred before."""
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


class Division:
    """Division of records into splits; a split is its position in `fractions`."""

    def __init__(self, fractions: Mapping[str, float], chosen: Mapping[int, int]) -> None:
        self.fractions = fractions
        self._chosen = chosen  # split by record number; empty if the hash decides

    def splits_of(self, numbers: NDArray[np.int64], keys: Sequence[str] | None) -> NDArray[np.intp]:
        """Return the split of each record."""
        splits = assign_splits(hash_records(numbers, keys), self.fractions)
        if not self._chosen:
            return splits
        hashed = splits.tolist()  # for records that could not be read
        return np.array(
            [
                self._chosen.get(number, at)
                for number, at in zip(numbers.tolist(), hashed, strict=True)
            ],
            np.intp,
        )


def split_of_reject(reject: Reject, division: Division) -> int:
    """Return the split that a rejected record belongs to."""
    keys = None if reject.key is None else [reject.key]
    return int(division.splits_of(np.array([reject.record]), keys)[0])


def divide_part(part: Part, fractions: Mapping[str, float], *, stratify: str | None) -> Division:
    """Divide a part by fractions; `stratify` reads all of it."""
    if stratify is None:
        return Division(fractions, {})
    if not part_info(part).is_repeatable:
        raise SourceError(
            "stratify: expected a source that can be read twice, got an iterator",
            hint="pass a list, or a function that returns the iterator",
        )
    numbers, hashes, labels = [], [], []
    for block in blocks_of(part):
        numbers.append(block.numbers)
        hashes.append(hash_records(block.numbers, block.keys))
        labels += _labels(block, stratify)
    if all(label is None for label in labels):
        raise SchemaError(f"stratify: expected a feature that records have, got {stratify!r}")
    chosen = assign_splits(np.concatenate(hashes), fractions, labels)
    return Division(
        fractions, dict(zip(np.concatenate(numbers).tolist(), chosen.tolist(), strict=True))
    )


def _labels(block: Block, name: str) -> list[Any]:
    """Values of one feature, made hashable."""
    if isinstance(block.data, list):
        values: Any = [row.get(name) for row in block.data]
    else:
        values = columns_of(block.data, names=[name]).get(name)
        if values is None:
            return [None] * len(block)
        values = values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist()
    return [tuple(value) if isinstance(value, list) else value for value in values]


def order_part(
    part: IndexedPart, name: str, division: Division | None, options: PlanOptions
) -> Iterator[tuple[str, NDArray[np.int64], list[Reject]]]:
    """Yield each split's name, its record numbers in stored order, and its duplicates."""
    numbers = np.arange(len(part), dtype=np.int64)
    hashes = hash_records(numbers, part.keys)
    duplicates: list[Reject] = []
    if part.keys is not None:
        duplicates = find_duplicates(hashes, part.keys.__getitem__)
        if duplicates and options.on_error == "raise":
            raise SourceError(duplicates[0].message)
    numbers = np.delete(numbers, [reject.record for reject in duplicates])
    if division is None:
        yield name, _ordered(numbers, hashes, options), duplicates
        return
    keys = part.keys
    splits = division.splits_of(
        numbers, None if keys is None else [keys[n] for n in numbers.tolist()]
    )
    for at, split in enumerate(division.fractions):
        lost = [reject for reject in duplicates if split_of_reject(reject, division) == at]
        yield split, _ordered(numbers[splits == at], hashes, options), lost


def _ordered(numbers: NDArray[np.int64], hashes: Hashes, options: PlanOptions) -> NDArray[np.int64]:
    if not options.shuffle:
        return numbers
    return numbers[np.argsort(shuffled_places(hashes[numbers], options.seed), kind="stable")]
