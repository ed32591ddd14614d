"""The order of records that can be read in any order: found without reading one of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError
from datum.sources import IndexedPart, Reject
from datum.writing.division import Division, split_of_reject
from datum.writing.duplicates import find_duplicates
from datum.writing.options import WriteOptions
from datum.writing.order import Hashes, hash_records, shuffled_places

__all__ = ["order_part"]


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
