"""Values to the element type of a feature, or a refusal that names the value lost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.schema.dtypes import numpy_dtype

__all__ = [
    "InexactError",
    "as_array",
    "cast_exactly",
    "in_one_unit",
    "is_encodable",
    "is_wide",
    "read_named_floats",
]

_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NO_TIMES = frozenset((str, bytes, bool, int, float, complex, type(None)))
_WIDE_FROM = 2.0**24  # from here on float32 skips integers


class InexactError(Exception):
    """A value that the wanted type cannot hold."""

    def __init__(self, got: str, position: int = 0) -> None:
        super().__init__(got)
        self.position = position  # along the first axis


def as_array(value: Any, dtype: str) -> NDArray[Any]:
    """An array of `value`, a scalar, list or array, as `dtype`; see `cast_exactly`.

    The texts "NaN", "Infinity" and "-Infinity" are floats where those are asked for: JSON has no
    other way to write them.
    """
    try:
        array = np.asarray(in_one_unit(value) if isinstance(value, list) else value)
    except ValueError:
        raise ValueError("expected rows of one length, got differing ones") from None
    wanted = numpy_dtype(dtype)
    if "float" in dtype and array.dtype.kind == "U":
        array = np.asarray(read_named_floats(value))
    if array.size == 0 and not isinstance(value, np.ndarray):
        return np.empty(array.shape, wanted)  # an empty list is of any type
    is_listed = isinstance(value, (list, tuple, int))
    if is_listed and array.dtype.kind in "fcO":  # NumPy may have made floats of large integers
        if wanted.kind in "biu":
            array = _array_of_integers(value, wanted)
        else:
            _check_integers(value)
    return cast_exactly(array, dtype)


def in_one_unit(values: list[Any]) -> list[Any]:
    """A list, or list of lists, with times in the finest unit of any of them.

    NumPy lets times overflow when it makes an array of several units; here that raises
    InexactError.

    >>> in_one_unit([np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00:00:01")])
    [np.datetime64('2020-01-01T00:00:00'), np.datetime64('2020-01-01T00:00:01')]
    """
    if _NO_TIMES.issuperset(map(type, values)):
        return values
    units = set(_time_units(values))
    if len(units) < 2 or len({unit.kind for unit in units}) > 1:
        return values
    unit = np.result_type(*units)
    return [_in_unit(value, unit, at) for at, value in enumerate(values)]


def _time_units(value: Any) -> Iterator[np.dtype[Any]]:
    if isinstance(value, (list, tuple)):
        for item in () if _NO_TIMES.issuperset(map(type, value)) else value:
            yield from _time_units(item)
    elif isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "mM":
        yield value.dtype


def _in_unit(value: Any, unit: np.dtype[Any], position: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_in_unit(item, unit, position) for item in value)
    if not isinstance(value, (np.generic, np.ndarray)) or value.dtype == unit:
        return value
    moved = value.astype(unit)
    if not np.array_equal(moved.astype(value.dtype), value, equal_nan=True):
        raise InexactError(str(value), position)
    return moved


def read_named_floats(value: Any) -> Any:
    """A value, or a list, with floats in the place of "NaN", "Infinity" and "-Infinity".

    >>> read_named_floats([1.5, "-Infinity", "other"])
    [1.5, -inf, 'other']
    """
    if isinstance(value, str):
        return _NAMED_FLOATS.get(value, value)
    is_list = isinstance(value, (list, tuple))
    return [read_named_floats(one) for one in value] if is_list else value


def is_encodable(text: str | bytes) -> bool:
    """Whether UTF-8 can hold it: text with a lone surrogate cannot be written."""
    try:
        text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        return False
    return True


def _check_integers(value: Any) -> None:
    """Refuse integers that a float would round."""
    for item in np.asarray(value, object).reshape(-1).tolist():
        if isinstance(item, int) and abs(item) > 2**53 and int(float(item)) != item:
            raise InexactError(repr(item))


def _array_of_integers(value: Any, wanted: np.dtype[Any]) -> NDArray[Any]:
    for item in np.asarray(value, object).reshape(-1).tolist():
        if not isinstance(item, int):
            raise InexactError(repr(item))
    try:
        return np.array(value, wanted)
    except OverflowError:
        raise InexactError(repr(value)) from None


def cast_exactly(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """`array` as `dtype`, contiguous and aligned; raises InexactError if a value changes.

    Floats may be rounded to a narrower float, but not to infinity. Times may change their unit.

    >>> cast_exactly(np.array([1, 2]), "uint8")
    array([1, 2], dtype=uint8)
    """
    wanted = numpy_dtype(dtype)
    if array.dtype == wanted:
        return np.require(array, requirements=["C", "A"])
    if not _is_castable(array.dtype, wanted):
        raise InexactError(f"{array.dtype.name} values")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(wanted, order="C")
        lost = _find_lost(array, cast)
    if lost.any():
        place = tuple(np.argwhere(lost)[0].tolist())
        raise InexactError(str(array[place]), place[0] if place else 0)
    return cast


def is_wide(value: float | NDArray[Any]) -> bool:
    """Whether a number, or one of an array, overflows float32, or is of 2**24 or more and changes.

    >>> is_wide(0.1), is_wide(2.0**24), is_wide(2**24 + 1), is_wide(1e300), is_wide(float("inf"))
    (False, False, True, True, False)
    """
    if not isinstance(value, np.ndarray):
        if not abs(value) >= _WIDE_FROM:  # NaN neither
            return False
        value = np.array(value)
    if value.dtype.kind not in "fiu" or value.dtype.itemsize < 4:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = value.astype(np.float32)
        if value.dtype.kind != "f":
            return bool(_find_lost(value, narrow).any())
        return bool(((np.abs(value) >= _WIDE_FROM) & (narrow != value)).any())


def _is_castable(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if wanted.kind in "mM":
        return given.kind == wanted.kind
    ranks = {"b": 0, "u": 0, "i": 0, "f": 1, "c": 2}
    if "bfloat16" in (given.name, wanted.name):
        ranks["V"] = 1  # how NumPy sees types that are not its own
    return given.kind in ranks and wanted.kind in ranks and ranks[given.kind] <= ranks[wanted.kind]


def _find_lost(array: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    """Where `cast` does not hold the value of `array`."""
    if array.dtype.kind in "mM":
        is_kept = (cast.astype(array.dtype) == array) | (np.isnat(array) & np.isnat(cast))
        return np.asarray(~is_kept)
    if array.dtype.kind not in "biu":
        return np.asarray(np.isfinite(array) & ~np.isfinite(cast))
    if cast.dtype.kind in "biu":
        # Compared as integers of one type: NumPy compares int64 with uint64 as floats.
        is_sign_lost = array.dtype.kind != "b" and cast.dtype.kind != "b"
        changed = cast.astype(array.dtype) != array
        return np.asarray(changed | ((array < 0) != (cast < 0))) if is_sign_lost else changed
    # Back to integers, without leaving their range.
    real = cast.real.astype(np.float64) if cast.dtype.kind != "f" else cast.astype(np.float64)
    bits = 64 if array.dtype.kind == "u" else 63
    is_inside = (real >= -(2.0**63)) & (real < 2.0**bits)
    back = np.where(is_inside, real, 0).astype(array.dtype)
    return np.asarray(~is_inside | (back != array))
