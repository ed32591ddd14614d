"""Some records of a dataset, by number, in order, or in batches."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from datum.errors import CorruptRecordError, SchemaError
from datum.format import BatchReader, Parser, Records, SplitInfo
from datum.reading.batches import Run, RunBatches
from datum.reading.rows import iterate_rows
from datum.reading.shards import Shards
from datum.reading.splits import Range
from datum.schema import Schema

__all__ = ["Split", "runs_of"]

ITERATED_RECORDS = 256  # parsed at a time when records are asked for one after the other


class Split:
    """The records of a split, of several, or of a part.

    `split[7]` and `split[-1]` are records: dicts of values. `split[10:20]` is a split again.
    Iterating gives every record in the order in which they were written. Records are read when they
    are asked for, each checked by its CRC.

    Attributes:
        name: what was asked for, say "train[:10%]".
        schema: what each record holds.
        shards: opens the files.
        runs: where the records lie.
    """

    def __init__(self, name: str, schema: Schema, shards: Shards, runs: Sequence[Run]) -> None:
        self.name = name
        self.schema = schema
        self.shards = shards
        self.runs: Sequence[Run] = [run for run in runs if len(run)]
        self._ends = np.cumsum([0, *map(len, self.runs)], dtype=np.int64)
        self._parser: Parser | None = None  # made when first needed: many splits are only counted

    def __reduce__(self) -> tuple[type[Split], tuple[Any, ...]]:
        return Split, (self.name, self.schema, self.shards, self.runs)

    def __len__(self) -> int:
        return int(self._ends[-1])

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Split: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            start, stop, step = at.indices(len(self))
            if step != 1:
                raise ValueError(
                    f"split {self.name!r}: expected a slice with step 1, got {at!r}\n"
                    "hint: split.read(range(...)) reads any records"
                )
            stop = max(start, stop)
            name = f"{self.name}[{start}:{stop}]"
            return Split(name, self.schema, self.shards, self._cut(start, stop))
        try:
            number = operator.index(at)
        except TypeError:
            raise TypeError(
                f"split {self.name!r}: expected a number or a slice, got {at!r}\n"
                "hint: split.read([3, 1, 2]) reads several records"
            ) from None
        if not -len(self) <= number < len(self):
            raise self._outside(number)
        return self._read_one(number % len(self))

    def _read_one(self, number: int) -> dict[str, Any]:
        place = int(np.searchsorted(self._ends, number, "right")) - 1
        run = self.runs[place]
        file = self.shards.open_indexed(run.shard)
        records = file.records([run.start + number - int(self._ends[place])])
        batch = self._parser_for(None).parse(records, threads=1)
        return next(self._rows(batch, number, 1))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        first = 0
        for batch in self.batches(ITERATED_RECORDS, threads=1):
            count = min(ITERATED_RECORDS, len(self) - first)
            yield from self._rows(batch, first, count)
            first += count

    def _rows(self, batch: dict[str, Any], first: int, count: int) -> Iterator[dict[str, Any]]:
        where = f"{self.shards.folder}: split {self.name!r}"
        return iterate_rows(batch, self.schema, range(first, first + count), where=where)

    def read(
        self, numbers: Sequence[int] | NDArray[Any], *, columns: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """The records of these numbers, in this order, as columns.

        A column is as `datum.format.parse` makes it; images stay encoded. Numbers may be negative
        and then count from the end.
        """
        parser = self._parser_for(columns)
        wanted = self._checked(numbers)
        places = np.searchsorted(self._ends, wanted, "right") - 1
        groups: list[Records] = []
        payloads: list[bytes] = [b""] * len(wanted)
        for place in np.unique(places).tolist():
            run, rows = self.runs[place], np.flatnonzero(places == place)
            file = self.shards.open_indexed(run.shard)
            groups.append(file.records(wanted[rows] - self._ends[place] + run.start))
            if len(rows) < len(wanted):
                for row, payload in zip(rows.tolist(), groups[-1], strict=True):
                    payloads[row] = payload
        if len(groups) == 1:
            return parser.parse(groups[0])
        try:
            return parser.parse(Records.of(payloads))
        except (CorruptRecordError, SchemaError):
            for group in groups:  # the error of one of them tells its file and number
                parser.parse(group)
            raise

    def batches(
        self,
        batch_size: int = 1024,
        *,
        columns: Iterable[str] | None = None,
        drop_remainder: bool = False,
        threads: int | None = None,
    ) -> BatchReader:
        """All records in order, as columns of `batch_size` records each.

        A column is as `datum.format.parse` makes it; images stay encoded. Batches are made by
        `threads`, by default one for each core, ahead of the reader.
        """
        return RunBatches(
            self.shards,
            self.runs,
            parser=self._parser_for(columns),
            batch_size=batch_size,
            threads=threads,
            drop_remainder=drop_remainder,
        )

    def _parser_for(self, columns: Iterable[str] | None) -> Parser:
        if columns is not None:
            return Parser(self.schema.select(columns))
        if self._parser is None:
            self._parser = Parser(self.schema)
        return self._parser

    def _checked(self, numbers: Sequence[int] | NDArray[Any]) -> NDArray[np.int64]:
        wanted = np.asarray(numbers)
        wanted = wanted.astype(np.int64) if wanted.size == 0 else wanted
        if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
            raise TypeError(f"split {self.name!r}: expected numbers of records, got {numbers!r}")
        count = len(self)
        outside = np.flatnonzero((wanted < -count) | (wanted >= count))
        if len(outside):
            raise self._outside(int(wanted[outside[0]]))
        wanted = wanted.astype(np.int64)
        return np.where(wanted < 0, wanted + count, wanted)

    def _outside(self, number: int) -> IndexError:
        return IndexError(
            f"split {self.name!r}: expected a number within {len(self)} records, got {number}"
        )

    def _cut(self, start: int, stop: int) -> list[Run]:
        """The runs of the records from `start` up to `stop`."""
        return [
            Run(run.shard, run.start + max(start - end, 0), run.start + min(stop - end, len(run)))
            for run, end in zip(self.runs, self._ends.tolist(), strict=False)
            if start < end + len(run) and end < stop
        ]

    def __repr__(self) -> str:
        return f"Split({self.name!r}, {len(self):,} records)"


def runs_of(ranges: Iterable[Range], splits: Mapping[str, SplitInfo]) -> list[Run]:
    """Where the records of some ranges lie."""
    runs = []
    for name, start, stop in ranges:
        first = 0
        for shard in splits[name].shards:
            begin, end = max(start - first, 0), min(stop - first, shard.records)
            if begin < end:
                runs.append(Run(shard, begin, end))
            first += shard.records
    return runs
