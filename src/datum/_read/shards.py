"""Shard files of a dataset: opened when needed, checked against its contents, read in ranges."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from datum import _core
from datum._options import thread_count
from datum._read.contents import Contents, Writer
from datum.errors import CorruptIndexError, CorruptRecordError, Damage, ManifestError, Message
from datum.format import BatchReader, Manifest, Parser, RecordFile, Records, Recovery, ShardInfo
from datum.format.file import FileVersion, refuse_changes, version_of
from datum.format.framing import HEADER_BYTES
from datum.format.index import FRAME_BYTES
from datum.format.manifest import MANIFEST_NAME, TAIL_BYTES

__all__ = [
    "ByteCounter",
    "Checksum",
    "Progress",
    "RangeBatches",
    "ShardRange",
    "Shards",
    "SoundFile",
    "StoppedError",
    "WatchedFile",
    "checksum_file",
    "end_of",
    "tail_checksum",
    "versions_of",
    "wrong_file",
]

Progress = Callable[[int, int], object]


class ByteCounter:
    """Sums up the bytes that are done in all files, and tells them, one call at a time.

    Args:
        total: how many there are.
        progress: called with the bytes that are done, and with all there are.

    Attributes:
        is_stopped: whether those who read are to give up, as they are told when they note bytes.
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.is_stopped = False
        self._total = total
        self._done = 0
        self._progress = progress
        self._lock = threading.Lock()

    def of_file(self, size: int) -> Callable[[int], None]:
        """A function that takes how many bytes of one file are done; more than `size` are not."""
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
    """The reading was given up."""


class WatchedFile(RecordFile):
    """A file that tells how far it is read; of one that is compressed, only that it goes on."""

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
    """Where the last record of a run ends in its (decompressed) file."""
    payload = (records.base or 0) + int(records.starts[-1] + records.lengths[-1])
    return payload + FRAME_BYTES - HEADER_BYTES


