"""Encoding of rows or columns as framed records."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datum import _core
from datum._options import thread_count
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Message, SchemaError
from datum.format.column_input import FloatLog, make_guessed_sources, make_sources
from datum.format.framing import Framed, Records
from datum.format.layout import check_keys, lower, stand_in
from datum.format.parse import Parser
from datum.format.row_input import GivenPlan, GuessedPlan, collect_rows
from datum.format.statistics import (
    Statistics,
    summarize,
)
from datum.schema import (
    EXACT,
    ROUND,
    Feature,
    FloatFacts,
    FloatRule,
    Schema,
    SchemaGuess,
    ValueGuess,
    widened,
)

__all__ = [
    "Collected",
    "Collection",
    "EncodedBlock",
    "ExactRecords",
    "RowEncoder",
    "collect",
    "collect_guessing",
    "encode",
    "fit_columns",
    "reencode",
    "stores_alike",
]

_Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Collection:
    """The values of some records, ready to be encoded.

    Attributes:
        schema: The schema they were collected under.
        count: The number of records.
        sources: The sources of each feature that any record has, one for each of its keys.
        guess: The guess after these records, if the schema was guessed.
        floats: How floats are stored.
    """

    schema: Schema
    count: int
    sources: dict[str, list[_core.ColumnInput]]
    guess: SchemaGuess | None = None
    floats: FloatLog = field(default_factory=FloatLog)


def collect(
    data: Mapping[str, Any] | Iterable[Any],
    schema: Schema,
    watched: Container[str] = frozenset(),
) -> Collection:
    """Collect rows or columns that must fit `schema`.

    Values of `watched` features that float32 cannot represent are noted in `Collection.floats`.
    """
    check_keys(schema)
    log = FloatLog(watched.__contains__)
    if not isinstance(data, Mapping):
        rows = list(data)
        sources = collect_rows(rows, GivenPlan(schema, log))
        return Collection(schema, len(rows), sources, floats=log)
    data = {name: _plain_column(name, column) for name, column in data.items()}
    count = _column_length(data)
    strays = [name for name in data if name not in schema]
    if strays:
        raise SchemaError(
            f"expected features {', '.join(schema)}, got {strays[0]!r}", feature=strays[0]
        )
    absent = [name for name in schema if name not in data and not schema[name].optional]
    if absent:
        raise SchemaError(
            "expected a column, got none", where=f"feature {absent[0]!r}", feature=absent[0]
        )
    rows, loose = _rows_of_loose(data)
    sources = collect_rows(rows, GivenPlan(schema.select(loose), log)) if loose else {}
    for name in data:
        if name not in loose:
            sources[name] = make_sources(name, schema[name], data[name], count, log)
    return Collection(schema, count, sources, floats=log)


def collect_guessing(
    data: Mapping[str, Any] | Iterable[Any],
    guess: SchemaGuess,
    specs: dict[str, Any],
    rule: FloatRule = EXACT,
) -> Collection:
    """Collect rows or columns under the guess so far, widened as needed.

    Floats are stored by `rule`. `specs` caches the specs of the native collector between calls.
    """
    log = FloatLog(rule.rounds)
    if not isinstance(data, Mapping):
        rows = list(data)
        plan = GuessedPlan(guess, specs, log, only=_names_in(rows))
        sources = collect_rows(rows, plan)
        return _finish(guess, plan.seen, len(rows), sources, rule, log)
    data = {name: _plain_column(name, column) for name, column in data.items()}
    count = _column_length(data)
    rows, loose = _rows_of_loose(data)
    seen: dict[str, tuple[ValueGuess, int]] = {}
    sources = {}
    if loose:
        plan = GuessedPlan(guess, specs, log, only=set(loose))
        sources = collect_rows(rows, plan)
        seen = plan.seen
    typed = SchemaGuess()
    typed.add_columns({name: column for name, column in data.items() if name not in loose})
    merged = guess.copy()
    merged.add_guesses(typed.seen, count)
    for name, (_, present) in typed.seen.items():
        sources[name], known = make_guessed_sources(
            name, merged.features[name], data[name], count, log
        )
        seen[name] = known, present
    return _finish(guess, seen, count, sources, rule, log)


def _names_in(rows: list[Any]) -> set[str]:
    """Return the keys of rows: features that none of them has are not looked up in each."""
    return set().union(*(row for row in rows if isinstance(row, dict)))


def _finish(
    guess: SchemaGuess,
    seen: Mapping[str, tuple[ValueGuess, int]],
    count: int,
    sources: dict[str, list[_core.ColumnInput]],
    rule: FloatRule,
    log: FloatLog,
) -> Collection:
    guess = guess.copy()
    guess.add_guesses(seen, count)
    schema = guess.to_schema(rule)
    check_keys(schema)
    return Collection(schema, count, sources, guess, log)


def _plain_column(name: str, column: Any) -> Any:
    """Convert columns of other packages to arrays."""
    if isinstance(column, np.ma.MaskedArray):
        raise SchemaError(
            "expected a column without a NumPy mask, got one",
            where=f"feature {name!r}",
            hint="datum.Masked(column.data, ~column.mask)",
            feature=name,
        )
    is_own = isinstance(column, (np.ndarray, BytesColumn, Masked, Ragged, Sparse, list, tuple))
    if is_own or hasattr(column, "tocoo") or not hasattr(column, "__array__"):
        return column
    return np.asarray(column)


def _rows_of_loose(data: Mapping[str, Any]) -> tuple[_Rows, list[str]]:
    """Return rows of the columns without a type of their own, and the names of those columns."""
    loose = {name: column for name, column in data.items() if _is_loose(column)}
    lists = [_to_list(column) for column in loose.values()]
    if not lists:
        return [], []
    return [dict(zip(loose, values, strict=True)) for values in zip(*lists, strict=True)], [*loose]


def _is_loose(column: Any) -> bool:
    if isinstance(column, Masked):
        return _is_loose(column.values)
    is_array = isinstance(column, np.ndarray) and column.dtype.kind in "OSU"
    return is_array or isinstance(column, (list, tuple))


def _to_list(column: Any) -> list[Any]:
    if isinstance(column, Masked):
        values = zip(_to_list(column.values), column.present.tolist(), strict=True)
        return [value if there else None for value, there in values]
    return list(column) if isinstance(column, (list, tuple)) else column.tolist()


def _column_length(data: Mapping[str, Any]) -> int:
    lengths = {name: _length(name, column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaError(f"expected columns of one length, got {lengths}")
    return next(iter(lengths.values()), 0)


def _length(name: str, column: Any) -> int:
    shape = getattr(column, "shape", None)
    if shape:
        return int(shape[0])
    if isinstance(column, (bytes, str)) or shape == () or not hasattr(column, "__len__"):
        raise SchemaError(
            f"expected a column, got {type(column)!r}",
            where=f"feature {name!r}",
            hint="for a single row, pass a list of one dict",
            feature=name,
        )
    return len(column)


def encode(
    data: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    schema: Schema | Mapping[str, Feature] | None = None,
    *,
    threads: int | None = None,
) -> Framed:
    r"""Serialize rows (dicts of values) or columns (a dict of arrays) to framed records.

    Columns may be NumPy arrays, lists, `BytesColumn`, `Ragged`, `Sparse`, SciPy sparse matrices or
    `Masked`; rows may contain scalars, lists, arrays, `bytes`, `str`, and None for absent values.
    Without a schema the types are inferred from the data; float64 is rounded to float32 unless
    values would overflow, or are of 2**24 or more and would change. Keys are written sorted; the
    bytes are the same for any number of `threads`, by default one for each core.

    >>> framed = encode([{"label": 3}], Schema({"label": Feature("int64")}))
    >>> list(framed)
    [b'\n\x10\n\x0e\n\x05label\x12\x05\x1a\x03\n\x01\x03']
    """
    threads = thread_count(threads)
    if schema is None:
        return _write_sources(collect_guessing(data, SchemaGuess(), {}, ROUND), threads)
    return _write_sources(collect(data, _as_schema(schema)), threads)


def _as_schema(schema: Schema | Mapping[str, Feature]) -> Schema:
    """Return a schema, made of a mapping of features if necessary."""
    return schema if isinstance(schema, Schema) else Schema(schema)


def _write_sources(collection: Collection, threads: int) -> Framed:
    """Encode what was collected; releases the interpreter lock."""
    sources = [source for part in collection.sources.values() for source in part]
    try:
        return Framed(*_core.encode(sources, collection.count, threads))
    except _core.Fault as fault:
        problem, row = fault.args
        raise SchemaError(
            f"expected at most 2 GiB, the limit of protobuf, got {problem}",
            where=f"record {row}",
            record=row,
        ) from None


def stores_alike(a: Schema, b: Schema) -> bool:
    """Return whether a record has the same bytes under `a` as under `b`.

    The record must fit both.

    >>> three = Schema({"x": Feature("int8", (3,))})
    >>> stores_alike(three, Schema({"x": Feature("int64", (None,))}))
    True
    >>> stores_alike(three, Schema({"x": Feature("float32", (3,))}))
    False
    """
    added = [name for name in b if name not in a]
    return (
        all(name in b and _is_alike(name, a[name], b[name]) for name in a)
        and all(b[name].optional for name in added)
        and _is_sequence(a) == _is_sequence(b)
    )


def _is_sequence(schema: Schema) -> bool:
    """Return whether records are SequenceExamples."""
    return any(feature.sequence for feature in schema.values())


def _is_alike(name: str, a: Feature, b: Feature) -> bool:
    if a is b:
        return True
    a, b = stand_in(a), stand_in(b)
    is_same_place = a.sequence == b.sequence and len(a.shape) == len(b.shape)
    return is_same_place and _form(name, a) == _form(name, b)


def _form(name: str, feature: Feature) -> list[Any]:
    """Return everything that determines how a value is stored in a record."""
    columns = [(column.key, column.role, column.kind) for column in lower(name, feature)]
    has_own_bytes = feature.is_raw or feature.dtype.endswith("]")  # times have units of their own
    return [columns, feature.dtype if has_own_bytes else None]


def reencode(
    records: Records,
    from_schema: Schema,
    to_schema: Schema,
    *,
    exact: tuple[Records, Schema] | None = None,
    threads: int | None = None,
) -> Framed:
    """Encode records again, as they would have been under `to_schema`.

    Every value is preserved, or SchemaError names the record. Values that were rounded are read
    from the same records in `exact`, if `to_schema` has another type for them.
    """
    if not len(records) or not from_schema:  # the length of columns would be unknown
        return encode([{}] * len(records), to_schema, threads=threads)
    columns = Parser(from_schema).parse(records, threads=threads)
    columns |= _parse_exact(exact, from_schema, to_schema, threads)
    return encode(fit_columns(columns, to_schema), to_schema, threads=threads)


def fit_columns(columns: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Convert parsed columns to the form that `encode` accepts for `schema`."""
    strays = [name for name in columns if name not in schema]
    if strays:
        raise SchemaError(
            "expected it in both schemas", where=f"feature {strays[0]!r}", feature=strays[0]
        )
    return {name: _fit(column, schema[name]) for name, column in columns.items()}


