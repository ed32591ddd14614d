"""Preparation of rows for the native encoder."""

from __future__ import annotations

import functools
import reprlib
from collections import Counter
from collections.abc import Container
from dataclasses import replace
from typing import Any, Protocol

from datum import _core
from datum.errors import Option, SchemaError, Text
from datum.format.column_input import FloatLog, make_guessed_sources, make_sources, stack_values
from datum.format.layout import lower, stand_in
from datum.schema import Feature, Schema, SchemaGuess, ValueGuess, guess_value, plain_row
from datum.schema.feature import INTEGERS, STRINGS
from datum.schema.infer import MAX_LISTED_VALUES

__all__ = [
    "GivenPlan",
    "GuessedPlan",
    "collect_rows",
    "is_collectable",
    "row_feature",
    "skipped_feature",
]

_NUMBERS = {
    name: getattr(_core.Element, name.upper()) for name in (*INTEGERS, "float32", "float64")
}
_ELEMENTS = _NUMBERS | {"bytes": _core.Element.BYTES, "str": _core.Element.TEXT}
# Types of values, beyond those of columns.
_GIVEN = _ELEMENTS | {"float16": _core.Element.FLOAT16}
_FILE = 1 << _core.Element.FILE.value
_ANY_SIZE = 2**63 - 1


def is_collectable(feature: Feature) -> bool:
    """Return whether the native collector accepts values of `feature`; others are for Python."""
    feature = stand_in(feature)
    has_shape = feature.encoding == "raw" and None in feature.shape[1:]
    is_listed = feature.encoding != "sparse" and not feature.sequence and not has_shape
    return feature.dtype in _ELEMENTS and is_listed


def row_feature(
    name: str, feature: Feature, guess: ValueGuess | None = None, *, is_watched: bool = False
) -> _core.RowFeature:
    """Return a spec that accepts all that fits or, if guessed, what leaves the guess unchanged.

    For a watched feature, values that float32 cannot represent well enough are reported; they are
    collected as float64, though float32 is stored.
    """
    feature = stand_in(feature)
    stored, *lengths = lower(name, feature)
    accepts, most = _accept_castable(feature.dtype), _ANY_SIZE
    dtype = feature.dtype
    if guess is not None:
        accepts = _accept_absorbed(guess) if guess.kind == "dense" else accepts
        is_listed = feature.encoding == "values" and feature.dtype in INTEGERS
        most = MAX_LISTED_VALUES if is_listed and not guess.is_large else _ANY_SIZE
        is_rounded = guess.dtype == "float64" and dtype == "float32"
    else:
        is_rounded = is_watched and dtype == "float32"
    return _core.RowFeature(
        name,
        [column.key.encode() for column in (stored, *lengths)],
        stored.kind,
        stored.cell,
        _ELEMENTS["float64" if is_rounded else dtype],
        accepts,
        feature.optional,
        [-1 if n is None else n for n in feature.shape],
        most,
        is_watched and dtype not in STRINGS,
    )


def skipped_feature(name: str) -> _core.RowFeature:
    """Return the spec of a feature that rows may have and that is not collected."""
    kind, cell = _core.Kind.INT64, _core.Cell.INT64
    return _core.RowFeature(name, [], kind, cell, None, 0, False, [], 0, False)


def _mask(dtypes: list[str]) -> int:
    return sum(1 << _GIVEN[dtype].value for dtype in dtypes)


@functools.cache
def _accept_castable(dtype: str) -> int:
    """Return the accepted dtypes: integers fit floats, too; each value is checked on its own."""
    if dtype in STRINGS:
        return _mask([dtype]) | (_FILE if dtype == "bytes" else 0)
    integers = [name for name in _GIVEN if name in INTEGERS]
    floats = [name for name in _GIVEN if name.startswith("float")]
    return _mask(integers + floats * dtype.startswith("float"))


