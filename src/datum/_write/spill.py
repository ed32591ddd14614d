"""Sources of unknown schema or length: read once, sorted on disk in bounded memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._write.blocks import (
    BLOCK_RECORDS,
    BlockSettings,
    BlockWriter,
    CollectedBlock,
    PartWriter,
    WrittenBlock,
    block_bounds,
    block_ranges,
    blocks_of,
    join_framed,
)
from datum._write.images import ImageFacts
from datum._write.options import WriteOptions
from datum._write.order import (
    Division,
    Hashes,
    KeyLedger,
    hash_records,
    shuffled_places,
    split_of_reject,
)
from datum._write.parts import Intake
from datum._write.report import Progress
from datum._write.workers import WorkerProcesses, can_use_processes, describe_records, map_ordered
from datum.errors import SchemaError, SourceError
from datum.format import ExactRecords, Framed, RowEncoder, Statistics, parse, reencode, stores_alike
from datum.format.framing import HEADER_BYTES, Records
from datum.format.index import FRAME_BYTES
from datum.schema import FloatFacts, Schema, widened
from datum.sources import Block, IndexedPart, Reject
from datum.sources.protocol import Part, SerializedRecords

__all__ = [
    "ReadResult",
    "RunRange",
    "SortedRun",
    "Spill",
    "SpilledSplit",
    "read_parts",
]

HELD_BYTES = 128 * 2**20  # held in memory before records go to disk; sorting takes as much again
MAX_RUN_BYTES = 256 * 2**20  # sorted at once
_NOTHING = np.empty(0, np.uint8)
_BUCKET_BITS = 8  # 256 files, which each receive about half a megabyte at a flush

# One entry per record, beside its bytes. `exact` is the size of its unrounded values, `form` the
# index of its form in the spill.
_ENTRY = np.dtype(
    [("place", "u8"), ("number", "u8"), ("size", "u8"), ("exact", "u8"), ("form", "u4")]
)


@dataclass(frozen=True, slots=True)
class Form:
    """Encoding of some records: their schema, and that of their unrounded values."""

    schema: Schema
    exact: Schema | None

    def needs_exact(self, schema: Schema) -> bool:
        """Return whether `schema` needs the unrounded values."""
        return self.exact is not None and any(
            self.schema[name].dtype != schema[name].dtype for name in self.exact
        )


@dataclass(eq=False)
class SortedRun:
    """Records with neighbouring places, sorted when they are first needed."""

    entries: NDArray[Any] | Path
    frames: NDArray[np.uint8] | Path
    exact: NDArray[np.uint8] | Path
    records: int
    nbytes: int
    forms: list[Form]
    dropped: Collection[int] = ()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _sorted: tuple[Any, NDArray[np.int64], NDArray[np.int64]] | None = None
    _left: int = -1  # records not taken yet

    def take(self, first: int, last: int, schema: Schema, *, threads: int) -> Framed:
        """Return the records from `first` to before `last` in order, encoded under `schema`.

        Each record is taken once; then the run frees its memory.
        """
        with self._lock:
            if self._sorted is None:
                self._sorted = self._sort(schema)
                self._left = self.records
            data, starts, sizes = self._sorted
            self._left -= last - first
            if self._left == 0:
                self._sorted = None
        starts, sizes = starts[first:last], sizes[first:last]
        offsets = np.cumsum(sizes) - sizes
        return Framed(_core.gather(data, starts, sizes, threads), offsets)

    def _sort(self, schema: Schema) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        entries = _load(self.entries, _ENTRY)
        data = _load(self.frames, np.dtype(np.uint8))
        starts, sizes = _places(entries["size"])
        old = [i for i, form in enumerate(self.forms) if not stores_alike(form.schema, schema)]
        if old:
            data, starts, sizes = self._reencode(data, starts, sizes, entries, old, schema)
        order = np.argsort(entries["place"], kind="stable")
        if self.dropped:
            gone = np.fromiter(self.dropped, np.uint64, len(self.dropped))
            order = order[~np.isin(entries["number"][order], gone)]
        return data, starts[order], sizes[order]

    def _reencode(
        self,
        data: Any,
        starts: NDArray[np.int64],
        sizes: NDArray[np.int64],
        entries: NDArray[Any],
        old: list[int],
        schema: Schema,
    ) -> tuple[Any, NDArray[np.int64], NDArray[np.int64]]:
        """Re-encode the records whose schema was widened after they were added."""
        parts = [data]
        total = len(data)
        exact_data: Any = None
        for number in old:
            form = self.forms[number]
            rows = np.flatnonzero(entries["form"] == number)
            if not len(rows):
                continue
            numbers = entries["number"][rows].astype(np.int64)
            records = _records(data, starts[rows], sizes[rows], numbers)
            exact = None
            if form.exact is not None and form.needs_exact(schema):
                if exact_data is None:
                    exact_data = _load(self.exact, np.dtype(np.uint8))
                exact_starts, exact_sizes = _places(entries["exact"])
                exact = (
                    _records(exact_data, exact_starts[rows], exact_sizes[rows], numbers),
                    form.exact,
                )
            framed = reencode(records, form.schema, schema, exact=exact)
            starts[rows] = framed.offsets + total
            sizes[rows] = np.diff(framed.offsets, append=framed.nbytes)
            parts.append(framed.data)
            total += framed.nbytes
        return np.concatenate(parts), starts, sizes


def _places(sizes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets of consecutive frames of these sizes, and the sizes as int64."""
    found = sizes.astype(np.int64)
    return np.cumsum(found) - found, found


