"""Schema inference: the values of every record merged into one schema."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.schema.feature import (
    DTYPES,
    EXACT_LISTS,
    FLOATS_ON_WIRE,
    STRINGS,
    TIMES,
    Feature,
    is_wide,
)
from datum.schema.plain import is_image, plain_row, plain_value, sparse_from_scipy
from datum.schema.schema import EXACT, FloatRule, Floats, Schema

__all__ = [
    "MAX_LISTED_VALUES",
    "SchemaGuess",
    "ValueGuess",
    "common_dtype",
    "drop_contained",
    "guess_array",
    "guess_value",
    "infer_feature",
    "infer_schema",
    "is_contained",
]

_FLOAT_LEVELS = {"float16": 1, "float32": 2, "float64": 3, "complex64": 2, "complex128": 3}
_FLOATS = {level: name for name, level in _FLOAT_LEVELS.items() if name.startswith("float")}
_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")  # from coarse to fine


def drop_contained(dtypes: Iterable[str]) -> tuple[str, ...]:
    """Return the dtypes that no other of them contains, in the order of `DTYPES`."""
    found = set(dtypes)
    kept = (one for one in found if not any(is_contained(one, other) for other in found - {one}))
    return tuple(sorted(kept, key=DTYPES.index))


@functools.cache
def is_contained(dtype: str, other: str) -> bool:
    """Return whether `other` represents all values of `dtype`, large integers possibly rounded."""
    is_sign_lost = other == "uint64" and dtype.startswith("int")
    return not is_sign_lost and common_dtype((dtype, other)) == other


@functools.cache
def common_dtype(dtypes: tuple[str, ...]) -> str | None:
    """Lossless dtype promotion: return the narrowest type for all `dtypes`; None if there is none.

    Follows NumPy's promotion of pairs, except that int64 and uint64 become uint64: the caller must
    refuse negative integers among them.

    >>> common_dtype(("int64", "float32"))
    'float64'
    """
    if len(set(dtypes)) == 1:
        return dtypes[0]
    if any(dtype in (*STRINGS, "bfloat16") for dtype in dtypes):
        return None
    if any(dtype in TIMES for dtype in dtypes):
        return _common_time(dtypes)
    levels = [_FLOAT_LEVELS.get(dtype, 0) for dtype in dtypes]
    if not any(levels):
        return _common_integer(dtypes)
    level = max(*levels, *map(_level_of_integer, dtypes))
    if any(dtype.startswith("complex") for dtype in dtypes):
        return "complex64" if level <= 2 else "complex128"
    return _FLOATS[level]


def _common_time(dtypes: tuple[str, ...]) -> str | None:
    kinds = {dtype.partition("[")[0] for dtype in dtypes}
    if len(kinds) > 1:
        return None
    units = [dtype.partition("[")[2].rstrip("]") for dtype in dtypes]
    return f"{kinds.pop()}[{max(units, key=_UNITS.index)}]"


def _bits(dtype: str) -> int:
    return int(dtype.lstrip("uint"))


def _level_of_integer(dtype: str) -> int:
    """Return the level of the narrowest float whose mantissa fits the integers."""
    if "int" not in dtype:
        return 1
    return 1 + (_bits(dtype) > 8) + (_bits(dtype) > 16)


def _common_integer(dtypes: tuple[str, ...]) -> str:
    signed = max((_bits(dtype) for dtype in dtypes if dtype.startswith("int")), default=0)
    unsigned = max((_bits(dtype) for dtype in dtypes if dtype.startswith("uint")), default=0)
    if not signed or unsigned == 64:
        return f"uint{unsigned}"
    return f"int{max(signed, 2 * unsigned)}"


# Larger arrays of integers are stored as raw bytes, which are smaller and faster to parse.
MAX_LISTED_VALUES = 256
_FLAGS = ("is_large", "is_uneven", "has_negative", "has_unsigned", "is_wide")

_Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ValueGuess:
    """The common type of the values of one feature so far.

    Attributes:
        dtypes: Their dtypes, without those that another one contains; none if only empty lists
            were seen.
        shape: Their shape, None where they differ.
        kind: "dense", "sparse" or "image".
        is_large: Whether one is an array of more than `MAX_LISTED_VALUES` items.
        is_uneven: Whether one has rows that differ in length.
        has_negative: Whether one is, or contains, a negative integer.
        has_unsigned: Whether one is of uint64, which excludes negative integers.
        is_wide: Whether one is a number that float32 cannot represent well enough: it overflows,
            or is of 2**24 or more and changes. For columns this is decided when they are stored.
    """

    dtypes: tuple[str, ...]
    shape: _Shape = ()
    kind: Literal["dense", "sparse", "image"] = "dense"
    is_large: bool = False
    is_uneven: bool = False
    has_negative: bool = False
    has_unsigned: bool = False
    is_wide: bool = False

    @property
    def dtype(self) -> str:
        """The type for all values; float32 if there are none."""
        return (common_dtype(self.dtypes) if self.dtypes else None) or "float32"

    def merge(self, other: ValueGuess) -> ValueGuess:
        """Return the guess for both: int and float become float, 3 and 5 items None."""
        if self == other:
            return self
        if self.kind != other.kind:
            return self._merge_image(other)
        if self.kind == "sparse" and self.shape != other.shape:
            raise SchemaError(f"expected {self}, got {other}")
        dtypes = drop_contained((*self.dtypes, *other.dtypes))
        has_negative = self.has_negative or other.has_negative
        has_unsigned = self.has_unsigned or other.has_unsigned
        if dtypes and common_dtype(dtypes) is None:
            raise SchemaError(f"expected {self.dtype}, got {other.dtype}")
        if has_negative and has_unsigned:  # no type fits both
            raise SchemaError("expected integers from 0 on, as one is uint64, got a negative one")
        return ValueGuess(
            dtypes,
            self._merge_shapes(other),
            self.kind,
            is_large=self.is_large or other.is_large,
            is_uneven=self.is_uneven or other.is_uneven,
            has_negative=has_negative,
            has_unsigned=has_unsigned,
            is_wide=self.is_wide or other.is_wide,
        )

    def _merge_image(self, other: ValueGuess) -> ValueGuess:
        """Merge images, which may also be the bytes of their files, without a shape."""
        image, file = (self, other) if self.kind == "image" else (other, self)
        is_list = len(image.shape) == 4
        is_empty = is_list and not file.dtypes and len(file.shape) == 1
        is_file = file.dtypes == ("bytes",) and len(file.shape) == is_list
        if image.kind != "image" or file.kind != "dense" or not (is_file or is_empty):
            raise SchemaError(f"expected {self}, got {other}")
        counts = (image.shape[0] if image.shape[:1] == file.shape else None,) * is_list
        return replace(image, shape=(*counts, None, None, None))

    def _merge_shapes(self, other: ValueGuess) -> _Shape:
        short, long = sorted((self, other), key=lambda guess: len(guess.shape))
        rank = len(short.shape)
        if rank < len(long.shape) and short.dtypes:  # without dtypes, an empty list of any rank
            raise SchemaError(f"expected {self}, got {other}")
        pairs = zip(short.shape, long.shape, strict=False)
        return tuple(a if a == b else None for a, b in pairs) + long.shape[rank:]

    def __str__(self) -> str:
        kind = "" if self.kind == "dense" else f"{self.kind} "
        return f"{kind}{self.dtype} of shape {self.shape}"

    def to_feature(self, *, optional: bool = False, rounds: bool = False) -> Feature:
        """Return the feature for all values; float64 may be rounded if float32 represents it."""
        encoding: Any = self.kind
        shape = self.shape
        dtype = self.dtype
        if dtype == "float64" and rounds and not self.is_wide:
            dtype = "float32"
        if self.kind == "dense":
            is_raw = self.is_large and dtype not in FLOATS_ON_WIRE
            is_raw = is_raw or dtype not in EXACT_LISTS
            encoding = "raw" if is_raw and not self.is_uneven else "values"
            if not self.dtypes:
                shape = (None,) * len(shape)
            if None in shape and 0 in shape:  # rows without values need explicit lengths
                shape = tuple(n or None for n in shape)
            if encoding == "values" and None in shape:  # ragged dimensions come first
                last = len(shape) - shape[::-1].index(None)
                shape = (None,) * last + shape[last:]
        return Feature(dtype, shape, encoding=encoding, optional=optional)

    def absorbs(self, dtype: str) -> bool:
        """Return whether non-negative values of `dtype` leave the guess unchanged."""
        one = ValueGuess((dtype,), self.shape, self.kind, has_unsigned=dtype == "uint64")
        try:
            return self.merge(one) == self
        except SchemaError:
            return False

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        found: dict[str, Any] = {"dtypes": list(self.dtypes), "shape": list(self.shape)}
        found["kind"] = self.kind
        return found | {flag: True for flag in _FLAGS if getattr(self, flag)}

    @classmethod
    def from_json(cls, found: Any) -> ValueGuess:
        """Read the output of `to_json`."""
        if not isinstance(found, Mapping) or not {"dtypes", "shape"} <= set(found):
            raise SchemaError(f"expected a guess as JSON, got {found!r}")
        flags = {flag: bool(found.get(flag)) for flag in _FLAGS}
        dtypes, shape = tuple(found["dtypes"]), tuple(found["shape"])
        return cls(dtypes, shape, found.get("kind", "dense"), **flags)


def guess_value(value: Any) -> ValueGuess:
    """Return the guess for one value; see `datum.schema.infer_feature`."""
    value = plain_value(value)
    if is_image(value):
        is_deep = str(getattr(value, "mode", "")).startswith("I")
        return ValueGuess(("uint16" if is_deep else "uint8",), (None, None, None), "image")
    if isinstance(value, str):
        return ValueGuess(("str",))
    if isinstance(value, bytes):
        return ValueGuess(("bytes",))
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return replace(guess_array(array), is_wide=is_wide(array))
    if isinstance(value, (bool, int, float, complex)):
        return _guess_number(value)
    if isinstance(value, (list, tuple)):
        return _guess_list(value)
    if isinstance(value, Sparse):
        found = guess_value(value.values)
        return replace(found, shape=tuple(value.dense_shape), kind="sparse", is_large=False)
    raise SchemaError("expected a value, got None")


def _guess_number(value: complex) -> ValueGuess:
    if isinstance(value, bool):
        return ValueGuess(("bool",))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise SchemaError(f"expected an integer of 64 bits, got {value}")
        if value < 2**63:
            return ValueGuess(("int64",), has_negative=value < 0, is_wide=is_wide(value))
        return ValueGuess(("uint64",), has_unsigned=True, is_wide=is_wide(value))
    if isinstance(value, float):
        return ValueGuess(("float64",), is_wide=is_wide(value))
    return ValueGuess(("complex128",))


def _guess_list(value: list[Any] | tuple[Any, ...]) -> ValueGuess:
    if not value:
        return ValueGuess((), (0,))
    types = set(map(type, value))
    if types == {float}:
        return ValueGuess(("float64",), (len(value),), is_wide=any(map(is_wide, value)))
    if types == {int}:  # the extremes suffice, except for rounding to float32
        item = _guess_number(min(value)).merge(_guess_number(max(value)))
        return replace(item, shape=(len(value),), is_wide=any(map(is_wide, value)))
    item = _guess_item(value[0])
    for other in value[1:]:
        item = item.merge(_guess_item(other))
    return replace(item, shape=(len(value), *item.shape), is_uneven=None in item.shape)


def _guess_item(value: Any) -> ValueGuess:
    item = guess_value(value)
    if item.kind != "dense" and (item.kind, len(item.shape)) != ("image", 3):
        raise SchemaError(f"expected lists of numbers, strings or arrays, got {item.kind} values")
    return item


def guess_array(array: NDArray[Any]) -> ValueGuess:
    """Return the guess for an array of numbers, strings or times, even if it is empty."""
    if array.dtype.kind in "SU":
        return ValueGuess(("str" if array.dtype.kind == "U" else "bytes",), array.shape)
    name = array.dtype.name
    if name not in DTYPES:
        hint = "use days, or a shorter unit" if array.dtype.kind in "mM" else ""
        raise SchemaError(f"expected an array of numbers, strings or times, got {name}", hint=hint)
    return ValueGuess(
        (name,),
        array.shape,
        is_large=array.size > MAX_LISTED_VALUES,
        has_negative=array.dtype.kind == "i" and bool((array < 0).any()),
        has_unsigned=name == "uint64",
    )


def infer_feature(value: Any, *, floats: Floats = "float32") -> Feature:
    """Return the feature that `datum.write` uses for `value`, a scalar, string, array or list.

    >>> infer_feature([1, 2])
    Feature('int64', (2,))
    """
    return guess_value(value).to_feature(rounds=floats == "float32")


def infer_schema(rows: Iterable[Mapping[str, Any]], *, floats: Floats = "float32") -> Schema:
    """Return the schema that `datum.write` uses for rows; features that some lack are optional.

    A feature that is None in every row is left out. `floats` is the option of `datum.write`.

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
    """The guess of one feature, and the number of records that have it."""

    guess: ValueGuess
    records: int

    def merge(self, other: _Seen) -> _Seen:
        return _Seen(self.guess.merge(other.guess), self.records + other.records)


