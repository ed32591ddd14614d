"""How far the reading of many files has come, and how it is given up."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

from datum.errors import Damage
from datum.format import RecordFile, Records, Recovery
from datum.format.index import FRAME_BYTES
from datum.format.records import HEADER_BYTES

__all__ = [
    "ByteCounter",
    "Progress",
    "StoppedError",
    "WatchedFile",
    "end_of",
]

Progress = Callable[[int, int], object]


class ByteCounter:
    """Sums up the bytes that are done in all files, and tells them, one call at a time.

    Args:
        total: how many there are.
        progress: called with the bytes that are done, and with all there are.

    Attributes:
        is_stopped: whether those who read are to give up, as they are told when they note bytes.
    """

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.is_stopped = False
        self._total = total
        self._done = 0
        self._progress = progress
        self._lock = threading.Lock()

    def of_file(self, size: int) -> Callable[[int], None]:
        """A function that takes how many bytes of one file are done; more than `size` are not."""
        before = 0

        def note(done: int) -> None:
            nonlocal before
            if self.is_stopped:
                raise StoppedError
            done = max(before, min(done, size))
            with self._lock:
                self._done += done - before
                before = done
                if self._progress is not None:
                    self._progress(self._done, self._total)

        return note


class StoppedError(Exception):
    """The reading was given up."""


class WatchedFile(RecordFile):
    """A file that tells how far it is read; of one that is compressed, only that it goes on."""

    def __init__(
        self,
        source: str | os.PathLike[str],
        note: Callable[[int], None],
        *,
        recovery: Recovery = "strict",
    ) -> None:
        super().__init__(source, recovery=recovery, use_index=False)
        self._note = note

    def _scan(
        self,
        next_size: Callable[[], int],
        damage: list[Damage],
        *,
        check_payloads: bool,
        max_bytes: int,
    ) -> Iterator[Records]:
        runs = super()._scan(next_size, damage, check_payloads=check_payloads, max_bytes=max_bytes)
        for records in runs:
            yield records
            self._note(end_of(records) if self.compression is None else 0)
        self._note(len(self.content))


def end_of(records: Records) -> int:
    """Where the last record of a run ends in its (decompressed) file."""
    payload = (records.base or 0) + int(records.starts[-1] + records.lengths[-1])
    return payload + FRAME_BYTES - HEADER_BYTES
