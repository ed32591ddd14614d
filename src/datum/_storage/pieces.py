"""A local copy of an object, fetched piece by piece: a sparse file, and the map of its pieces.

The copy of `train-0.tfrecord` has that name, its full size from the start, and holes where nothing
was fetched yet. Its map lies beside it in `.pieces/`. Every process maps the map into memory: the
fetcher notes what is there, and readers look before they read and stamp what they use. So a reader
of pieces that are there asks nobody.

    offset  bytes  what
    0       8      magic, "DATUMPM1"
    8       8      size of the object
    16      8      size of a piece; the last one may be shorter
    24      2      length of the entity tag, 0 if the store has none
    26      486    entity tag of the object, padded
    512     n      1 for each piece that is there, else 0
    ...     4n     when each piece was last used, in seconds of the system's clock modulo 2**32

All numbers are little-endian. The times start at the next multiple of 8.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum.format.durable import replace_file

__all__ = ["MAP_FOLDER", "PIECE_BYTES", "PieceMap", "now_s"]

PIECE_BYTES = 4 * 2**20  # a few requests keep a fast connection busy; one does not wait long
MAP_FOLDER = ".pieces"

_MAGIC = b"DATUMPM1"
_HEAD_BYTES = 512
_TAG_AT = 26


def now_s() -> int:
    """The time of a stamp."""
    return int(time.time()) % 2**32


class PieceMap:
    """Which pieces of an object are in its local copy, shared by all processes of the machine.

    Attributes:
        path: the local copy.
        size: of the object.
        piece_bytes: of each piece but the last.
        etag: of the object that the pieces are of; None if the store has none.
        present: 1 for each piece that is there.
        stamps: when each piece was last used.
    """

    def __init__(self, path: Path) -> None:
        """Open the map of a copy; FileNotFoundError or ValueError if there is none to use."""
        self.path = path
        content = np.asarray(np.memmap(map_path(path), np.uint8, "r+"))  # whose slices are faster
        head = content[:_HEAD_BYTES].tobytes()
        self.size, self.piece_bytes = (
            int.from_bytes(head[at : at + 8], "little") for at in (8, 16)
        )
        length = int.from_bytes(head[24:26], "little")
        self.etag = head[_TAG_AT : _TAG_AT + length].decode() if length else None
        is_sound = head.startswith(_MAGIC) and self.piece_bytes > 0
        if not is_sound or len(content) != _map_bytes(self.size, self.piece_bytes):
            raise ValueError(f"{map_path(path)}: expected a map of pieces")
        self._stamped_s = -1
        stamps = _stamps_at(len(self))
        self.present: NDArray[np.uint8] = content[_HEAD_BYTES : _HEAD_BYTES + len(self)]
        self.stamps: NDArray[np.uint32] = content[stamps:].view(np.uint32)

    @classmethod
    def create(cls, path: Path, *, size: int, etag: str | None, piece_bytes: int) -> PieceMap:
        """A copy of nothing but holes. The map comes last: where there is one, there is a copy."""
        map_path(path).parent.mkdir(parents=True, exist_ok=True)
        map_path(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)  # those who read it have it still
        with path.open("xb") as file:
            file.truncate(size)
        tag = (etag or "").encode()
        if len(tag) > _HEAD_BYTES - _TAG_AT:
            tag = b""
        head = _MAGIC + size.to_bytes(8, "little") + piece_bytes.to_bytes(8, "little")
        head += len(tag).to_bytes(2, "little") + tag
        replace_file(map_path(path), head.ljust(_map_bytes(size, piece_bytes), b"\0"))
        return cls(path)

    def __len__(self) -> int:
        return _count(self.size, self.piece_bytes)

    @property
    def is_complete(self) -> bool:
        """Whether every piece is there."""
        return bool(self.present.all())

    @property
    def present_bytes(self) -> int:
        """How many bytes are there."""
        has_end = len(self) and self.present[-1]
        rest = len(self) * self.piece_bytes - self.size
        return int(self.present.sum(dtype=np.int64)) * self.piece_bytes - rest * int(has_end)

    def span(self, piece: int) -> tuple[int, int]:
        """Where a piece starts, and its size."""
        start = piece * self.piece_bytes
        return start, min(self.piece_bytes, self.size - start)

    def cover(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pieces that hold some ranges of bytes, each once."""
        firsts, lasts = starts // self.piece_bytes, (ends - 1) // self.piece_bytes
        found = [firsts, lasts]
        if len(firsts) and int((lasts - firsts).max()) > 1:
            pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
            found += [np.arange(first, last) for first, last in pairs if last - first > 1]
        pieces: NDArray[np.int64] = np.unique(np.concatenate(found))
        return pieces

    def use_all(self) -> bool:
        """Whether every piece is there; if so, all are stamped, once a second."""
        if not self.present.all():
            return False
        now = now_s()
        if now != self._stamped_s:
            self._stamped_s = now
            self.stamps[:] = now
        return True

    def lacks(self, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of some pieces that are not there; the others are stamped."""
        is_there = self.present[pieces] != 0
        if is_there.all():
            self.stamps[pieces] = now_s()
            return pieces[:0]
        self.stamps[pieces[is_there]] = now_s()
        lacking: NDArray[np.int64] = pieces[~is_there]
        return lacking


def map_path(path: Path) -> Path:
    """Where the map of a copy lies."""
    return path.parent / MAP_FOLDER / path.name


def _count(size: int, piece_bytes: int) -> int:
    return -(-size // piece_bytes)


def _stamps_at(pieces: int) -> int:
    return -(-(_HEAD_BYTES + pieces) // 8) * 8


def _map_bytes(size: int, piece_bytes: int) -> int:
    pieces = _count(size, piece_bytes)
    return _stamps_at(pieces) + 4 * pieces


def free_pieces(descriptor: int, start: int, length: int) -> None:
    """Give the room of some bytes of a file back to the disk: they become a hole.

    OSError where the file system has no such thing.
    """
    import sys

    if sys.platform == "darwin":
        import fcntl
        import struct

        punch_hole = 99  # F_PUNCHHOLE, of whole blocks
        fcntl.fcntl(descriptor, punch_hole, struct.pack("IIqq", 0, 0, start, length))
        return
    import ctypes

    punch = 0x01 | 0x02  # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if fallocate(descriptor, punch, start, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
