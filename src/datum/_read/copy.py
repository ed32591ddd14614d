"""Records of a dataset as a source: copied as stored, never parsed."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._read.local import content_id, find_local, repair_hint
from datum._read.shards import ShardRange, Shards
from datum.errors import CorruptRecordError
from datum.format import Index, Records
from datum.format.file import FileVersion, change_error, refuse_changes, version_of
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES
from datum.schema import Schema
from datum.sources import Block, Reject
from datum.sources.protocol import PartInfo, SerializedRecords

if TYPE_CHECKING:
    from datum._storage.client import Hold

__all__ = [
    "Keep",
    "PlacedRun",
    "Places",
    "StoredRecords",
    "StoredStream",
    "frames_of",
    "gather_frames",
    "lasting_metadata",
    "narrowed",
    "read_run",
    "stored_part",
]

MAX_MAPS = 64  # open files, of the 256 that some systems allow a process


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """The places of the records of a plain file.

    Attributes:
        path: Path of the file.
        offsets: Start of the frame of each record.
        ends: End of the frame of each record.
        version: Version of the file, which a replacement does not have; None to accept any.
    """

    path: Path
    offsets: NDArray[np.int64]
    ends: NDArray[np.int64]
    version: FileVersion | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PlacedRun:
    """The records from `start` up to `stop` of a plain file, whose places are found on demand."""

    places: Callable[[], Places]
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class _OpenFiles:
    """Open files, of which the last ones used stay open. Threads may share it."""

    def __init__(self) -> None:
        self._files: OrderedDict[Path, _core.MappedFile] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, places: Places) -> _core.MappedFile:
        """Open the file of these places; CorruptRecordError if it was replaced."""
        path = places.path
        with self._lock:
            found = self._files.get(path)
            if found is None:
                found = self._files[path] = _core.MappedFile(path)
                while len(self._files) > MAX_MAPS:
                    self._files.popitem(last=False)  # closes once no thread reads it
            self._files.move_to_end(path)
        if places.version is not None and found.version != places.version:
            raise change_error(str(path), places.version[2], "rewritten", len(found))
        return found


@dataclass(frozen=True, eq=False)
class StoredRecords(PartInfo):
    """An `IndexedPart` of the records of plain files.

    Attributes:
        runs: Places of the records.
        schema: Features to keep.
        metadata: Metadata of the features.
        fingerprint: Text that changes with the records.
        is_partial: Whether the records have more features than `schema`.
        numbers: Numbers of the records to keep, in ascending order; None for all in `runs`.
        statistics: Statistics of the records as in a manifest; None if they are not known.
    """

    runs: Sequence[PlacedRun]
    schema: Schema
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None
    is_partial: bool = False
    numbers: NDArray[np.int64] | None = None
    keys: Sequence[str] | None = None
    is_slow_python: bool = False
    is_serialized: bool = True
    statistics: Mapping[str, Any] | None = None
    _files: _OpenFiles = field(default_factory=lambda: _OpenFiles(), init=False)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.numbers is None else len(self.numbers)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.cumsum([0, *map(len, self.runs)], dtype=np.int64)

    @cached_property
    def stored_bytes(self) -> int | None:
        """Size of the records in bytes; None if some of their features are left out."""
        if self.is_partial:
            return None
        total = 0
        for at, run in enumerate(self.runs):
            places = run.places()
            local: Any = slice(run.start, run.stop)
            if self.numbers is not None:
                bounds = np.searchsorted(self.numbers, self._ends[at : at + 2])
                local = self.numbers[slice(*bounds)] - self._ends[at] + run.start
            total += int((places.ends[local] - places.offsets[local]).sum())
        return total

    def select(self, numbers: NDArray[np.int64]) -> StoredRecords:
        """The part with these records only, by ascending numbers; it numbers them from 0."""
        digest = hashlib.blake2b(numbers.tobytes(), digest_size=16).hexdigest()
        fingerprint = None if self.fingerprint is None else f"{self.fingerprint}, of {digest}"
        numbers = numbers if self.numbers is None else self.numbers[numbers]
        return replace(self, numbers=numbers, fingerprint=fingerprint, statistics=None)

    def narrow(self, schema: Schema) -> StoredRecords:
        """The part with these of its features alone."""
        return replace(self, **narrowed(self, schema))

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers; damaged ones are rejects."""
        wanted = numbers if self.numbers is None else self.numbers[numbers]
        # In the order of the files, so that neighbours are read together.
        order = np.argsort(wanted, kind="stable")
        bounds = np.searchsorted(wanted[order], self._ends)
        parts: list[SerializedRecords] = []
        rows: list[NDArray[np.intp]] = []
        rejects: list[Reject] = []
        for at in np.flatnonzero(np.diff(bounds)).tolist():
            mine, run = order[bounds[at] : bounds[at + 1]], self.runs[at]
            local = wanted[mine] - self._ends[at] + run.start
            found, lost = self._read_file(run.places(), local)
            rejects += [replace(one, record=int(numbers[mine[one.record]])) for one in lost]
            parts.append(found)
            rows.append(np.delete(mine, [one.record for one in lost]) if lost else mine)
        stored, found_rows = self._join(parts, rows)
        rejects.sort(key=lambda one: one.record)
        return Block(stored, numbers[found_rows], None, rejects)

    def _read_file(
        self, places: Places, local: NDArray[np.int64]
    ) -> tuple[SerializedRecords, list[Reject]]:
        """Read and check records of one file; a reject has the place of its record in `local`."""
        content = self._files.open(places)
        offsets, ends = places.offsets[local], places.ends[local]
        sizes = ends - offsets
        with refuse_changes(str(places.path), content):
            frames = content.gather(offsets, sizes, 1)
        positions = np.cumsum(sizes) - sizes
        rejects: list[Reject] = []
        kept = np.arange(len(local))
        first = 0
        while True:
            sound = kept[first:]
            damage = _core.first_damage(frames, positions[sound], sizes[sound] - FRAME_BYTES)
            if damage is None:
                break
            row = first + damage[0]
            at = int(kept[row])
            where = _describe(places, int(local[at]))
            reason = f"expected an intact record, got damage: {damage[1]}"
            rejects.append(Reject(at, None, where, reason, repair_hint(places.path.parent)))
            kept, first = np.delete(kept, row), row
        if rejects:
            frames, starts = gather_frames(frames, positions[kept], (positions + sizes)[kept])
        else:
            starts = positions
        records = local[kept]
        return (
            SerializedRecords(
                frames,
                starts,
                self.schema,
                self.is_partial,
                lambda place: _describe(places, int(records[place])),
            ),
            rejects,
        )

    def _join(
        self, parts: list[SerializedRecords], rows: list[NDArray[np.intp]]
    ) -> tuple[SerializedRecords, NDArray[np.intp]]:
        """The records of several files in the order of the request."""
        joined = parts[0] if len(parts) == 1 else self._concatenate(parts)
        found = np.concatenate([np.empty(0, np.intp), *rows])
        order = np.argsort(found, kind="stable")
        return joined.take(order), found[order]

    def _concatenate(self, parts: list[SerializedRecords]) -> SerializedRecords:
        starts = np.cumsum([0, *(len(part.frames) for part in parts)])[:-1].tolist()
        offsets = [part.offsets + start for part, start in zip(parts, starts, strict=True)]
        firsts = np.cumsum([0, *map(len, parts)])

        def locate(place: int) -> str:
            owner = int(np.searchsorted(firsts, place, side="right")) - 1
            return parts[owner].locate(place - int(firsts[owner]))

        return SerializedRecords(
            np.concatenate([np.empty(0, np.uint8), *(part.frames for part in parts)]),
            np.concatenate([np.empty(0, np.int64), *offsets]),
            self.schema,
            self.is_partial,
            locate,
        )


