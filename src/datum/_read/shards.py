"""Shard files of a dataset: opened when needed, checked against its contents, read in ranges."""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datum import _core
from datum._options import thread_count
from datum._read.contents import Contents, Writer
from datum.errors import CorruptIndexError, CorruptRecordError, Damage, ManifestError, Message
from datum.format import BatchReader, Manifest, Parser, RecordFile, Records, Recovery, ShardInfo
from datum.format.file import FileVersion, is_written_to, refuse_changes, version_of
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES
from datum.format.manifest import MANIFEST_NAME, TAIL_BYTES

if TYPE_CHECKING:
    from datum._storage.client import Hold, RemoteFolder

__all__ = [
    "ByteCounter",
    "Checksum",
    "ProgressCallback",
    "RangeBatches",
    "ShardRange",
    "Shards",
    "SoundFile",
    "StoppedError",
    "WatchedFile",
    "bytes_of",
    "checksum_file",
    "end_of",
    "tail_checksum",
    "versions_of",
    "wrong_file",
]

ProgressCallback = Callable[[int, int], object]


class ByteCounter:
    """Adds up the bytes that are read in all files, and reports them.

    Args:
        total: Number of bytes of all files.
        progress: Called with the number of bytes read and the total, one call at a time.

    Attributes:
        is_stopped: Whether readers must stop. They learn it from a StoppedError when they report
            bytes.
    """

    def __init__(self, total: int, progress: ProgressCallback | None) -> None:
        self.is_stopped = False
        self._total = total
        self._done = 0
        self._progress = progress
        self._lock = threading.Lock()

    def of_file(self, size: int) -> Callable[[int], None]:
        """Make a function that takes the number of bytes read of one file, at most `size`."""
        before = 0

        def note(done: int) -> None:
            nonlocal before
            if self.is_stopped:
                raise StoppedError
            done = max(before, min(done, size))
            with self._lock:
                self._done += done - before
                before = done
                if self._progress is not None:
                    self._progress(self._done, self._total)

        return note


class StoppedError(Exception):
    """Reading was stopped."""