@functools.lru_cache(maxsize=1024)
def _accept_absorbed(guess: ValueGuess) -> int:
    return _mask([dtype for dtype in _GIVEN if guess.absorbs(dtype)])


_MANY_ODD = 8  # non-plain rows among the first
_MANY_WIDER = 8  # consecutive rows that widened the features

_Sources = dict[str, list[_core.ColumnInput]]


class _RowPlan(Protocol):
    """The features that rows are collected under, and the reaction to rows that do not fit."""

    ignores_none: bool

    def features(self) -> list[_core.RowFeature]:
        """Return the specs for the native collector; the same objects unless they changed."""
        ...

    def widen(self, code: str, number: int, name: str, row: dict[str, Any]) -> bool:
        """Return whether the features were changed so that `row`, which does not fit, may fit."""
        ...

    def widen_by(self, number: int, rows: list[Any]) -> None:
        """Change the features so that rows from `number` on may fit, as far as they are plain."""
        ...

    def exclude(self, name: str) -> None:
        """Collect a feature in Python instead."""
        ...

    def take(self, found: list[Any], rows: list[dict[str, Any]]) -> _Sources:
        """Return the sources of each feature, from the columns collected natively."""
        ...


def collect_rows(rows: list[Any], plan: _RowPlan) -> _Sources:
    """Collect natively; for a row that does not fit, make it plain, widen, or use Python.

    Rows with values that are not plain are replaced in the list.
    """
    collector = _core.RowCollector(plan.features(), plan.ignores_none)
    is_changed = False
    odd = wider = 0
    while True:
        try:
            if is_changed:
                collector.update(plan.features(), rows)
                is_changed = False
            collector.collect(rows)
            return plan.take(collector.finish(), rows)
        except _core.Fault as fault:
            code, number, name = fault.args
        plain = _as_plain(rows[number], number)
        if plain is not None:
            rows[number] = plain
            odd += 1
            if odd == _MANY_ODD and number < 4 * odd:  # most are odd: converting all is faster
                later = range(number + 1, len(rows))
                rows[number + 1 :] = [_as_plain(rows[at], at) or rows[at] for at in later]
            continue
        is_changed = True
        if not plan.widen(code, number, name, rows[number]):
            plan.exclude(name)
        wider += 1
        if wider % _MANY_WIDER == 0:  # changing the features for each row takes quadratic time
            plan.widen_by(number + 1, rows)


def _as_plain(row: Any, number: int) -> dict[str, Any] | None:
    """Return a row of plain values, or None if it is one already."""
    try:
        plain = plain_row(row)
    except SchemaError as error:
        at = f"record {number}" + (f", feature {error.feature!r}" if error.feature else "")
        raise SchemaError(error, where=at, record=number, feature=error.feature) from None
    is_same = type(row) is dict and row.keys() == plain.keys()
    return None if is_same and all(row[name] is plain[name] for name in row) else plain


class GivenPlan:
    """A schema that rows must fit; facts about floats go into `log`."""

    ignores_none = True

    def __init__(self, schema: Schema, log: FloatLog | None = None) -> None:
        self._schema = schema
        self._log = log or FloatLog()
        watched = frozenset(filter(self._log.watches, schema))
        self._specs = dict(_given_specs(schema, watched))

    def features(self) -> list[_core.RowFeature]:
        """Return one spec for each feature of the schema."""
        return list(self._specs.values())

    def widen(self, code: str, number: int, name: str, row: dict[str, Any]) -> bool:
        """Raise SchemaError for what cannot fit; leave the rest to Python."""
        del row
        if code == "unknown key":
            raise SchemaError(
                f"expected features {', '.join(self._schema)}, got {name!r} too",
                where=f"record {number}",
                hint="add it to the schema, or drop it from the rows",
                record=number,
                feature=name,
            )
        if code == "missing":
            raise SchemaError(
                "expected a value, got none",
                where=f"record {number}, feature {name!r}",
                hint="mark the feature optional=True",
                record=number,
                feature=name,
            )
        return False

    def widen_by(self, number: int, rows: list[Any]) -> None:
        """Leave the schema unchanged."""

    def exclude(self, name: str) -> None:
        """Collect a feature in Python instead."""
        self._specs[name] = skipped_feature(name)

    def take(self, found: list[Any], rows: list[dict[str, Any]]) -> _Sources:
        """Return the sources of each feature."""
        sources = {}
        for (name, feature), part in zip(self._schema.items(), found, strict=True):
            if part is not None:
                sources[name] = part.sources
                self._log.add_collected(name, part)
            else:
                values = [row.get(name) for row in rows]
                sources[name] = make_sources(name, feature, values, len(rows), self._log)
        return sources


