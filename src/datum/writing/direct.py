"""Records that can be read in any order: each shard is made by itself, straight from the source."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datum.sources import IndexedPart
from datum.writing.block_writer import BlockSettings, BlockWriter, WrittenBlock

__all__ = ["DirectSplit", "PartWriter", "block_bounds"]

BLOCK_BYTES = 8 * 2**20  # of records made at once by one worker
BLOCK_RECORDS = 4096
SLOW_BLOCK_RECORDS = 256  # where reading keeps the interpreter busy
# Datasets of users may hold files that threads would move under one another.
_ONE_READER = threading.Lock()
_SAMPLE_RECORDS = 32  # made to learn how large records are
_FRAME_BYTES = 64  # about what a record takes beside its values
_IMAGES_AT_ONCE = 16  # where each is decoded: a worker has enough to do with these


@dataclass(eq=False)
class PartWriter:
    """Reads records of a part by their numbers and makes them; a worker process gets a copy."""

    part: IndexedPart
    settings: BlockSettings
    threads: int = 1

    def __call__(self, numbers: NDArray[np.int64]) -> WrittenBlock:
        """Make the records of these numbers."""
        # A writer of its own: what a block becomes must not depend on those before.
        writer = BlockWriter(self.settings, threads=self.threads)
        if not self.part.is_slow_python:
            return writer.write(self.part.read(numbers))
        with _ONE_READER:
            block = self.part.read(numbers)
        return writer.write(block)


class DirectSplit:
    """A split whose records are read in the order in which they are stored."""

    def __init__(
        self, part: IndexedPart, order: NDArray[np.int64], settings: BlockSettings
    ) -> None:
        assert settings.schema is not None
        self.part = part
        self.schema = settings.schema
        self.records = len(order)
        self._order = order
        self._settings = settings
        self.write_piece = PartWriter(part, settings)
        self.nbytes = self._estimate_bytes()

    def _estimate_bytes(self) -> int:
        """About how many bytes the records take; it depends on nothing but the data."""
        known = self.part.stored_bytes
        is_changed = self._settings.images.changes_bytes
        if known is not None and not is_changed:
            frame = 0 if getattr(self.part, "is_stored", False) else _FRAME_BYTES
            return int(known * self.records / max(len(self.part), 1)) + frame * self.records
        if not self.records:
            return 0
        # Spread over the part: neighbours are often alike.
        spread = np.linspace(0, self.records - 1, min(self.records, _SAMPLE_RECORDS))
        sample = np.sort(self._order)[spread.astype(np.int64)]
        made = PartWriter(self.part, self._settings)(sample)
        return int(made.framed.nbytes / max(len(made.framed), 1) * self.records)

    def pieces(self, first: int, last: int) -> list[NDArray[np.int64]]:
        """The records from `first` to before `last`, in blocks."""
        images = self._settings.images
        record_bytes = self.nbytes / max(self.records, 1)
        if images.changes_bytes or images.verify:
            record_bytes = max(record_bytes, BLOCK_BYTES / _IMAGES_AT_ONCE)
        elif self.part.is_slow_python:
            record_bytes = max(record_bytes, BLOCK_BYTES / SLOW_BLOCK_RECORDS)
        return [self._order[start:end] for start, end in block_bounds(first, last, record_bytes)]


def block_bounds(first: int, last: int, record_bytes: float) -> list[tuple[int, int]]:
    """Ranges of records that one worker makes at once."""
    step = int(np.clip(BLOCK_BYTES / max(record_bytes, 1.0), 1, BLOCK_RECORDS))
    return [(start, min(start + step, last)) for start in range(first, last, step)]
