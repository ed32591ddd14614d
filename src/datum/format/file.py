"""TFRecord file reader: in order, by number, around damage, compressed or not."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import CorruptIndexError, CorruptRecordError, Damage, Message
from datum.format.framing import (
    HEADER_BYTES,
    INPUT_BYTES,
    CompressedStreamError,
    Compression,
    Framed,
    Records,
    detect_compression,
    inflate,
)
from datum.format.index import FRAME_BYTES, Index

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

__all__ = [
    "FileVersion",
    "Payloads",
    "RecordFile",
    "Recovery",
    "as_records",
    "change_error",
    "check_recovery",
    "is_written_to",
    "refuse_changes",
    "version_of",
]

Recovery = Literal["strict", "tail", "skip"]
# Device, inode, bytes, times of modification and of change in ns, and a digest of the rights.
FileVersion = tuple[int, int, int, int, int, int]

CHUNK_RECORDS = 1024
MAX_RECORD_BYTES = 256 * 2**20  # of a compressed stream, whose size limits nothing
CHUNK_BYTES = 4 * 2**20  # of a run of records, unless one is larger: fits into caches
ANY_BYTES = 2**63


_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def check_recovery(recovery: Recovery) -> Recovery:
    """Raise ValueError if this is not a recovery mode."""
    if recovery not in ("strict", "tail", "skip"):
        raise ValueError(Message(f"expected `recovery` strict, tail or skip, got {recovery!r}"))
    return recovery


class RecordFile:
    """The records of a TFRecord file, or of a buffer that holds one.

    Iterating yields payloads as `bytes`; `chunks` yields runs of them in one buffer. Random
    access, `file[7]`, `file[-3:]`, `file[[5, 2]]`, works on files that are not compressed.

    Records stay valid, whatever happens to the file. A file that is truncated or rewritten while
    it is read raises CorruptRecordError; one that grows, or is replaced by another, is read in the
    state in which it was opened.

    Args:
        source: A path, or memory with the content of a file.
        check_crc: Whether to verify the CRC of every length and payload.
        recovery: How to treat damage: "strict" raises CorruptRecordError; "tail" drops a truncated
            last record; "skip" skips everything damaged up to the next intact record. Dropped
            records are listed in `damage`.
        max_record_bytes: The largest record accepted from a compressed stream.
        use_index: Whether to read the index of the file, if there is one (`Index.path_for`).

    >>> from datum.format import frame
    >>> file = RecordFile(frame([b"one", b"two"]).to_bytes())
    >>> list(file)
    [b'one', b'two']
    >>> file[1]
    b'two'
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Buffer,
        *,
        check_crc: bool = True,
        recovery: Recovery = "strict",
        max_record_bytes: int = MAX_RECORD_BYTES,
        use_index: bool = True,
    ) -> None:
        self.recovery = check_recovery(recovery)
        self.check_crc = check_crc
        self.max_record_bytes = max_record_bytes
        self.use_index = use_index
        self.damage: list[Damage] = []
        self._path = os.fspath(source) if isinstance(source, (str, os.PathLike)) else None
        self.name = self._path or "<memory>"
        self._content: Any = _in_memory(source) if self._path is None else _open(self._path)
        self.compression: Compression | None = detect_compression(self._read(0, INPUT_BYTES))
        self._places: _Places | None = None

    @property
    def _buffer(self) -> Any:
        if self._content is None:
            raise ValueError(Message(f"{self.name}: expected an open file, got a closed one"))
        return self._content

    @property
    def content(self) -> _core.MappedFile:
        """The open file, for access beyond records."""
        content = self._buffer
        assert isinstance(content, _core.MappedFile)
        return content

    def _read(self, start: int, size: int) -> Any:
        """Return bytes of the file, fewer at its end: a copy, unless the source is memory."""
        content = self._buffer
        if not isinstance(content, _core.MappedFile):
            return memoryview(content).cast("B")[start : start + size]
        with refuse_changes(self.name, content):
            return memoryview(content.read(start, min(size, len(content) - start)))

    # Reading in order.

    def __iter__(self) -> Iterator[bytes]:
        for records in self.chunks():
            yield from records

    def chunks(self, max_records: int = CHUNK_RECORDS) -> Iterator[Records]:
        """Yield runs of at most `max_records` records, in order, and fill `damage`."""
        if max_records < 1:
            raise ValueError(Message(f"expected `max_records` of 1 or more, got {max_records}"))
        return self.runs(lambda: max_records, max_bytes=CHUNK_BYTES)

    def runs(
        self, next_size: Callable[[], int], *, max_bytes: int = ANY_BYTES
    ) -> Iterator[Records]:
        """Yield runs like `chunks`, but ask for the size of each run."""
        self.damage = []
        return self._scan(
            next_size, self.damage, check_payloads=self.check_crc, max_bytes=max_bytes
        )

    def _scan(
        self,
        next_size: Callable[[], int],
        damage: list[Damage],
        *,
        check_payloads: bool,
        max_bytes: int,
    ) -> Iterator[Records]:
        """Yield runs of records; add what is skipped to `damage`.

        With `max_bytes` 0 the records of a file are only located, not kept.
        """
        limit = 2**64 - 1 if self.compression is None else self.max_record_bytes
        scanner = _core.Scanner(self.recovery, self.check_crc, check_payloads, limit)
        if self.compression is None:
            content = self._buffer
            if isinstance(content, _core.MappedFile):
                runs = self._scan_file(scanner, content, next_size, max_bytes)
            else:
                runs = self._scan_piece(scanner, content, 0, True, next_size)
        else:
            runs = self._scan_compressed(scanner, self.compression, next_size, damage)
        for records in runs:
            damage += [Damage(self.name, *found) for found in scanner.take_damage()]
            if records is not None:
                yield records
        if scanner.fatal is not None:
            raise self._corrupt(Damage(self.name, *scanner.fatal), "expected an intact record")

    def _scan_file(
        self,
        scanner: _core.Scanner,
        content: _core.MappedFile,
        next_size: Callable[[], int],
        max_bytes: int,
    ) -> Iterator[Records | None]:
        """Yield the records of the file in buffers of their own; None where there are none."""
        while scanner.fatal is None:
            with refuse_changes(self.name, content):
                found = scanner.scan_file(content, next_size(), max_bytes)
            buffer, base, starts, lengths, numbers = found
            kept = b"" if buffer is None else buffer
            has_any = len(starts) > 0
            yield Records(kept, starts, lengths, numbers, self.name, base) if has_any else None
            if scanner.position == len(content) or not has_any:
                return

    def _scan_piece(
        self,
        scanner: _core.Scanner,
        piece: Any,
        base: int,
        is_last: bool,
        next_size: Callable[[], int],
    ) -> Iterator[Records | None]:
        """Yield the records of a piece of the stream from `base` on; None if there are none."""
        is_full = True
        while is_full and scanner.fatal is None:
            skip = scanner.position - base
            size = next_size()
            starts, lengths, numbers = scanner.scan(piece, skip, is_last, size)
            is_full = len(starts) == size
            yield Records(piece, starts, lengths, numbers, self.name, base) if len(starts) else None

    def _scan_compressed(
        self,
        scanner: _core.Scanner,
        compression: Compression,
        next_size: Callable[[], int],
        damage: list[Damage],
    ) -> Iterator[Records | None]:
        pieces = inflate(self._read, compression)
        piece = b""
        base = 0
        fault: CompressedStreamError | None = None
        is_last = False
        while not is_last and fault is None and scanner.fatal is None:
            gathered = [piece[scanner.position - base :]]
            size = len(gathered[0])
            base = scanner.position
            wanted = max(scanner.bytes_wanted, size + 1)
            while size < wanted and not is_last and fault is None:
                try:
                    gathered.append(next(pieces))
                    size += len(gathered[-1])
                except StopIteration:
                    is_last = True
                except CompressedStreamError as error:
                    fault = error
            piece = b"".join(gathered)
            yield from self._scan_piece(scanner, piece, base, is_last, next_size)
        if fault is not None and scanner.fatal is None:
            lost = Damage(
                self.name,
                scanner.unread_from,
                base + len(piece),
                scanner.records_seen,
                "compressed stream",
            )
            if self.recovery == "strict" or (self.recovery == "tail" and not fault.is_truncated):
                raise self._corrupt(lost, f"expected an intact file: {fault}") from fault
            damage.append(lost)

    def _corrupt(self, damage: Damage, expected: str) -> CorruptRecordError:
        hint = "recovery='skip' reads what is intact and lists what is not"
        hint = "" if self.recovery == "skip" else hint
        return CorruptRecordError(
            f"record {damage.record} at byte {damage.offset}: {expected},"
            f" got damage: {damage.kind}",
            where=damage.file,
            hint=hint,
            damage=damage,
        )

    # Random access.

    @property
    def index(self) -> Index:
        """The offset of each record: read from the index file, or found by reading the file once.

        That pass verifies the CRC of each length; those of payloads are verified when read.
        """
        return self._load_index() or self._index_of(*self._find_places()[:2])

    def _index_of(self, offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> Index:
        ends = offsets + lengths + FRAME_BYTES
        end = int(ends[-1]) if len(ends) else 0
        if not np.array_equal(ends[:-1], offsets[1:]) or (len(offsets) and offsets[0]):
            damage: list[Damage] = []
            for _ in self._scan(lambda: CHUNK_RECORDS, damage, check_payloads=True, max_bytes=0):
                pass
            raise self._corrupt(damage[0], "expected records without gaps to index")
        return Index(offsets, end)

    def _load_index(self) -> Index | None:
        if self._path is None or self.recovery != "strict" or not self.use_index:
            return None
        path = Index.find(self._path)
        if path is None:
            return None
        index = Index.load(path)
        if self.compression is None and index.stream_bytes != len(self._buffer):
            raise CorruptIndexError(
                f"expected an index of {len(self._buffer)} bytes, as {self.name} has,"
                f" got one of {index.stream_bytes}",
                where=path,
                hint="delete it, or restore the shard",
            )
        return index

    def _find_places(self) -> _Places:
        """Return offset, payload length and number of every intact record."""
        if self._places is None:
            index = self._load_index()
            if index is not None:
                self._places = index.offsets, index.lengths, np.arange(len(index))
            else:
                is_skipping = self.recovery == "skip"
                chunks = list(
                    self._scan(lambda: 1 << 16, [], check_payloads=is_skipping, max_bytes=0)
                )
                self._places = (
                    _joined([c.starts + ((c.base or 0) - HEADER_BYTES) for c in chunks]),
                    _joined([chunk.lengths for chunk in chunks]),
                    _joined([chunk.numbers for chunk in chunks]),
                )
        return self._places

    def __len__(self) -> int:
        if self.compression is not None:
            raise TypeError(
                Message(
                    f"{self.name}: a compressed file does not know its length",
                    hint="len(file.index) counts by reading all of it",
                )
            )
        return len(self._find_places()[0])

    def __bool__(self) -> bool:
        return True  # an open file is true even if empty: counting would read it

    def __getitem__(self, at: int | slice | Sequence[int] | NDArray[Any]) -> Any:
        if isinstance(at, (int, np.integer)):
            return self.records([int(at)])[0]
        return list(self.records(range(*at.indices(len(self))) if isinstance(at, slice) else at))

    def records(self, numbers: Sequence[int] | NDArray[Any]) -> Records:
        """Return the records of these numbers (negative ones count from the end), verified."""
        if self.compression is not None:
            raise ValueError(
                Message(
                    f"{self.name}: expected a file that is not compressed, got {self.compression}",
                    hint="read it in order, or rewrite it without compression",
                )
            )
        places = self._find_places()
        wanted = _checked_numbers(numbers, len(places[0]), self.name)
        offsets, lengths, found = (place[wanted] for place in places)
        buffer, starts = self._gather(offsets, lengths + FRAME_BYTES)
        damaged = _core.first_damage(buffer, starts, lengths) if self.check_crc else None
        if damaged is not None:
            row, kind = damaged
            end = int(offsets[row] + lengths[row]) + FRAME_BYTES
            damage = Damage(self.name, int(offsets[row]), end, int(found[row]), kind)
            raise self._corrupt(damage, "expected an intact record")
        payloads = starts + HEADER_BYTES
        return Records(buffer, payloads, lengths, found, self.name, offsets=offsets)

    def _gather(
        self, offsets: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.int64]]:
        """Return memory with these frames, and their offsets in it; of a file it is a copy."""
        content = self._buffer
        if not isinstance(content, _core.MappedFile):
            return content, offsets
        with refuse_changes(self.name, content):
            return content.gather(offsets, sizes, 1), np.cumsum(sizes) - sizes

    # Closing.

    def close(self) -> None:
        """Close the file; records and columns that were read stay valid."""
        self._content = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        compression = f", {self.compression}" if self.compression else ""
        return f"RecordFile({self.name!r}{compression})"


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *parts])


