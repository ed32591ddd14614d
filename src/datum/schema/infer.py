"""A schema from the values themselves, merged over every record."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.schema.dtypes import EXACT_LISTS
from datum.schema.feature import Feature
from datum.schema.floats import EXACT, FloatRule, Floats
from datum.schema.guess import ValueGuess, guess_array, guess_value
from datum.schema.plain import plain_row, sparse_from_scipy
from datum.schema.schema import Schema

__all__ = ["SchemaGuess", "infer_feature", "infer_schema"]


def infer_feature(value: Any, *, floats: Floats = "float32") -> Feature:
    """The feature as which `datum.write` stores `value`, a scalar, string, array or list.

    >>> infer_feature([1, 2])
    Feature('int64', (2,))
    """
    return guess_value(value).to_feature(rounds=floats == "float32")


def infer_schema(rows: Iterable[Mapping[str, Any]], *, floats: Floats = "float32") -> Schema:
    """The schema under which `datum.write` stores rows; features that some lack are optional.

    A feature that is None in every row is left out. `floats` is that of `datum.write`.

    >>> infer_schema([{"x": 1}, {"x": 2.5, "tag": "a"}])
    Schema({
        'x': Feature('float32'),
        'tag': Feature('str', optional=True),
    })
    """
    guess = SchemaGuess()
    guess.add_rows(rows)
    return guess.to_schema(FloatRule(floats))


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of one feature, in how many records."""

    guess: ValueGuess
    records: int

    def merge(self, other: _Seen) -> _Seen:
        return _Seen(self.guess.merge(other.guess), self.records + other.records)


