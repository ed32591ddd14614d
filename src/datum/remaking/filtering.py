"""Records chosen by a function of the user's: only the features it looks at are parsed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import DatumError, SourceError
from datum.format import Framed, Parser
from datum.reading.rows import iterate_rows
from datum.reading.stored_records import StoredRecords
from datum.reading.stored_stream import StoredStream
from datum.schema import Feature, Schema
from datum.sources.source import Stored
from datum.writing.progress import Progress

__all__ = ["LazyRecord", "Where", "filter_part"]

CHECKED_RECORDS = 4096  # read at a time
CHECKED_BYTES = 8 * 2**20

Where = Callable[[Mapping[str, Any]], Any]


class LazyRecord(Mapping[str, Any]):
    """A record whose features are parsed, and whose images are decoded, when they are asked for.

    Values are those of `split[number]`: None where a record lacks a feature.
    """

    __slots__ = ("_at", "_batch")

    def __init__(self, batch: _Batch, at: int) -> None:
        self._batch = batch
        self._at = at

    def __getitem__(self, name: str) -> Any:
        return self._batch.value(name, self._at)

    def __iter__(self) -> Iterator[str]:
        return iter(self._batch.schema)

    def __len__(self) -> int:
        return len(self._batch.schema)

    def __repr__(self) -> str:
        return f"LazyRecord({dict(self)!r})"


class _UnknownFeatureError(KeyError):
    """A record was asked for what it cannot have: told from a KeyError of the user's own."""


class _Batch:
    """Some records, and what was parsed of them so far."""

    def __init__(self, stored: Stored, schema: Schema, wanted: dict[str, Parser]) -> None:
        self.schema = schema
        self._records = Framed(stored.frames, stored.offsets).records()
        self._wanted = wanted  # by feature, kept from batch to batch
        self._values: dict[str, Any] = {}

    def value(self, name: str, at: int) -> Any:
        if name not in self.schema:
            raise _UnknownFeatureError(name)
        if name not in self._values:
            self._values[name] = self._parse(name, self.schema[name])
        found = self._values[name][at]
        if found is None or self.schema[name].encoding != "image":
            return found
        from datum.images import decode  # brings Pillow, which not every dataset needs

        return decode(found, self.schema[name])

    def _parse(self, name: str, feature: Feature) -> Any:
        parser = self._wanted.get(name)
        if parser is None:
            parser = self._wanted[name] = Parser(Schema({name: feature}))
        columns = parser.parse(self._records)
        if feature.encoding == "image":
            return columns[name]
        numbers = range(len(self._records))
        rows = iterate_rows(columns, parser.schema, numbers, where="")
        return [row[name] for row in rows]


class _Chooser:
    """Asks a function of the user's about one record after the other."""

    def __init__(self, where: Where, schema: Schema, split: str) -> None:
        self._where = where
        self._schema = schema
        self._split = split
        self._parsers: dict[str, Parser] = {}
        self._seen = 0

    def __call__(self, stored: Stored) -> NDArray[np.bool_]:
        batch = _Batch(stored, self._schema, self._parsers)
        chosen = np.zeros(len(stored), np.bool_)
        for at in range(len(stored)):
            chosen[at] = self._ask(batch, at)
        self._seen += len(stored)
        return chosen

    def _ask(self, batch: _Batch, at: int) -> bool:
        try:
            return bool(self._where(LazyRecord(batch, at)))
        except DatumError:
            raise
        except Exception as error:  # it is the user's own code
            if isinstance(error, _UnknownFeatureError):
                self._schema.select(error.args)  # raises, with the nearest name
            place = f"split {self._split!r}, record {self._seen + at}"
            raise SourceError(
                f"expected true or false, got {type(error).__name__}: {error}",
                where=f"where: {place}",
            ) from error


def filter_part(
    part: StoredRecords | StoredStream, where: Where, split: str, progress: Progress
) -> StoredRecords | StoredStream:
    """The records of a part for which `where` is true, counted anew; SourceError if it raises.

    Of a part that can be read in any order, all records are looked at now.
    """
    chooser = _Chooser(where, part.schema, split)
    if isinstance(part, StoredStream):
        # A new one each time: it counts the records that it sees.
        return part.filtered(lambda: _Chooser(where, part.schema, split))
    chosen = [np.empty(0, np.int64)]
    step = _step_of(part)
    for first in range(0, len(part), step):
        block = part.read(np.arange(first, min(first + step, len(part))))
        if block.rejects:
            raise SourceError(block.rejects[0].message)
        data: Any = block.data
        chosen.append(first + np.flatnonzero(chooser(data)))
        progress.advance(len(block), len(data.frames))
    return part.select(np.concatenate(chosen))


def _step_of(part: StoredRecords) -> int:
    record_bytes = (part.stored_bytes or 0) / max(len(part), 1)
    return int(np.clip(CHECKED_BYTES / max(record_bytes, 1), 1, CHECKED_RECORDS))
