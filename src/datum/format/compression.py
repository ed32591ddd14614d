"""gzip and zlib streams: told by content, opened with bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, cast

from isal import isal_zlib

from datum import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["CompressedStreamError", "Compression", "compressor", "detect_compression", "inflate"]

Compression = Literal["gzip", "zlib"]

# A step of the input: it bounds the memory in use, and what is lost before damage.
INPUT_BYTES = 64 * 1024
OUTPUT_BYTES = 1024 * 1024
_WINDOW_BITS = {"gzip": 16 + 15, "zlib": 15}  # as zlib counts: 16 asks for the gzip wrapper
# isal swallows up to two bytes that follow a zlib stream; zlib itself does not.
_DECODERS: dict[str, Any] = {"gzip": isal_zlib, "zlib": zlib}
_ERRORS = (zlib.error, cast(type[Exception], isal_zlib.error))
_GZIP_MAGIC = b"\x1f\x8b\x08"
_LEVEL = 2  # isal's best trade: near zlib's level 6 in size, several times its speed


class CompressedStreamError(Exception):
    """A compressed stream is cut off or damaged."""

    def __init__(self, message: str, *, is_cut: bool = False) -> None:
        super().__init__(message)
        self.is_cut = is_cut


def detect_compression(content: Buffer) -> Compression | None:
    """How a file of this content is compressed.

    A sound record header wins: plain records of certain lengths look like zlib otherwise. If such
    a header is damaged, zlib is believed only if the content starts to inflate.
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
    """Whether a zlib stream inflates, or at least starts with a record before it fails."""
    stream = zlib.decompressobj()
    head = b""
    for at in range(0, len(start), 64):  # in small steps: what comes before damage counts
        try:
            inflated = stream.decompress(start[at : at + 64])
        except zlib.error:
            return _core.has_valid_header(head)
        head = head if len(head) >= 12 else head + inflated
    return True


_Read = Callable[[int, int], Any]


def inflate(stream_of: Buffer | _Read, compression: Compression) -> Iterator[bytes]:
    """Decompress all members of a stream in pieces of at most `OUTPUT_BYTES`.

    The stream is in memory, or comes from a function: `read(start, size)` returns bytes of it,
    fewer only at its end. Raises CompressedStreamError, after all that could be read, if the stream
    is cut off, damaged, or followed by anything but zeros (which tapes and block devices pad with).
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
                raise CompressedStreamError(f"the {compression} stream is cut off", is_cut=True)
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
    """An object with `compress(data)` and `flush()`; its bytes depend on the data alone."""
    return isal_zlib.compressobj(level=_LEVEL, wbits=_WINDOW_BITS[compression])
