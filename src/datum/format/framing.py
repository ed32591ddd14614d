"""Record payloads, their frames, and gzip or zlib streams of them."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, Protocol, cast

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from datum import _core
from datum.format.index import Index

if TYPE_CHECKING:
    from typing import Self

    from typing_extensions import Buffer

__all__ = [
    "CompressedStreamError",
    "Compression",
    "Framed",
    "Located",
    "RecordWriter",
    "Records",
    "compressor",
    "detect_compression",
    "frame",
    "inflate",
]

HEADER_BYTES = 12  # before each payload: u64 length, u32 CRC


class Located(Protocol):
    """Parsed records: the memory of their strings, and where each came from."""

    @property
    def buffer(self) -> Buffer | NDArray[Any]:
        """The memory that slices point into."""

    def __len__(self) -> int: ...

    def locate(self, at: int) -> tuple[str, int, int | None]:
        """Return file, number and offset of one record, for messages."""


@dataclass(frozen=True, slots=True)
class Records:
    """Payloads in one buffer, without copies.

    Attributes:
        buffer: The memory that contains the payloads.
        starts: The start of each payload in `buffer`.
        lengths: The size of each in bytes.
        numbers: The number of each within its file.
        file: The file they are from.
        base: The position of `buffer` in the (decompressed) file; None if unknown.
        offsets: The position of each record in the file, for records from all over it: instead of
            `base`.
        parts: For joined runs, the runs they were joined from, instead of the four above.

    >>> records = Records.of([b"one", b"three"])
    >>> len(records), records[1]
    (2, b'three')
    """

    buffer: Buffer | NDArray[Any]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: NDArray[np.int64]
    file: str = "<memory>"
    base: int | None = None
    offsets: NDArray[np.int64] | None = None
    parts: tuple[Records, ...] = ()

    @classmethod
    def of(cls, payloads: Iterable[bytes]) -> Records:
        """Copy payloads in memory into one run."""
        items = list(payloads)
        for item in items:
            if not isinstance(item, bytes):
                raise TypeError(f"expected payloads of bytes, got {type(item).__name__}")
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        starts = np.cumsum(lengths) - lengths
        return cls(b"".join(items), starts, lengths, np.arange(len(items)))

    @classmethod
    def join(cls, parts: Sequence[Records]) -> Records:
        """Copy several runs into one."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.of([])
        joined = cls.of(payload for part in parts for payload in part)
        return cls(joined.buffer, joined.starts, joined.lengths, joined.numbers, parts=tuple(parts))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, at: int) -> bytes:
        place = np.array([self.starts[at], self.lengths[at]])
        payload: bytes = _core.take_strings(self.buffer, place, False)[0]
        return payload

    def __iter__(self) -> Iterator[bytes]:
        slices = np.stack([self.starts, self.lengths], axis=1).reshape(-1)
        return iter(_core.take_strings(self.buffer, slices, False))

    def locate(self, at: int) -> tuple[str, int, int | None]:
        """Return file, number and offset (of the record's header) of one record, for messages."""
        for part in self.parts:
            if at < len(part):
                return part.locate(at)
            at -= len(part)
        offset: int | None = None
        if self.offsets is not None:
            offset = int(self.offsets[at])
        elif self.base is not None:
            offset = self.base + int(self.starts[at]) - HEADER_BYTES
        return self.file, int(self.numbers[at]), offset


Compression = Literal["gzip", "zlib"]

# The size of an input step: it bounds the memory in use, and the loss before damage.
INPUT_BYTES = 64 * 1024
OUTPUT_BYTES = 1024 * 1024
_WINDOW_BITS = {"gzip": 16 + 15, "zlib": 15}  # zlib's encoding: 16 selects the gzip wrapper
# isal consumes up to two bytes that follow a zlib stream; zlib itself does not.
_DECODERS: dict[str, Any] = {"gzip": isal_zlib, "zlib": zlib}
_ERRORS = (zlib.error, cast(type[Exception], isal_zlib.error))
_GZIP_MAGIC = b"\x1f\x8b\x08"
_LEVEL = 2  # isal's best trade-off: near zlib's level 6 in size, several times its speed


class CompressedStreamError(Exception):
    """A compressed stream is truncated or damaged."""

    def __init__(self, message: str, *, is_truncated: bool = False) -> None:
        super().__init__(message)
        self.is_truncated = is_truncated


def detect_compression(content: Buffer) -> Compression | None:
    """Return how a file of this content is compressed.

    An intact record header wins: plain records of certain lengths look like zlib otherwise. If such
    a header is damaged, it counts as zlib only if the content starts to inflate.
    """
    start = memoryview(content).cast("B")[:INPUT_BYTES]
    head = bytes(start[:12])
    if _core.has_valid_header(head):
        return None
    if head[:3] == _GZIP_MAGIC:
        return "gzip"
    return "zlib" if _is_zlib_header(head) and _inflates(start) else None


def _is_zlib_header(head: bytes) -> bool:
    is_deflate = len(head) >= 2 and head[0] & 0x0F == 8 and head[0] >> 4 <= 7
    return is_deflate and (head[0] * 256 + head[1]) % 31 == 0


def _inflates(start: memoryview) -> bool:
    """Return whether a zlib stream inflates, or at least starts with a record before it fails."""
    stream = zlib.decompressobj()
    head = b""
    for at in range(0, len(start), 64):  # in small steps: output before damage counts
        try:
            inflated = stream.decompress(start[at : at + 64])
        except zlib.error:
            return _core.has_valid_header(head)
        head = head if len(head) >= 12 else head + inflated
    return True


_Read = Callable[[int, int], Any]


