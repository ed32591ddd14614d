"""The index of a shard: where each record starts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import CorruptIndexError

__all__ = ["Index"]

FRAME_BYTES = 16  # around each payload: length and two CRCs


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """Where the records of a shard lie; they follow one another without gaps.

    Attributes:
        offsets: where each record starts, in the decompressed stream if the shard is compressed.
        stream_bytes: where the last one ends.

    >>> index = Index(np.array([0, 21]), 40)
    >>> index.lengths.tolist()
    [5, 3]
    """

    offsets: NDArray[np.int64]
    stream_bytes: int

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many bytes the payload of each record has."""
        return np.diff(self.offsets, append=self.stream_bytes) - FRAME_BYTES

    def __len__(self) -> int:
        return len(self.offsets)

    @staticmethod
    def path_for(shard: str | os.PathLike[str]) -> Path:
        """Where the index of a shard is kept: beside it, `.index` in place of `.tfrecord`."""
        path = Path(shard)
        return path.with_name(path.name.removesuffix(".tfrecord") + ".index")

    def to_bytes(self) -> bytes:
        """The index as a file; docs/format.md tells its layout."""
        return _core.dump_index(self.offsets, self.stream_bytes)

    @classmethod
    def from_bytes(cls, data: bytes, *, file: str = "<memory>") -> Index:
        """Read what `to_bytes` made; every damage is an error."""
        try:
            return cls(*_core.load_index(data))
        except _core.Fault as fault:
            raise CorruptIndexError(
                f"{file}: expected an index of records: {fault}\n"
                "hint: delete it; the records themselves are enough to build it again"
            ) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file."""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Index:
        """Read an index file."""
        return cls.from_bytes(Path(path).read_bytes(), file=os.fspath(path))