class SchemaGuess:
    """The common schema of the records so far; guesses of several parts can be merged.

    The result depends on the records, not on how they were partitioned; only the order of names is
    the order in which they were first seen. After an error a guess is unchanged.

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
        """The guess of each feature, and the number of records that have it."""
        return {name: (seen.guess, seen.records) for name, seen in self._features.items()}

    @property
    def features(self) -> Mapping[str, ValueGuess]:
        """The guess of each feature."""
        return {name: seen.guess for name, seen in self._features.items()}

    def copy(self) -> SchemaGuess:
        """Return an independent copy."""
        other = SchemaGuess()
        other.records = self.records
        other._features = dict(self._features)
        return other

    def add_rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add rows; None means that a row lacks the feature."""
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
        """Add columns of one length; arrays have a type, lists are read item by item."""
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

    def add_guesses(self, guesses: Mapping[str, tuple[ValueGuess, int]], records: int) -> None:
        """Add records by the guess of each feature, and the number of them that have it."""
        features = dict(self._features)
        for name, (guess, present) in guesses.items():
            _put(features, name, _Seen(guess, present))
        self._features = features
        self.records += records

    def merge(self, other: SchemaGuess) -> SchemaGuess:
        """Return the guess for the records of both."""
        merged = self.copy()
        merged.add_guesses(other.seen, other.records)
        return merged

    def to_schema(self, rule: FloatRule = EXACT) -> Schema:
        """Return the schema of all records so far, with floats stored by `rule`."""
        seen = self._features.items()
        return _make_schema(
            tuple((name, one.guess, one.records < self.records) for name, one in seen), rule
        )

    @classmethod
    def from_schema(cls, schema: Schema, *, records: int) -> SchemaGuess:
        """Return a guess for records that were written under an inferred schema."""
        guess = cls()
        guess.records = records
        for name, feature in schema.items() if records else ():
            seen = _Seen(_guess_of(feature), records - feature.optional)
            if seen.guess.to_feature(optional=feature.optional) != feature:
                raise SchemaError(
                    f"expected a feature that can be inferred, got {feature!r}",
                    where=f"feature {name!r}",
                    hint="pass the schema",
                    feature=name,
                )
            guess._features[name] = seen
        return guess

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        features = {
            name: seen.guess.to_json() | {"records": seen.records}
            for name, seen in self._features.items()
        }
        return {"records": self.records, "features": features}

    @classmethod
    def from_json(cls, found: Any) -> SchemaGuess:
        """Read the output of `to_json`."""
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


@functools.lru_cache(maxsize=64)  # most blocks leave the guess unchanged
def _make_schema(guesses: tuple[tuple[str, ValueGuess, bool], ...], rule: FloatRule) -> Schema:
    return Schema(
        {name: _make_feature(guess, lacks, rule.rounds(name)) for name, guess, lacks in guesses}
    )


@functools.lru_cache(maxsize=1024)  # schemas of many features repeat a few kinds
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
    """Return the guess for a typed column; None for lists and arrays of objects."""
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
    """Return the guess that produces `feature`, if any does; integers may be negative."""
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
