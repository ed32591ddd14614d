"""Runs of records in shards, read in order into batches of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from datum.errors import CorruptRecordError
from datum.format import BatchReader, Parser, Records, ShardInfo
from datum.format.threads import thread_count
from datum.reading.shards import Shards

__all__ = ["Run", "RunBatches"]

SKIPPED_RECORDS = 1024  # read and dropped at a time, where a shard is compressed


@dataclass(frozen=True, slots=True)
class Run:
    """The records from `start` up to `stop` of one shard."""

    shard: ShardInfo
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class RunBatches(BatchReader):
    """An iterable of batches over runs of records; each iteration reads the shards anew."""

    def __init__(
        self,
        shards: Shards,
        runs: Sequence[Run],
        *,
        parser: Parser,
        batch_size: int,
        threads: int | None = None,
        drop_remainder: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"expected `batch_size` of 1 or more, got {batch_size}")
        super().__init__(
            paths=[str(shards.folder / run.shard.name) for run in runs],
            parser=parser,
            batch_size=batch_size,
            threads=thread_count(threads),
            drop_remainder=drop_remainder,
            check_crc=True,
            recovery="strict",
        )
        self._shards = shards
        self._shard_runs = runs

    def _runs(self) -> Iterator[Records]:
        """Runs of exactly `batch_size` records, over the ends of shards."""
        held: list[Records] = []

        def missing() -> int:
            return self._batch_size - sum(map(len, held))

        for run in self._shard_runs:
            for records in _read_run(self._shards, run, missing):
                held.append(records)
                if not missing():
                    yield Records.join(held)
                    held.clear()
        if held and not self._drop_remainder:
            yield Records.join(held)


def _read_run(shards: Shards, run: Run, next_size: Callable[[], int]) -> Iterator[Records]:
    if len(run) == run.shard.records or run.shard.compression is not None:
        return _read_in_order(shards, run, next_size)
    return _read_indexed(shards, run, next_size)


def _read_indexed(shards: Shards, run: Run, next_size: Callable[[], int]) -> Iterator[Records]:
    file = shards.open_indexed(run.shard)
    position = run.start
    while position < run.stop:
        end = min(position + next_size(), run.stop)
        yield file.records(np.arange(position, end))
        position = end


def _read_in_order(shards: Shards, run: Run, next_size: Callable[[], int]) -> Iterator[Records]:
    """All of a shard, or of a compressed one what comes before the run, too."""
    position = 0

    def next_part() -> int:
        if position < run.start:
            return min(SKIPPED_RECORDS, run.start - position)
        # At the end ask for one more: a whole shard must have come to its end there.
        return min(next_size(), max(1, run.stop - position))

    with shards.open(run.shard) as file:
        for records in file.runs(next_part):
            position += len(records)
            if position > run.stop:
                break
            if position > run.start:
                yield records
            if position == run.stop < run.shard.records:
                return
    if position != run.stop:
        got = "more" if position > run.stop else str(position)
        raise CorruptRecordError(
            f"expected {run.shard.records} records, {shards.known_from}, got {got}", where=file.name
        )
