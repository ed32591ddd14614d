"""Sources of unknown schema or length, taken in before the first shard is made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._write.blocks import (
    BLOCK_RECORDS,
    BlockSettings,
    BlockWriter,
    CollectedBlock,
    PartWriter,
    WrittenBlock,
    block_bounds,
    join_framed,
)
from datum._write.division import Division, split_of_reject
from datum._write.images import ImageFacts
from datum._write.options import WriteOptions
from datum._write.order import KeyLedger, hash_records, shuffled_places
from datum._write.parts import Intake, block_ranges, blocks_of
from datum._write.progress import Progress
from datum._write.spill import Run, Spill
from datum._write.workers import WorkerProcesses, can_use_processes, describe_records, map_ordered
from datum.errors import SchemaError, SourceError
from datum.format import Framed, RowEncoder, Statistics, parse
from datum.schema import FloatFacts, Schema, widened
from datum.sources import Block, IndexedPart, Reject
from datum.sources.protocol import Part, Stored

__all__ = [
    "RunPiece",
    "SpilledSplit",
    "Taken",
    "take_in",
]


@dataclass
class SplitTaken:
    """What was taken in of one split."""

    spill: Spill
    statistics: Statistics = field(default_factory=Statistics)
    rejects: list[Reject] = field(default_factory=list)
    duplicates: set[int] = field(default_factory=set)
    floats: dict[str, FloatFacts] = field(default_factory=dict)

    def runs(self, schema: Schema) -> list[Run]:
        """The records, in the order of their places."""
        is_recounted = bool(self.duplicates) or self.spill.changes_floats(schema)
        self.spill.settle(schema)
        runs = self.spill.runs(dropped=self.duplicates)
        if is_recounted:
            self.statistics = _count_again(runs, schema)
        return runs


@dataclass
class Taken:
    """What was taken in of all splits, and the schema that holds it."""

    splits: dict[str, SplitTaken]
    schema: Schema
    images: dict[str, ImageFacts]


def take_in(
    intake: Intake,
    settings: BlockSettings,
    options: WriteOptions,
    *,
    division: Division | None,
    folder: Path,
    progress: Progress,
) -> Taken:
    """Read all parts, make their records, and keep them until it is known where they go."""
    splits = {
        name: SplitTaken(
            Spill(folder / name, is_shuffled=options.shuffle, sharers=len(intake.splits))
        )
        for name in intake.splits
    }
    images: dict[str, ImageFacts] = {}
    writer = BlockWriter(settings, threads=1 if options.workers > 1 else 2)
    progress.stage("reading", _total(intake))
    for name, part in intake.parts.items():
        ledger = KeyLedger(folder / f"{name}.keys")
        for split, written in _write_blocks(name, part, division, writer, options):
            _keep(splits[split], written, ledger, options)
            for feature, facts in written.images.items():
                images.setdefault(feature, ImageFacts()).merge(facts)
            progress.advance(len(written.numbers), written.framed.nbytes)
        _drop_duplicates(ledger.find_duplicates(), name, splits, division, options)
    return Taken(splits, _widen(writer.schema, splits, settings.watched), images)


def _widen(schema: Schema, splits: Mapping[str, SplitTaken], watched: Collection[str]) -> Schema:
    """The schema with float64 for each watched feature that float32 cannot serve."""
    wide = {
        name
        for split in splits.values()
        for name, facts in split.floats.items()
        if name in watched and facts.wide is not None and schema[name].dtype == "float32"
    }
    features = {name: widened(one) if name in wide else one for name, one in schema.items()}
    return Schema(features) if wide else schema


def _total(intake: Intake) -> int | None:
    lengths = [len(part) for part in intake.parts.values() if isinstance(part, IndexedPart)]
    return sum(lengths) if len(lengths) == len(intake.parts) else None


def _write_blocks(
    name: str, part: Part, division: Division | None, writer: BlockWriter, options: WriteOptions
) -> Iterator[tuple[str, WrittenBlock]]:
    """The records of a part, with the split they belong to."""
    if isinstance(part, IndexedPart) and part.is_slow_python and options.workers > 1:
        work = PartWriter(part, writer.settings)
        if can_use_processes(work):
            yield from _write_elsewhere(name, part, division, work, writer, options)
            return
    divided: Iterator[tuple[str, Block]]
    if division is None:
        divided = ((name, block) for block in blocks_of(part))
    else:
        divided = _divide(part, division)

    def prepare(pair: tuple[str, Block]) -> tuple[str, Any]:
        return pair[0], writer.prepare(pair[1])

    def collect() -> Iterator[tuple[str, CollectedBlock]]:
        for split, prepared in map_ordered(prepare, divided, workers=options.workers):
            yield split, writer.collect(*prepared)

    # Values are taken out of Python's objects here, while others make records of those before.
    yield from map_ordered(
        lambda pair: (pair[0], pair[1].finish()), collect(), workers=options.workers
    )


def _write_elsewhere(
    name: str,
    part: IndexedPart,
    division: Division | None,
    work: PartWriter,
    writer: BlockWriter,
    options: WriteOptions,
) -> Iterator[tuple[str, WrittenBlock]]:
    """The same in worker processes: they are given numbers, and read the records themselves.

    They know nothing of the records before. A block that does not go well with those is done
    again here, so that the outcome is the same as if all were.
    """

    def pieces() -> Iterator[tuple[str, NDArray[np.int64]]]:
        for first, last in block_ranges(part):
            numbers = np.arange(first, last)
            if division is None:
                yield name, numbers
                continue
            keys = None if part.keys is None else [part.keys[number] for number in numbers.tolist()]
            splits = division.splits_of(numbers, keys)
            for at, split in enumerate(division.fractions):
                if (splits == at).any():
                    yield split, numbers[splits == at]

    def write(piece: tuple[str, NDArray[np.int64]]) -> tuple[str, Any, Any]:
        try:
            return *piece, processes(piece[1])
        except (SchemaError, SourceError):
            return *piece, None

    with WorkerProcesses(
        work, count=options.workers, describe=lambda numbers: describe_records(numbers, part.keys)
    ) as processes:
        done = map_ordered(write, pieces(), workers=options.workers, stop=processes.close)
        for split, numbers, written in done:
            if written is None or written.rejects or not _learns(writer, written):
                yield split, writer.write(part.read(numbers))
            else:
                yield split, written


def _learns(writer: BlockWriter, written: WrittenBlock) -> bool:
    try:
        if written.guess is not None:
            writer.learn(written.guess)
    except SchemaError:
        return False
    return True


def _divide(part: Part, division: Division) -> Iterator[tuple[str, Block]]:
    """Each block as one block for each split that has records in it."""
    for block in blocks_of(part):
        found = division.splits_of(block.numbers, block.keys)
        lost = [split_of_reject(reject, division) for reject in block.rejects]
        for at, name in enumerate(division.fractions):
            rejects = [
                reject for reject, split in zip(block.rejects, lost, strict=True) if split == at
            ]
            taken = _select(block, np.flatnonzero(found == at))
            if len(taken) or rejects:
                yield name, replace(taken, rejects=rejects)


def _select(block: Block, at: NDArray[np.intp]) -> Block:
    keys = None if block.keys is None else [block.keys[i] for i in at.tolist()]
    data: Any = block.data
    if isinstance(data, list):
        data = [data[i] for i in at.tolist()]
    elif isinstance(data, Stored):
        data = data.take(at)
    else:
        data = {name: column[at] for name, column in data.items()}
    return Block(data, block.numbers[at], keys, locate=_locate_at(block.locate, at.tolist()))


def _locate_at(
    locate: Callable[[int], str] | None, places: list[int]
) -> Callable[[int], str] | None:
    """The same for records taken out of a block."""
    return None if locate is None else lambda at: locate(places[at])


def _keep(
    taken: SplitTaken, written: WrittenBlock, ledger: KeyLedger, options: WriteOptions
) -> None:
    hashes = hash_records(written.numbers, written.keys)
    if written.keys is not None:
        ledger.add(hashes, written.numbers, written.keys)
    if options.shuffle:
        places = shuffled_places(hashes, options.seed)
    else:
        places = written.numbers.astype(np.uint64)
    taken.spill.add(written.framed, places, written.numbers, written.schema, written.exact)
    taken.rejects += written.rejects
    for name, facts in written.floats.items():
        taken.floats[name] = taken.floats.get(name, FloatFacts()).merge(facts)
    taken.statistics = taken.statistics.merge(written.statistics)


def _count_again(runs: list[Run], schema: Schema) -> Statistics:
    """The statistics of records that were dropped, or widened, after they were counted."""
    encoder = RowEncoder(schema)
    statistics = Statistics()
    for framed in _blocks_of_runs(runs, schema):
        statistics = statistics.merge(encoder.encode(parse(framed, schema)).statistics)
    return statistics


def _blocks_of_runs(runs: list[Run], schema: Schema) -> Iterator[Framed]:
    """Blocks of the same records however these are parted into runs: sums depend on that."""
    held: list[Framed] = []
    left = BLOCK_RECORDS
    for run in runs:
        first = 0
        while first < run.records:
            last = min(first + left, run.records)
            held.append(run.take(first, last, schema, threads=1))
            left -= last - first
            first = last
            if not left:
                yield join_framed(held)
                held, left = [], BLOCK_RECORDS
    if held:
        yield join_framed(held)


def _drop_duplicates(
    duplicates: list[Reject],
    part_name: str,
    splits: dict[str, SplitTaken],
    division: Division | None,
    options: WriteOptions,
) -> None:
    if duplicates and options.on_error == "raise":
        raise SourceError(duplicates[0].message)
    for reject in duplicates:
        split = part_name
        if division is not None:
            split = list(division.fractions)[split_of_reject(reject, division)]
        splits[split].duplicates.add(reject.record)
        splits[split].rejects.append(reject)


@dataclass(frozen=True, slots=True, eq=False)
class RunPiece:
    """Some records of a run, that follow one another in the order of the split."""

    run: Run
    first: int
    last: int


class SpilledSplit:
    """A split whose records lie in runs, each put in order when its first shard needs it."""

    def __init__(self, runs: list[Run], schema: Schema) -> None:
        self._runs = runs
        self.schema = schema
        self._starts = np.cumsum([0, *(run.records for run in runs)])
        self.records = int(self._starts[-1])
        self.nbytes = sum(run.nbytes for run in runs)

    def pieces(self, first: int, last: int) -> list[RunPiece]:
        """The records from `first` to before `last`, in pieces that each lie in one run."""
        record_bytes = self.nbytes / max(self.records, 1)
        found = []
        for run, start in zip(self._runs, self._starts.tolist(), strict=False):
            bounds = max(first - start, 0), min(last - start, run.records)
            found += [RunPiece(run, a, b) for a, b in block_bounds(*bounds, record_bytes)]
        return found

    def write_piece(self, piece: RunPiece) -> Framed:
        """The records of a piece."""
        return piece.run.take(piece.first, piece.last, self.schema, threads=1)
