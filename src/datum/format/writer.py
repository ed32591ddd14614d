"""Writing framed records to a file or to memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.format.compression import Compression, compressor
from datum.format.index import Index
from datum.format.records import HEADER_BYTES, Records

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Framed", "RecordWriter", "frame"]

COMPRESSED_AT_ONCE = 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Framed:
    """Records ready to be written: each with its length and checksums around it.

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
        """The index of a file that holds just these records."""
        return Index(self.offsets, self.nbytes)

    def records(self) -> Records:
        """The payloads, without copying."""
        index = self.index
        numbers = np.arange(len(self))
        return Records(self.data, self.offsets + HEADER_BYTES, index.lengths, numbers, base=0)

    def to_bytes(self) -> bytes:
        """The content of a TFRecord file."""
        return self.data.tobytes()

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.records())


def frame(payloads: Iterable[bytes]) -> Framed:
    """Put lengths and checksums around payloads that are serialized already."""
    return Framed(*_core.frame(list(payloads)))


class RecordWriter:
    """Writes records to a path, to an open binary file, or to memory (`target=None`).

    It writes in place; making a finished file appear at once is the caller's task.

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
        """Write records that are framed already."""
        if self._is_closed:
            raise ValueError("expected an open writer, got a closed one")
        if self._compressor is None:
            self._put(framed.data)
        else:
            self._compress(framed.data)
        self._offsets.append(framed.offsets + self._stream_bytes)
        self._stream_bytes += framed.nbytes

    def _compress(self, data: Any) -> None:
        """Compress in steps of one size: how data is cut shows in the compressed bytes."""
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
        """The index of what was written so far."""
        offsets = np.concatenate(self._offsets) if self._offsets else np.empty(0, np.int64)
        return Index(offsets, self._stream_bytes)

    def getvalue(self) -> bytes:
        """What was written to memory, once the writer is closed."""
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(map(len, self._offsets))
