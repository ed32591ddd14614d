"""Some records of a part, to learn from them what all of it is like."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum import _core
from datum.errors import SourceError
from datum.schema import Schema
from datum.sources import Block, IndexedPart
from datum.sources.source import Part

__all__ = ["SAMPLE_BYTES", "SAMPLE_RECORDS", "SAMPLE_SECONDS", "PartSample", "sample_part"]

SAMPLE_RECORDS = 1000
SAMPLE_BYTES = 10 * 2**20
SAMPLE_SECONDS = 2.0  # where each record is much work
COUNT_SECONDS = 1.0  # for the rest of a stream, if only to count its records
_FIRST_RECORDS = 32  # that tell how many more can be read


@dataclass(eq=False)
class PartSample:
    """The records that were read of a part: a `StreamedPart` that can be read again.

    Attributes:
        schema, metadata, fingerprint: as of the part.
        held: the records.
        total: how many there are in all, if that was found out.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    held: list[Block]
    total: int | None
    fingerprint: str | None = None

    def blocks(self) -> Iterator[Block]:
        """The records."""
        return iter(self.held)

    @property
    def seen(self) -> int:
        """How many records were read, with those that cannot be written."""
        return sum(len(block) + len(block.rejects) for block in self.held)

    @property
    def is_whole(self) -> bool:
        """Whether these are all records there are."""
        return self.seen == self.total


def sample_part(part: Part) -> PartSample:
    """Read up to 1,000 records, 10 MiB or 2 seconds of a part.

    They are spread over it where they can be read in any order, else they are the first.
    SourceError of a part that can be read only once: a write would miss what was read here.
    """
    if not getattr(part, "is_repeatable", True):
        raise SourceError(
            "expected a source that can be read again, as a plan reads its first records,"
            " got an iterator",
            hint="pass a function that returns the iterator, or a list",
        )
    read = _read_spread if isinstance(part, IndexedPart) else _read_first
    held, total = read(part)
    return PartSample(part.schema, part.metadata, held, total)


def _read_spread(part: Any) -> tuple[list[Block], int]:
    """Neighbours are often alike: records from all over the part tell more."""
    total = len(part)
    first = _spread(total, min(total, _FIRST_RECORDS))
    started = time.monotonic()
    held = [part.read(first)] if total else []
    seconds = (time.monotonic() - started) / max(len(first), 1)
    each = part.stored_bytes // total if part.stored_bytes and total else _bytes_of(held)
    wanted = min(
        total,
        SAMPLE_RECORDS,
        int(SAMPLE_BYTES / max(each, 1)),
        int(SAMPLE_SECONDS / max(seconds, 1e-9)),
    )
    more = np.setdiff1d(_spread(total, wanted), first)
    if len(more):
        held.append(part.read(more))
    return held, total


def _spread(total: int, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.linspace(0, max(total - 1, 0), max(count, 0)).astype(np.int64)


def _read_first(part: Any) -> tuple[list[Block], int | None]:
    """The first records; those that follow are counted for a while, if they come quickly."""
    held: list[Block] = []
    seen = nbytes = 0
    is_enough = False
    started = time.monotonic()
    for block in part.blocks():
        seen += len(block) + len(block.rejects)
        if not is_enough:
            held.append(block)
            nbytes += _bytes_of([block]) * len(block)
            is_enough = seen >= SAMPLE_RECORDS or nbytes >= SAMPLE_BYTES
        if time.monotonic() - started > (COUNT_SECONDS if is_enough else SAMPLE_SECONDS):
            return held, None
    return held, seen


def _bytes_of(blocks: list[Block]) -> int:
    """About how large a record is."""
    nbytes = records = 0
    for block in blocks:
        records += len(block)
        if isinstance(block.data, list):
            nbytes += _core.size_of(block.data)
        elif isinstance(block.data, dict):
            sizes = [getattr(column, "nbytes", 0) for column in block.data.values()]
            nbytes += int(sum(sizes))
    return nbytes // max(records, 1)
