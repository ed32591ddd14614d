"""Making the shards: pieces of work done side by side, written in order, noted when done."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from datum.errors import SplitError, suggest
from datum.format import Framed
from datum.format.manifest import ShardInfo
from datum.format.naming import shard_name
from datum.format.statistics import Statistics
from datum.schema import FloatFacts, Schema
from datum.sources import Reject
from datum.writing.block_writer import WrittenBlock
from datum.writing.direct import DirectSplit
from datum.writing.options import WriteOptions
from datum.writing.pictures import ImageFacts
from datum.writing.pool import (
    WorkerProcesses,
    can_use_processes,
    describe_records,
    map_ordered,
)
from datum.writing.progress import Progress
from datum.writing.shard import ShardWriter
from datum.writing.staging import Staging

__all__ = ["MadeShard", "SplitPlan", "WidenedError", "make_shards"]

_UNMADE = ShardInfo("", 0, 0, 0)  # until it is on the disk
# Shards on their way to the disk while the next are made. A disk confirms many small files at once
# about as fast as one; a few large ones keep it busy.
_PENDING_SHARDS = 16
_PENDING_LARGE_SHARDS = 2
_PENDING_BYTES = 256 * 2**20


class WidenedError(Exception):
    """Records did not fit the schema under which shards are made, but only a wider one."""

    def __init__(self, made: WrittenBlock) -> None:
        super().__init__("a block was written under a wider schema")
        self.made = made


class SplitPlan(Protocol):
    """The records of one split in the order in which they are stored."""

    records: int
    nbytes: int
    schema: Schema

    def pieces(self, first: int, last: int) -> list[Any]:
        """The records from `first` to before `last`, in pieces of work."""
        ...

    def write_piece(self, piece: Any) -> WrittenBlock | Framed:
        """Make the records of one piece."""
        ...


@dataclass
class MadeShard:
    """A shard, and what was found out while it was made."""

    shard: ShardInfo = _UNMADE
    statistics: Statistics = field(default_factory=Statistics)
    images: dict[str, ImageFacts] = field(default_factory=dict)
    rejects: list[Reject] = field(default_factory=list)
    is_resumed: bool = False
    floats: dict[str, FloatFacts] = field(default_factory=dict)

    def add(self, made: WrittenBlock) -> None:
        """Count what was found out about a piece."""
        self.statistics = self.statistics.merge(made.statistics)
        self.rejects += made.rejects
        for name, facts in made.images.items():
            self.images.setdefault(name, ImageFacts()).merge(facts)
        for name, found in made.floats.items():
            self.floats[name] = self.floats.get(name, FloatFacts()).merge(found)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the next run if this one is interrupted."""
        return {
            "shard": asdict(self.shard),
            "statistics": self.statistics.to_json(limit=None),
            "images": {name: facts.to_json() for name, facts in self.images.items()},
            "rejects": [asdict(reject) for reject in self.rejects],
            "floats": {name: facts.to_json() for name, facts in self.floats.items()},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> MadeShard:
        """Read what `to_json` made."""
        return cls(
            ShardInfo(**found["shard"]),
            Statistics.from_json(found["statistics"]),
            {name: ImageFacts.from_json(facts) for name, facts in found["images"].items()},
            [Reject(**reject) for reject in found["rejects"]],
            is_resumed=True,
            floats={name: FloatFacts.from_json(one) for name, one in found["floats"].items()},
        )


@dataclass
class _Job:
    """One shard that is to be made."""

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
    """Make all shards that an earlier run has not made already.

    Raises WidenedError when values need a wider schema than that of their plan.
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
                job = _Job(split, name, plan.pieces(first, last), work, plan.schema)
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
    """What does a piece of work: this process, or others where the interpreter is the limit."""
    if not isinstance(plan, DirectSplit) or not plan.part.is_slow_python:
        return plan.write_piece
    if options.workers == 1 or len(plan.pieces(0, plan.records)) == 1:
        return plan.write_piece
    if not can_use_processes(plan.write_piece):
        return plan.write_piece
    keys = plan.part.keys
    return WorkerProcesses(
        plan.write_piece,
        count=options.workers,
        describe=lambda numbers: describe_records(numbers, keys),
    )


def _run(jobs: list[_Job], options: WriteOptions, staging: Staging, progress: Progress) -> None:
    flat = ((job.work, piece) for job in jobs for piece in job.pieces)

    def stop() -> None:
        for job in jobs:
            if isinstance(job.work, WorkerProcesses):
                job.work.close()

    made = map_ordered(lambda pair: pair[0](pair[1]), flat, workers=options.workers, stop=stop)
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


def _write(made: Any, job: _Job, writer: ShardWriter, progress: Progress) -> None:
    framed = made
    if isinstance(made, WrittenBlock):
        if made.schema != job.schema:
            raise WidenedError(made)
        framed = made.framed
        job.made.add(made)
    writer.write(framed)
    progress.advance(len(framed), framed.nbytes)


def _finish(job: _Job, writer: ShardWriter, staging: Staging) -> None:
    job.made.shard = writer.finish()
    staging.save_done(job.name, job.made.to_json())
