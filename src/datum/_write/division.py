"""Parts divided into splits by fractions, and the order of records of indexed parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._write.options import WriteOptions
from datum._write.order import Hashes, assign_splits, find_duplicates, hash_records, shuffled_places
from datum._write.parts import blocks_of
from datum._write.serialized import columns_of
from datum.errors import SchemaError, SourceError
from datum.sources import Block, IndexedPart, Reject
from datum.sources.protocol import Part, part_info

__all__ = [
    "Division",
    "divide_part",
    "order_part",
    "split_of_reject",
]


class Division:
    """Tells the split of records, as the position in `fractions`."""

    def __init__(self, fractions: Mapping[str, float], chosen: Mapping[int, int]) -> None:
        self.fractions = fractions
        self._chosen = chosen  # by number; empty if the hash alone decides

    def splits_of(self, numbers: NDArray[np.int64], keys: Sequence[str] | None) -> NDArray[np.intp]:
        """The split of each record."""
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
    """The split that a record would have gone to."""
    keys = None if reject.key is None else [reject.key]
    return int(division.splits_of(np.array([reject.record]), keys)[0])


def divide_part(part: Part, fractions: Mapping[str, float], *, stratify: str | None) -> Division:
    """Find out how a part is divided; to stratify, all of it is read."""
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
    """The values of one feature, as what can be told apart."""
    if isinstance(block.data, list):
        values: Any = [row.get(name) for row in block.data]
    else:
        values = columns_of(block.data, names=[name]).get(name)
        if values is None:
            return [None] * len(block)
        values = values.to_list() if hasattr(values, "to_list") else np.asarray(values).tolist()
    return [tuple(value) if isinstance(value, list) else value for value in values]


def order_part(
    part: IndexedPart, name: str, division: Division | None, options: WriteOptions
) -> Iterator[tuple[str, NDArray[np.int64], list[Reject]]]:
    """For each split: its name, the numbers of its records as stored, and the duplicates."""
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


def _ordered(
    numbers: NDArray[np.int64], hashes: Hashes, options: WriteOptions
) -> NDArray[np.int64]:
    if not options.shuffle:
        return numbers
    return numbers[np.argsort(shuffled_places(hashes[numbers], options.seed), kind="stable")]
