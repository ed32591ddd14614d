"""Where the records of a split lie: stretches of shards that one reader each can go through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum.format import Compression, Index
from datum.format.index import FRAME_BYTES
from datum.reading import Split
from datum.reading.batches import Run
from datum.reading.shards import Shards

__all__ = [
    "Block",
    "BlockTable",
    "Stretch",
    "bytes_of",
    "cut_blocks",
    "find_stretches",
    "stretches_between",
    "unindexed_stretch",
]

# The blocks are a constant of the graph, of some 50 bytes each.
MAX_BLOCKS = 2**16
# To find where records start in shards without an index reads a page of each record.
MAX_SCANNED_BYTES = 4 * 2**30
# How much larger records are than in a compressed file, roughly: numbers and text come to that.
INFLATION = 4
_TF_COMPRESSION: dict[Compression | None, str] = {None: "", "gzip": "GZIP", "zlib": "ZLIB"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """Records of one file that follow one another.

    Attributes:
        path: the file.
        compression: as TensorFlow names it.
        first: the number of the first record in its shard, for messages.
        records: how many there are.
        starts: where each record starts and the last one ends; None where that is not known, or
            of no use because the file is compressed: it is read from its start then.
        bytes: how many bytes they take; an estimate if the file is compressed.
    """

    path: str
    compression: str
    first: int
    records: int
    starts: NDArray[np.int64] | None
    bytes: int


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a stretch: `records` from byte `offset`, after `skipped` ones."""

    path: str
    compression: str
    offset: int
    skipped: int
    first: int
    records: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BlockTable:
    """The blocks of a split, in the order of its records.

    Attributes:
        blocks: they.
        block_records: if not None, no block has more records than that.
    """

    blocks: Sequence[Block]
    block_records: int | None

    @property
    def records(self) -> int:
        """How many records there are in all."""
        return sum(block.records for block in self.blocks)

    @property
    def bytes(self) -> int:
        """How many bytes of the files they take."""
        return sum(block.bytes for block in self.blocks)

    @property
    def record_bytes(self) -> int:
        """How many bytes a record has on average, as far as it can be told; at least 1."""
        return max(1, self.bytes // max(1, self.records))

    def columns(self) -> tuple[NDArray[np.str_], NDArray[np.str_], NDArray[np.int64]]:
        """Paths, compressions, and a row of numbers for each block, as a graph can hold them."""
        paths = np.array([block.path for block in self.blocks], np.str_)
        compressions = np.array([block.compression for block in self.blocks], np.str_)
        numbers = [(b.offset, b.skipped, b.first, b.records, b.bytes) for b in self.blocks]
        return paths, compressions, np.array(numbers, np.int64).reshape(-1, 5)


def bytes_of(split: Split) -> int:
    """How many bytes of the files the records of a split take, about."""
    return sum(run.shard.bytes * len(run) // max(1, run.shard.records) for run in split.runs)


def find_stretches(split: Split) -> list[Stretch]:
    """Where the records of a split lie, if all of them are sound."""
    shards = split.shards
    plain = [run for run in split.runs if run.shard.compression is None]
    unindexed = sum(run.shard.bytes for run in plain if not _has_index(shards, run))
    may_scan = unindexed <= MAX_SCANNED_BYTES
    return [_find_stretch(shards, run, may_scan=may_scan) for run in split.runs]


def _path(shards: Shards, run: Run) -> Path:
    return shards.folder / run.shard.name


def _has_index(shards: Shards, run: Run) -> bool:
    is_ours = shards.writer == "datum"  # others have files of that name that are something else
    return is_ours and Index.find(_path(shards, run)) is not None


def _find_stretch(shards: Shards, run: Run, *, may_scan: bool) -> Stretch:
    path = _path(shards, run)
    if run.shard.compression is None and (may_scan or _has_index(shards, run)):
        index = shards.open_indexed(run.shard).index
        ends = np.append(index.offsets, index.stream_bytes)
        starts = ends[run.start : run.stop + 1]
        nbytes = int(starts[-1] - starts[0])
        return Stretch(str(path), "", run.start, len(run), starts, nbytes)
    shards.open(run.shard).close()  # refuses a file that is not the one described
    return unindexed_stretch(path, run, len(run))


def unindexed_stretch(path: Path, run: Run, records: int) -> Stretch:
    """The records of a run that have to be found from the start of their file."""
    nbytes = run.shard.bytes * len(run) // max(1, run.shard.records)
    nbytes *= 1 if run.shard.compression is None else INFLATION
    compression = _TF_COMPRESSION[run.shard.compression]
    return Stretch(str(path), compression, run.start, records, None, nbytes)


def cut_blocks(stretches: Iterable[Stretch], *, block_records: int) -> BlockTable:
    """Blocks of at most `block_records`, where it is known where records start."""
    stretches = [stretch for stretch in stretches if stretch.records]
    total = sum(stretch.records for stretch in stretches)
    size = max(block_records, -(-total // MAX_BLOCKS))
    blocks = [block for stretch in stretches for block in _cut(stretch, size)]
    is_cut = all(stretch.starts is not None for stretch in stretches)
    return BlockTable(blocks, size if is_cut else None)


def _cut(stretch: Stretch, size: int) -> Iterator[Block]:
    path, compression, first = stretch.path, stretch.compression, stretch.first
    if stretch.starts is None:
        yield Block(path, compression, 0, first, first, stretch.records, stretch.bytes)
        return
    for begin in range(0, stretch.records, size):
        end = min(begin + size, stretch.records)
        offset, stop = int(stretch.starts[begin]), int(stretch.starts[end])
        yield Block(path, compression, offset, 0, first + begin, end - begin, stop - offset)


def stretches_between(
    path: str, numbers: NDArray[np.int64], starts: NDArray[np.int64], lengths: NDArray[np.int64]
) -> Iterator[Stretch]:
    """The stretches that some records of a file form, where others between them are damaged."""
    if not len(starts):
        return
    ends = starts + lengths + FRAME_BYTES
    breaks = np.flatnonzero(starts[1:] != ends[:-1]) + 1
    for part in np.split(np.arange(len(starts)), breaks):
        places = np.append(starts[part], ends[part[-1]])
        nbytes = int(places[-1] - places[0])
        yield Stretch(path, "", int(numbers[part[0]]), len(part), places, nbytes)