class SoundFile(RecordFile):
    """The sound records of a file, numbered from 0 without gaps; `damage` lists what is not.

    Args:
        source: the path of the file.
        left_out: records that are whole, but of no use, by their numbers where each damaged place
            counts as one.

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


# Far below the 256 files that some systems let a process open, with room for others.
MAX_OPEN_SHARDS = 32
_KNOWN_FROM: dict[Writer, str] = {
    "datum": "as the manifest says",
    "tfds": "as dataset_info.json says",
    "older datum": "as when it was loaded",
    "tfrecord files": "as when it was loaded",
}


CHECKSUM_BYTES = 4 * 2**20  # read at a time


class Checksum:
    """Size and CRC of an open file, as far as somebody else has read it."""

    def __init__(self, name: str, content: _core.MappedFile) -> None:
        self._name = name
        self._content = content
        self.nbytes = 0
        self.crc = 0

    def advance(self, to: int | None = None) -> None:
        """Read on up to byte `to`, or to the end; CorruptRecordError if the file was changed."""
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
    """The checksum of the last bytes of a file, as a manifest has it."""
    size = min(len(file.content), TAIL_BYTES)
    with refuse_changes(file.name, file.content):
        return file.content.crc32c(len(file.content) - size, size)


def wrong_file(path: str, shard: ShardInfo) -> CorruptRecordError:
    """The error for an intact file that is not the shard the manifest describes."""
    return CorruptRecordError(
        "expected the shard that the manifest describes, got another file of"
        f" {shard.bytes} bytes whose records are sound",
        where=path,
        hint="restore it; were files renamed, or copied from another version or split?",
    )


def _is_sound(file: RecordFile) -> bool:
    """Whether all records of a file are whole, found by reading it."""
    try:
        for _ in file.chunks():
            pass
    except CorruptRecordError:
        return False
    return not file.damage


def versions_of(contents: Contents) -> dict[str, FileVersion]:
    """What tells the shards that are there now from others; empty where a manifest does."""
    found = {}
    for split in contents.splits.values() if contents.writer != "datum" else ():
        for shard in split.shards:
            with suppress(OSError):  # whoever reads it says what is wrong
                found[shard.name] = version_of(contents.folder / shard.name)
    return found


class Shards:
    """Opens the shards of one dataset; the last ones used stay open. Safe to use from threads.

    Args:
        folder: where the names of the shards start from.
        writer: who described them: only a manifest tells a dataset that replaced another.
        left_out: those that are read around their damage, as `Contents.left_out` tells them.
        versions: what tells the file of each shard from one that takes its name, where no manifest
            does; see `versions_of`.
    """

    def __init__(
        self,
        folder: Path,
        writer: Writer = "datum",
        left_out: Mapping[str, Sequence[int]] | None = None,
        versions: Mapping[str, FileVersion] | None = None,
    ) -> None:
        self.folder = folder
        self.writer = writer
        self.left_out = dict(left_out or {})
        self.versions = dict(versions or {})
        self._open: OrderedDict[str, RecordFile] = OrderedDict()
        self._lock = threading.Lock()
        # As text: of thousands of shards, to make a Path of each takes longer than to open it.
        self._manifest_path = str(folder / MANIFEST_NAME)
        self._manifest: tuple[int, ...] | None = None  # what tells one manifest from another

    def __reduce__(self) -> tuple[type[Shards], tuple[Any, ...]]:
        # Files stay with their process.
        return Shards, (self.folder, self.writer, self.left_out, self.versions)

    @property
    def known_from(self) -> str:
        """How it is known what a shard has to be, for messages."""
        return _KNOWN_FROM[self.writer]

    def _path_of(self, shard: ShardInfo) -> str:
        folder = self._manifest_path.removesuffix(MANIFEST_NAME)
        return os.path.join(folder, shard.name)  # noqa: PTH118 - see there

    def open(self, shard: ShardInfo, *, accepts_damage: bool = False) -> RecordFile:
        """The file of a shard, just opened, to be read in order.

        Unless it `accepts_damage`, its size and compression are those of the shard.
        """
        path = self._path_of(shard)
        try:
            file = self._open_file(shard)
            self._refuse_newer(file, shard, around_damage=accepts_damage)
            size = len(file.content)
            self.check_current(shard)  # after: a dataset is replaced in one step
        except FileNotFoundError:
            self.check_current(shard)
            raise ManifestError(
                f"expected a shard, {self.known_from}, got no such file",
                where=path,
                hint="restore it from where the dataset was copied from",
            ) from None
        if size == shard.bytes:
            self._refuse_other(file, shard)
        if accepts_damage:
            return file
        if size != shard.bytes:
            raise CorruptRecordError(
                f"expected {shard.bytes} bytes, {self.known_from}, got {size}",
                where=path,
                hint="the file was cut or changed; restore it",
            )
        if size and file.compression != shard.compression:  # nothing is compressed in any way
            raise CorruptRecordError(
                f"expected compression {shard.compression}, {self.known_from},"
                f" got {file.compression}",
                where=path,
            )
        return file

    def _refuse_other(self, file: RecordFile, shard: ShardInfo) -> None:
        """Refuse a sound file that is not this shard, though it has its name and its size.

        Damage is for those who read the records, who tell where it is.
        """
        if shard.tail_crc32c in (None, tail_checksum(file)) or not _is_sound(file):
            return
        raise wrong_file(file.name, shard)

    def _open_file(self, shard: ShardInfo) -> RecordFile:
        path = self._path_of(shard)
        if shard.name in self.left_out:
            return SoundFile(path, left_out=self.left_out[shard.name])
        return RecordFile(path, use_index=self.writer == "datum")

    def _refuse_newer(self, file: RecordFile, shard: ShardInfo, *, around_damage: bool) -> None:
        """Refuse a file that was put in the place of the one that was loaded.

        One that was written to in place may only be damaged, which its readers report.
        """
        found = file.content.version
        known = self.versions.get(shard.name, found)
        is_written_to = found != known and found[2] == known[2] and not around_damage
        if found[:2] != known[:2] or (is_written_to and _is_sound(file)):
            raise CorruptRecordError(
                "expected the file that was loaded, got another one of its name",
                where=file.name,
                hint="load the dataset again",
            )

    def open_around(self, shard: ShardInfo) -> RecordFile:
        """The file of a shard, to be read in order around all damage.

        Its records have the numbers that they have in the dataset, as far as damage lets tell.
        """
        if shard.name in self.left_out:
            return self._open_file(shard)
        file = RecordFile(self.folder / shard.name, recovery="skip", use_index=False)
        self._refuse_newer(file, shard, around_damage=True)
        return file

    def check_current(self, shard: ShardInfo) -> None:
        """Refuse a shard of a dataset that was put in the place of the one that was loaded.

        Files that were opened before this is called are those of the dataset that was loaded.
        """
        if self.writer != "datum":
            return
        path = self._manifest_path
        try:
            status = os.stat(path)  # noqa: PTH116 - a Path is slower, of thousands of shards
            found = status.st_ino, status.st_mtime_ns, status.st_size
            if found == self._manifest:
                return
            splits = list(Manifest.load(path).splits.values())
        except FileNotFoundError:  # it was there once
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
        """The file of a shard, to be read at random."""
        if shard.compression is not None:
            raise ValueError(
                Message(
                    f"{self.folder}: expected shards that are not compressed, to read records by"
                    f" their numbers, got {shard.compression}",
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


SKIPPED_RECORDS = 1024  # read and dropped at a time, where a shard is compressed


@dataclass(frozen=True, slots=True)
class ShardRange:
    """The records from `start` up to `stop` of one shard."""

    shard: ShardInfo
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start


class RangeBatches(BatchReader):
    """An iterable of batches over runs of records; each iteration reads the shards anew."""

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
            raise ValueError(f"expected `batch_size` of 1 or more, got {batch_size}")
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
        """Runs of exactly `batch_size` records, over the ends of shards."""
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
    """All of a shard, or of a compressed one what comes before the run, too."""
    position = 0

    def next_part() -> int:
        if position < run.start:
            return min(SKIPPED_RECORDS, run.start - position)
        # At the end ask for one more: a whole shard must have come to its end there.
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
