"""Counting of the records of a split, in pieces on several threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._inspect.profile.results import Duplicates
from datum._inspect.profile.tally import FeatureTally, PayloadTally, tally_column, tally_payloads
from datum._read.shards import ShardRange
from datum._read.split import Split
from datum.errors import DatumError, Message
from datum.format import Index, Parser, Records
from datum.schema import Schema

__all__ = [
    "Failure",
    "HashedRecords",
    "Piece",
    "SplitTally",
    "count_split",
    "find_duplicates",
    "hash_payloads",
    "read_pieces",
]

PIECE_RECORDS = 32768  # counted at a time
PIECE_BYTES = 16 * 2**20
GATHERED_BYTES = 4 * PIECE_BYTES  # of a sample; fewer, larger pieces are faster
SAMPLED_BLOCKS = 32  # a block of neighbours is one read
SCANNED_BYTES = 256 * 2**20  # limit for scanning a file without an index


@dataclass(frozen=True, slots=True)
class Piece:
    """Some records of a split, with their numbers."""

    records: Records
    numbers: NDArray[np.int64]

    @classmethod
    def join(cls, pieces: Sequence[Piece]) -> Piece:
        """Copy several into one."""
        numbers = np.concatenate([piece.numbers for piece in pieces])
        return cls(Records.join([piece.records for piece in pieces]), numbers)


@dataclass(frozen=True, slots=True)
class Failure:
    """A shard that cannot be read, and why."""

    shard: str
    text: str

    @classmethod
    def of(cls, error: Exception, file: str) -> Failure:
        """Text of an error without the file and the hint."""
        return cls(Path(file).name, Message.of(error).beside(file))


@dataclass(frozen=True, slots=True)
class _Block:
    """Neighbouring records of a shard.

    Attributes:
        first: Number of the first record in the split.
        is_leading: Whether the block starts its shard and is read sequentially.
    """

    run: ShardRange
    first: int
    is_leading: bool


def read_pieces(split: Split, sample: int | None) -> Iterator[Piece | Failure]:
    """Yield all records of a split in order, or `sample` of them spread over it.

    A shard that cannot be read is reported and skipped.
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
    """Join blocks, because counting has a cost per piece."""
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


def _numbered(split: Split) -> Iterator[tuple[ShardRange, int]]:
    """Runs of a split with the number of their first record."""
    first = 0
    for run in split.runs:
        yield run, first
        first += len(run)


def _can_jump(split: Split) -> bool:
    """Return whether records can be read without reading those before them."""
    if any(run.shard.compression is not None for run in split.runs):
        return False
    if sum(run.shard.bytes for run in split.runs) <= SCANNED_BYTES:
        return True
    folder, is_own = split.shards.folder, split.shards.writer == "datum"
    return is_own and Index.find(folder / split.runs[0].shard.name) is not None


def _spread(split: Split, sample: int) -> list[_Block]:
    """Blocks at even distances, from the start to the end of the split."""
    count = min(SAMPLED_BLOCKS, sample)
    sizes = np.diff(np.linspace(0, sample, count + 1).astype(np.int64)).tolist()
    starts = np.linspace(0, len(split) - sizes[-1], count).astype(np.int64).tolist()
    found: list[_Block] = []
    end = 0
    for start, size in zip(starts, sizes, strict=True):
        first = max(start, end)  # in a small split, blocks may touch
        end = min(first + size, len(split))
        for run, offset in _numbered(split[first:end]):
            found.append(_Block(run, first + offset, False))
    return found


def _leading(split: Split, sample: int) -> list[_Block]:
    """First records of shards at even distances, where others need a sequential read."""
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
            found.append(_Block(ShardRange(run.shard, run.start, run.start + size), first, True))
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