def _records(
    data: Any, starts: NDArray[np.int64], sizes: NDArray[np.int64], numbers: NDArray[np.int64]
) -> Records:
    return Records(data, starts + HEADER_BYTES, sizes - FRAME_BYTES, numbers, base=None)


def _load(source: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    return np.fromfile(source, dtype) if isinstance(source, Path) else source


class Spill:
    """External sort of records by place; the result is a list of sorted runs.

    Args:
        folder: Folder for files when memory does not suffice; created when needed.
        is_shuffled: Whether places are spread over all 64 bits; otherwise they ascend.
        shift: Position of the bits that choose a record's bucket.
        sharers: Number of spills that share the memory.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_shuffled: bool,
        shift: int = 64 - _BUCKET_BITS,
        sharers: int = 1,
    ) -> None:
        self.records = 0
        self.nbytes = 0
        self._folder = folder
        self._is_shuffled = is_shuffled
        self._shift = np.uint64(shift)
        self._forms: list[Form] = []
        self._frames: list[NDArray[np.uint8]] = []
        self._exact: list[NDArray[np.uint8]] = []
        self._entries: list[NDArray[Any]] = []
        self._held_bytes = 0
        self._max_held_bytes = HELD_BYTES // sharers
        self._buckets: dict[int, tuple[int, int]] = {}  # records and bytes of each file

    def add(
        self,
        framed: Framed,
        places: Hashes,
        numbers: NDArray[np.int64],
        schema: Schema,
        exact: ExactRecords | None = None,
    ) -> None:
        """Add records encoded under `schema`; `exact` holds their unrounded values."""
        form = Form(schema, None if exact is None else exact.schema)
        if form not in self._forms:
            self._forms.append(form)
        entries = np.zeros(len(framed), _ENTRY)
        entries["place"] = places
        entries["number"] = numbers
        entries["size"] = np.diff(framed.offsets, append=framed.nbytes)
        entries["form"] = self._forms.index(form)
        if exact is not None:
            entries["exact"] = np.diff(exact.framed.offsets, append=exact.framed.nbytes)
        self._hold(framed.data, _NOTHING if exact is None else exact.framed.data, entries)

    def changes_floats(self, schema: Schema) -> bool:
        """Return whether `schema` stores floats in another type than they were added in."""
        floats = ("float32", "float64")
        return any(
            {feature.dtype, schema[name].dtype} == set(floats)
            for form in self._forms
            for name, feature in form.schema.items()
        )

    def settle(self, schema: Schema) -> None:
        """Drop unrounded values that `schema` does not need."""
        if not any(form.needs_exact(schema) for form in self._forms):
            self._exact = []
            for entries in self._entries:
                entries["exact"] = 0

    def _hold(
        self, frames: NDArray[np.uint8], exact: NDArray[np.uint8], entries: NDArray[Any]
    ) -> None:
        self._frames.append(frames)
        self._exact.append(exact)
        self._entries.append(entries)
        self.records += len(entries)
        self.nbytes += len(frames)
        self._held_bytes += len(frames) + len(exact) + entries.nbytes
        if self._held_bytes >= self._max_held_bytes:
            self._flush()

    def _flush(self) -> None:
        """Write the records held in memory to disk."""
        if not self._held_bytes:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        entries, frames = np.concatenate(self._entries), np.concatenate(self._frames)
        exact = np.concatenate([_NOTHING, *self._exact])
        self._frames, self._exact, self._entries, self._held_bytes = [], [], [], 0
        if not self._is_shuffled:
            self._append(len(self._buckets), frames, exact, entries)
            return
        buckets = (entries["place"] >> self._shift).astype(np.int64) % 2**_BUCKET_BITS
        order = np.argsort(buckets, kind="stable")
        frame_places = [part[order] for part in _places(entries["size"])]
        exact_places = [part[order] for part in _places(entries["exact"])]
        bounds = np.searchsorted(buckets[order], np.arange(2**_BUCKET_BITS + 1))
        entries = entries[order]
        for bucket, (first, last) in enumerate(pairwise(bounds.tolist())):
            if first < last:
                taken, taken_exact = (
                    _core.gather(data, starts[first:last], sizes[first:last], 1)
                    for data, (starts, sizes) in ((frames, frame_places), (exact, exact_places))
                )
                self._append(bucket, taken, taken_exact, entries[first:last])

    def _append(
        self,
        bucket: int,
        frames: NDArray[np.uint8],
        exact: NDArray[np.uint8],
        entries: NDArray[Any],
    ) -> None:
        for data, path in zip((frames, exact, entries), self._paths(bucket), strict=True):
            with path.open("ab") as file:
                file.write(memoryview(data).cast("B"))
        records, nbytes = self._buckets.get(bucket, (0, 0))
        self._buckets[bucket] = records + len(entries), nbytes + len(frames)

    def _paths(self, bucket: int) -> tuple[Path, Path, Path]:
        stems = (f"{bucket:05d}.{what}" for what in ("frames", "exact", "entries"))
        frames, exact, entries = (self._folder / stem for stem in stems)
        return frames, exact, entries

    def runs(self, *, dropped: Collection[int] = ()) -> list[SortedRun]:
        """Return all records but the `dropped` numbers; nothing can be added afterwards."""
        if not self._buckets:
            if not self.records:
                return []
            exact = np.concatenate([_NOTHING, *self._exact])
            parts = np.concatenate(self._frames), exact, np.concatenate(self._entries)
            run = self._run(parts, self.records, self.nbytes, dropped)
            self._entries, self._frames, self._exact = [], [], []
            return [run]
        self._flush()
        found: list[SortedRun] = []
        for bucket, (records, nbytes) in sorted(self._buckets.items()):
            if nbytes > MAX_RUN_BYTES and self._is_shuffled and self._shift >= _BUCKET_BITS:
                found += self._divide(bucket, dropped)
            else:
                found.append(self._run(self._paths(bucket), records, nbytes, dropped))
        return found

    def _run(
        self, parts: tuple[Any, Any, Any], records: int, nbytes: int, dropped: Collection[int]
    ) -> SortedRun:
        frames, exact, entries = parts
        if dropped:
            numbers = _load(entries, _ENTRY)["number"]
            gone = np.fromiter(dropped, np.uint64, len(dropped))
            records -= int(np.isin(numbers, gone).sum())
        return SortedRun(entries, frames, exact, records, nbytes, self._forms, dropped)

    def _divide(self, bucket: int, dropped: Collection[int]) -> list[SortedRun]:
        """Divide a bucket that is too large to sort at once."""
        frames_path, exact_path, entries_path = self._paths(bucket)
        folder = self._folder / f"{bucket:05d}"
        shift = int(self._shift) - _BUCKET_BITS
        below = Spill(folder, is_shuffled=True, shift=shift)
        below._forms = self._forms
        entries = np.fromfile(entries_path, _ENTRY)
        ends = np.cumsum(entries["size"].astype(np.int64))
        exact_ends = np.cumsum(entries["exact"].astype(np.int64))
        first = 0
        with frames_path.open("rb") as frames, exact_path.open("rb") as exact:
            while first < len(entries):
                start = int(ends[first - 1]) if first else 0
                exact_start = int(exact_ends[first - 1]) if first else 0
                last = max(int(np.searchsorted(ends, start + HELD_BYTES // 2)), first + 1)
                below._hold(
                    np.fromfile(frames, np.uint8, int(ends[last - 1]) - start),
                    np.fromfile(exact, np.uint8, int(exact_ends[last - 1]) - exact_start),
                    entries[first:last],
                )
                first = last
        for path in (frames_path, exact_path, entries_path):
            path.unlink()
        return below.runs(dropped=dropped)


@dataclass
class SplitRead:
    """The records read of one split."""

    spill: Spill
    statistics: Statistics = field(default_factory=Statistics)
    rejects: list[Reject] = field(default_factory=list)
    duplicates: set[int] = field(default_factory=set)
    floats: dict[str, FloatFacts] = field(default_factory=dict)

    def runs(self, schema: Schema) -> list[SortedRun]:
        """Return the records in the order of their places."""
        is_recounted = bool(self.duplicates) or self.spill.changes_floats(schema)
        self.spill.settle(schema)
        runs = self.spill.runs(dropped=self.duplicates)
        if is_recounted:
            self.statistics = _count_again(runs, schema)
        return runs


@dataclass
class ReadResult:
    """The records read of all splits, and the schema that fits them."""

    splits: dict[str, SplitRead]
    schema: Schema
    images: dict[str, ImageFacts]


def read_parts(
    intake: Intake,
    settings: BlockSettings,
    options: WriteOptions,
    *,
    division: Division | None,
    folder: Path,
    progress: Progress,
) -> ReadResult:
    """Read and encode all parts, and hold the records until their places are known."""
    splits = {
        name: SplitRead(
            Spill(folder / name, is_shuffled=options.shuffle, sharers=len(intake.splits))
        )
        for name in intake.splits
    }
    images: dict[str, ImageFacts] = {}
    writer = BlockWriter(settings, threads=1 if options.cores > 1 else 2)
    progress.stage("reading", _total(intake))
    for name, part in intake.parts.items():
        ledger = KeyLedger(folder / f"{name}.keys")
        for split, written in _write_blocks(name, part, division, writer, options):
            _keep(splits[split], written, ledger, options)
            for feature, facts in written.images.items():
                images.setdefault(feature, ImageFacts()).merge(facts)
            progress.advance(len(written.numbers), written.framed.nbytes)
        _drop_duplicates(ledger.find_duplicates(), name, splits, division, options)
    return ReadResult(splits, _widen(writer.schema, splits, settings.watched), images)


def _widen(schema: Schema, splits: Mapping[str, SplitRead], watched: Collection[str]) -> Schema:
    """Widen watched features to float64 where float32 cannot represent a value."""
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
    """Encode the blocks of a part; yield each with its split."""
    if isinstance(part, IndexedPart) and part.is_slow_python and options.cores > 1:
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
        for split, prepared in map_ordered(prepare, divided, workers=options.cores):
            yield split, writer.collect(*prepared)

    # This thread collects values from Python objects while others encode earlier blocks.
    yield from map_ordered(
        lambda pair: (pair[0], pair[1].finish()), collect(), workers=options.cores
    )


def _write_elsewhere(
    name: str,
    part: IndexedPart,
    division: Division | None,
    work: PartWriter,
    writer: BlockWriter,
    options: WriteOptions,
) -> Iterator[tuple[str, WrittenBlock]]:
    """Encode blocks in worker processes, which read records by number.

    A worker does not know earlier records. A block that conflicts with them is encoded again here,
    so the outcome is the same as without workers.
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
        work, count=options.cores, describe=lambda numbers: describe_records(numbers, part.keys)
    ) as processes:
        done = map_ordered(write, pieces(), workers=options.cores, stop=processes.close)
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
    """Divide each block by split."""
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
    elif isinstance(data, SerializedRecords):
        data = data.take(at)
    else:
        data = {name: column[at] for name, column in data.items()}
    return Block(data, block.numbers[at], keys, locate=_locate_at(block.locate, at.tolist()))


