"""The one type that holds values of several exactly, whatever order they came in."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from datum.schema.dtypes import DTYPES, STRINGS, TIMES

__all__ = ["common_dtype", "is_held", "without_held"]

_FLOAT_LEVELS = {"float16": 1, "float32": 2, "float64": 3, "complex64": 2, "complex128": 3}
_FLOATS = {level: name for name, level in _FLOAT_LEVELS.items() if name.startswith("float")}
_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")  # from coarse to fine


def without_held(dtypes: Iterable[str]) -> tuple[str, ...]:
    """Those that no other one holds, in the order of `DTYPES`: all that promotion depends on."""
    found = set(dtypes)
    kept = (one for one in found if not any(is_held(one, other) for other in found - {one}))
    return tuple(sorted(kept, key=DTYPES.index))


@functools.cache
def is_held(dtype: str, other: str) -> bool:
    """Whether `other` holds every value of `dtype`, but for rounding of very large integers."""
    is_sign_lost = other == "uint64" and dtype.startswith("int")
    return not is_sign_lost and common_dtype((dtype, other)) == other


@functools.cache
def common_dtype(dtypes: tuple[str, ...]) -> str | None:
    """The narrowest type that holds values of all `dtypes`; None if there is none.

    As NumPy promotes pairs, except that int64 and uint64 give uint64: negative integers among them
    are for the caller to refuse.

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
    """The level of the narrowest float whose mantissa holds the integers."""
    if "int" not in dtype:
        return 1
    return 1 + (_bits(dtype) > 8) + (_bits(dtype) > 16)


def _common_integer(dtypes: tuple[str, ...]) -> str:
    signed = max((_bits(dtype) for dtype in dtypes if dtype.startswith("int")), default=0)
    unsigned = max((_bits(dtype) for dtype in dtypes if dtype.startswith("uint")), default=0)
    if not signed or unsigned == 64:
        return f"uint{unsigned}"
    return f"int{max(signed, 2 * unsigned)}"
