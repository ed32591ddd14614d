"""A run of record payloads in memory, and where each came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["Located", "Records"]

HEADER_BYTES = 12  # before each payload: u64 length, u32 CRC


class Located(Protocol):
    """Records that were parsed: the memory their strings lie in, and where each came from."""

    @property
    def buffer(self) -> Buffer | NDArray[Any]:
        """What slices are counted in."""

    def __len__(self) -> int: ...

    def locate(self, at: int) -> tuple[str, int, int | None]:
        """File, number and offset of one record, for messages."""


@dataclass(frozen=True, slots=True)
class Records:
    """Payloads that lie in one buffer, without having been copied out of it.

    Attributes:
        buffer: the memory that holds the payloads.
        starts: where each payload starts in `buffer`.
        lengths: how many bytes each has.
        numbers: which record of its file each one is.
        file: the file they are from.
        base: where `buffer` starts in the (decompressed) file; None if unknown.
        offsets: where each record starts in the file, of records from all over it: instead of
            `base`.
        parts: for joined runs, the runs they were joined from, instead of the four above.

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
        """Copy payloads that are in memory already into one run."""
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
        """File, number and offset (of the record's header) of one record, for messages."""
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