def _checked_numbers(
    numbers: Sequence[int] | NDArray[Any], count: int, name: str
) -> NDArray[np.int64]:
    wanted = np.asarray(numbers)
    if wanted.size == 0:
        wanted = np.empty(0, np.int64)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise TypeError(Message(f"{name}: expected numbers of records, got {numbers!r}"))
    if len(wanted) and not (-count <= wanted.min() and wanted.max() < count):
        raise IndexError(f"{name}: expected numbers within {count} records, got {numbers!r}")
    wanted = wanted.astype(np.int64)
    return np.where(wanted < 0, wanted + count, wanted)


def _in_memory(source: Any) -> Any:
    memoryview(source)  # raises TypeError if it is not a buffer
    return source


def _open(path: str) -> _core.MappedFile:
    if "\0" in path:
        raise ValueError(
            Message(f"expected the path of a file, got one with a null character: {path!r}")
        )
    try:
        return _core.MappedFile(path)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EISDIR):
            raise OSError(f"{path}: expected a regular file") from None
        raise


def version_of(path: str | os.PathLike[str]) -> FileVersion:
    """Return an identity that distinguishes the file from others of the same name."""
    return _core.version_of(os.fspath(path))


def is_written_to(found: FileVersion, known: FileVersion) -> bool:
    """Whether a file was written to since its version was `known`, apart from its size.

    Programs can restore the time of modification, but not the time of change. The latter also
    changes with the rights and links of a file, which is harmless.
    """
    return found[3] != known[3] or (found[4] != known[4] and found[5] == known[5])