@functools.lru_cache(maxsize=64)  # most blocks have the same
def _given_specs(schema: Schema, watched: frozenset[str]) -> dict[str, _core.RowFeature]:
    return {
        name: row_feature(name, feature, is_watched=name in watched)
        if is_collectable(feature)
        else skipped_feature(name)
        for name, feature in schema.items()
    }


class GuessedPlan:
    """A guess that is widened by the values of rows; `guess` itself is not changed.

    Floats are stored by the rule of `log`, which also collects facts about them. `specs` caches the
    specs of the native collector between plans. Of the features guessed so far, only those in
    `only` are looked for at first, others once a row has them.
    """

    ignores_none = True

    def __init__(
        self,
        guess: SchemaGuess,
        specs: dict[str, Any],
        log: FloatLog | None = None,
        *,
        only: Container[str] | None = None,
    ) -> None:
        self._log = log or FloatLog()
        self._known = guess.seen
        self._records = guess.records
        asked = [name for name in self._known if only is None or name in only]
        self._guesses = {name: self._known[name][0] for name in asked}
        self._optional = {name for name in asked if self._known[name][1] < guess.records}
        self._specs = specs
        self._left: set[str] = set()
        self._present: dict[str, int] = {}

    @property
    def seen(self) -> dict[str, tuple[ValueGuess, int]]:
        """Return the guess of each feature after the rows, and the number of rows that have it."""
        return {name: (self._guesses[name], count) for name, count in self._present.items()}

    def features(self) -> list[_core.RowFeature]:
        """Return one spec for each feature so far, accepting values that keep its guess."""
        return [self._spec(name) for name in self._guesses]

    def _spec(self, name: str) -> _core.RowFeature:
        if name in self._left:
            return skipped_feature(name)
        # The sign of integers does not affect what is accepted.
        guess = self._guesses[name]
        if guess.has_negative:
            guess = replace(guess, has_negative=False)
        known = (guess, name in self._optional, self._log.watches(name))
        if self._specs.get(name, (None, None))[0] != known:
            self._specs[name] = (known, _make_spec(name, *known))
        spec: _core.RowFeature = self._specs[name][1]
        return spec

    def widen(self, code: str, number: int, name: str, row: dict[str, Any]) -> bool:
        """Merge the values of `row` into the guesses."""
        del code, name  # other values may be new, too
        before = dict(self._guesses), set(self._optional)
        self._merge_row(number, row)
        self._optional |= {known for known in self._guesses if row.get(known) is None}
        return before != (self._guesses, self._optional)

    def widen_by(self, number: int, rows: list[Any]) -> None:
        """Merge the values of all rows from `number` on; stop at one that is not plain or wrong.

        That row is reported when it is collected.
        """
        have: Counter[str] = Counter()
        seen = 0
        for at in range(number, len(rows)):
            row = rows[at]
            try:
                if _as_plain(row, at) is not None:
                    break
                self._merge_row(at, row)
            except SchemaError:
                break
            have.update(name for name, value in row.items() if value is not None)
            seen += 1
        self._optional |= {known for known in self._guesses if have[known] < seen}

    def _merge_row(self, number: int, row: dict[str, Any]) -> None:
        for given, value in row.items():
            if value is None:
                continue
            if given not in self._guesses and (number or self._records):
                self._optional.add(given)
            self._merge(given, value, number)

    def _merge(self, name: str, value: Any, number: int) -> None:
        try:
            found = guess_value(value)
            known = self._guesses.get(name)
            if known is None and name in self._known:
                known = self._known[name][0]
            self._guesses[name] = found if known is None else known.merge(found)
        except SchemaError as error:
            problem, hint = error.parts.line, error.hint
            if not hint:
                problem += f": {reprlib.repr(value)}"
            if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
                given = Option("schema", {name: Feature("float32")})
                hint = Text(given, " reads it as a float")
            where = f"record {number}, feature {name!r}"
            raise SchemaError(
                problem, where=where, hint=hint, record=number, feature=name
            ) from None

    def exclude(self, name: str) -> None:
        """Collect a feature in Python instead."""
        self._left.add(name)

    def take(self, found: list[Any], rows: list[dict[str, Any]]) -> _Sources:
        """Return the sources of each feature; guess and collect the rest now."""
        sources = {}
        for name, part in zip(list(self._guesses), found, strict=True):
            if part is not None:
                part = self._take_collected(name, part, rows)
            if part is None:
                sources[name] = self._gather(name, [row.get(name) for row in rows])
                continue
            sources[name] = part.sources
            self._present[name] = len(rows) - part.missing
        return sources

    def _take_collected(
        self, name: str, part: _core.CollectedColumn, rows: list[dict[str, Any]]
    ) -> _core.CollectedColumn | None:
        """Return the collected column of a feature; None if it has to be collected in Python."""
        known = self._guesses[name]
        is_wide = part.wide is not None
        if part.has_negative or part.is_uneven or is_wide:
            found_too = replace(
                known,
                has_negative=part.has_negative,
                is_uneven=part.is_uneven,
                is_wide=is_wide,
            )
            self._guesses[name] = self._join(name, known, found_too)
        self._log.add_collected(name, part)
        is_widened = is_wide and not known.is_wide and known.dtype == "float64"
        if not is_widened:
            return part
        self._log.exact.pop(name, None)
        collector = _core.RowCollector([self._spec(name)], self.ignores_none)
        collector.collect([{name: row.get(name)} for row in rows])
        (collected,) = collector.finish()
        return collected

    def _gather(self, name: str, values: list[Any]) -> list[_core.ColumnInput]:
        column = self._merge_stacked(name, values)
        if column is None:
            column = values
            for number, value in enumerate(values):
                if value is not None:
                    self._merge(name, value, number)
        self._present[name] = sum(value is not None for value in values)
        sources, self._guesses[name] = make_guessed_sources(
            name, self._guesses[name], column, len(values), self._log
        )
        return sources

    def _merge_stacked(self, name: str, values: list[Any]) -> Any:
        """Return one array of all values, merged at once; None if that is impossible."""
        column = stack_values(values)
        found = SchemaGuess()
        try:
            if column is not None:
                found.add_columns({name: column})
                self._guesses[name] = self._guesses[name].merge(found.features[name])
        except SchemaError:  # checked one by one, which finds the record
            return None
        return column

    @staticmethod
    def _join(name: str, known: ValueGuess, found: ValueGuess) -> ValueGuess:
        try:
            return known.merge(found)
        except SchemaError as error:
            raise SchemaError(error, where=f"feature {name!r}", feature=name) from None


def _make_spec(
    name: str, guess: ValueGuess, is_optional: bool, is_watched: bool
) -> _core.RowFeature:
    feature = guess.to_feature(optional=is_optional, rounds=is_watched)
    is_exact = guess.kind == "image" or (bool(guess.dtypes) and guess.shape == feature.shape)
    if is_exact and is_collectable(feature):
        return row_feature(name, feature, guess, is_watched=is_watched)
    return skipped_feature(name)
