"""Rows gathered into blocks, numbered as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import Sparse, positions_of
from datum.errors import Message, SourceError
from datum.schema import Feature, Schema
from datum.sources.nested_rows import NestedLists

__all__ = [
    "BLOCK_RECORDS",
    "Block",
    "ChangedPart",
    "Columns",
    "IndexedPart",
    "Part",
    "PartInfo",
    "Reject",
    "RowBlocks",
    "Rows",
    "Source",
    "SourceInfo",
    "SparseRows",
    "Stored",
    "StreamedPart",
    "TextSource",
    "as_slice",
    "list_reported",
    "part_info",
    "source_info",
    "take_rows",
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


Part: TypeAlias = StreamedPart | IndexedPart


class PartInfo:
    """Everything a part may report beyond the protocols, with defaults.

    The parts of Datum inherit it. A part of your own does so to change a default.

    Attributes:
        is_repeatable: Whether the records can be read more than once.
        is_stored: Whether the records are serialized already, as `Stored`.
        statistics: Statistics of the records, as in a manifest; None if unknown.
        notes: Assumptions about the source, a sentence each, shown as warnings.
        rejects: Records known to be unreadable before the part is read, in order.
        skipped: Names of files without records: no images, or not referred to.
        warnings: Likely mistakes, such as images that are left out.
        image_columns: Columns of paths that are stored as images.
    """

    is_repeatable: bool = True
    is_stored: bool = False
    statistics: Mapping[str, Any] | None = None
    notes: Sequence[str] = ()
    rejects: Sequence[Reject] = ()
    skipped: Sequence[str] = ()
    warnings: Sequence[str] = ()
    image_columns: Sequence[str] = ()

    @property
    def remarks(self) -> Sequence[str]:
        """Lines for the report, about the records read so far."""
        return ()

    @property
    def nested(self) -> Sequence[str]:
        """Features made of lists of dicts, in the records read so far."""
        return ()


_PLAIN_PART = PartInfo()


def part_info(part: Part) -> PartInfo:
    """Return what a part reports; the defaults for one that implements the protocols alone."""
    return part if isinstance(part, PartInfo) else _PLAIN_PART


def list_reported(
    parts: Iterable[Part], what: Literal["nested", "notes", "remarks", "skipped", "warnings"]
) -> tuple[str, ...]:
    """Return what all parts report under a name, without repetitions."""
    lines: Iterable[str] = (line for part in parts for line in getattr(part_info(part), what))
    return tuple(dict.fromkeys(lines))


class ChangedPart(PartInfo):
    """A part made from another, which reports the same.

    Attributes:
        part: The other part.
    """

    def __init__(self, part: Part) -> None:
        known = part_info(part)
        self.part: Any = part
        self.schema: Schema | None = part.schema
        self.metadata: Mapping[str, Mapping[str, Any]] = part.metadata
        self.fingerprint: str | None = part.fingerprint
        self.is_repeatable = known.is_repeatable
        self.notes = known.notes
        self.rejects = known.rejects
        self.skipped = known.skipped
        self.warnings = known.warnings
        self.image_columns = known.image_columns
        if isinstance(part, IndexedPart):
            self.keys: Sequence[str] | None = part.keys
            self.stored_bytes: int | None = part.stored_bytes
            self.is_slow_python = part.is_slow_python

    @property
    def remarks(self) -> Sequence[str]:
        """The remarks of the other part."""
        return part_info(self.part).remarks

    @property
    def nested(self) -> Sequence[str]:
        """The nested features of the other part."""
        return part_info(self.part).nested


@runtime_checkable
class Source(Protocol):
    """Where records come from."""

    def parts(self) -> Mapping[str, Part]:
        """The records of each split; one split, `train`, if the source knows none."""
        ...


class SourceInfo:
    """Everything a source may report beyond `Source`, with defaults.

    The sources of Datum inherit it.

    Attributes:
        kind: What it is, for reports: "CSV table".
        suffixes: How the names of its files end.
        is_table: Whether its columns of text may hold paths of images.
        is_final: Whether a source that is passed as an object keeps its columns of text as they
            are. A source made from a path never does.
    """

    kind: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    is_table: ClassVar[bool] = False
    is_final: ClassVar[bool] = True

    def describe(self, parts: Mapping[str, Part]) -> str:
        """Describe the source for reports: its kind, and facts about its parts."""
        del parts
        return self.kind

    def origin_of(self, split: str) -> str | None:
        """Return the file or folder that a split comes from; None if unknown."""
        del split
        return None


_PLAIN_SOURCE = SourceInfo()


def source_info(source: Source) -> SourceInfo:
    """Return what a source reports; the defaults for one that implements `Source` alone."""
    return source if isinstance(source, SourceInfo) else _PLAIN_SOURCE


@runtime_checkable
class TextSource(Source, Protocol):
    """A source of text, which a schema says how to read."""

    def guided(self, features: Mapping[str, Feature]) -> Source:
        """The same source, with texts read as these features, where it has some of their names."""
        ...


class SparseRows:
    """A `Sparse` column whose values lie row after row, so that rows are found at once."""

    __slots__ = ("places", "row_splits", "shape", "values")

    def __init__(self, sparse: Sparse) -> None:
        order = np.argsort(sparse.indices[:, 0], kind="stable")
        rows = sparse.indices[order, 0]
        if len(rows) and not 0 <= rows[0] <= rows[-1] < len(sparse):
            raise SourceError(f"expected indices within {sparse.dense_shape}, got row {rows[-1]}")
        self.places = sparse.indices[order, 1:]
        self.values = sparse.values[order]
        self.row_splits = np.searchsorted(rows, np.arange(len(sparse) + 1)).astype(np.int64)
        self.shape = sparse.dense_shape

    def __len__(self) -> int:
        return int(self.shape[0])

    def take(self, numbers: NDArray[np.int64]) -> Sparse:
        """The rows of these numbers."""
        starts = self.row_splits[numbers]
        lengths = self.row_splits[numbers + 1] - starts
        items = positions_of(starts, lengths)
        rows = np.repeat(np.arange(len(numbers)), lengths)
        indices = np.concatenate([rows[:, None], self.places[items]], axis=1)
        return Sparse(indices, self.values[items], (len(numbers), *self.shape[1:]))


def as_slice(numbers: NDArray[np.int64]) -> slice | None:
    """The numbers as a slice, if each is one more than the one before.

    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), None)
    """
    if not len(numbers):
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    is_run = last - first + 1 == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if is_run and first >= 0 else None


def take_rows(column: Any, numbers: NDArray[np.int64], run: slice | None = None) -> Any:
    """The rows of any column, in the order given; views where `run` (see `as_slice`) is given.

    >>> take_rows(["a", "b", "c"], np.array([2, 1]))
    ['c', 'b']
    """
    if isinstance(column, SparseRows):
        return column.take(numbers)
    if isinstance(column, (list, tuple)):
        return list(column[run]) if run is not None else [column[i] for i in numbers.tolist()]
    if isinstance(column, np.ndarray) and run is None:
        return column.take(numbers, axis=0)  # faster than with brackets
    return column[numbers if run is None else run]


BLOCK_RECORDS = 4096
BLOCK_BYTES = 8 * 2**20  # several blocks are in memory at a time


class RowBlocks:
    """Gathers rows, all with a key or none, and those that cannot be read.

    Lists of dicts are taken apart: see `NestedLists`.

    >>> blocks = RowBlocks(has_keys=False)
    >>> blocks.add({"x": 1})
    >>> blocks.reject("a.jsonl, line 2", "expected an object, got a number")
    >>> blocks.add({"x": 3})
    >>> blocks.take().numbers
    array([0, 2])
    """

    def __init__(self, *, has_keys: bool) -> None:
        self._has_keys = has_keys
        self._first = 0
        self.nested = NestedLists()
        self._clear()

    def _clear(self) -> None:
        self._rows: list[dict[str, Any]] = []
        self._keys: list[str] = []
        self._places: list[tuple[Any, int]] = []
        self._rejects: list[Reject] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows) + len(self._rejects)

    @property
    def is_full(self) -> bool:
        """Whether it is time to take a block."""
        return len(self) >= BLOCK_RECORDS or self._bytes >= BLOCK_BYTES

    def add(self, row: dict[str, Any], key: str = "", *, place: tuple[Any, int] = ("", 0)) -> None:
        """Add the next record; `place` is its file and line."""
        self._rows.append(row)
        self._places.append(place)
        self._bytes += _core.size_of(row)
        self._keys.append(key)

    def reject(self, where: str, reason: str | Message, key: str | None = None) -> None:
        """Count a record that cannot be read."""
        told = Message(reason)
        self._rejects.append(Reject(self._first + len(self), key, where, told.line, told.hint))

    def take(self) -> Block:
        """What was gathered since the last time."""
        numbers = np.arange(self._first, self._first + len(self))
        numbers = np.delete(numbers, [reject.record - self._first for reject in self._rejects])
        self.nested.learn(self._rows)
        rows = self.nested.flatten(self._rows)
        places = self._places
        block = Block(
            rows,
            numbers,
            self._keys if self._has_keys else None,
            self._rejects,
            lambda at: f"{places[at][0]}, line {places[at][1]}" if places[at][1] else "",
        )
        self._first += len(self)
        self._clear()
        return block
