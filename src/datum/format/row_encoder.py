"""Block after block of rows or columns into records, under a schema or one that widens itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from datum.format.collect import Collection, collect, collect_guessing
from datum.format.encode import write_sources
from datum.format.reencode import reencode, stores_alike
from datum.format.statistics import Statistics
from datum.format.summarize import summarize
from datum.format.threads import thread_count
from datum.format.writer import Framed
from datum.schema import Schema, SchemaGuess

__all__ = ["Collected", "EncodedBlock", "RowEncoder", "reencode", "stores_alike"]


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """Some records, what they were written under, and what they are like."""

    framed: Framed
    schema: Schema
    statistics: Statistics


class RowEncoder:
    """Encodes block after block; without a schema, widens its own as values ask for it.

    A block is written under the schema of all blocks up to it; see `datum.format.stores_alike` for
    which of them have to be written again under a later one. After an error the encoder is as it
    was before the block.

    >>> encoder = RowEncoder()
    >>> block = encoder.encode([{"x": 1}, {"x": 2}])
    >>> block = encoder.encode([{"x": 0.5, "name": "a"}])
    >>> encoder.schema
    Schema({
        'x': Feature('float64'),
        'name': Feature('str', optional=True),
    })
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        guess: SchemaGuess | None = None,
        threads: int | None = None,
    ) -> None:
        """Start with a schema that values must fit, or with what is known of earlier records."""
        if schema is not None and guess is not None:
            raise ValueError("expected `schema` or `guess`, got both")
        self.guess = SchemaGuess() if schema is None and guess is None else guess
        self._schema = schema
        self._threads = thread_count(threads)
        self._specs: dict[str, Any] = {}
        self._uncounted: set[str] = set()  # features of too many values to be counted

    @property
    def schema(self) -> Schema:
        """The schema given, or that of all records so far."""
        if self._schema is None:
            assert self.guess is not None
            self._schema = self.guess.to_schema()
        return self._schema

    def encode(self, data: Mapping[str, Any] | Iterable[Any]) -> EncodedBlock:
        """Encode rows, or columns, as `datum.format.encode` tells."""
        return self.collect(data).encode()

    def collect(self, data: Mapping[str, Any] | Iterable[Any]) -> Collected:
        """Take the values out of Python's objects: the part that keeps the interpreter busy.

        Blocks must be collected one after the other; they may be encoded meanwhile, by any thread.
        """
        if self.guess is None:
            found = collect(data, self.schema)
        else:
            found = collect_guessing(data, self.guess, self._specs)
            self.guess, self._schema = found.guess, found.schema
        return Collected(found, self._uncounted, self._threads)


class Collected:
    """The values of a block, out of reach of whoever gave them."""

    def __init__(self, collection: Collection, uncounted: set[str], threads: int) -> None:
        self._collection = collection
        self._uncounted = uncounted
        self._threads = threads

    @property
    def schema(self) -> Schema:
        """What the block is written under."""
        return self._collection.schema

    def __len__(self) -> int:
        return self._collection.count

    def encode(self) -> EncodedBlock:
        """The records and their statistics; the interpreter is free meanwhile."""
        framed = write_sources(self._collection, self._threads)
        uncounted = frozenset(self._uncounted)
        statistics = summarize(self._collection, uncounted=uncounted, threads=self._threads)
        for name, feature in statistics.features.items():
            if feature.counts is not None and feature.counts.more_than is not None:
                self._uncounted.add(name)
        return EncodedBlock(framed, self.schema, statistics)