class WatchedFile(RecordFile):
    """A file that reports how far it is read; if it is compressed, only that reading goes on.

    Args:
        source: Path of the file.
        note: Called with the number of bytes read so far.
        recovery: Whether damaged records raise or are skipped.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        note: Callable[[int], None],
        *,
        recovery: Recovery = "strict",
    ) -> None:
        super().__init__(source, recovery=recovery, use_index=False)
        self._note = note

    def _scan(
        self,
        next_size: Callable[[], int],
        damage: list[Damage],
        *,
        check_payloads: bool,
        max_bytes: int,
    ) -> Iterator[Records]:
        runs = super()._scan(next_size, damage, check_payloads=check_payloads, max_bytes=max_bytes)
        for records in runs:
            yield records
            self._note(end_of(records) if self.compression is None else 0)
        self._note(len(self.content))


def end_of(records: Records) -> int:
    """The end of the last of these records in their (decompressed) file."""
    payload = (records.base or 0) + int(records.starts[-1] + records.lengths[-1])
    return payload + FRAME_BYTES - HEADER_BYTES


class SoundFile(RecordFile):
    """The intact records of a file, numbered from 0 without gaps; `damage` lists the others.

    Args:
        source: Path of the file.
        left_out: Numbers of intact records to skip, where each damaged place counts as a record.

    >>> from datum.format import frame
    >>> with open("damaged.tfrecord", "wb") as target:
    ...     target.write(frame([b"one", b"two"]).to_bytes() + b"?" * 20 + frame([b"x"]).to_bytes())
    75
    >>> file = SoundFile("damaged.tfrecord", left_out=[0])
    >>> len(file), file[1]
    (2, b'x')
    """

    def __init__(self, source: str | os.PathLike[str], *, left_out: Sequence[int] = ()) -> None:
        super().__init__(source, recovery="skip", use_index=False)
        self._left_out = np.array(sorted(left_out), np.int64)

    def _scan(
        self,
        next_size: Callable[[], int],
        damage: list[Damage],
        *,
        check_payloads: bool,
        max_bytes: int,
    ) -> Iterator[Records]:
        seen = 0
        runs = super()._scan(next_size, damage, check_payloads=check_payloads, max_bytes=max_bytes)
        for found in runs:
            kept = ~np.isin(found.numbers, self._left_out)
            count = int(kept.sum())
            if count:
                yield replace(
                    found,
                    starts=found.starts[kept],
                    lengths=found.lengths[kept],
                    numbers=np.arange(seen, seen + count),
                )
            seen += count


# Far below the 256 files that some systems allow a process to open.
MAX_OPEN_SHARDS = 32
_KNOWN_FROM: dict[Writer, str] = {
    "datum": "as the manifest says",
    "tfds": "as dataset_info.json says",
    "older datum": "as when it was loaded",
    "tfrecord files": "as when it was loaded",
}


CHECKSUM_BYTES = 4 * 2**20  # bytes read at a time


class Checksum:
    """Size and CRC of an open file, up to the byte that another reader has reached."""

    def __init__(self, name: str, content: _core.MappedFile) -> None:
        self._name = name
        self._content = content
        self.nbytes = 0
        self.crc = 0

    def advance(self, to: int | None = None) -> None:
        """Read up to byte `to`, or to the end; CorruptRecordError if the file was changed."""
        end = len(self._content) if to is None else to
        with refuse_changes(self._name, self._content):
            while self.nbytes < end:
                size = min(CHECKSUM_BYTES, end - self.nbytes)
                self.crc = self._content.crc32c(self.nbytes, size, self.crc)
                self.nbytes += size


def checksum_file(file: RecordFile) -> tuple[int, int]:
    """Size and CRC of an open file, read in pieces."""
    checksum = Checksum(file.name, file.content)
    checksum.advance()
    return checksum.nbytes, checksum.crc


def tail_checksum(file: RecordFile) -> int:
    """The checksum of the last bytes of a file, which a manifest has too."""
    size = min(len(file.content), TAIL_BYTES)
    with refuse_changes(file.name, file.content):
        return file.content.crc32c(len(file.content) - size, size)


def wrong_file(path: str, shard: ShardInfo) -> CorruptRecordError:
    """The error for an intact file that is not the shard the manifest describes."""
    return CorruptRecordError(
        "expected the shard that the manifest describes, got another file of"
        f" {shard.bytes} bytes whose records are intact",
        where=path,
        hint="restore it; files may have been renamed, or copied from another version or split",
    )


def _is_sound(file: RecordFile) -> bool:
    """Read a file, and return whether all its records are intact."""
    try:
        for _ in file.chunks():
            pass
    except CorruptRecordError:
        return False
    return not file.damage


def versions_of(contents: Contents) -> dict[str, FileVersion]:
    """The current version of each shard file; empty with a manifest, which has checksums."""
    found = {}
    is_told = contents.writer == "datum" or contents.remote is not None
    for split in () if is_told else contents.splits.values():
        for shard in split.shards:
            with suppress(OSError):  # its reader reports the error
                found[shard.name] = version_of(contents.folder / shard.name)
    return found


class Shards:
    """Opens the shards of one dataset; the last ones used stay open. Threads may share it.

    Args:
        folder: Folder that the names of shards are relative to.
        writer: Writer of the dataset; only Datum's manifest shows that a dataset was replaced.
        left_out: Shards whose damage is skipped; see `Contents.left_out`.
        versions: Version of the file of each shard, without a manifest; see `versions_of`.
        remote: Folder of objects that the shards are copies of; None for local files.
    """

    def __init__(
        self,
        folder: Path,
        writer: Writer = "datum",
        left_out: Mapping[str, Sequence[int]] | None = None,
        versions: Mapping[str, FileVersion] | None = None,
        remote: RemoteFolder | None = None,
    ) -> None:
        self.folder = folder
        self.remote = remote
        self.writer = writer
        self.left_out = dict(left_out or {})
        self.versions = dict(versions or {})
        self._open: OrderedDict[str, RecordFile] = OrderedDict()
        self._held: dict[str, Hold] = {}
        self._lock = threading.Lock()
        # As text: making a Path of each of thousands of shards takes longer than opening them.
        self._manifest_path = str(folder / MANIFEST_NAME)
        self._manifest: tuple[int, ...] | None = None  # version of the manifest

    def __reduce__(self) -> tuple[type[Shards], tuple[Any, ...]]:
        # Files stay with their process.
        return Shards, (self.folder, self.writer, self.left_out, self.versions, self.remote)

    @property
    def known_from(self) -> str:
        """The origin of the description of shards, for messages."""
        return _KNOWN_FROM[self.writer]

    def _path_of(self, shard: ShardInfo) -> str:
        folder = self._manifest_path.removesuffix(MANIFEST_NAME)
        return os.path.join(folder, shard.name)  # noqa: PTH118 - see `_manifest_path`

    def where(self, shard: ShardInfo) -> str:
        """The path or the URL of a shard, for messages."""
        return self._path_of(shard) if self.remote is None else f"{self.remote.url}/{shard.name}"

    def hold(self, shard: ShardInfo) -> Hold | None:
        """Have all of a shard there, and its index; it stays as long as what this returns does."""
        if self.remote is None:
            return None
        from datum._read.remote import hold_shard

        return hold_shard(self.remote, shard, has_index=self.writer == "datum")

    def hold_all(self, runs: Iterable[ShardRange]) -> None:
        """Have all of some shards there for as long as this lives: for readers of plain files."""
        held = {run.shard.name: run.shard for run in runs if self.remote is not None}
        for name in held.keys() - self._held.keys():
            hold = self.hold(held[name])
            assert hold is not None
            self._held[name] = hold

    def open(self, shard: ShardInfo, *, accepts_damage: bool = False) -> RecordFile:
        """Open the file of a shard, to read it in order.

        Args:
            shard: The shard.
            accepts_damage: Whether the file may have another size or compression than the shard.
        """
        path = self._path_of(shard)
        try:
            file = self._open_file(shard)
            self._refuse_newer(file, shard)
            size = len(file.content)
            self.check_current(shard)  # afterwards, since a dataset is replaced in one step
        except FileNotFoundError:
            self.check_current(shard)
            raise ManifestError(
                f"expected a shard, {self.known_from}, got no such file",
                where=path,
                hint="restore it from the original of the dataset",
            ) from None
        if size == shard.bytes:
            self._refuse_other(file, shard)
            if shard.crc32c is not None:
                file.content.expect(shard.crc32c)
        if accepts_damage:
            return file
        if size != shard.bytes:
            raise CorruptRecordError(
                f"expected {shard.bytes} bytes, {self.known_from}, got {size}",
                where=path,
                hint="the file was truncated or changed; restore it",
            )
        if size and file.compression != shard.compression:  # an empty file fits any compression
            raise CorruptRecordError(
                f"expected compression {shard.compression}, {self.known_from},"
                f" got {file.compression}",
                where=path,
            )
        return file

    def _refuse_other(self, file: RecordFile, shard: ShardInfo) -> None:
        """Raise CorruptRecordError for an intact file of the right size that is not this shard.

        Readers of the records report damage, with its place.
        """
        if shard.tail_crc32c in (None, tail_checksum(file)) or not _is_sound(file):
            return
        raise wrong_file(file.name, shard)

    def _open_file(self, shard: ShardInfo, recovery: Recovery = "strict") -> RecordFile:
        path, hold = self._path_of(shard), self.hold(shard)
        file: RecordFile
        if shard.name in self.left_out:
            file = SoundFile(path, left_out=self.left_out[shard.name])
        else:
            use_index = self.writer == "datum" and recovery == "strict"
            file = RecordFile(path, recovery=recovery, use_index=use_index)
        if hold is not None:
            weakref.finalize(file, hold.close).atexit = False
        return file

    def _refuse_newer(self, file: RecordFile, shard: ShardInfo) -> None:
        """Raise CorruptRecordError for a file that replaced the one that was loaded.

        A file that was written to in place may only be damaged, which its readers report.
        """
        found = file.content.version
        known = self.versions.get(shard.name, found)
        is_rewritten = found[2] == known[2] and is_written_to(found, known)
        if found[:2] != known[:2] or (is_rewritten and _is_sound(file)):
            raise CorruptRecordError(
                "expected the file that was loaded, got another one of its name",
                where=file.name,
                hint="load the dataset again",
            )

    def open_around(self, shard: ShardInfo) -> RecordFile:
        """Open the file of a shard, to read its intact records in order.

        Its records have their numbers in the dataset, as far as damage allows.
        """
        if shard.name in self.left_out:
            return self._open_file(shard)
        file = self._open_file(shard, recovery="skip")
        self._refuse_newer(file, shard)
        return file

    def check_current(self, shard: ShardInfo) -> None:
        """Raise ManifestError if the dataset was replaced since it was loaded.

        If it passes, files that were opened before belong to the loaded dataset.
        """
        if self.writer != "datum":
            return
        path = self._manifest_path
        try:
            status = os.stat(path)  # noqa: PTH116 - a Path is slower with thousands of shards
            found = status.st_ino, status.st_mtime_ns, status.st_size
            if found == self._manifest:
                return
            splits = list(Manifest.load(path).splits.values())
        except FileNotFoundError:  # it was deleted
            splits = []
        known = {(one.name, one.bytes, one.crc32c) for split in splits for one in split.shards}
        if (shard.name, shard.bytes, shard.crc32c) not in known:
            raise ManifestError(
                "the dataset was replaced since it was loaded",
                where=self.folder,
                hint="load it again",
            )
        self._manifest = found

    def open_indexed(self, shard: ShardInfo) -> RecordFile:
        """Open the file of a shard for random access."""
        if shard.compression is not None:
            raise ValueError(
                Message(
                    f"{self.folder}: expected uncompressed shards, to read records by number, got"
                    f" {shard.compression}",
                    hint="iterate over the split, or write the dataset without compression",
                )
            )
        with self._lock:
            file = self._open.get(shard.name)
            if file is not None:
                self._open.move_to_end(shard.name)
                return file
        file = self.open(shard)
        if len(file) != shard.records and self.writer != "datum":
            raise CorruptRecordError(
                f"expected {shard.records} records, {self.known_from}, got {len(file)}",
                where=file.name,
                hint="restore the file, or load a list of the files",
            )
        if len(file) != shard.records:
            raise CorruptIndexError(
                f"expected {shard.records} records, {self.known_from}, got an index of {len(file)}",
                where=file.name,
                hint="delete the index, or restore the shard",
            )
        with self._lock:
            self._open[shard.name] = file
            while len(self._open) > MAX_OPEN_SHARDS:
                self._open.popitem(last=False)
        return file


SKIPPED_RECORDS = 1024  # records of a compressed shard skipped at a time


@dataclass(frozen=True, slots=True)
class ShardRange:
    """The records from `start` up to `stop` of one shard."""

    shard: ShardInfo
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


def bytes_of(runs: Iterable[ShardRange]) -> int:
    """Approximate number of bytes of the records of some ranges in their files."""
    return sum(run.shard.bytes * len(run) // max(1, run.shard.records) for run in runs)


class RangeBatches(BatchReader):
    """An iterable of batches over ranges of shards; each iteration reads them again."""

    def __init__(
        self,
        shards: Shards,
        runs: Sequence[ShardRange],
        *,
        parser: Parser,
        batch_size: int,
        threads: int | None = None,
        drop_remainder: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(Message(f"expected `batch_size` of 1 or more, got {batch_size}"))
        super().__init__(
            paths=[str(shards.folder / run.shard.name) for run in runs],
            parser=parser,
            batch_size=batch_size,
            threads=thread_count(threads),
            drop_remainder=drop_remainder,
            check_crc=True,
            recovery="strict",
        )
        self._shards = shards
        self._shard_runs = runs

    def _runs(self) -> Iterator[Records]:
        """Runs of exactly `batch_size` records, across the ends of shards."""
        held: list[Records] = []

        def missing() -> int:
            return self._batch_size - sum(map(len, held))

        for run in self._shard_runs:
            for records in _read_run(self._shards, run, missing):
                held.append(records)
                if not missing():
                    yield Records.join(held)
                    held.clear()
        if held and not self._drop_remainder:
            yield Records.join(held)


def _read_run(shards: Shards, run: ShardRange, next_size: Callable[[], int]) -> Iterator[Records]:
    if len(run) == run.shard.records or run.shard.compression is not None:
        return _read_in_order(shards, run, next_size)
    return _read_indexed(shards, run, next_size)


def _read_indexed(
    shards: Shards, run: ShardRange, next_size: Callable[[], int]
) -> Iterator[Records]:
    file = shards.open_indexed(run.shard)
    position = run.start
    while position < run.stop:
        end = min(position + next_size(), run.stop)
        yield file.records(np.arange(position, end))
        position = end


def _read_in_order(
    shards: Shards, run: ShardRange, next_size: Callable[[], int]
) -> Iterator[Records]:
    """Read a shard from its start: a whole one, or a compressed one up to the end of a range."""
    position = 0

    def next_part() -> int:
        if position < run.start:
            return min(SKIPPED_RECORDS, run.start - position)
        # At the end, request one more record: a whole shard must have none left.
        return min(next_size(), max(1, run.stop - position))

    with shards.open(run.shard) as file:
        for records in file.runs(next_part):
            position += len(records)
            if position > run.stop:
                break
            if position > run.start:
                yield records
            if position == run.stop < run.shard.records:
                return
    if position != run.stop:
        got = "more" if position > run.stop else str(position)
        raise CorruptRecordError(
            f"expected {run.shard.records} records, {shards.known_from}, got {got}", where=file.name
        )