def _describe(places: Places, record: int) -> str:
    return f"{places.path} (record {record} at byte {places.offsets[record]})"


def gather_frames(
    buffer: Any, offsets: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Frames one after the other, copied only if they are not contiguous already."""
    if len(offsets) and np.array_equal(offsets[1:], ends[:-1]):
        first, last = int(offsets[0]), int(ends[-1])
        return np.frombuffer(buffer, np.uint8, last - first, first), offsets - first
    sizes = np.ascontiguousarray(ends - offsets)
    frames = _core.gather(buffer, np.ascontiguousarray(offsets), sizes, 1)
    return frames, np.cumsum(sizes) - sizes


def narrowed(part: Any, schema: Schema) -> dict[str, Any]:
    """The attributes of a part of stored records that change when it keeps fewer features."""
    known = part.schema
    return {
        "schema": schema,
        "metadata": {
            name: found
            for name, found in part.metadata.items()
            if name in schema or name not in known
        },
        "fingerprint": None if part.fingerprint is None else f"{part.fingerprint}, {schema!r}",
        "is_partial": True,
        "statistics": None,
    }


STREAM_BYTES = 4 * 2**20  # size of a block of records
STREAM_RECORDS = 4096

Keep = Callable[[SerializedRecords], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class StoredStream(PartInfo):
    """A `StreamedPart` of records that come one after the other.

    Attributes:
        runs: Makes an iterator over the records.
        schema: Features to keep.
        metadata: Metadata of the features.
        fingerprint: Text that changes with the records.
        is_partial: Whether the records have more features than `schema`.
        keep: Makes a function that returns a mask of the records of a block to keep; None for all.
        statistics: Statistics of the records as in a manifest; None if they are not known.
    """

    runs: Callable[[], Iterator[Records]]
    schema: Schema
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None
    is_partial: bool = False
    keep: Callable[[], Keep] | None = None
    is_repeatable: bool = True
    is_serialized: bool = True
    statistics: Mapping[str, Any] | None = None

    def filtered(self, keep: Callable[[], Keep]) -> StoredStream:
        """The part with the records that the function of `keep` selects, numbered from 0."""
        # Without a fingerprint: the function may select other records the next time.
        return replace(self, keep=keep, fingerprint=None, statistics=None)

    def narrow(self, schema: Schema) -> StoredStream:
        """The part with these of its features alone."""
        return replace(self, **narrowed(self, schema))

    def blocks(self) -> Iterator[Block]:
        """All selected records in order, numbered from 0."""
        number = 0
        keep = None if self.keep is None else self.keep()
        for records in self.runs():
            frames, offsets = frames_of(records)
            locate = partial(_describe_stream, records)
            stored = SerializedRecords(frames, offsets, self.schema, self.is_partial, locate)
            if keep is not None:
                stored = stored.take(np.flatnonzero(keep(stored)))
            if len(stored):
                yield Block(stored, np.arange(number, number + len(stored)))
            number += len(stored)


def _describe_stream(records: Records, place: int) -> str:
    file, record, offset = records.locate(place)
    return f"{file} (record {record} at byte {offset})"


def frames_of(records: Records) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The frames of some records, and the start of each."""
    offsets = records.starts - HEADER_BYTES
    return gather_frames(records.buffer, offsets, offsets + records.lengths + FRAME_BYTES)


def read_run(shards: Shards, run: ShardRange) -> Iterator[Records]:
    """Read the records of a range in order; CorruptRecordError if their number is wrong."""
    record_bytes = run.shard.bytes / max(run.shard.records, 1)
    size = int(np.clip(STREAM_BYTES / max(record_bytes, 1), 1, STREAM_RECORDS))
    position = 0
    with shards.open(run.shard) as file:
        for records in file.chunks(size):
            first, last = max(run.start - position, 0), min(run.stop - position, len(records))
            position += len(records)
            if first < last:
                yield _cut(records, first, last)
            if position >= run.stop < run.shard.records:
                return
    if position != run.shard.records:
        raise CorruptRecordError(
            f"expected {run.shard.records} records, {shards.known_from}, got {position}",
            where=file.name,
        )


def _cut(records: Records, first: int, last: int) -> Records:
    at = slice(first, last)
    return replace(
        records, starts=records.starts[at], lengths=records.lengths[at], numbers=records.numbers[at]
    )


_IMAGE_FACTS = ("formats", "dtypes", "height", "width", "channels", "converted")


def stored_part(
    shards: Shards,
    runs: Sequence[ShardRange],
    schema: Schema,
    metadata: Mapping[str, Mapping[str, Any]],
    statistics: Mapping[str, Any] | None = None,
) -> StoredRecords | StoredStream:
    """The records of shard ranges as a part, which is a stream if a shard is compressed.

    Args:
        shards: Opens the shards.
        runs: Shard ranges.
        schema: Schema of the records.
        metadata: Metadata of the features.
        statistics: Statistics of all these records as in a manifest; None if they are not known.
    """
    fingerprint = _fingerprint(shards, runs, schema)
    metadata = lasting_metadata(metadata)
    if any(run.shard.compression is not None or run.shard.name in shards.left_out for run in runs):
        stream = lambda: (records for run in runs for records in read_run(shards, run))  # noqa: E731
        return StoredStream(stream, schema, metadata, fingerprint, statistics=statistics)
    finders = {run.shard.name: _PlaceFinder(shards, run) for run in runs}
    placed = [PlacedRun(finders[run.shard.name], run.start, run.stop) for run in runs]
    return StoredRecords(placed, schema, metadata, fingerprint, statistics=statistics)


class _PlaceFinder:
    """Finds the places of the records of a shard on first use."""

    def __init__(self, shards: Shards, run: ShardRange) -> None:
        self._shards = shards
        self._shard = run.shard
        self._found: Places | None = None
        self._hold: Hold | None = None  # of the copy of an object
        self._lock = threading.Lock()

    def __call__(self) -> Places:
        with self._lock:
            if self._found is None:
                self._hold = self._shards.hold(self._shard)
                local = find_local(self._shards, self._shard)
                assert local.index is not None  # None only if damage is skipped
                index = Index.load(local.index)
                bounds = np.append(index.offsets, index.stream_bytes)
                version = local.version if self._hold is None else version_of(local.path)
                self._found = Places(local.path, bounds[:-1], bounds[1:], version)
            return self._found


def _fingerprint(shards: Shards, runs: Sequence[ShardRange], schema: Schema) -> str:
    facts: list[Any] = [repr(schema)]
    for run in runs:
        shard = run.shard
        content = content_id(shards.folder, shard)
        facts.append((shard.name, shard.records, shard.bytes, content))
        facts.append((run.start, run.stop))
    return hashlib.blake2b(repr(facts).encode(), digest_size=16).hexdigest()


def lasting_metadata(
    metadata: Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    """Metadata without the counts of images, which hold for all records only."""
    kept: dict[str, Mapping[str, Any]] = {}
    for name, found in metadata.items():
        facts = _IMAGE_FACTS if "formats" in found and "dtypes" in found else ()
        rest = {what: value for what, value in found.items() if what not in facts}
        if rest or not found:
            kept[name] = rest
    return kept