class SchemaGuess:
    """What the records seen so far have in common; guesses of several parts can be merged.

    What comes out depends on the records, not on how they were parted; only the order of names is
    that in which they were first seen. After an error a guess is as it was.

    >>> guess = SchemaGuess()
    >>> guess.add_rows([{"x": [1, 2, 3]}, {"x": [4]}])
    >>> guess.to_schema()["x"]
    Feature('int64', (None,))
    """

    __slots__ = ("_features", "records")

    def __init__(self) -> None:
        self.records = 0
        self._features: dict[str, _Seen] = {}

    @property
    def seen(self) -> Mapping[str, tuple[ValueGuess, int]]:
        """What was seen of each feature, and in how many records."""
        return {name: (seen.guess, seen.records) for name, seen in self._features.items()}

    @property
    def features(self) -> Mapping[str, ValueGuess]:
        """What was seen of each feature."""
        return {name: seen.guess for name, seen in self._features.items()}

    def copy(self) -> SchemaGuess:
        """The same, to be added to on its own."""
        other = SchemaGuess()
        other.records = self.records
        other._features = dict(self._features)
        return other

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """See rows; None is as good as nothing."""
        features = dict(self._features)
        number = -1
        for number, row in enumerate(rows):
            try:
                _add_row(features, row)
            except SchemaError as error:
                at = f"record {number}" + (f", feature {error.feature!r}" if error.feature else "")
                raise SchemaError(error, where=at, record=number, feature=error.feature) from None
        self._features = features
        self.records += number + 1

    def add_columns(self, columns: Mapping[str, Any]) -> None:
        """See columns of one length; arrays tell by themselves, lists are looked through."""
        features = dict(self._features)
        lengths = {name: _length(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise SchemaError(f"expected columns of one length, got {lengths}")
        for name, column in columns.items():
            seen = _see_column(name, column, lengths[name])
            if seen is not None:
                _put(features, name, seen)
        self._features = features
        self.records += max(lengths.values(), default=0)

    def add_seen(self, guesses: Mapping[str, tuple[ValueGuess, int]], records: int) -> None:
        """See records by what was guessed of each feature, and how many of them have it."""
        features = dict(self._features)
        for name, (guess, present) in guesses.items():
            _put(features, name, _Seen(guess, present))
        self._features = features
        self.records += records

    def merge(self, other: SchemaGuess) -> SchemaGuess:
        """What the records of both have in common."""
        merged = self.copy()
        merged.add_seen(other.seen, other.records)
        return merged

    def to_schema(self, rule: FloatRule = EXACT) -> Schema:
        """The schema that holds all records seen, with floats as `rule` says."""
        seen = self._features.items()
        return _make_schema(
            tuple((name, one.guess, one.records < self.records) for name, one in seen), rule
        )

    @classmethod
    def from_schema(cls, schema: Schema, *, records: int) -> SchemaGuess:
        """What is known of records that were written under a schema that was inferred."""
        guess = cls()
        guess.records = records
        for name, feature in schema.items() if records else ():
            seen = _Seen(_guess_of(feature), records - feature.optional)
            if seen.guess.to_feature(optional=feature.optional) != feature:
                raise SchemaError(
                    f"expected what could be inferred, got {feature!r}",
                    where=f"feature {name!r}",
                    hint="give the schema",
                    feature=name,
                )
            guess._features[name] = seen
        return guess

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes."""
        features = {
            name: seen.guess.to_json() | {"records": seen.records}
            for name, seen in self._features.items()
        }
        return {"records": self.records, "features": features}

    @classmethod
    def from_json(cls, found: Any) -> SchemaGuess:
        """Read what `to_json` made."""
        guess = cls()
        try:
            guess.records = int(found["records"])
            for name, seen in found["features"].items():
                guess._features[name] = _Seen(ValueGuess.from_json(seen), int(seen["records"]))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise SchemaError(f"expected a guess as JSON, got {found!r}") from None
        return guess

    def __repr__(self) -> str:
        return f"SchemaGuess({len(self._features)} features of {self.records} records)"


@functools.lru_cache(maxsize=64)  # blocks mostly leave the guess as it was
def _make_schema(guesses: tuple[tuple[str, ValueGuess, bool], ...], rule: FloatRule) -> Schema:
    return Schema(
        {name: _make_feature(guess, lacks, rule.rounds(name)) for name, guess, lacks in guesses}
    )


@functools.lru_cache(maxsize=1024)  # a schema of many features has few kinds of them
def _make_feature(guess: ValueGuess, is_optional: bool, rounds: bool) -> Feature:
    return guess.to_feature(optional=is_optional, rounds=rounds)


def _put(features: dict[str, _Seen], name: str, seen: _Seen) -> None:
    try:
        features[name] = features[name].merge(seen) if name in features else seen
    except SchemaError as error:
        raise SchemaError(error, where=f"feature {name!r}", feature=name) from None


def _add_row(features: dict[str, _Seen], row: Mapping[str, Any]) -> None:
    for name, value in plain_row(row).items():
        if value is None:
            continue
        try:
            seen = _Seen(guess_value(value), 1)
            features[name] = features[name].merge(seen) if name in features else seen
        except SchemaError as error:
            raise SchemaError(error, feature=name) from None


def _length(column: Any) -> int:
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


def _see_column(name: str, column: Any, count: int) -> _Seen | None:
    if isinstance(column, Masked):
        seen = _see_column(name, column.values, count)
        return seen and replace(seen, records=int(column.present.sum()))
    guess = _guess_column(column)
    if guess is not None:
        return _Seen(guess, count)
    found: dict[str, _Seen] = {}
    for number, value in enumerate(column.tolist() if hasattr(column, "tolist") else column):
        try:
            _add_row(found, {name: value})
        except SchemaError as error:
            where = f"record {number}, feature {name!r}"
            raise SchemaError(error, where=where, record=number, feature=name) from None
    return found.get(name)


def _guess_column(column: Any) -> ValueGuess | None:
    """What a typed column says; None for lists and arrays of objects."""
    if isinstance(column, Ragged):
        inner = _guess_column(column.values)
        if inner is None:
            return None
        return replace(inner, shape=(None, *inner.shape), is_uneven=None in inner.shape)
    if hasattr(column, "tocoo"):
        column = sparse_from_scipy(column)
    if isinstance(column, Sparse):
        items = _guess_column(column.values)
        return items and replace(items, shape=tuple(column.dense_shape[1:]), kind="sparse")
    if isinstance(column, BytesColumn):
        return ValueGuess(("str" if column.is_text else "bytes",), column.shape[1:])
    if isinstance(column, np.ndarray) and column.dtype.kind != "O":
        found = guess_array(column)
        one = guess_array(np.empty(column.shape[1:], column.dtype))
        return replace(found, shape=one.shape, is_large=one.is_large)
    return None


def _guess_of(feature: Feature) -> ValueGuess:
    """The guess that gives `feature`, if any does; of integers it supposes the worst."""
    is_dense = feature.encoding in ("values", "raw")
    kind: Any = "dense" if is_dense else feature.encoding
    return ValueGuess(
        (feature.dtype,),
        feature.shape,
        kind,
        is_large=feature.encoding == "raw" and feature.dtype in EXACT_LISTS,
        is_uneven=feature.encoding == "values" and None in feature.shape[1:],
        has_negative=feature.dtype.startswith("int"),
        has_unsigned=feature.dtype == "uint64",
    )
