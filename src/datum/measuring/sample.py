"""The records that everything is measured with: some of a split, from all over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.format import Index
from datum.format.file import change_error, refuse_changes
from datum.format.index import FRAME_BYTES
from datum.reading import Split
from datum.reading.batches import Run
from datum.reading.local import LocalShard, find_local

__all__ = ["Piece", "Sample", "choose_records", "spread", "take_sample"]

PART_OF_TURN = 0.2
FEW_BATCHES = 4
SHARDS = 4  # that records are taken from: as many as readers of several files have open at once
MAX_SHARDS = 256  # where shards are tiny
MAX_COMPRESSED_BYTES = 64 * 2**20  # a shard has to be inflated as a whole


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some records of one plain file, one after the other.

    Attributes:
        path: the file: a shard, or the inflated copy of one.
        first: the number of the first record in its shard.
        offsets: where each record starts.
        lengths: how many bytes its payload has.
    """

    path: Path
    first: int
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def start(self) -> int:
        """The first byte."""
        return int(self.offsets[0])

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return int(self.offsets[-1] + self.lengths[-1]) + FRAME_BYTES

    def read(self) -> NDArray[np.uint8]:
        """The bytes from `start` to `end`; CorruptRecordError if the file lost them."""
        content = _core.MappedFile(self.path)
        if len(content) < self.end:
            raise change_error(str(self.path), self.end, "cut", len(content))
        with refuse_changes(str(self.path), content):
            return content.read(self.start, self.end - self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Records of a split, and where they lie.

    Attributes:
        split: they alone.
        pieces: the plain bytes of them.
    """

    split: Split
    pieces: tuple[Piece, ...]

    @property
    def records(self) -> int:
        """How many there are."""
        return len(self.split)

    @property
    def bytes(self) -> int:
        """How many bytes they have in plain files."""
        return sum(piece.end - piece.start for piece in self.pieces)


def choose_records(*, available: int, batch_size: int, record_s: float, turn_s: float) -> int:
    """How many records to take, of which each takes one thread so long: whole batches.

    A pass should take a small part of a turn, since others may take ten times as long for small
    records. But a few batches have to be in it, if there is time for them, and one at least.

    >>> choose_records(available=100_000, batch_size=64, record_s=0.00001, turn_s=0.4)
    8000
    >>> choose_records(available=100_000, batch_size=64, record_s=0.001, turn_s=0.4)
    256
    >>> choose_records(available=100, batch_size=64, record_s=0.001, turn_s=0.4)
    100
    """
    in_turn = turn_s / max(record_s, 1e-9) / batch_size
    batches = max(1, min(FEW_BATCHES, int(in_turn)), int(PART_OF_TURN * in_turn))
    return min(available, batches * batch_size)


def spread(lengths: Sequence[int], wanted: int, shards: int = SHARDS) -> list[tuple[int, int]]:
    """Which runs to take records from, and how many of each: equal parts of some, evenly chosen.

    >>> spread([100] * 8, 60)
    [(0, 15), (2, 15), (4, 15), (6, 15)]
    >>> spread([5, 100], 60)
    [(0, 5), (1, 55)]
    """
    wanted = min(wanted, sum(lengths))
    needed = -(-wanted * len(lengths) // max(1, sum(lengths)))  # if they were of one length
    count = min(len(lengths), max(shards, needed))
    while True:
        chosen = [at * len(lengths) // count for at in range(count)]
        if count == len(lengths) or sum(lengths[at] for at in chosen) >= wanted:
            break
        count = min(len(lengths), 2 * count)
    parts: dict[int, int] = {}
    for done, at in enumerate(sorted(chosen, key=lambda at: lengths[at])):
        left = count - done
        parts[at] = min(lengths[at], -(-(wanted - sum(parts.values())) // left))
    return [(at, parts[at]) for at in chosen if parts[at]]


def take_sample(split: Split, wanted: int) -> Sample:
    """So many records of a split, or a few less where its shards are tiny."""
    runs = list(split.runs)
    is_compressed = any(run.shard.compression is not None for run in runs)
    parts = spread([len(run) for run in runs], wanted, _inflated(runs) if is_compressed else SHARDS)
    chosen = [
        Run(runs[at].shard, runs[at].start, runs[at].start + count)
        for at, count in parts[:MAX_SHARDS]
    ]
    taken = Split(split.name, split.schema, split.shards, chosen)
    return Sample(taken, tuple(_piece(find_local(split.shards, run.shard), run) for run in chosen))


def _inflated(runs: Sequence[Run]) -> int:
    """How many compressed shards may be inflated without much waiting."""
    mean = sum(run.shard.bytes for run in runs) / len(runs)
    return max(1, min(SHARDS, int(MAX_COMPRESSED_BYTES / max(1.0, mean))))


def _piece(local: LocalShard, run: Run) -> Piece:
    if local.offsets is not None:  # of sound records among damaged ones
        offsets = local.offsets[run.start : run.stop]
        return Piece(local.path, run.start, offsets, _lengths_at(local.path, offsets))
    assert local.index is not None
    index = Index.load(local.index)
    here = slice(run.start, run.stop)
    return Piece(local.path, run.start, index.offsets[here], index.lengths[here])


def _lengths_at(path: Path, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    content = _core.MappedFile(path)
    with refuse_changes(str(path), content):
        heads = content.gather(np.ascontiguousarray(offsets), np.full(len(offsets), 8), 1)
    return heads.view("<u8").astype(np.int64)
