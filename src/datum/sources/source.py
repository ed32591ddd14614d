"""What a source is: parts, one for each split, that give their records in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from datum.schema import Schema

__all__ = ["Block", "Columns", "IndexedPart", "Part", "Reject", "Rows", "Source", "StreamedPart"]

Rows: TypeAlias = list[dict[str, Any]]
Columns: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that cannot be written, and why.

    Attributes:
        record: its number within the part.
        key: its name, if records have names.
        where: the file it comes from, with the line if that helps; empty if there is none.
        reason: what was expected and what was got.
    """

    record: int
    key: str | None
    where: str
    reason: str

    def __str__(self) -> str:
        name = f" ({self.key})" if self.key is not None else ""
        place = f"{self.where}: " if self.where else ""
        return f"{place}record {self.record}{name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a part.

    Attributes:
        data: a list of rows, or columns of one length by name. A `pathlib.Path` in a row is an
            image file, read when the record is written.
        numbers: the number of each record within its part; those of `rejects` are left out.
        keys: the name of each record, if records have names.
        rejects: the records that could not be read.
    """

    data: Rows | Columns
    numbers: NDArray[np.int64]
    keys: Sequence[str] | None = None
    rejects: Sequence[Reject] = ()

    def __len__(self) -> int:
        return len(self.numbers)


@runtime_checkable
class StreamedPart(Protocol):
    """Records that come one after the other.

    Attributes:
        schema: what records hold, if it is known beforehand.
        metadata: what else is known of features, by their names: plain JSON values.
        fingerprint: a text that changes when the data does; None if that cannot be told.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None

    def blocks(self) -> Iterator[Block]:
        """All records in order, in blocks that do not depend on anything but the data."""
        ...


@runtime_checkable
class IndexedPart(Protocol):
    """Records that can be read in any order, at the same cost.

    Attributes:
        schema, metadata, fingerprint: as of `StreamedPart`.
        keys: the name of each record; None if they have none but their number.
        stored_bytes: about how many bytes the records will take; None if that is not known.
        is_slow_python: whether reading keeps the interpreter busy, so that processes help.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None
    keys: Sequence[str] | None
    stored_bytes: int | None
    is_slow_python: bool

    def __len__(self) -> int: ...

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers, in the order given."""
        ...


Part: TypeAlias = StreamedPart | IndexedPart


@runtime_checkable
class Source(Protocol):
    """Where records come from."""

    def parts(self) -> Mapping[str, Part]:
        """The records of each split; one split, `train`, if the source knows none."""
        ...
