"""The index of a shard: the offset of each record."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import CorruptIndexError
from datum.format.durable import replace_file

__all__ = ["Index"]

INDEX_FOLDER = "index"  # in the folder of the shards
FRAME_BYTES = 16  # around each payload: length and two CRCs
MAX_DEFLATE_RATIO = 1032  # of zlib and gzip, by their format

_MAGIC = b"DATUMIDX"
_HINT = "delete it; it can be rebuilt from the records"


def most_records(nbytes: int, compression: str | None) -> int:
    """Return how many records a shard of this size can contain at most.

    >>> most_records(4050, None), most_records(100, "gzip")
    (253, 6450)
    """
    return nbytes * (1 if compression is None else MAX_DEFLATE_RATIO) // FRAME_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The offsets of the records of a shard, which follow one another without gaps.

    Attributes:
        offsets: The start of each record, in the decompressed stream if the shard is compressed.
        stream_bytes: The end of the last record.
        shard_crc32c: The checksum of the whole file, as in the manifest; 0 if unknown.

    >>> index = Index(np.array([0, 21]), 40)
    >>> index.lengths.tolist()
    [5, 3]
    """

    offsets: NDArray[np.int64]
    stream_bytes: int
    shard_crc32c: int = 0

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The size of the payload of each record in bytes."""
        return np.diff(self.offsets, append=self.stream_bytes) - FRAME_BYTES

    def __len__(self) -> int:
        return len(self.offsets)

    @staticmethod
    def path_for(shard: str | os.PathLike[str]) -> Path:
        """Return the path of the index of a shard: `index/of-NAME.index` in its folder.

        NAME is the name of the shard without `.tfrecord` at its end, and with a comma for each
        other dot. Patterns for shards do not match it: `*.tfrecord*`, `train-*`, `**/train-*`.

        >>> Index.path_for("photos/train-00000-of-00008.tfrecord").as_posix()
        'photos/index/of-train-00000-of-00008.index'
        """
        folder, name = os.path.split(shard)
        name = name.removesuffix(".tfrecord").replace(".", ",")
        return Path(folder, INDEX_FOLDER, f"of-{name}.index")

    @classmethod
    def find(cls, shard: str | os.PathLike[str]) -> Path | None:
        """Return the path of the index of a shard, if it exists."""
        path = cls.path_for(shard)
        return path if os.path.isfile(path) else None  # noqa: PTH113 - never raises

    @staticmethod
    def text_path_for(shard: str | os.PathLike[str]) -> Path:
        """Return the path of the text index of a shard: its name with `.idx` added."""
        path = Path(shard)
        return path.with_name(f"{path.name}.idx")

    def to_bytes(self) -> bytes:
        """Return the content of an index file; docs/concepts/format.md describes its layout."""
        return _core.dump_index(self.offsets, self.stream_bytes, self.shard_crc32c)

    @classmethod
    def from_bytes(cls, data: bytes, *, file: str = "<memory>") -> Index:
        """Read the output of `to_bytes`; any damage is an error."""
        try:
            return cls(*_core.load_index(data))
        except _core.Fault as fault:
            raise CorruptIndexError(
                f"expected an index of records: {fault}", where=file, hint=_HINT
            ) from None

    def to_text(self) -> str:
        """Return the index in the format of NVIDIA DALI and the `tfrecord` package.

        It has lines of "offset size", where sizes are of whole records: payload, length and CRCs.
        Its readers expect uncompressed files.

        >>> print(Index(np.array([0, 21]), 40).to_text(), end="")
        0 21
        21 19
        """
        sizes = self.lengths + FRAME_BYTES
        pairs = zip(self.offsets.tolist(), sizes.tolist(), strict=True)
        return "".join(f"{offset} {size}\n" for offset, size in pairs)

    @classmethod
    def from_text(cls, text: str, *, file: str = "<memory>") -> Index:
        r"""Read the output of `to_text` or `tfrecord2idx`; raise CorruptIndexError if invalid.

        >>> Index.from_text("0 21\n21 19\n").stream_bytes
        40
        """
        try:
            offsets, sizes = np.array(text.split(), np.int64).reshape(-1, 2).T
            index = cls(np.ascontiguousarray(offsets), int(sizes.sum()))
            index.to_bytes()  # raises for impossible values
            if not np.array_equal(index.lengths, sizes - FRAME_BYTES):
                raise ValueError("the records do not follow one another")
        except (ValueError, OverflowError) as error:
            raise CorruptIndexError(
                f"expected a line of offset and size for each record: {error}",
                where=file,
                hint=_HINT,
            ) from None
        return index

    @staticmethod
    def is_index(path: str | os.PathLike[str]) -> bool:
        """Return whether a file starts like an index of Datum; others also use the name .index."""
        with Path(path).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the index to a file atomically; create its folder."""
        path = Path(path)
        path.parent.mkdir(exist_ok=True)
        replace_file(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Index:
        """Read an index file."""
        return cls.from_bytes(Path(path).read_bytes(), file=os.fspath(path))

    def save_text(self, path: str | os.PathLike[str]) -> None:
        """Write the text index to a file atomically."""
        replace_file(Path(path), self.to_text().encode())

    @classmethod
    def load_text(cls, path: str | os.PathLike[str]) -> Index:
        """Read a text index from a file."""
        text = Path(path).read_bytes().decode("ascii", "replace")
        return cls.from_text(text, file=os.fspath(path))