def _parse_exact(
    exact: tuple[Records, Schema] | None,
    from_schema: Schema,
    to_schema: Schema,
    threads: int | None,
) -> dict[str, Any]:
    """Return the columns of features whose type is no longer the one they were rounded to."""
    if exact is None:
        return {}
    records, schema = exact
    asked = schema.select(
        name for name in schema if from_schema[name].dtype != to_schema[name].dtype
    )
    if not asked:
        return {}
    return Parser(asked).parse(records, threads=threads)


def _fit(column: Any, wanted: Feature) -> Any:
    """Convert a column to the form that `encode` accepts for `wanted`."""
    if isinstance(column, Masked):
        values = _fit(column.values, wanted)
        if not isinstance(values, list):
            return Masked(values, column.present)
        pairs = zip(values, column.present.tolist(), strict=True)
        return [value if there else None for value, there in pairs]
    if isinstance(column, Ragged) and _is_blank(column):
        return column.to_list()  # empty lists fit any type
    has_shape = wanted.encoding == "raw" and None in wanted.shape[1:]
    if has_shape and isinstance(column, Ragged):
        return [_row(value) for value in column]
    if not has_shape and isinstance(column, np.ndarray) and column.dtype == object:
        return list(column)
    return column


def _is_blank(column: Any) -> bool:
    while isinstance(column, Ragged):
        column = column.values
    return len(column) == 0