def inflate(stream_of: Buffer | _Read, compression: Compression) -> Iterator[bytes]:
    """Decompress all members of a stream in pieces of at most `OUTPUT_BYTES`.

    The stream is in memory, or a function: `read(start, size)` returns bytes of it, fewer only at
    its end. Raises CompressedStreamError, after all readable data, if the stream is truncated,
    damaged, or followed by anything but zeros (with which tapes and block devices pad).
    """
    read = stream_of if callable(stream_of) else _reader_of(stream_of)
    position = 0
    while True:
        stream = _DECODERS[compression].decompressobj(wbits=_WINDOW_BITS[compression])
        pending: Any = b""
        while not stream.eof:
            if not pending:
                pending = read(position, INPUT_BYTES)
                position += len(pending)
            is_at_end = not pending
            try:
                piece = stream.decompress(pending, OUTPUT_BYTES)
            except _ERRORS as error:
                raise CompressedStreamError(f"the {compression} stream is damaged") from error
            pending = stream.unconsumed_tail
            if piece:
                yield piece
            elif is_at_end and not stream.eof:
                raise CompressedStreamError(
                    f"the {compression} stream is truncated", is_truncated=True
                )
        position -= len(stream.unused_data)
        if not _starts_member(bytes(read(position, 3)), compression):
            if not _is_zeros(read, position):
                raise CompressedStreamError(f"the {compression} stream is followed by other bytes")
            return


def _reader_of(memory: Buffer) -> _Read:
    view = memoryview(memory).cast("B")
    return lambda start, size: view[start : start + size]


def _starts_member(head: bytes, compression: Compression) -> bool:
    return head == _GZIP_MAGIC if compression == "gzip" else _is_zlib_header(head)


def _is_zeros(read: _Read, position: int) -> bool:
    while piece := bytes(read(position, INPUT_BYTES)):
        if any(piece):
            return False
        position += len(piece)
    return True


def compressor(compression: Compression) -> Any:
    """Return an object with `compress(data)` and `flush()`; its bytes depend only on the data."""
    return isal_zlib.compressobj(level=_LEVEL, wbits=_WINDOW_BITS[compression])


COMPRESSED_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """Records ready to be written: each framed by its length and checksums.

    >>> framed = frame([b"one", b"two"])
    >>> len(framed), framed.nbytes
    (2, 38)
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @property
    def nbytes(self) -> int:
        """The size of all frames."""
        return self.data.nbytes

    @property
    def index(self) -> Index:
        """The index of a file with just these records."""
        return Index(self.offsets, self.nbytes)

    def records(self) -> Records:
        """Return the payloads, without copying."""
        index = self.index
        numbers = np.arange(len(self))
        return Records(self.data, self.offsets + HEADER_BYTES, index.lengths, numbers, base=0)

    def to_bytes(self) -> bytes:
        """Return the content of a TFRecord file."""
        return self.data.tobytes()

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.records())


def frame(payloads: Iterable[bytes]) -> Framed:
    """Frame serialized payloads with lengths and checksums."""
    return Framed(*_core.frame(list(payloads)))


class RecordWriter:
    """Writes records to a path, to an open binary file, or to memory (`target=None`).

    It writes in place; publishing a finished file atomically is up to the caller.

    >>> with RecordWriter() as writer:
    ...     writer.write(b"one")
    >>> writer.getvalue()[12:15]
    b'one'
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | BinaryIO | None = None,
        *,
        compression: Compression | None = None,
    ) -> None:
        if compression not in (None, "gzip", "zlib"):
            raise ValueError(f"expected `compression` None, gzip or zlib, got {compression!r}")
        self._compressor: Any = None if compression is None else compressor(compression)
        self._owns_file = isinstance(target, (str, os.PathLike))
        self._file: Any = io.BytesIO() if target is None else target
        if isinstance(target, (str, os.PathLike)):
            self._file = Path(target).open("wb")  # noqa: SIM115 - closed by close()
        self._offsets: list[NDArray[np.int64]] = []
        self._stream_bytes = 0
        self._waiting = bytearray()  # to be compressed
        self._value: bytes | None = None
        self._is_closed = False

    def write(self, payload: bytes) -> None:
        """Frame and write one payload."""
        self.write_framed(frame([payload]))

    def write_framed(self, framed: Framed) -> None:
        """Write framed records."""
        if self._is_closed:
            raise ValueError("expected an open writer, got a closed one")
        if self._compressor is None:
            self._put(framed.data)
        else:
            self._compress(framed.data)
        self._offsets.append(framed.offsets + self._stream_bytes)
        self._stream_bytes += framed.nbytes

    def _compress(self, data: Any) -> None:
        """Compress in steps of one size: the boundaries show in the compressed bytes."""
        self._waiting += memoryview(data)
        whole = len(self._waiting) - len(self._waiting) % COMPRESSED_AT_ONCE
        for first in range(0, whole, COMPRESSED_AT_ONCE):
            step = bytes(self._waiting[first : first + COMPRESSED_AT_ONCE])
            self._put(self._compressor.compress(step))
        del self._waiting[:whole]

    def _put(self, data: Any) -> None:
        if len(data):
            self._file.write(data)

    @property
    def index(self) -> Index:
        """The index of the records written so far."""
        offsets = np.concatenate(self._offsets) if self._offsets else np.empty(0, np.int64)
        return Index(offsets, self._stream_bytes)

    def getvalue(self) -> bytes:
        """Return what was written to memory, once the writer is closed."""
        if self._value is None:
            raise ValueError("expected a closed writer to memory")
        return self._value

    def close(self) -> None:
        """Finish the stream and close the file, if it was opened here."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._compressor is not None:
                self._put(self._compressor.compress(bytes(self._waiting)))
                self._put(self._compressor.flush())
            if isinstance(self._file, io.BytesIO):
                self._value = self._file.getvalue()
        finally:
            if self._owns_file:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(map(len, self._offsets))
