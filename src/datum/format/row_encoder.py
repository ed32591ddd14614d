"""Block after block of rows or columns into records, under a schema or one that widens itself."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from datum.format.collect import Collection, collect, collect_guessing
from datum.format.encode import write_sources
from datum.format.reencode import reencode, stores_alike
from datum.format.statistics import Statistics
from datum.format.summarize import summarize
from datum.format.threads import thread_count
from datum.format.writer import Framed
from datum.schema import ROUND, FloatFacts, FloatRule, Schema, SchemaGuess, widened

__all__ = ["Collected", "EncodedBlock", "ExactRecords", "RowEncoder", "reencode", "stores_alike"]


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """Some records, what they were written under, and what they are like.

    Attributes:
        floats: what became of floats; records are counted from 0.
        exact: the same records with nothing but features that were rounded, as they were before
            that; None if none was, or nobody asked for it.
    """

    framed: Framed
    schema: Schema
    statistics: Statistics
    floats: Mapping[str, FloatFacts] = field(default_factory=dict)
    exact: ExactRecords | None = None


@dataclass(frozen=True, slots=True)
class ExactRecords:
    """Values that were rounded in other records, as they were before."""

    framed: Framed
    schema: Schema


class RowEncoder:
    """Encodes block after block; without a schema, widens its own as values ask for it.

    A block is written under the schema of all blocks up to it; see `datum.format.stores_alike` for
    which of them have to be written again under a later one. Floats are stored as `rule` says.
    After an error the encoder is as it was before the block.

    >>> encoder = RowEncoder()
    >>> block = encoder.encode([{"x": 1}, {"x": 2}])
    >>> block = encoder.encode([{"x": 0.5, "name": "a"}])
    >>> encoder.schema
    Schema({
        'x': Feature('float32'),
        'name': Feature('str', optional=True),
    })
    """

    def __init__(
        self,
        schema: Schema | None = None,
        *,
        guess: SchemaGuess | None = None,
        rule: FloatRule = ROUND,
        watched: Container[str] = frozenset(),
        keeps_exact: bool = False,
        threads: int | None = None,
    ) -> None:
        """Start with a schema that values must fit, or with what is known of earlier records.

        Args:
            schema: what values must fit. Of its features that are `watched`, those of float32 are
                widened to float64 by the first value that float32 cannot serve.
            guess: what is known of earlier records, where no schema is given.
            rule: how floats are stored, where no schema is given.
            watched: see `schema`.
            keeps_exact: whether blocks hold `EncodedBlock.exact`.
            threads: by default one for each core.
        """
        if schema is not None and guess is not None:
            raise ValueError("expected `schema` or `guess`, got both")
        self.guess = SchemaGuess() if schema is None and guess is None else guess
        self._schema = schema
        self._rule = rule
        self._watched = watched
        self._keeps_exact = keeps_exact
        self._threads = thread_count(threads)
        self._specs: dict[str, Any] = {}
        self._uncounted: set[str] = set()  # features of too many values to be counted

    @property
    def schema(self) -> Schema:
        """The schema given, or that of all records so far."""
        if self._schema is None:
            assert self.guess is not None
            self._schema = self.guess.to_schema(self._rule)
        return self._schema

    def encode(self, data: Mapping[str, Any] | Iterable[Any]) -> EncodedBlock:
        """Encode rows, or columns, as `datum.format.encode` tells."""
        return self.collect(data).encode()

    def collect(self, data: Mapping[str, Any] | Iterable[Any]) -> Collected:
        """Take the values out of Python's objects: the part that keeps the interpreter busy.

        Blocks must be collected one after the other; they may be encoded meanwhile, by any thread.
        """
        if self.guess is None:
            found = self._collect_given(data)
        else:
            found = collect_guessing(data, self.guess, self._specs, self._rule)
            self.guess, self._schema = found.guess, found.schema
        return Collected(found, self._uncounted, self._threads, keeps_exact=self._keeps_exact)

    def _collect_given(self, data: Any) -> Collection:
        data = data if isinstance(data, Mapping) else list(data)
        found = collect(data, self.schema, self._watched)
        wide = {
            name
            for name, feature in self.schema.items()
            if found.floats.is_wide(name) and feature.dtype == "float32"
        }
        if not wide:
            return found
        schema = {
            name: widened(feature) if name in wide else feature
            for name, feature in self.schema.items()
        }
        found = collect(data, Schema(schema), self._watched)
        self._schema = found.schema
        return found


class Collected:
    """The values of a block, out of reach of whoever gave them."""

    def __init__(
        self, collection: Collection, uncounted: set[str], threads: int, *, keeps_exact: bool
    ) -> None:
        self._collection = collection
        self._uncounted = uncounted
        self._threads = threads
        self._keeps_exact = keeps_exact

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
        return EncodedBlock(
            framed, self.schema, statistics, self._collection.floats.facts, self._encode_exact()
        )

    def _encode_exact(self) -> ExactRecords | None:
        exact = self._collection.floats.exact
        if not exact or not self._keeps_exact:
            return None
        schema = Schema({name: widened(self.schema[name]) for name in exact})
        collection = Collection(schema, self._collection.count, exact)
        return ExactRecords(write_sources(collection, self._threads), schema)
