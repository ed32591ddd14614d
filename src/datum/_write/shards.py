"""Shards made in parallel, written in order, journaled when done."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from datum import _core
from datum._write.blocks import DirectSplit, WrittenBlock
from datum._write.images import ImageFacts
from datum._write.options import WriteOptions
from datum._write.report import Progress
from datum._write.staging import Staging
from datum._write.workers import WorkerProcesses, can_use_processes, describe_records, map_ordered
from datum.errors import SplitError, suggest
from datum.format import Compression, Framed, Index, RecordWriter
from datum.format.durable import write_file
from datum.format.manifest import TAIL_BYTES, ShardInfo, shard_name
from datum.format.statistics import Statistics
from datum.schema import FloatFacts, Schema
from datum.sources import Reject

__all__ = [
    "MadeShard",
    "ShardWriter",
    "SplitPlan",
    "WidenedError",
    "make_shards",
]

WRITE_BACK_BYTES = 16 * 2**20


class _ChecksummedFile:
    """A file written from start to end, with a running checksum."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.nbytes = 0
        self.crc = 0
        self._tail = b""
        self._started = 0

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self.crc = _core.crc32c(view, self.crc)
        self.nbytes += len(view)
        self._tail = (self._tail + bytes(view[-TAIL_BYTES:]))[-TAIL_BYTES:]
        while view:  # a write may be partial
            view = view[self._file.write(view) :]
        if self.nbytes - self._started >= WRITE_BACK_BYTES:
            self._start_write_back()

    def _start_write_back(self) -> None:
        """Start writing to the disk early, so that the final sync is short."""
        if hasattr(os, "posix_fadvise"):  # on Linux this starts to write dirty pages
            size = self.nbytes - self._started
            os.posix_fadvise(self._file.fileno(), self._started, size, os.POSIX_FADV_DONTNEED)
        self._started = self.nbytes

    @property
    def tail_crc(self) -> int:
        """Checksum of the last `TAIL_BYTES` bytes."""
        return _core.crc32c(self._tail)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class ShardWriter:
    """Writer of one shard, which is complete once `finish` returns."""

    def __init__(self, path: Path, *, compression: Compression | None) -> None:
        self._path = path
        self._file = _ChecksummedFile(path)
        target: Any = self._file
        self._writer = RecordWriter(target, compression=compression)

    @property
    def nbytes(self) -> int:
        """Bytes written so far."""
        return self._file.nbytes

    def write(self, framed: Framed) -> None:
        """Write records."""
        self._writer.write_framed(framed)

    def finish(self) -> ShardInfo:
        """Sync the shard and its index to the disk; `Staging.sync` syncs their names."""
        try:
            self._writer.close()
            self._file.sync()
        finally:
            self._file.close()
        file = self._file
        index = replace(self._writer.index, shard_crc32c=file.crc)
        path = Index.path_for(self._path)
        path.parent.mkdir(exist_ok=True)
        write_file(path, index.to_bytes())
        tail = file.tail_crc
        return ShardInfo(self._path.name, len(index), file.nbytes, file.crc, tail_crc32c=tail)

    def abandon(self) -> None:
        """Close the incomplete file."""
        self._file.close()


_UNMADE = ShardInfo("", 0, 0, 0)  # placeholder until the shard is on the disk
# Shards being synced while the next are made. A disk syncs many small files about as fast as one;
# a few large ones keep it busy.
_PENDING_SHARDS = 16
_PENDING_LARGE_SHARDS = 2
_PENDING_BYTES = 256 * 2**20


class WidenedError(Exception):
    """Some records need a wider schema than the one shards are made under."""

    def __init__(self, made: WrittenBlock) -> None:
        super().__init__("a block needs a wider schema")
        self.made = made


class SplitPlan(Protocol):
    """The records of one split, in stored order."""

    records: int
    nbytes: int
    schema: Schema

    def pieces(self, first: int, last: int) -> list[Any]:
        """Divide the records from `first` to before `last` into pieces of work."""
        ...

    def write_piece(self, piece: Any) -> WrittenBlock | Framed:
        """Encode the records of one piece."""
        ...


