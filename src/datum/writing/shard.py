"""One shard on its way to disk: the records, their index, and a checksum of the file."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from datum import _core
from datum.format import Compression, Framed, Index, RecordWriter
from datum.format.durable import write_file
from datum.format.manifest import TAIL_BYTES, ShardInfo

__all__ = ["ShardWriter"]

WRITE_BACK_BYTES = 16 * 2**20


class _ChecksummedFile:
    """A file that is only written to, from its start, and knows its checksum."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)
        self.nbytes = 0
        self.crc = 0
        self._tail = b""
        self._started = 0

    def write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        self.crc = _core.crc32c(view, self.crc)
        self.nbytes += len(view)
        self._tail = (self._tail + bytes(view[-TAIL_BYTES:]))[-TAIL_BYTES:]
        while view:  # a write may take less than it is given
            view = view[self._file.write(view) :]
        if self.nbytes - self._started >= WRITE_BACK_BYTES:
            self._start_write_back()

    def _start_write_back(self) -> None:
        """Let the disk begin with what is there, so that little is left to wait for at the end."""
        if hasattr(os, "posix_fadvise"):  # on Linux this starts to write pages that are not yet
            size = self.nbytes - self._started
            os.posix_fadvise(self._file.fileno(), self._started, size, os.POSIX_FADV_DONTNEED)
        self._started = self.nbytes

    @property
    def tail_crc(self) -> int:
        """The checksum of the last `TAIL_BYTES` bytes."""
        return _core.crc32c(self._tail)

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class ShardWriter:
    """Writes the records of one shard; it counts once `finish` has returned."""

    def __init__(self, path: Path, *, compression: Compression | None) -> None:
        self._path = path
        self._file = _ChecksummedFile(path)
        target: Any = self._file
        self._writer = RecordWriter(target, compression=compression)

    @property
    def nbytes(self) -> int:
        """How many bytes have gone to the file."""
        return self._file.nbytes

    def write(self, framed: Framed) -> None:
        """Add records."""
        self._writer.write_framed(framed)

    def finish(self) -> ShardInfo:
        """Put all of it on the disk, and its index; `Staging.sync` makes their names safe."""
        try:
            self._writer.close()
            self._file.sync()
        finally:
            self._file.close()
        file = self._file
        index = replace(self._writer.index, shard_crc32c=file.crc)
        path = Index.path_for(self._path)
        path.parent.mkdir(exist_ok=True)
        write_file(path, index.to_bytes())
        tail = file.tail_crc
        return ShardInfo(self._path.name, len(index), file.nbytes, file.crc, tail_crc32c=tail)

    def abandon(self) -> None:
        """Close the file as it is."""
        self._file.close()
