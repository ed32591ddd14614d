"""Timing of contenders in turn, on a sample of records."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._read.local import LocalShard, find_local
from datum._read.shards import ShardRange
from datum._read.split import Split
from datum.format import Index
from datum.format.file import change_error, refuse_changes
from datum.format.index import FRAME_BYTES

__all__ = [
    "ROUNDS",
    "Contender",
    "Piece",
    "Sample",
    "Timing",
    "calibrate",
    "choose_records",
    "race",
    "spread",
    "take_sample",
]

ROUNDS = 5  # fewer make a poor median, more make short turns
MIN_ROUNDS = 3
PATIENCE = 1.5  # factor of its time after which a contender skips rounds
MAX_PASSES = 10_000

Clock = Callable[[], float]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Contender:
    """Work to time.

    Attributes:
        name: Name for the results.
        run: Function of the number of passes and of uncounted batches; yields all batches.
        batches: Batches per pass.
        lead: Batches at the start that are not timed, if starting is slow.
        epochs: Epochs per pass.
        passes: Passes per turn.
        clock: Clock for timing.
    """

    name: str
    run: Callable[[int], Iterable[object]]
    batches: int
    lead: int = 0
    epochs: int = 1
    passes: int = 1
    clock: Clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per epoch, one number for each turn.

    >>> timing = Timing((1.0, 9.0, 2.0))
    >>> timing.median, timing.spread
    (2.0, 1.0)
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median, which ignores lucky and disturbed turns."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the interquartile range, relative to the median."""
        if len(self.seconds) < 2 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median


def calibrate(contender: Contender, *, turn_s: float) -> int:
    """Find the number of passes that fill a turn; warms up the contender."""
    elapsed_s = _time(contender, 1)
    if elapsed_s < turn_s:  # the first pass also opens files, traces functions, starts workers
        elapsed_s = _time(contender, 1)
    return max(1, min(MAX_PASSES, round(turn_s / max(elapsed_s, 1e-9))))


def race(
    contenders: Sequence[Contender],
    *,
    seconds: float,
    progress: Progress | None = None,
) -> Mapping[str, Timing]:
    """Time all contenders in rounds; each round starts with the next contender.

    No contender takes much more than `seconds`: slow ones skip the last rounds.
    """
    with _settled():
        return _race(contenders, seconds, progress)


@contextmanager
def _settled() -> Iterator[None]:
    """Keep the garbage collector from scanning objects of frameworks during a turn."""
    if gc.get_freeze_count():  # frozen by the user, who must unfreeze it
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _race(
    contenders: Sequence[Contender], seconds: float, progress: Progress | None
) -> Mapping[str, Timing]:
    taken: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    spent = dict.fromkeys(taken, 0.0)
    for turn in range(ROUNDS):
        first = turn % max(1, len(contenders))
        for at, contender in enumerate((*contenders[first:], *contenders[:first])):
            name = contender.name
            if progress is not None:
                progress(turn * len(contenders) + at, ROUNDS * len(contenders))
            if _may_run(len(taken[name]), spent[name], seconds):
                begun = time.perf_counter()
                elapsed_s = _time(contender, contender.passes)
                taken[name].append(elapsed_s / contender.passes / contender.epochs)
                spent[name] += time.perf_counter() - begun
    return {name: Timing(tuple(found)) for name, found in taken.items()}


def _may_run(turns: int, spent_s: float, seconds: float) -> bool:
    if not turns:
        return True
    next_s = spent_s + spent_s / turns
    return next_s <= PATIENCE * seconds * (1 if turns >= MIN_ROUNDS else 2)


def _time(contender: Contender, passes: int) -> float:
    clock = contender.clock
    count = 0
    start = clock()
    for _ in contender.run(passes):
        count += 1
        if count == contender.lead:
            start = clock()
    elapsed_s = clock() - start
    expected = contender.lead + passes * contender.batches
    if count != expected:
        raise RuntimeError(f"{contender.name}: expected {expected} batches, got {count}")
    return elapsed_s


PART_OF_TURN = 0.2
FEW_BATCHES = 4
SHARDS = 4  # that records are taken from, as many as interleaving readers open
MAX_SHARDS = 256  # where shards are tiny
MAX_COMPRESSED_BYTES = 64 * 2**20  # a shard is inflated as a whole


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Consecutive records of one uncompressed file.

    Attributes:
        path: Shard, or its inflated copy.
        first: Number of the first record in its shard.
        offsets: Start of each record.
        lengths: Payload size of each record.
    """

    path: Path
    first: int
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @property
    def start(self) -> int:
        """Offset of the first byte."""
        return int(self.offsets[0])

    @property
    def end(self) -> int:
        """Offset after the last byte."""
        return int(self.offsets[-1] + self.lengths[-1]) + FRAME_BYTES

    def read(self) -> NDArray[np.uint8]:
        """Read the bytes from `start` to `end`; raise CorruptRecordError if they are missing."""
        content = _core.MappedFile(self.path)
        if len(content) < self.end:
            raise change_error(str(self.path), self.end, "cut", len(content))
        with refuse_changes(str(self.path), content):
            return content.read(self.start, self.end - self.start)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Records of a split and their bytes.

    Attributes:
        split: Split of these records only.
        pieces: Their bytes in uncompressed files.
    """

    split: Split
    pieces: tuple[Piece, ...]

    @property
    def records(self) -> int:
        """Number of records."""
        return len(self.split)

    @property
    def bytes(self) -> int:
        """Uncompressed size of the records."""
        return sum(piece.end - piece.start for piece in self.pieces)


def choose_records(*, available: int, batch_size: int, record_s: float, turn_s: float) -> int:
    """Number of records of a sample, in whole batches, from the seconds per record.

    A pass should take a small part of a turn, because other loaders may take ten times as long for
    small records. But it has a few batches, if time allows, and at least one.

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
    """Choose runs and the number of records of each: equal parts of evenly spaced runs.

    >>> spread([100] * 8, 60)
    [(0, 15), (2, 15), (4, 15), (6, 15)]
    >>> spread([5, 100], 60)
    [(0, 5), (1, 55)]
    """
    wanted = min(wanted, sum(lengths))
    needed = -(-wanted * len(lengths) // max(1, sum(lengths)))  # assuming equal lengths
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
    """Sample records of a split, slightly fewer if its shards are tiny."""
    runs = list(split.runs)
    is_compressed = any(run.shard.compression is not None for run in runs)
    parts = spread([len(run) for run in runs], wanted, _inflated(runs) if is_compressed else SHARDS)
    chosen = [
        ShardRange(runs[at].shard, runs[at].start, runs[at].start + count)
        for at, count in parts[:MAX_SHARDS]
    ]
    split.shards.hold_all(chosen)
    taken = Split(split.name, split.schema, split.shards, chosen)
    return Sample(taken, tuple(_piece(find_local(split.shards, run.shard), run) for run in chosen))


def _inflated(runs: Sequence[ShardRange]) -> int:
    """Number of compressed shards that inflate quickly."""
    mean = sum(run.shard.bytes for run in runs) / len(runs)
    return max(1, min(SHARDS, int(MAX_COMPRESSED_BYTES / max(1.0, mean))))


def _piece(local: LocalShard, run: ShardRange) -> Piece:
    if local.offsets is not None:  # good records among damaged ones
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