def _piece_size(run: ShardRange) -> int:
    """Number of records of a shard to read at once."""
    size = max(1, run.shard.bytes // max(1, run.shard.records))
    return max(1, min(PIECE_RECORDS, PIECE_BYTES // size))


SHOWN_PAIRS = 5


@dataclass(frozen=True, slots=True)
class HashedRecords:
    """Hashes of payloads, with the numbers of their records."""

    hashes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    is_all: bool


def hash_payloads(records: Records) -> NDArray[np.int64]:
    """Hash payloads to 64 bits; a billion of them collide in one of 40 datasets."""
    return np.fromiter(map(hash, records), np.int64, len(records))


def find_duplicates(splits: Mapping[str, HashedRecords]) -> tuple[Duplicates, ...]:
    """Find duplicates within each split and across splits."""
    found = [_within(name, split) for name, split in splits.items()]
    found += [
        _across(name, other, splits[name], splits[other]) for other, name in combinations(splits, 2)
    ]
    return tuple(one for one in found if one.records)


def _within(name: str, split: HashedRecords) -> Duplicates:
    order = np.argsort(split.hashes, kind="stable")
    again = np.flatnonzero(split.hashes[order[1:]] == split.hashes[order[:-1]])
    # Hashes and their order vary between runs: report the first in the split.
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


@dataclass(frozen=True, slots=True)
class SplitTally:
    """Counts of the records of a split.

    Attributes:
        seen: Number of records read.
        features: Counts by feature.
        payloads: Counts of payloads, if there are no features.
        hashed: Hashes of the payloads.
        failures: Shards that could not be read, one failure each.
    """

    seen: int
    features: Mapping[str, FeatureTally]
    payloads: PayloadTally | None
    hashed: HashedRecords
    failures: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts of one piece, or its failures."""

    piece: Piece
    hashes: Any
    features: Mapping[str, FeatureTally] = field(default_factory=dict)
    payloads: PayloadTally | None = None
    failures: list[Failure] = field(default_factory=list)


def count_split(
    split: Split,
    schema: Schema,
    *,
    sample: int | None,
    classes: Container[str],
    threads: int,
    progress: Callable[[int], None],
) -> SplitTally:
    """Count all records of a split, or a `sample`; `classes` are features with class names.

    `progress` is called with the number of records done.
    """
    # Without defaults, so that missing values show.
    parser = Parser(Schema({name: replace(one, default=None) for name, one in schema.items()}))
    failures: list[Failure] = []
    features: dict[str, FeatureTally] = {name: FeatureTally() for name in schema}
    payloads: PayloadTally | None = None
    hashes, numbers = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    seen = 0

    def pieces() -> Iterator[Piece]:
        for piece in read_pieces(split, sample):
            if isinstance(piece, Failure):
                failures.append(piece)
            else:
                yield piece

    def count(piece: Piece) -> _Counted:
        return _count_piece(parser, piece, classes)

    for counted in _in_order(count, pieces(), threads):
        failures += counted.failures
        if counted.hashes is None:
            continue
        seen += len(counted.piece.records)
        hashes.append(counted.hashes)
        numbers.append(counted.piece.numbers)
        for name, tally in counted.features.items():
            features[name] = features[name].merge(tally)
        if counted.payloads is not None:
            payloads = payloads.merge(counted.payloads) if payloads else counted.payloads
        progress(seen)
    is_all = seen == len(split)
    hashed = HashedRecords(np.concatenate(hashes), np.concatenate(numbers), is_all)
    by_shard = {failure.shard: failure for failure in reversed(failures)}  # the first of each
    return SplitTally(seen, features, payloads, hashed, tuple(by_shard.values())[::-1])


def _count_piece(parser: Parser, piece: Piece, classes: Container[str]) -> _Counted:
    records = piece.records
    try:
        columns = parser.parse(records, threads=1) if parser.schema else {}
    except DatumError:  # a record does not match the schema
        sound, failures = _divide(parser, piece)
        if sound is None:
            return _Counted(piece, None, failures=failures)
        return replace(_count_piece(parser, sound, classes), failures=failures)
    features = {
        name: tally_column(parser.schema[name], column, has_classes=name in classes)
        for name, column in columns.items()
    }
    payloads = None if parser.schema else tally_payloads(records)
    return _Counted(piece, hash_payloads(records), features, payloads)


def _divide(parser: Parser, piece: Piece) -> tuple[Piece | None, list[Failure]]:
    """Split a piece into parts that can be parsed, and failures."""
    kept: list[Piece] = []
    failures: list[Failure] = []
    start = 0
    for part in piece.records.parts or (piece.records,):
        numbers = piece.numbers[start : start + len(part)]
        start += len(part)
        try:
            parser.parse(part, threads=1)
        except DatumError as error:
            failures.append(Failure.of(error, part.file))
        else:
            kept.append(Piece(part, numbers))
    return (Piece.join(kept) if kept else None), failures


def _in_order(
    count: Callable[[Piece], _Counted], pieces: Iterator[Piece], threads: int
) -> Iterator[_Counted]:
    """Yield `count(piece)` in order, while this thread reads ahead."""
    if threads == 1:
        yield from map(count, pieces)
        return
    with ThreadPoolExecutor(threads, "datum-profile") as pool:
        pending: deque[Future[_Counted]] = deque()
        try:
            for piece in pieces:
                pending.append(pool.submit(count, piece))
                if len(pending) > threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()
