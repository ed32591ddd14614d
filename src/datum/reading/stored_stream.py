"""Records that come one after the other, as those of compressed shards, as they lie there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import CorruptRecordError
from datum.format import Records
from datum.format.index import FRAME_BYTES
from datum.format.records import HEADER_BYTES
from datum.reading.batches import Run
from datum.reading.shards import Shards
from datum.reading.stored_records import gather_frames, narrowed
from datum.schema import Schema
from datum.sources import Block
from datum.sources.source import Stored

__all__ = ["Keep", "StoredStream", "frames_of", "read_run"]

STREAM_BYTES = 4 * 2**20  # of records in a block
STREAM_RECORDS = 4096

Keep = Callable[[Stored], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class StoredStream:
    """A `StreamedPart` of records that come one after the other.

    Attributes:
        runs: makes an iterator over the records.
        schema: what is wanted of them.
        metadata: what else is known of the features.
        fingerprint: a text that changes when the records do.
        is_partial: whether the records hold more than `schema` says.
        keep: makes a function that tells which records of a block are wanted; None for all.
    """

    runs: Callable[[], Iterator[Records]]
    schema: Schema
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None
    is_partial: bool = False
    keep: Callable[[], Keep] | None = None
    is_repeatable: bool = True
    is_stored: bool = True
    statistics: Mapping[str, Any] | None = None  # as a manifest has them, if they are known

    def filtered(self, keep: Callable[[], Keep]) -> StoredStream:
        """The part of the records that the function `keep` makes chooses, counted anew."""
        # Nobody can tell whether it chooses the same the next time.
        return replace(self, keep=keep, fingerprint=None, statistics=None)

    def narrow(self, schema: Schema) -> StoredStream:
        """The part with these of its features alone."""
        return replace(self, **narrowed(self, schema))

    def blocks(self) -> Iterator[Block]:
        """All records in order, numbered by what is kept of them."""
        number = 0
        keep = None if self.keep is None else self.keep()
        for records in self.runs():
            frames, offsets = frames_of(records)
            locate = partial(_describe, records)
            stored = Stored(frames, offsets, self.schema, self.is_partial, locate)
            if keep is not None:
                stored = stored.take(np.flatnonzero(keep(stored)))
            if len(stored):
                yield Block(stored, np.arange(number, number + len(stored)))
            number += len(stored)


def _describe(records: Records, place: int) -> str:
    file, record, offset = records.locate(place)
    return f"{file} (record {record} at byte {offset})"


def frames_of(records: Records) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The frames around the payloads of a run, and where each starts."""
    offsets = records.starts - HEADER_BYTES
    return gather_frames(records.buffer, offsets, offsets + records.lengths + FRAME_BYTES)


def read_run(shards: Shards, run: Run) -> Iterator[Records]:
    """The records of a run in order; CorruptRecordError where they are not as known."""
    record_bytes = run.shard.bytes / max(run.shard.records, 1)
    size = int(np.clip(STREAM_BYTES / max(record_bytes, 1), 1, STREAM_RECORDS))
    position = 0
    with shards.open(run.shard) as file:
        for records in file.chunks(size):
            first, last = max(run.start - position, 0), min(run.stop - position, len(records))
            position += len(records)
            if first < last:
                yield _cut(records, first, last)
            if position >= run.stop < run.shard.records:
                return
    if position != run.shard.records:
        raise CorruptRecordError(
            f"expected {run.shard.records} records, {shards.known_from}, got {position}",
            where=file.name,
        )


def _cut(records: Records, first: int, last: int) -> Records:
    at = slice(first, last)
    return replace(
        records, starts=records.starts[at], lengths=records.lengths[at], numbers=records.numbers[at]
    )
