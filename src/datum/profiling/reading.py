"""The records that a profile looks at: all of a split, or blocks of neighbours from all over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum.errors import DatumError, Message
from datum.format import Index, Records
from datum.reading import Split
from datum.reading.batches import Run

__all__ = ["Failure", "Piece", "read_pieces"]

PIECE_RECORDS = 32768  # counted at a time
PIECE_BYTES = 16 * 2**20
GATHERED_BYTES = 4 * PIECE_BYTES  # of a sample: fewer and larger pieces take less time
SAMPLED_BLOCKS = 32  # neighbours lie together: a block is read at once, from one file
SCANNED_BYTES = 256 * 2**20  # files without an index are searched for records up to this size


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records of a split, and their numbers in it."""

    records: Records
    numbers: NDArray[np.int64]

    @classmethod
    def join(cls, pieces: Sequence[Piece]) -> Piece:
        """Copy several into one."""
        numbers = np.concatenate([piece.numbers for piece in pieces])
        return cls(Records.join([piece.records for piece in pieces]), numbers)


@dataclass(frozen=True, slots=True)
class Failure:
    """What kept records from being read."""

    shard: str
    text: str

    @classmethod
    def of(cls, error: Exception, file: str) -> Failure:
        """What an error tells of a file, without what is known already, and without its hint."""
        return cls(Path(file).name, Message.of(error).beside(file))


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring records of a shard.

    Attributes:
        first: the number of the first one in the split.
        is_leading: whether it is at the start of its shard, and to be read in order.
    """

    run: Run
    first: int
    is_leading: bool


def read_pieces(split: Split, sample: int | None) -> Iterator[Piece | Failure]:
    """All records of a split in order, or `sample` of them from all over it, in few pieces.

    A shard that cannot be read is told of, and passed by.
    """
    if sample is None or sample >= len(split):
        blocks = [
            _Block(run, first, len(run) == run.shard.records or run.shard.compression is not None)
            for run, first in _numbered(split)
        ]
    elif _can_jump(split):
        blocks = _spread(split, sample)
    else:
        blocks = _leading(split, sample)
    is_sample = sample is not None
    yield from _gathered(split, blocks) if is_sample else _read_all(split, blocks)


def _read_all(split: Split, blocks: Sequence[_Block]) -> Iterator[Piece | Failure]:
    for block in blocks:
        yield from _read_block(split, block)


def _gathered(split: Split, blocks: Sequence[_Block]) -> Iterator[Piece | Failure]:
    """Blocks put together: counting has a price for each piece, not only for each record."""
    held: list[Piece] = []
    for block in blocks:
        for piece in _read_block(split, block):
            if isinstance(piece, Failure):
                yield piece
                continue
            held.append(piece)
            count = sum(len(one.records) for one in held)
            if count >= PIECE_RECORDS or _bytes(held) > GATHERED_BYTES:
                yield Piece.join(held)
                held = []
    if held:
        yield Piece.join(held)


def _bytes(pieces: list[Piece]) -> int:
    return sum(int(piece.records.lengths.sum()) for piece in pieces)


# Where to look.


def _numbered(split: Split) -> Iterator[tuple[Run, int]]:
    """The runs of a split, each with the number of its first record."""
    first = 0
    for run in split.runs:
        yield run, first
        first += len(run)


def _can_jump(split: Split) -> bool:
    """Whether any record can be found without reading much of what lies before it."""
    if any(run.shard.compression is not None for run in split.runs):
        return False
    if sum(run.shard.bytes for run in split.runs) <= SCANNED_BYTES:
        return True
    folder, is_own = split.shards.folder, split.shards.writer == "datum"
    return is_own and Index.find(folder / split.runs[0].shard.name) is not None


def _spread(split: Split, sample: int) -> list[_Block]:
    """Blocks at even distances, the first at the start and the last at the end of the split."""
    count = min(SAMPLED_BLOCKS, sample)
    sizes = np.diff(np.linspace(0, sample, count + 1).astype(np.int64)).tolist()
    starts = np.linspace(0, len(split) - sizes[-1], count).astype(np.int64).tolist()
    found: list[_Block] = []
    end = 0
    for start, size in zip(starts, sizes, strict=True):
        first = max(start, end)  # of small splits blocks may touch each other
        end = min(first + size, len(split))
        for run, offset in _numbered(split[first:end]):
            found.append(_Block(run, first + offset, False))
    return found


def _leading(split: Split, sample: int) -> list[_Block]:
    """The first records of shards at even distances: others cannot be had without those."""
    runs = list(_numbered(split))
    count = min(SAMPLED_BLOCKS, len(runs), sample)
    chosen = np.linspace(0, len(runs) - 1, count).astype(np.int64).tolist()
    found: list[_Block] = []
    wanted = sample
    for place, at in enumerate(chosen):
        run, first = runs[at]
        size = min(-(-wanted // (count - place)), len(run))
        wanted -= size
        if size:
            found.append(_Block(Run(run.shard, run.start, run.start + size), first, True))
    return found


# Reading.


def _read_block(split: Split, block: _Block) -> Iterator[Piece | Failure]:
    number = block.first
    try:
        for records in _read(split, block):
            yield Piece(records, np.arange(number, number + len(records)))
            number += len(records)
    except (DatumError, OSError) as error:
        yield Failure.of(error, str(split.shards.folder / block.run.shard.name))
        return
    missing = block.first + len(block.run) - number
    if missing:
        text = f"expected {len(block.run):,} records, got {number - block.first:,}"
        yield Failure(block.run.shard.name, text)


def _read(split: Split, block: _Block) -> Iterator[Records]:
    run = block.run
    size = _piece_size(run)
    if not block.is_leading:
        file = split.shards.open_indexed(run.shard)
        for start in range(run.start, run.stop, size):
            yield file.records(np.arange(start, min(start + size, run.stop)))
        return
    position = 0

    def next_size() -> int:
        left = run.start - position if position < run.start else run.stop - position
        return max(1, min(size, left))

    with split.shards.open(run.shard) as file:
        for records in file.runs(next_size):
            position += len(records)
            if position > run.start:
                yield records
            if position >= run.stop:
                return


def _piece_size(run: Run) -> int:
    """How many records of a shard are read at a time."""
    size = max(1, run.shard.bytes // max(1, run.shard.records))
    return max(1, min(PIECE_RECORDS, PIECE_BYTES // size))
