"""What a source is: parts, one for each split, that give their records in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import Message
from datum.schema import Feature, Schema

__all__ = [
    "Block",
    "Columns",
    "IndexedPart",
    "Part",
    "Reject",
    "Rows",
    "ScannedPart",
    "Source",
    "Stored",
    "StreamedPart",
    "TextSource",
    "find_notes",
    "find_rejects",
]

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
        hint: the next step; empty if there is none.
    """

    record: int
    key: str | None
    where: str
    reason: str
    hint: str = ""

    @property
    def message(self) -> Message:
        """The same as a message."""
        name = f" ({self.key})" if self.key is not None else ""
        place = f"{self.where}: " if self.where else ""
        return Message(self.reason, where=f"{place}record {self.record}{name}", hint=self.hint)

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """Records that are serialized already: they are written as they are, byte for byte.

    Attributes:
        frames: the records as in a TFRecord file, each with its length and its checksums around
            it, one after the other; they have been checked.
        offsets: where each of them starts.
        schema: what they hold.
        is_partial: whether they hold other features too, which are to be left out.
        locate: where the record of a place comes from, for messages.
    """

    frames: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    schema: Schema
    is_partial: bool = False
    locate: Callable[[int], str] = str

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many bytes each frame has."""
        return np.diff(self.offsets, append=len(self.frames))

    def take(self, at: NDArray[np.intp]) -> Stored:
        """The records of these places, in this order."""
        if len(at) == len(self) and np.array_equal(at, np.arange(len(self))):
            return self
        starts = np.ascontiguousarray(self.offsets[at])
        sizes = np.ascontiguousarray(self.sizes[at])
        frames = _core.gather(self.frames, starts, sizes, 1)
        offsets = np.cumsum(sizes) - sizes
        places = at.tolist()
        locate = self.locate
        return Stored(
            frames, offsets, self.schema, self.is_partial, lambda place: locate(places[place])
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a part.

    Attributes:
        data: a list of rows, columns of one length by name, or records that are serialized. A
            `pathlib.Path` in a row is an image file, read when the record is written.
        numbers: the number of each record within its part; those of `rejects` are left out.
        keys: the name of each record, if records have names.
        rejects: the records that could not be read.
        locate: where the record at a place in the block comes from, for messages; None if nothing
            is known but its number.
    """

    data: Rows | Columns | Stored
    numbers: NDArray[np.int64]
    keys: Sequence[str] | None = None
    rejects: Sequence[Reject] = ()
    locate: Callable[[int], str] | None = None

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


@runtime_checkable
class ScannedPart(Protocol):
    """What a part has as well if its source was read through before.

    Attributes:
        notes: what was assumed of the source, a sentence each, for the report.
        rejects: the records that cannot be read, in their order, as far as they are known.
    """

    notes: Sequence[str]
    rejects: Sequence[Reject]


Part: TypeAlias = StreamedPart | IndexedPart


def find_notes(parts: Iterable[Part]) -> list[str]:
    """What was assumed of the sources of parts, each once."""
    scanned = [part for part in parts if isinstance(part, ScannedPart)]
    return list(dict.fromkeys(note for part in scanned for note in part.notes))


def find_rejects(part: Part) -> Sequence[Reject]:
    """The records of a part that are known to be unreadable before it is read."""
    return part.rejects if isinstance(part, ScannedPart) else ()


@runtime_checkable
class Source(Protocol):
    """Where records come from."""

    def parts(self) -> Mapping[str, Part]:
        """The records of each split; one split, `train`, if the source knows none."""
        ...


@runtime_checkable
class TextSource(Source, Protocol):
    """A source of text, which a schema says how to read."""

    def guided(self, features: Mapping[str, Feature]) -> Source:
        """The same source, with texts read as these features, where it has some of their names."""
        ...
