"""The protocols of sources and parts, and the blocks of records that they yield."""

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
from datum.sources.nested_rows import NestedLists, describe_filled

__all__ = [
    "BLOCK_RECORDS",
    "Block",
    "Columns",
    "IndexedPart",
    "Part",
    "PartInfo",
    "Reject",
    "RowBlocks",
    "RowPart",
    "Rows",
    "SerializedRecords",
    "Source",
    "SourceInfo",
    "SparseRows",
    "StreamedPart",
    "TextSource",
    "WrappedPart",
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
        record: Its number within the part.
        key: Its key, if records have keys.
        where: The file it comes from, with the line if known; empty if there is none.
        reason: What was expected, and what was found instead.
        hint: The next step; empty if there is none.
    """

    record: int
    key: str | None
    where: str
    reason: str
    hint: str = ""

    @property
    def message(self) -> Message:
        """The reject as a message."""
        name = f" ({self.key})" if self.key is not None else ""
        place = f"{self.where}: " if self.where else ""
        return Message(self.reason, where=f"{place}record {self.record}{name}", hint=self.hint)

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True, eq=False)
class SerializedRecords:
    """Serialized records, which are written unchanged, byte for byte.

    Attributes:
        frames: The concatenated frames of the records as in a TFRecord file, with lengths and
            checksums; they have been verified.
        offsets: The start of each frame.
        schema: The features of the records.
        is_partial: Whether they contain further features, which are to be left out.
        locate: Returns where the record at a position comes from, for messages.
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
        """The size of each frame in bytes."""
        return np.diff(self.offsets, append=len(self.frames))

    def take(self, at: NDArray[np.intp]) -> SerializedRecords:
        """Return the records at these positions, in this order."""
        if len(at) == len(self) and np.array_equal(at, np.arange(len(self))):
            return self
        starts = np.ascontiguousarray(self.offsets[at])
        sizes = np.ascontiguousarray(self.sizes[at])
        frames = _core.gather(self.frames, starts, sizes, 1)
        offsets = np.cumsum(sizes) - sizes
        places = at.tolist()
        locate = self.locate
        return SerializedRecords(
            frames, offsets, self.schema, self.is_partial, lambda place: locate(places[place])
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Some records of a part.

    Attributes:
        data: A list of rows, columns of one length by name, or serialized records. A `pathlib.Path`
            in a row is an image file, read when the record is written.
        numbers: The number of each record within its part, without those of `rejects`.
        keys: The key of each record, if records have keys.
        rejects: The records that could not be read.
        locate: Returns where the record at a position in the block comes from, for messages; None
            if only its number is known.
    """

    data: Rows | Columns | SerializedRecords
    numbers: NDArray[np.int64]
    keys: Sequence[str] | None = None
    rejects: Sequence[Reject] = ()
    locate: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.numbers)


@runtime_checkable
class StreamedPart(Protocol):
    """Records that are read one after the other.

    Attributes:
        schema: The features of the records, if known beforehand.
        metadata: Metadata of features, by their names: plain JSON values.
        fingerprint: A text that changes when the data does; None if changes cannot be detected.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order, in blocks that depend only on the data."""
        ...


@runtime_checkable
class IndexedPart(Protocol):
    """Records that can be read in any order, at the same cost.

    Attributes:
        schema, metadata, fingerprint: See `StreamedPart`.
        keys: The key of each record; None if they have only their number.
        stored_bytes: About how many bytes the records will take; None if unknown.
        is_slow_python: Whether reading keeps the interpreter busy, so that processes help.
    """

    schema: Schema | None
    metadata: Mapping[str, Mapping[str, Any]]
    fingerprint: str | None
    keys: Sequence[str] | None
    stored_bytes: int | None
    is_slow_python: bool

    def __len__(self) -> int: ...

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers, in this order."""
        ...


Part: TypeAlias = StreamedPart | IndexedPart


class PartInfo:
    """Everything a part may report beyond the protocols, with defaults.

    Datum's own parts inherit it. Yours may do so to change a default.

    Attributes:
        is_repeatable: Whether the records can be read more than once.
        is_serialized: Whether the records are serialized already, as `SerializedRecords`.
        statistics: Statistics of the records, as in a manifest; None if unknown.
        notes: Assumptions about the source, a sentence each, shown as warnings.
        rejects: Records known to be unreadable before the part is read, in order.
        skipped: Names of files without records: files that are not images, or unused ones.
        warnings: Likely mistakes, such as images that are left out.
        image_columns: Columns of paths that are stored as images.
    """

    is_repeatable: bool = True
    is_serialized: bool = False
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
    """Return what a part reports; the defaults for one that implements only the protocols."""
    return part if isinstance(part, PartInfo) else _PLAIN_PART


def list_reported(
    parts: Iterable[Part], what: Literal["nested", "notes", "remarks", "skipped", "warnings"]
) -> tuple[str, ...]:
    """Return what all parts report under this name, without repetitions."""
    lines: Iterable[str] = (line for part in parts for line in getattr(part_info(part), what))
    return tuple(dict.fromkeys(lines))


class RowPart(PartInfo):
    """The part of a source of rows, whose lists of dicts are flattened.

    Attributes:
        schema, metadata, fingerprint: See `StreamedPart`.
    """

    def __init__(
        self,
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
        fingerprint: str | None = None,
    ) -> None:
        self.schema: Schema | None = None
        self.metadata: Mapping[str, Mapping[str, Any]] = metadata or {}
        self.fingerprint = fingerprint
        self._lists = NestedLists()

    @property
    def nested(self) -> tuple[str, ...]:
        """The features made of lists of dicts, in the rows read so far."""
        return tuple(self._lists.names)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The features in which values were filled in, in the rows read so far."""
        return describe_filled(self._lists.filled)


class WrappedPart(PartInfo):
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
    """A provider of records."""

    def parts(self) -> Mapping[str, Part]:
        """Return the records of each split; of one split, `train`, if the source has no splits."""
        ...


class SourceInfo:
    """Everything a source may report beyond `Source`, with defaults.

    Datum's own sources inherit it.

    Attributes:
        kind: The kind of source, for reports: "CSV table".
        suffixes: The extensions of its files.
        is_table: Whether its columns of text may contain paths of images.
        is_final: Whether a source that is passed as an object keeps its columns of text unchanged.
            A source made from a path never does.
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
    """Return what a source reports; the defaults for one that implements only `Source`."""
    return source if isinstance(source, SourceInfo) else _PLAIN_SOURCE


@runtime_checkable
class TextSource(Source, Protocol):
    """A source of text, converted to the types of a schema."""

    def with_features(self, features: Mapping[str, Feature]) -> Source:
        """Return the same source, with texts of these names converted to the features."""
        ...


class SparseRows:
    """A `Sparse` column with its values sorted by row, so that rows are found quickly."""

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
        """Return the rows of these numbers."""
        starts = self.row_splits[numbers]
        lengths = self.row_splits[numbers + 1] - starts
        items = positions_of(starts, lengths)
        rows = np.repeat(np.arange(len(numbers)), lengths)
        indices = np.concatenate([rows[:, None], self.places[items]], axis=1)
        return Sparse(indices, self.values[items], (len(numbers), *self.shape[1:]))


def as_slice(numbers: NDArray[np.int64]) -> slice | None:
    """Return the numbers as a slice, if each is one more than the one before.

    >>> as_slice(np.array([3, 4, 5])), as_slice(np.array([3, 5]))
    (slice(3, 6, None), None)
    """
    if not len(numbers):
        return slice(0, 0)
    first, last = int(numbers[0]), int(numbers[-1])
    is_run = last - first + 1 == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if is_run and first >= 0 else None


def take_rows(column: Any, numbers: NDArray[np.int64], run: slice | None = None) -> Any:
    """Return rows of any column, in this order; views if `run` (see `as_slice`) is passed.

    >>> take_rows(["a", "b", "c"], np.array([2, 1]))
    ['c', 'b']
    """
    if isinstance(column, SparseRows):
        return column.take(numbers)
    if isinstance(column, (list, tuple)):
        return list(column[run]) if run is not None else [column[i] for i in numbers.tolist()]
    if isinstance(column, np.ndarray) and run is None:
        return column.take(numbers, axis=0)  # faster than indexing
    return column[numbers if run is None else run]


BLOCK_RECORDS = 4096
BLOCK_BYTES = 8 * 2**20  # several blocks are in memory at a time


class RowBlocks:
    """Collects rows, all with a key or none, and those that cannot be read.

    Lists of dicts are flattened: see `NestedLists`.

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
        """Whether there are enough rows for a block."""
        return len(self) >= BLOCK_RECORDS or self._bytes >= BLOCK_BYTES

    def add(self, row: dict[str, Any], key: str = "", *, place: tuple[Any, int] = ("", 0)) -> None:
        """Add the next record; `place` is its file and line."""
        self._rows.append(row)
        self._places.append(place)
        self._bytes += _core.size_of(row)
        self._keys.append(key)

    def reject(self, where: str, reason: str | Message, key: str | None = None) -> None:
        """Count a record that cannot be read."""
        fault = Message(reason)
        self._rejects.append(Reject(self._first + len(self), key, where, fault.line, fault.hint))

    def take(self) -> Block:
        """Return the rows collected since the last call."""
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