def _row(value: Any) -> Any:
    """Return the value of one record: an array, or lists of arrays if it is ragged."""
    return [_row(row) for row in value] if isinstance(value, Ragged) else value


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """Some encoded records, their schema and statistics.

    Attributes:
        floats: How floats were stored; records are counted from 0.
        exact: The same records with only the rounded features, before rounding; None if there are
            none, or they were not requested.
    """

    framed: Framed
    schema: Schema
    statistics: Statistics
    floats: Mapping[str, FloatFacts] = field(default_factory=dict)
    exact: ExactRecords | None = None


@dataclass(frozen=True, slots=True)
class ExactRecords:
    """The values of rounded features, before rounding."""

    framed: Framed
    schema: Schema


class RowEncoder:
    """Encodes block after block; without a schema, widens its own as needed.

    A block is written under the schema of all blocks up to it; `datum.format.stores_alike` decides
    which of them have to be encoded again under a later one. Floats are stored by `rule`. After an
    error the encoder is in the same state as before the block.

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
        """Start with a schema that values must fit, or with the guess from earlier records.

        Args:
            schema: The schema that values must fit. `watched` features of float32 are widened to
                float64 by the first value that float32 cannot represent well enough.
            guess: The guess from earlier records, if there is no schema.
            rule: How floats are stored, if there is no schema.
            watched: See `schema`.
            keeps_exact: Whether blocks contain `EncodedBlock.exact`.
            threads: The number of threads; by default one for each core.
        """
        if schema is not None and guess is not None:
            raise ValueError(Message("expected `schema` or `guess`, got both"))
        self.guess = SchemaGuess() if schema is None and guess is None else guess
        self._schema = schema
        self._rule = rule
        self._watched = watched
        self._keeps_exact = keeps_exact
        self._threads = thread_count(threads)
        self._specs: dict[str, Any] = {}
        self._uncounted: set[str] = set()  # features of too many distinct values to count

    @property
    def schema(self) -> Schema:
        """The schema passed, or that of all records so far."""
        if self._schema is None:
            assert self.guess is not None
            self._schema = self.guess.to_schema(self._rule)
        return self._schema

    def encode(self, data: Mapping[str, Any] | Iterable[Any]) -> EncodedBlock:
        """Encode rows, or columns, like `datum.format.encode`."""
        return self.collect(data).encode()

    def collect(self, data: Mapping[str, Any] | Iterable[Any]) -> Collected:
        """Copy the values from Python objects: the part that keeps the interpreter busy.

        Collect blocks one after the other; any thread may encode them meanwhile.
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
    """The values of a block, copied from the caller's objects."""

    def __init__(
        self, collection: Collection, uncounted: set[str], threads: int, *, keeps_exact: bool
    ) -> None:
        self._collection = collection
        self._uncounted = uncounted
        self._threads = threads
        self._keeps_exact = keeps_exact

    @property
    def schema(self) -> Schema:
        """The schema that the block is written under."""
        return self._collection.schema

    def __len__(self) -> int:
        return self._collection.count

    def encode(self) -> EncodedBlock:
        """Return the records and their statistics; releases the interpreter lock."""
        framed = _write_sources(self._collection, self._threads)
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
        return ExactRecords(_write_sources(collection, self._threads), schema)
