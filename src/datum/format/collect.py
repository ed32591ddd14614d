"""Rows or columns collected for the native encoder, and their statistics."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.format.column_input import FloatLog, make_guessed_sources, make_sources
from datum.format.layout import check_keys, lower, stand_in
from datum.format.row_input import GivenPlan, GuessedPlan, collect_rows
from datum.format.statistics import (
    MAX_COUNTED_BYTES,
    MAX_DISTINCT,
    Counts,
    FeatureStatistics,
    Range,
    Statistics,
)
from datum.schema import EXACT, Feature, FloatRule, Schema, SchemaGuess, ValueGuess
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, TIMES

__all__ = [
    "Collection",
    "collect",
    "collect_guessing",
    "summarize",
]

_Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Collection:
    """The values of some records, ready to be written.

    Attributes:
        schema: what they were collected under.
        count: how many records there are.
        sources: of each feature that any record has, one for each of its keys.
        guess: what is known after these records, if the schema was guessed.
        floats: what becomes of floats.
    """

    schema: Schema
    count: int
    sources: dict[str, list[_core.Source]]
    guess: SchemaGuess | None = None
    floats: FloatLog = field(default_factory=FloatLog)


def collect(
    data: Mapping[str, Any] | Iterable[Any],
    schema: Schema,
    watched: Container[str] = frozenset(),
) -> Collection:
    """Collect rows or columns that must fit `schema`.

    Of the `watched` features, values that float32 cannot serve are told in `Collection.floats`.
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
    """Collect rows or columns under the guess so far, widened as they ask for it.

    Floats are stored as `rule` says. `specs` keeps what the native collector is told from one call
    to the next.
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
    merged.add_seen(typed.seen, count)
    for name, (_, present) in typed.seen.items():
        sources[name], known = make_guessed_sources(
            name, merged.features[name], data[name], count, log
        )
        seen[name] = known, present
    return _finish(guess, seen, count, sources, rule, log)


def _names_in(rows: list[Any]) -> set[str]:
    """The keys of rows: features that none of them has are not looked for in each."""
    return set().union(*(row for row in rows if isinstance(row, dict)))


def _finish(
    guess: SchemaGuess,
    seen: Mapping[str, tuple[ValueGuess, int]],
    count: int,
    sources: dict[str, list[_core.Source]],
    rule: FloatRule,
    log: FloatLog,
) -> Collection:
    guess = guess.copy()
    guess.add_seen(seen, count)
    schema = guess.to_schema(rule)
    check_keys(schema)
    return Collection(schema, count, sources, guess, log)


def _plain_column(name: str, column: Any) -> Any:
    """Columns of other packages as arrays."""
    if isinstance(column, np.ma.MaskedArray):
        raise SchemaError(
            "expected a column without a mask of NumPy, got one",
            where=f"feature {name!r}",
            hint="datum.Masked(column.data, ~column.mask)",
            feature=name,
        )
    is_own = isinstance(column, (np.ndarray, BytesColumn, Masked, Ragged, Sparse, list, tuple))
    if is_own or hasattr(column, "tocoo") or not hasattr(column, "__array__"):
        return column
    return np.asarray(column)


def _rows_of_loose(data: Mapping[str, Any]) -> tuple[_Rows, list[str]]:
    """Rows of the columns that do not tell what they hold, and their names."""
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


_NUMBERS = (*INTEGERS, *FLOATS_ON_WIRE, "float64")
_ELEMENTS = (
    {name: getattr(_core.Element, name.upper()) for name in _NUMBERS}
    | dict.fromkeys(TIMES, _core.Element.TIME)
    | dict.fromkeys(("complex64", "complex128"), _core.Element.COMPLEX)
    | {"bytes": _core.Element.BYTES, "str": _core.Element.TEXT}
)


def summarize(collection: Collection, *, uncounted: Container[str], threads: int) -> Statistics:
    """Statistics of each feature; the values of `uncounted` ones are known to be too many."""
    names: list[str] = []
    asked: list[tuple[_core.Source, _core.Element, bool]] = []
    for name in collection.schema:
        sources = collection.sources.get(name)
        if sources is None:  # no record has it
            continue
        feature = stand_in(collection.schema[name])
        is_counted = _has_counts(feature) and name not in uncounted
        names.append(name)
        asked.append((sources[0], _element_of(feature), is_counted))
        if len(sources) > 1 and lower(name, feature)[1].role == "lengths":  # its outermost rows
            names.append(name)
            asked.append((sources[1], _core.Element.INT64, False))
    found = _core.summarize(asked, collection.count, threads)
    features: dict[str, FeatureStatistics] = {}
    for name, part in zip(names, found, strict=True):
        if name in features:
            features[name] = replace(features[name], lengths=_range(part[1]))
        else:
            features[name] = _make(stand_in(collection.schema[name]), collection.count, *part)
    return Statistics(collection.count, features)


def _element_of(feature: Feature) -> _core.Element:
    is_widened = feature.dtype in FLOATS_ON_WIRE and not feature.is_raw
    return _core.Element.FLOAT32 if is_widened else _ELEMENTS[feature.dtype]


def _has_counts(feature: Feature) -> bool:
    is_countable = feature.dtype in INTEGERS or feature.dtype == "str"
    return is_countable and feature.shape == () and feature.encoding == "values"


def _make(
    feature: Feature,
    records: int,
    missing: int,
    lengths: Any,
    sizes: Any,
    numbers: Any,
    counts: Any,
) -> FeatureStatistics:
    found = None
    strings = _range(sizes)
    is_long = strings is not None and (strings.highest or 0) > MAX_COUNTED_BYTES
    if _has_counts(feature) and not is_long:
        found = Counts({}, MAX_DISTINCT) if counts is None else Counts(counts)
    present = records - missing
    return FeatureStatistics(
        present,
        missing,
        numbers=None if numbers is None else _numbers(*numbers),
        lengths=_lengths(feature, present, lengths),
        bytes=strings,
        counts=found,
    )


def _numbers(count: int, nan: int, infinite: int, lowest: Any, highest: Any, total: Any) -> Range:
    return Range(count, lowest, highest, total, nan, infinite)


def _lengths(feature: Feature, present: int, lengths: Any) -> Range | None:
    """Of sparse features the number of values, of others the length of the first dimension."""
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return None  # only the number of all items is at hand
    if lengths is None and feature.shape and present:
        length = feature.shape[0]
        return None if length is None else Range(present, length, length, length * present)
    return _range(lengths)


def _range(sizes: Any) -> Range | None:
    return None if sizes is None else Range(*sizes)