def _locate_at(
    locate: Callable[[int], str] | None, places: list[int]
) -> Callable[[int], str] | None:
    """Adapt `locate` to selected records of a block."""
    return None if locate is None else lambda at: locate(places[at])


def _keep(
    taken: SplitRead, written: WrittenBlock, ledger: KeyLedger, options: WriteOptions
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


def _count_again(runs: list[SortedRun], schema: Schema) -> Statistics:
    """Recount statistics after records were dropped or widened."""
    encoder = RowEncoder(schema)
    statistics = Statistics()
    for framed in _blocks_of_runs(runs, schema):
        statistics = statistics.merge(encoder.encode(parse(framed, schema)).statistics)
    return statistics


def _blocks_of_runs(runs: list[SortedRun], schema: Schema) -> Iterator[Framed]:
    """Yield blocks that do not depend on the division into runs, because sums of floats do."""
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
    splits: dict[str, SplitRead],
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
class RunRange:
    """A range of records within a run."""

    run: SortedRun
    first: int
    last: int


class SpilledSplit:
    """A split in sorted runs, each sorted when its first shard needs it."""

    def __init__(self, runs: list[SortedRun], schema: Schema) -> None:
        self._runs = runs
        self.schema = schema
        self._starts = np.cumsum([0, *(run.records for run in runs)])
        self.records = int(self._starts[-1])
        self.nbytes = sum(run.nbytes for run in runs)

    def pieces(self, first: int, last: int) -> list[RunRange]:
        """Divide the records from `first` to before `last` into ranges within runs."""
        record_bytes = self.nbytes / max(self.records, 1)
        found = []
        for run, start in zip(self._runs, self._starts.tolist(), strict=False):
            bounds = max(first - start, 0), min(last - start, run.records)
            found += [RunRange(run, a, b) for a, b in block_bounds(*bounds, record_bytes)]
        return found

    def write_piece(self, piece: RunRange) -> Framed:
        """Return the records of a range."""
        return piece.run.take(piece.first, piece.last, self.schema, threads=1)