@contextmanager
def refuse_changes(name: str, content: _core.MappedFile) -> Iterator[None]:
    """Raise CorruptRecordError if the file turns out to have changed since it was opened."""
    try:
        yield
    except _core.Fault as fault:
        _, state, nbytes = fault.args
        raise change_error(name, len(content), state, nbytes) from None


_REPLACE = "to replace a file that is in use, write another one beside it and rename that"


def change_error(file: str, expected: int, state: str, got: int) -> CorruptRecordError:
    """Return the error for a file of `expected` bytes that has changed and has `got` now."""
    if state == "cut":
        return CorruptRecordError(
            f"expected {expected} bytes, got {got}: the file was truncated while it was read",
            where=file,
            hint=f"restore it; {_REPLACE}",
            damage=Damage(file, got, expected, 0, "torn payload"),
        )
    if state == "rewritten":
        return CorruptRecordError(
            "the file was written to while it was read",
            where=file,
            hint=f"read it again; {_REPLACE}",
        )
    return CorruptRecordError(
        f"expected {expected} bytes, got a disk error for some of them",
        where=file,
        hint="copy the dataset again, to another disk",
    )


Payloads = str | os.PathLike[str] | RecordFile | Records | Framed | Iterable[bytes]


def as_records(source: Payloads) -> Records:
    """Return the payloads in one run; copied only if they are not in one buffer."""
    if isinstance(source, (str, os.PathLike)):
        source = RecordFile(source)
    if isinstance(source, Records):
        return source
    if isinstance(source, Framed):
        return source.records()
    if isinstance(source, RecordFile):
        return Records.join(list(source.chunks(1 << 30)))
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError(
            Message(
                "expected payloads, got the bytes of a file or of one payload",
                hint="pass RecordFile(data), or a list of payloads",
            )
        )
    return Records.of(source)
