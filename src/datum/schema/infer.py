"""A schema from the values themselves, merged over every record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SchemaError
from datum.schema.dtypes import DTYPES, EXACT_LISTS, STRINGS
from datum.schema.feature import Feature
from datum.schema.schema import Schema

__all__ = ["infer_feature", "infer_schema"]

# Above this an array is stored as raw bytes: a list costs more to parse, and integers more room.
MAX_LISTED_VALUES = 256

_Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Guess:
    """What the values of one feature have in common so far."""

    dtype: str | None  # None: only empty lists were seen
    shape: _Shape = ()
    is_large: bool = False
    has_negative: bool = False
    is_uneven: bool = False  # rows within one value differ in length

    def to_feature(self, *, optional: bool = False) -> Feature:
        dtype = self.dtype or "float32"
        is_raw = self.is_large or dtype not in EXACT_LISTS
        if is_raw and self.is_uneven:
            raise SchemaError(
                f"expected rows of one length, as {dtype} is stored whole, got differing ones\n"
                "hint: float32 and int64 can be ragged within a record"
            )
        shape = self.shape if self.dtype else (None,) * len(self.shape)
        if not is_raw and None in shape:  # a stored list has its ragged dimensions first
            last = len(shape) - shape[::-1].index(None)
            shape = (None,) * last + shape[last:]
        encoding: Any = "raw" if is_raw else "values"
        return Feature(dtype, shape, encoding=encoding, optional=optional)


def infer_feature(value: Any) -> Feature:
    """The feature that holds `value`, a scalar, string, array or list, exactly.

    >>> infer_feature([1, 2])
    Feature('int64', (2,))
    """
    return _guess(value).to_feature()


def infer_schema(rows: Iterable[Mapping[str, Any]]) -> Schema:
    """The schema that holds every row; features that some rows lack are optional.

    A feature that is None in every row is left out.

    >>> infer_schema([{"x": 1}, {"x": 2.5, "tag": "a"}])
    Schema({
        'x': Feature('float64'),
        'tag': Feature('str', optional=True),
    })
    """
    guesses: dict[str, _Guess] = {}
    seen: dict[str, int] = {}
    number = -1
    for number, row in enumerate(rows):
        for name, value in row.items():
            if value is None:
                continue
            try:
                guess = _guess(value)
                guesses[name] = _merge(guesses[name], guess) if name in guesses else guess
            except SchemaError as error:
                raise SchemaError(f"record {number}, feature {name!r}: {error}") from None
            seen[name] = seen.get(name, 0) + 1
    return Schema(
        {name: _finish(name, guess, seen[name] <= number) for name, guess in guesses.items()}
    )


def _finish(name: str, guess: _Guess, is_optional: bool) -> Feature:
    try:
        return guess.to_feature(optional=is_optional)
    except SchemaError as error:
        raise SchemaError(f"feature {name!r}: {error}") from None


def _guess(value: Any) -> _Guess:
    if isinstance(value, str):
        return _Guess("str")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _Guess("bytes")
    if isinstance(value, (np.ndarray, np.generic)):
        return _guess_array(np.asarray(value))
    if isinstance(value, (bool, int, float, complex)):
        return _guess_scalar(value)
    if isinstance(value, (list, tuple)):
        return _guess_list(value)
    raise SchemaError(f"expected numbers, strings, arrays or lists of them, got {type(value)!r}")


def _guess_scalar(value: complex) -> _Guess:
    if isinstance(value, bool):
        return _Guess("bool")
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise SchemaError(f"expected an integer of 64 bits, got {value}")
        return _Guess("int64" if value < 2**63 else "uint64", has_negative=value < 0)
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            is_narrow = value != value or float(np.float32(value)) == value
        return _Guess("float32" if is_narrow else "float64")
    return _Guess("complex128")


def _guess_list(value: list[Any] | tuple[Any, ...]) -> _Guess:
    if not value:
        return _Guess(None, (0,))
    item = _guess(value[0])
    for other in value[1:]:
        item = _merge(item, _guess(other))
    return replace(item, shape=(len(value), *item.shape), is_uneven=None in item.shape)


def _guess_array(array: NDArray[Any]) -> _Guess:
    if array.dtype.kind in "SUO":
        return _guess_list(array.tolist()) if array.ndim else _guess(array.item())
    if array.dtype.name not in DTYPES:
        raise SchemaError(f"expected an array of {', '.join(DTYPES)}, got {array.dtype.name}")
    has_negative = array.dtype.kind == "i" and bool((array < 0).any())
    is_large = array.size > MAX_LISTED_VALUES
    return _Guess(array.dtype.name, array.shape, is_large, has_negative)


def _merge(first: _Guess, second: _Guess) -> _Guess:
    """What holds both: int and float give float, 3 and 5 items give None."""
    if first.dtype is None or second.dtype is None:
        empty, other = (first, second) if first.dtype is None else (second, first)
        if len(other.shape) < len(empty.shape):
            raise SchemaError(f"expected a list, got {other.dtype} of shape {other.shape}")
        shape = _merge_shapes(empty.shape, other.shape[: len(empty.shape)])
        shape += other.shape[len(empty.shape) :]
        return replace(other, shape=shape, is_uneven=other.is_uneven or empty.is_uneven)
    if len(first.shape) != len(second.shape):
        raise SchemaError(
            f"expected {first.dtype} of shape {first.shape},"
            f" got {second.dtype} of shape {second.shape}"
        )
    has_negative = first.has_negative or second.has_negative
    return _Guess(
        _merge_dtypes(first.dtype, second.dtype, has_negative),
        _merge_shapes(first.shape, second.shape),
        first.is_large or second.is_large,
        has_negative,
        first.is_uneven or second.is_uneven,
    )


def _merge_shapes(first: _Shape, second: _Shape) -> _Shape:
    return tuple(a if a == b else None for a, b in zip(first, second, strict=True))


def _merge_dtypes(first: str, second: str, has_negative: bool) -> str:
    if first == second:
        return first
    refusal = SchemaError(f"expected {first}, got {second}")
    if first in STRINGS or second in STRINGS:
        raise refusal
    if "uint64" in (first, second) and {first[:3], second[:3]} == {"uin", "int"}:
        if has_negative:  # no type holds both; NumPy would round them to floats
            raise refusal
        return "uint64"
    try:
        merged = np.promote_types(first, second).name
    except TypeError:  # bfloat16, which is not NumPy's own
        raise refusal from None
    if merged not in DTYPES:
        raise refusal
    return merged
