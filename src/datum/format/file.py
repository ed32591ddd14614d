"""Reading one TFRecord file: in order, by number, past damage, compressed or not."""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import CorruptIndexError, CorruptRecordError, Damage
from datum.format.compression import CompressedStreamError, Compression, detect_compression, inflate
from datum.format.index import FRAME_BYTES, Index
from datum.format.records import HEADER_BYTES, Records

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

__all__ = ["RecordFile", "Recovery", "check_recovery"]

Recovery = Literal["strict", "tail", "skip"]

CHUNK_RECORDS = 1024
MAX_RECORD_BYTES = 256 * 2**20  # of a compressed stream, whose own size bounds nothing
WINDOW_BYTES = 16 * 2**20  # pages of a file are asked for, and handed back, in steps of this


_Places = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def check_recovery(recovery: Recovery) -> Recovery:
    """Refuse what is no recovery mode."""
    if recovery not in ("strict", "tail", "skip"):
        raise ValueError(f"expected `recovery` strict, tail or skip, got {recovery!r}")
    return recovery


class RecordFile:
    """The records of a TFRecord file, or of a buffer that holds one.

    Iterating yields payloads as `bytes`; `chunks` yields runs of them without copying. Random
    access, `file[7]`, `file[-3:]`, `file[[5, 2]]`, works on files that are not compressed.

    Args:
        source: a path, or memory with the content of a file. A file must not be cut while it is
            read: its pages are mapped.
        check_crc: whether to check the CRC of every length and payload.
        recovery: what to do about damage: "strict" raises CorruptRecordError; "tail" drops a
            last record that is torn; "skip" steps over everything damaged to the next record
            that is whole. What was dropped is listed in `damage`.
        max_record_bytes: the largest record accepted from a compressed stream.
        use_index: whether to read the index of the file, if there is one (`Index.path_for`).

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
        content: Any = source if self._path is None else _map_file(self._path)
        self._content: Any = content
        self.compression: Compression | None = detect_compression(content)
        self._places: _Places | None = None

    @property
    def _buffer(self) -> Any:
        if self._content is None:
            raise ValueError(f"{self.name}: expected an open file, got a closed one")
        return self._content

    # Reading in order.

    def __iter__(self) -> Iterator[bytes]:
        for records in self.chunks():
            yield from records

    def chunks(self, max_records: int = CHUNK_RECORDS) -> Iterator[Records]:
        """Runs of at most `max_records` records, in order; `damage` is filled on the way."""
        if max_records < 1:
            raise ValueError(f"expected `max_records` of 1 or more, got {max_records}")
        return self.runs(lambda: max_records)

    def runs(self, next_size: Callable[[], int]) -> Iterator[Records]:
        """Like `chunks`, but each run asks anew how many records it may have."""
        self.damage = []
        return self._scan(next_size, self.damage, check_payloads=self.check_crc)

    def _scan(
        self, next_size: Callable[[], int], damage: list[Damage], *, check_payloads: bool
    ) -> Iterator[Records]:
        """Runs of records; what is stepped over is added to `damage`."""
        limit = 2**64 - 1 if self.compression is None else self.max_record_bytes
        scanner = _core.Scanner(self.recovery, self.check_crc, check_payloads, limit)
        if self.compression is None:
            runs = self._scan_piece(scanner, self._buffer, 0, True, next_size)
        else:
            runs = self._scan_compressed(scanner, self.compression, next_size, damage)
        for records in runs:
            damage += [Damage(self.name, *found) for found in scanner.take_damage()]
            if records is not None:
                yield records
        if scanner.fatal is not None:
            raise self._corrupt(Damage(self.name, *scanner.fatal), "expected a sound record")

    def _scan_piece(
        self,
        scanner: _core.Scanner,
        piece: Any,
        base: int,
        is_last: bool,
        next_size: Callable[[], int],
    ) -> Iterator[Records | None]:
        """The records of a piece of the stream that starts at `base`; None where there are none."""
        pages = _Pages(piece)
        is_full = True
        while is_full and scanner.fatal is None:
            self._check_size(piece)
            skip = scanner.position - base
            pages.move_to(skip)
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
        pieces = inflate(self._buffer, compression)
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
            if self.recovery == "strict" or (self.recovery == "tail" and not fault.is_cut):
                raise self._corrupt(lost, f"expected a sound file: {fault}") from fault
            damage.append(lost)

    def _check_size(self, buffer: Any) -> None:
        """Refuse a file that was cut since it was opened: its lost pages cannot be touched."""
        if isinstance(buffer, mmap.mmap) and buffer.size() < len(buffer):
            damage = Damage(self.name, buffer.size(), len(buffer), 0, "torn payload")
            raise CorruptRecordError(
                f"{self.name}: expected {len(buffer)} bytes, got {buffer.size()}:"
                " the file was cut while it was read",
                damage,
            )

    def _corrupt(self, damage: Damage, expected: str) -> CorruptRecordError:
        hint = "\nhint: recovery='skip' reads what is whole and lists what is not"
        hint = "" if self.recovery == "skip" else hint
        return CorruptRecordError(
            f"{damage.file}: record {damage.record} at byte {damage.offset}: {expected},"
            f" got damage: {damage.kind}{hint}",
            damage,
        )

    # Random access.

    @property
    def index(self) -> Index:
        """Where each record starts: read from the index file, or found in one pass.

        The pass checks the CRC of each length, not of the payloads: those are checked when read.
        """
        return self._load_index() or self._index_of(*self._find_places()[:2])

    def _index_of(self, offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> Index:
        ends = offsets + lengths + FRAME_BYTES
        end = int(ends[-1]) if len(ends) else 0
        if not np.array_equal(ends[:-1], offsets[1:]) or (len(offsets) and offsets[0]):
            damage: list[Damage] = []
            for _ in self._scan(lambda: CHUNK_RECORDS, damage, check_payloads=True):
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
                f"{path}: expected an index of {len(self._buffer)} bytes, as {self.name} has,"
                f" got one of {index.stream_bytes}\nhint: delete it, or restore the shard"
            )
        return index

    def _find_places(self) -> _Places:
        """Offset, payload length and number of every record that is whole."""
        if self._places is None:
            index = self._load_index()
            if index is not None:
                self._places = index.offsets, index.lengths, np.arange(len(index))
            else:
                is_skipping = self.recovery == "skip"
                chunks = list(self._scan(lambda: 1 << 16, [], check_payloads=is_skipping))
                self._places = (
                    _joined([c.starts + ((c.base or 0) - HEADER_BYTES) for c in chunks]),
                    _joined([chunk.lengths for chunk in chunks]),
                    _joined([chunk.numbers for chunk in chunks]),
                )
        return self._places

    def __len__(self) -> int:
        if self.compression is not None:
            raise TypeError(
                f"{self.name}: a compressed file does not know its length\n"
                "hint: len(file.index) counts by reading all of it"
            )
        return len(self._find_places()[0])

    def __bool__(self) -> bool:
        return True  # an open file, whatever it holds: counting would read it

    def __getitem__(self, at: int | slice | Sequence[int] | NDArray[Any]) -> Any:
        if isinstance(at, (int, np.integer)):
            return self.records([int(at)])[0]
        return list(self.records(range(*at.indices(len(self))) if isinstance(at, slice) else at))

    def records(self, numbers: Sequence[int] | NDArray[Any]) -> Records:
        """The records of these numbers (negative ones count from the end), checked, not copied."""
        if self.compression is not None:
            raise ValueError(
                f"{self.name}: expected a file that is not compressed, got {self.compression}\n"
                "hint: read it in order, or write it again without compression"
            )
        places = self._find_places()
        wanted = _checked_numbers(numbers, len(places[0]), self.name)
        offsets, lengths, found = (place[wanted] for place in places)
        self._check_size(self._buffer)
        damaged = _core.first_damage(self._buffer, offsets, lengths) if self.check_crc else None
        if damaged is not None:
            row, kind = damaged
            end = int(offsets[row] + lengths[row]) + FRAME_BYTES
            damage = Damage(self.name, int(offsets[row]), end, int(found[row]), kind)
            raise self._corrupt(damage, "expected a sound record")
        return Records(self._buffer, offsets + HEADER_BYTES, lengths, found, self.name, 0)

    # Closing.

    def close(self) -> None:
        """Let go of the file; records and columns that were read stay usable."""
        self._content = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
        raise TypeError(f"{name}: expected numbers of records, got {numbers!r}")
    if len(wanted) and not (-count <= wanted.min() and wanted.max() < count):
        raise IndexError(f"{name}: expected numbers within {count} records, got {numbers!r}")
    wanted = wanted.astype(np.int64)
    return np.where(wanted < 0, wanted + count, wanted)


def _map_file(path: str) -> Any:
    """The content of a regular file, mapped; nothing to map makes empty bytes."""
    # Not blocking: a FIFO would wait for a writer before it could be refused.
    descriptor = os.open(
        path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    )
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path}: expected a regular file")
        if status.st_size == 0:
            return b""
        return mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
    finally:
        os.close(descriptor)


class _Pages:
    """Moves a window over a mapped file: the disk reads ahead, pages behind are handed back."""

    def __init__(self, buffer: Any) -> None:
        can_advise = isinstance(buffer, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED")
        self._map: Any = buffer if can_advise else None
        self._next = 0

    def move_to(self, position: int) -> None:
        if self._map is None or position < self._next:
            return
        start = position - position % WINDOW_BYTES
        self._next = start + WINDOW_BYTES
        size = min(2 * WINDOW_BYTES, len(self._map) - start)
        if size > 0:
            self._map.madvise(mmap.MADV_WILLNEED, start, size)
        # From the start on: whoever lags behind may have touched pages again.
        if start > WINDOW_BYTES:
            self._map.madvise(mmap.MADV_DONTNEED, 0, start - WINDOW_BYTES)