@dataclass
class MadeShard:
    """A finished shard, with statistics and rejects of its records."""

    shard: ShardInfo = _UNMADE
    statistics: Statistics = field(default_factory=Statistics)
    images: dict[str, ImageFacts] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    is_resumed: bool = False
    floats: dict[str, FloatFacts] = field(default_factory=dict)

    def add(self, made: WrittenBlock) -> None:
        """Add the statistics and rejects of a piece."""
        self.statistics = self.statistics.merge(made.statistics)
        self.rejects += made.rejects
        for name, facts in made.images.items():
            self.images.setdefault(name, ImageFacts()).merge(facts)
        for name, found in made.floats.items():
            self.floats[name] = self.floats.get(name, FloatFacts()).merge(found)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the journal, from which an interrupted run resumes."""
        return {
            "shard": asdict(self.shard),
            "statistics": self.statistics.to_json(limit=None),
            "images": {name: facts.to_json() for name, facts in self.images.items()},
            "rejects": [asdict(reject) for reject in self.rejects],
            "floats": {name: facts.to_json() for name, facts in self.floats.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> MadeShard:
        """Restore from the values of `to_json`."""
        return cls(
            ShardInfo(**found["shard"]),
            Statistics.from_json(found["statistics"]),
            {name: ImageFacts.from_json(facts) for name, facts in found["images"].items()},
            [Reject(**reject) for reject in found["rejects"]],
            is_resumed=True,
            floats={name: FloatFacts.from_json(one) for name, one in found["floats"].items()},
        )


@dataclass
class _ShardTask:
    """One shard to make."""

    split: str
    name: str
    pieces: list[Any]
    work: Callable[[Any], WrittenBlock | Framed]
    schema: Schema
    made: MadeShard = field(default_factory=MadeShard)


def make_shards(
    plans: Mapping[str, SplitPlan],
    options: WriteOptions,
    staging: Staging,
    *,
    generation: int,
    progress: Progress,
) -> dict[str, list[MadeShard]]:
    """Make all shards that an interrupted run has not finished.

    Raises WidenedError for values that need a wider schema than that of their plan.
    """
    _check_shards(plans, options)
    progress.stage("writing", sum(plan.records for plan in plans.values()))
    shards: dict[str, list[MadeShard]] = {split: [] for split in plans}
    jobs = []
    with contextlib.ExitStack() as stack:
        for split, plan in plans.items():
            work = _worker(plan, options)
            if isinstance(work, WorkerProcesses):
                stack.enter_context(work)
            for name, first, last in _shard_ranges(split, plan, options, generation):
                done = staging.load_done(name)
                if done is not None:
                    shards[split].append(MadeShard.from_json(done))
                    progress.advance(last - first, 0)
                    continue
                job = _ShardTask(split, name, plan.pieces(first, last), work, plan.schema)
                shards[split].append(job.made)
                jobs.append(job)
        _run(jobs, options, staging, progress)
    return shards


def _check_shards(plans: Mapping[str, SplitPlan], options: WriteOptions) -> None:
    for name in options.shards if isinstance(options.shards, Mapping) else ():
        if name not in plans:
            hint = suggest(name, plans, f"there are {', '.join(plans)}")
            raise SplitError(f"shards: expected the name of a split, got {name!r}", hint=hint)


def _shard_ranges(
    split: str, plan: SplitPlan, options: WriteOptions, generation: int
) -> Iterator[tuple[str, int, int]]:
    count = options.shard_count(split, records=plan.records, nbytes=plan.nbytes)
    for number in range(count):
        first, last = (plan.records * n // count for n in (number, number + 1))
        yield shard_name(split, number, count, generation=generation), first, last


def _worker(plan: SplitPlan, options: WriteOptions) -> Callable[[Any], WrittenBlock | Framed]:
    """Choose who does the work: threads, or processes where Python's lock is the limit."""
    if not isinstance(plan, DirectSplit) or not plan.part.is_slow_python:
        return plan.write_piece
    if options.cores == 1 or len(plan.pieces(0, plan.records)) == 1:
        return plan.write_piece
    if not can_use_processes(plan.write_piece):
        return plan.write_piece
    keys = plan.part.keys
    return WorkerProcesses(
        plan.write_piece,
        count=options.cores,
        describe=lambda numbers: describe_records(numbers, keys),
    )


def _run(
    jobs: list[_ShardTask], options: WriteOptions, staging: Staging, progress: Progress
) -> None:
    flat = ((job.work, piece) for job in jobs for piece in job.pieces)

    def stop() -> None:
        for job in jobs:
            if isinstance(job.work, WorkerProcesses):
                job.work.close()

    made = map_ordered(lambda pair: pair[0](pair[1]), flat, workers=options.cores, stop=stop)
    pending: deque[tuple[Future[None], int]] = deque()
    threads = ThreadPoolExecutor(_PENDING_SHARDS, "datum-sync")
    with contextlib.closing(made), threads as disk:  # type: ignore[type-var]
        for job in jobs:
            writer = ShardWriter(staging.data / job.name, compression=options.compression)
            try:
                for _ in job.pieces:
                    _write(next(made), job, writer, progress)
            except BaseException:
                writer.abandon()
                raise
            pending.append((disk.submit(_finish, job, writer, staging), writer.nbytes))
            is_much = sum(nbytes for _, nbytes in pending) > _PENDING_BYTES
            while len(pending) > (_PENDING_LARGE_SHARDS if is_much else _PENDING_SHARDS):
                pending.popleft()[0].result()
        for future, _ in pending:
            future.result()
    staging.sync()


def _write(made: Any, job: _ShardTask, writer: ShardWriter, progress: Progress) -> None:
    framed = made
    if isinstance(made, WrittenBlock):
        if made.schema != job.schema:
            raise WidenedError(made)
        framed = made.framed
        job.made.add(made)
    writer.write(framed)
    progress.advance(len(framed), framed.nbytes)


def _finish(job: _ShardTask, writer: ShardWriter, staging: Staging) -> None:
    job.made.shard = staging.keep(writer.finish())
    staging.save_done(job.name, job.made.to_json())
