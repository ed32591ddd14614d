"""Splits of a dataset: instructions such as `train[:10%]+val`, records and batches."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from datum._read.copy import stored_part
from datum._read.notebook import split_html
from datum._read.numbered import NumberedRecords
from datum._read.shards import RangeBatches, ShardRange, Shards
from datum._read.tables import iterate_rows, single_row, to_arrow_table, to_data_frame
from datum.errors import Message, SplitError, suggest
from datum.format import BatchReader, Parser, SplitInfo
from datum.format.manifest import ALL_SPLITS
from datum.schema import Schema
from datum.sources.protocol import Part

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

__all__ = [
    "Split",
    "SplitRange",
    "find_ranges",
    "runs_of",
]

_BOUND = r"\s*(-?[0-9][0-9_.]{0,17}\s*%?)?\s*"
_PART = re.compile(rf"\s*([^\s\[\]+:%]+)\s*(?:\[{_BOUND}:{_BOUND}\]\s*)?")
_ONE_RECORD = re.compile(r"\s*([^\s\[\]+:%]+)\s*\[\s*(-?[0-9]+)\s*\]\s*")
_NUMBER = re.compile(r"-?[0-9]+(_[0-9]+)*")
_PERCENT = re.compile(r"-?[0-9]+(\.[0-9]+)?%")


class SplitRange(NamedTuple):
    """The records from `start` up to `stop` of one split."""

    split: str
    start: int
    stop: int


def find_ranges(instruction: str, records: Mapping[str, int]) -> list[SplitRange]:
    """Parse an instruction such as `train[:10%]+val` into ranges of splits.

    Parts are joined by `+`. Each is a split, or `all` for all splits one after the other, with an
    optional slice. The bounds of a slice are numbers of records or percentages; negative ones count
    from the end. A percentage is rounded down to whole records, and a negative one is subtracted
    from 100 %, so that `train[:90%]` and `train[-10%:]` share no record and miss none.

    Args:
        instruction: The instruction.
        records: Number of records of each split.

    >>> find_ranges("train[:10%]+val", {"train": 1000, "val": 50})
    [SplitRange(split='train', start=0, stop=100), SplitRange(split='val', start=0, stop=50)]
    """
    if not isinstance(instruction, str):
        raise SplitError(f"expected the name of a split, got {instruction!r}")
    ranges = [
        found
        for part in instruction.split("+")
        for found in _find_part(part, instruction, records)
        if found.start < found.stop
    ]
    if not ranges and "[" in instruction:
        raise SplitError(
            "expected a range of records, got none", where=f"split {instruction!r:.200}"
        )
    return ranges


def _find_part(part: str, instruction: str, records: Mapping[str, int]) -> Iterator[SplitRange]:
    found = _PART.fullmatch(part)
    if found is None:
        raise SplitError(
            f"expected a name like 'train', or with a slice like 'train[:10%]', got {part!r:.200}",
            where=f"split {instruction!r:.200}",
            hint=_hint_one_record(part),
        )
    name = found[1]
    if name not in records and name != ALL_SPLITS:
        hint = suggest(name, records, f"there are {', '.join(records)}")
        raise SplitError(
            f"expected a split, got {name!r}", where=f"split {instruction!r:.200}", hint=hint
        )
    names = list(records) if name == ALL_SPLITS else [name]
    count = sum(records[name] for name in names)
    start = 0 if found[2] is None else _position(found[2], count, part)
    stop = count if found[3] is None else _position(found[3], count, part)
    if start > stop:
        raise SplitError(
            f"expected a range that ends after its start, got {start} to {stop} of {count} records",
            where=f"split {part!r}",
        )
    return _cut(names, records, start, stop)


def _hint_one_record(part: str) -> str:
    found = _ONE_RECORD.fullmatch(part)
    return f"one record is ds[{found[1]!r}][{found[2]}]" if found else ""


def _position(bound: str, count: int, part: str) -> int:
    """The number of the record at a bound, from 0 to `count`."""
    bound = re.sub(r"\s", "", bound)
    if _PERCENT.fullmatch(bound):
        whole, _, decimals = bound[:-1].partition(".")
        percent, unit = int(whole + decimals), int("1" + "0" * len(decimals))
        percent = percent + 100 * unit if bound.startswith("-") else percent
        position, limit = percent * count // (100 * unit), "100%"
        is_inside = 0 <= percent <= 100 * unit
    elif _NUMBER.fullmatch(bound):
        position, limit = int(bound), f"{count} records"
        position = position + count if bound.startswith("-") else position
        is_inside = 0 <= position <= count
    else:
        raise SplitError(
            f"expected a number or a percentage, got {bound!r}", where=f"split {part!r}"
        )
    if not is_inside:
        raise SplitError(f"expected a bound within {limit}, got {bound}", where=f"split {part!r}")
    return position


def _cut(
    names: list[str], records: Mapping[str, int], start: int, stop: int
) -> Iterator[SplitRange]:
    """The ranges from `start` up to `stop` of some splits, one after the other."""
    first = 0
    for name in names:
        size = records[name]
        begin, end = max(start - first, 0), min(stop - first, size)
        yield SplitRange(name, begin, max(begin, end))
        first += size


ITERATED_RECORDS = 256  # records parsed at a time in an iteration
MAX_READERS = 16  # readers of a split that are kept, one for each selection of columns


class Split:
    """The records of a split, of several splits, or of a part of one.

    `split[7]` and `split[-1]` are records: dicts of values. `split[[5, 2, 9]]` is a list of
    records, and `split[10:20]` another split. An iteration returns every record in the order of
    writing. Records are read on request, and each is checked by its CRC. Compressed shards and
    shards without an index are read by number from a copy or an index in the cache directory.
    Threads may share a split, and it can be sent to other processes.

    Attributes:
        name: The instruction for this split, such as "train[:10%]".
        schema: Schema of the records.
        shards: Opens the files.
        runs: Shard ranges with the records.
        metadata: Metadata of features by name: class names, vocabularies.

    >>> import datum
    >>> report = datum.write({"x": [5, 6, 7]}, "three", shuffle=False, progress=False)
    >>> split = datum.load("three")["train"]
    >>> [int(record["x"]) for record in split[[2, 0]]]
    [7, 5]
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        shards: Shards,
        runs: Sequence[ShardRange],
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.name = name
        self.schema = schema
        self.shards = shards
        self.metadata = metadata or {}
        self.runs: Sequence[ShardRange] = [run for run in runs if len(run)]
        self._ends = np.cumsum([0, *map(len, self.runs)], dtype=np.int64)
        self._count = int(self._ends[-1])
        # Made when first needed: many splits are only counted.
        self._parser: Parser | None = None
        self._readers: dict[tuple[str, ...] | None, NumberedRecords] = {}
        self._process = os.getpid()

    def __reduce__(self) -> tuple[type[Split], tuple[Any, ...]]:
        return Split, (self.name, self.schema, self.shards, self.runs, self.metadata)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int | np.integer[Any]) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Split: ...
    @overload
    def __getitem__(self, at: Sequence[int] | NDArray[Any]) -> list[dict[str, Any]]: ...
    def __getitem__(self, at: Any) -> Any:
        number = at if type(at) is int else _as_number(at)
        if number is None:
            if isinstance(at, tuple):  # in NumPy, an index of several dimensions
                raise TypeError(
                    Message(
                        f"split {self.name!r}: expected a number, a slice or a list, got {at!r}",
                        hint=f"split[{list(at)!r}] is a list of records",
                    )
                )
            return self._slice(at) if isinstance(at, slice) else self.__getitems__(at)
        if not -self._count <= number < self._count:
            raise self._outside(number)
        number = number if number >= 0 else number + self._count
        batch = self._reader(None).read(np.array([number], np.int64))
        return single_row(batch, self.schema, number, where=self._where)

    def __getitems__(self, numbers: Sequence[int] | NDArray[Any]) -> list[dict[str, Any]]:
        """The records of these numbers as a list, in this order; PyTorch calls it for a batch."""
        wanted = self._checked(numbers)
        batch = self._reader(None).read(wanted)
        return list(iterate_rows(batch, self.schema, wanted, where=self._where))

    def _slice(self, at: slice) -> Split:
        start, stop, step = at.indices(self._count)
        if step != 1:
            numbers = f"range({start}, {stop}, {step})"
            raise ValueError(
                Message(
                    f"split {self.name!r}: expected a slice with step 1, got {at!r}",
                    hint=f"split[{numbers}] is a list of these records,"
                    f" split.read({numbers}) returns their columns",
                )
            )
        stop = max(start, stop)
        name = f"{self.name}[{start}:{stop}]"
        return Split(name, self.schema, self.shards, self._cut(start, stop), self.metadata)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        first = 0
        for batch in self.batches(ITERATED_RECORDS, threads=1):
            count = min(ITERATED_RECORDS, self._count - first)
            numbers = range(first, first + count)
            yield from iterate_rows(batch, self.schema, numbers, where=self._where)
            first += count

    @property
    def _where(self) -> str:
        return f"{self.shards.folder}: split {self.name!r}"

    def read(
        self, numbers: Sequence[int] | NDArray[Any], *, columns: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Read the records of these numbers, in this order, as columns.

        Columns are those of `datum.format.parse`; images stay encoded.

        Args:
            numbers: Numbers of the records; negative ones count from the end.
            columns: Names of the features to read; None for all.
        """
        reader = self._reader(columns)
        return reader.read(self._checked(numbers))

    def _reader(self, columns: Iterable[str] | None) -> NumberedRecords:
        """The reader of records by number; its open files belong to this process."""
        if self._process != os.getpid():
            self._readers, self._process = {}, os.getpid()
        key = None if columns is None else tuple(self.schema.select(columns))
        reader = self._readers.get(key)
        if reader is None:
            if len(self._readers) >= MAX_READERS:
                self._readers = {}
            parts = [(self.shards, run) for run in self.runs]
            # The caller's thread reads: the caller may have forked, or have many threads itself.
            reader = NumberedRecords(parts, self._parser_for(key), threads=0)
            self._readers[key] = reader
        return reader

    def batches(
        self,
        batch_size: int = 1024,
        *,
        columns: Iterable[str] | None = None,
        drop_remainder: bool = False,
        threads: int | None = None,
    ) -> BatchReader:
        """Read all records in order, as columns of `batch_size` records each.

        Columns are those of `datum.format.parse`; images stay encoded.

        Args:
            batch_size: Number of records in a batch.
            columns: Names of the features to read; None for all.
            drop_remainder: Whether to drop a last batch that is short.
            threads: Number of threads that read ahead; None is one for each core.
        """
        return RangeBatches(
            self.shards,
            self.runs,
            parser=self._parser_for(columns),
            batch_size=batch_size,
            threads=threads,
            drop_remainder=drop_remainder,
        )

    def to_pandas(
        self, columns: Iterable[str] | None = None, *, class_names: bool = True
    ) -> pd.DataFrame:
        """All records in order as a DataFrame, one row each.

        Numbers have the dtype of the schema (bfloat16 becomes float32), texts the dtype "string",
        and times datetime64 or timedelta64 of their unit, but not coarser than seconds. Other
        values are objects, as in records: arrays, `bytes`, `Sparse`; images are the bytes of their
        files. Integers and booleans that records may lack have pandas' nullable types (Int64 and
        so on); missing floats are NaN.

        The whole split is in memory at once: select a part (`ds["train[:1000]"]`) or some `columns`
        of a large one.

        Args:
            columns: Names of the features to read; None for all.
            class_names: Whether class ids whose names are known become a Categorical of these
                names. False keeps the ids.

        >>> import datum
        >>> report = datum.write({"x": [5, 6], "name": ["a", "b"]}, "two", shuffle=False)
        >>> datum.load("two")["train"].to_pandas()
           x name
        0  5    a
        1  6    b
        """
        return to_data_frame(self, columns, class_names=class_names)

    def to_arrow(
        self, columns: Iterable[str] | None = None, *, class_names: bool = True
    ) -> pa.Table:
        """All records in order as an Arrow table, in several chunks if it is large.

        Types are those of `datum.export_to`. Numbers have the dtype of the schema (bfloat16 becomes
        float, complex numbers a struct of `real` and `imag`). Texts are strings; bytes and stored
        images are binary. Times are timestamps, durations and dates. Ragged values are lists,
        arrays lists of a fixed size, sparse values structs of `indices` and `values`, and missing
        values null. The metadata of the table has the schema and the metadata of features as JSON
        under the key `datum`.

        Args:
            columns: Names of the features to read; None for all.
            class_names: Whether class ids whose names are known become a dictionary of these
                names. False keeps the ids.

        >>> import datum
        >>> report = datum.write({"x": [5, 6], "y": [[1], [2, 3]]}, "pair", shuffle=False)
        >>> table = datum.load("pair")["train"].to_arrow()
        >>> table.column_names, table["y"].to_pylist()
        (['x', 'y'], [[1], [2, 3]])
        """
        return to_arrow_table(self, columns, class_names=class_names)

    def parts(self) -> dict[str, Part]:
        """The stored records for `datum.write`, which copies them, by the name of the split.

        A part of one split has its name; a combination of several is `train`.
        """
        name = self.name.partition("[")[0].strip()
        is_single = "+" not in self.name and name != ALL_SPLITS
        part: Any = stored_part(self.shards, self.runs, self.schema, self.metadata)
        return {name if is_single else "train": part}

    def _parser_for(self, columns: Iterable[str] | None) -> Parser:
        if columns is not None:
            return Parser(self.schema.select(columns))
        if self._parser is None:
            self._parser = Parser(self.schema)
        return self._parser

    def _checked(self, numbers: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
        try:
            wanted = np.asarray(numbers)
        except (TypeError, ValueError):  # lists of several lengths
            wanted = np.empty((), object)
        if wanted.ndim == 1 and wanted.dtype.kind == "b":
            raise TypeError(
                Message(
                    f"split {self.name!r}: expected numbers of records, got a mask of booleans",
                    hint="numpy.flatnonzero(mask) returns the numbers where it is True",
                )
            )
        wanted = wanted.astype(np.int64) if wanted.size == 0 else wanted
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(
                Message(
                    f"split {self.name!r}: expected numbers of records, got {numbers!r:.200}",
                    hint="split[7] is a record, split[[3, 1, 2]] a list of records, split[10:20] a"
                    " part of the split",
                )
            )
        outside = np.flatnonzero((wanted < -self._count) | (wanted >= self._count))
        if len(outside):
            raise self._outside(int(wanted[outside[0]]))
        wanted = wanted.astype(np.int64)
        return np.where(wanted < 0, wanted + self._count, wanted)

    def _outside(self, number: int) -> IndexError:
        return IndexError(
            f"split {self.name!r}: expected a number within {len(self)} records, got {number}"
        )

    def _cut(self, start: int, stop: int) -> list[ShardRange]:
        """The shard ranges of the records from `start` up to `stop`."""
        return [
            ShardRange(
                run.shard, run.start + max(start - end, 0), run.start + min(stop - end, len(run))
            )
            for run, end in zip(self.runs, self._ends.tolist(), strict=False)
            if start < end + len(run) and end < stop
        ]

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self):,} records)"

    def _repr_html_(self) -> str:  # called by notebooks
        return split_html(self)


def _as_number(at: Any) -> int | None:
    """A number as an `int`; None for slices, lists and arrays, even if these have one item."""
    try:
        # A tensor of one item in a list is a number to `operator.index`.
        return None if getattr(at, "ndim", 0) else operator.index(at)
    except TypeError:
        return None


def runs_of(ranges: Iterable[SplitRange], splits: Mapping[str, SplitInfo]) -> list[ShardRange]:
    """The shard ranges of some ranges of splits."""
    runs = []
    for name, start, stop in ranges:
        first = 0
        for shard in splits[name].shards:
            begin, end = max(start - first, 0), min(stop - first, shard.records)
            if begin < end:
                runs.append(ShardRange(shard, begin, end))
            first += shard.records
    return runs
