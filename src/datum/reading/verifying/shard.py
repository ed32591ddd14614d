"""One shard, read once from end to end, and held against what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from datum import _core
from datum.errors import DatumError, Message
from datum.format import Index, RecordFile, Records, ShardInfo
from datum.format.file import refuse_changes
from datum.format.records import HEADER_BYTES
from datum.format.wording import count_of
from datum.reading.progress import end_of
from datum.reading.verifying.findings import Findings
from datum.reading.verifying.records import RecordChecks

__all__ = ["Checksum", "ShardFound", "verify_shard"]

READ_BYTES = 4 * 2**20
RUN_BYTES = 16 * 2**20  # looked at between two calls of `on_bytes`, about
MAX_RUN_RECORDS = 4096
FIRST_RUN_RECORDS = 64


@dataclass(frozen=True, slots=True)
class ShardFound:
    """What a shard turned out to be.

    Attributes:
        records: how many of its records are whole and as the schema says.
        bytes: its size; 0 if it could not be read.
        crc: of the file; None if it could not be read.
    """

    records: int
    bytes: int
    crc: int | None


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
                size = min(READ_BYTES, end - self.nbytes)
                self.crc = self._content.crc32c(self.nbytes, size, self.crc)
                self.nbytes += size


def verify_shard(
    path: Path,
    shard: ShardInfo,
    findings: Findings,
    checks: RecordChecks,
    *,
    is_published: bool = True,
    on_bytes: Callable[[int], None],
) -> ShardFound:
    """Compare a shard with what is known of it, with its index, and with its CRCs.

    What is wrong goes to `findings`; records that are whole go to `checks`. `on_bytes` is called
    with how many bytes of the file are done.
    """
    try:
        with RecordFile(path, recovery="skip", use_index=False) as file:
            checksum = Checksum(file.name, file.content)
            index = _IndexCheck.open(path, findings, is_published=is_published)
            found = _read_through(file, checksum, index, findings, checks, on_bytes)
            _compare(shard, file, checksum, findings)
            if found != shard.records + checks.left_out:
                expected = f"expected {count_of(shard.records, 'record')}"
                findings.tell("record count", f"{expected}, got {found:,} that are whole")
            if index is not None and not findings.damaged:
                index.finish(findings)
    except FileNotFoundError:
        findings.tell("missing file", "expected a file, got none")
        return ShardFound(0, 0, None)
    except (OSError, DatumError) as error:
        findings.tell("unreadable file", f"expected a file to read: {Message.of(error).line}")
        return ShardFound(0, 0, None)
    return ShardFound(found - checks.unusable, checksum.nbytes, checksum.crc)


def _read_through(
    file: RecordFile,
    checksum: Checksum,
    index: _IndexCheck | None,
    findings: Findings,
    checks: RecordChecks,
    on_bytes: Callable[[int], None],
) -> int:
    """Read all of a file; how many records are whole."""
    sizes = _RunSizes()
    found, size = 0, len(file.content)
    for records in file.runs(sizes.next):
        sizes.note(records)
        found += len(records)
        end = end_of(records)
        if file.compression is None:  # while these bytes are still in memory
            checksum.advance(end)
            on_bytes(end)
        elif index is not None:
            on_bytes(int(index.share_of(end) * size))
        if index is not None:
            index.compare(records, end)
        checks.check(records)
        _tell_damage(file, findings)
    _tell_damage(file, findings)
    checksum.advance()
    on_bytes(checksum.nbytes)
    return found


def _tell_damage(file: RecordFile, findings: Findings) -> None:
    for damage in file.damage:
        findings.tell_damage(damage)
    file.damage.clear()  # there may be much of it


def _compare(shard: ShardInfo, file: RecordFile, checksum: Checksum, findings: Findings) -> None:
    if checksum.nbytes != shard.bytes:
        findings.tell("size", f"expected {shard.bytes:,} bytes, got {checksum.nbytes:,}")
    elif shard.crc32c not in (None, checksum.crc):
        crcs = f"expected {shard.crc32c:08x}, as the manifest says, got {checksum.crc:08x}"
        findings.tell("file checksum", crcs)
    if checksum.nbytes and file.compression != shard.compression:
        got = f"expected {shard.compression or 'none'}, got {file.compression or 'none'}"
        findings.tell("compression", got)


class _RunSizes:
    """How many records to look at next, so that runs of large ones are short."""

    def __init__(self) -> None:
        self._records = 0
        self._bytes = 0

    def next(self) -> int:
        if not self._records:
            return FIRST_RUN_RECORDS
        average = max(1, self._bytes // self._records)
        return max(1, min(MAX_RUN_RECORDS, RUN_BYTES // average))

    def note(self, records: Records) -> None:
        self._records += len(records)
        self._bytes += int(records.lengths.sum())


class _IndexCheck:
    """An index file, compared with the records as they come."""

    def __init__(self, name: str, index: Index) -> None:
        self._name = name
        self._index = index
        self._seen = 0
        self._end = 0
        self._is_same = True

    @classmethod
    def open(cls, shard: Path, findings: Findings, *, is_published: bool) -> _IndexCheck | None:
        """The index of a shard, if there is one; to have none is no fault."""
        path = Index.find(shard)
        if path is None:
            return None
        name = path.relative_to(shard.parent).as_posix()
        try:
            # Beside records that others wrote, a file of that name may be something else.
            if not is_published and not Index.is_index(path):
                return None
            return cls(name, Index.load(path))
        except (OSError, DatumError) as error:
            findings.tell("index", f"{name}: {Message.of(error).beside(path)}")
            return None

    def share_of(self, end: int) -> float:
        """How much of the stream is done at byte `end`."""
        return min(1.0, end / max(1, self._index.stream_bytes))

    def compare(self, records: Records, end: int) -> None:
        offsets = records.starts + ((records.base or 0) - HEADER_BYTES)
        told = self._index.offsets[self._seen : self._seen + len(records)]
        self._is_same = self._is_same and np.array_equal(told, offsets)
        self._seen += len(records)
        self._end = end

    def finish(self, findings: Findings) -> None:
        is_whole = self._seen == len(self._index) and self._end == self._index.stream_bytes
        if not (self._is_same and is_whole):
            text = f"{self._name}: expected the places of these records, got others"
            findings.tell("index", text)
