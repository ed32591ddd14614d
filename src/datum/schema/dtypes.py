"""The element types a feature can have."""

from __future__ import annotations

from typing import Any

import numpy as np

from datum._optional import require

__all__ = [
    "DTYPES",
    "EXACT_LISTS",
    "FLOATS_ON_WIRE",
    "INTEGERS",
    "STRINGS",
    "TIMES",
    "numpy_dtype",
]

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS_ON_WIRE = ("float16", "bfloat16", "float32")  # a FloatList holds them exactly
STRINGS = ("bytes", "str")
_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")  # of fixed length, unlike months and years
TIMES = tuple(f"{kind}64[{unit}]" for kind in ("datetime", "timedelta") for unit in _UNITS)
EXACT_LISTS = (*INTEGERS, *FLOATS_ON_WIRE, *STRINGS, *TIMES)  # what lists of a Feature hold
DTYPES = (*EXACT_LISTS, "float64", "complex64", "complex128")


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """The NumPy type of elements, `object` for strings; bfloat16 needs the package ml_dtypes."""
    if dtype in STRINGS:
        return np.dtype(object)
    if dtype == "bfloat16":
        bfloat16: np.dtype[Any] = np.dtype(require("ml_dtypes", purpose="dtype bfloat16").bfloat16)
        return bfloat16
    return np.dtype(dtype)
