"""Conversion of any Python value to plain ones: numbers, strings, arrays and lists."""

from __future__ import annotations

import array
import dataclasses
import datetime as dt
import decimal
import enum
import operator
import sys
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Option, SchemaError, Text
from datum.schema.feature import Feature, InexactError, in_one_unit, is_encodable, numpy_dtype

__all__ = [
    "ImageBytes",
    "array_of_tensor",
    "is_image",
    "plain_row",
    "plain_times",
    "plain_value",
    "sparse_from_scipy",
    "sparse_from_tensor",
]

_ENDLESS = "expected values of a few dimensions, got endless nesting"
_MICROSECOND = dt.timedelta(microseconds=1)
_PLAIN = (str, bytes, bool, int, float, complex, type(None))
_HINTS: dict[type, str] = {
    decimal.Decimal: Text(
        Option("schema", {"NAME": Feature("float64")}), " stores floats, 'str' every digit"
    ),
    set: "convert it to a sorted list",
    frozenset: "convert it to a sorted list",
    dict: "a list of dicts may contain nothing else, and no name that the row has as well",
}


class ImageBytes(bytes):
    """The content of an image file, as opposed to other bytes, if there is no schema."""


def plain_row(row: Any) -> dict[str, Any]:
    """Convert a row, or a dataclass instance, to plain values; flatten nested names with "/".

    >>> plain_row({"id": 1, "box": {"x": 2, "y": None}})
    {'id': 1, 'box/x': 2, 'box/y': None}
    """
    if not isinstance(row, Mapping) and not _is_dataclass(row):
        raise SchemaError(f"expected a dict of values, got {type(row)!r}")
    flat: dict[str, Any] = {}
    try:
        _flatten(row, "", flat)
    except RecursionError:
        raise SchemaError(_ENDLESS) from None
    return flat


def _flatten(row: Any, prefix: str, flat: dict[str, Any]) -> None:
    for name, value in _items(row):
        if not isinstance(name, str):
            raise SchemaError(f"expected names that are str, got {name!r}")
        if not is_encodable(name):
            raise SchemaError(f"expected names that UTF-8 can encode, got {name!r}")
        whole = prefix + name
        is_plain = type(value) in _PLAIN
        if not is_plain and (isinstance(value, Mapping) or _is_dataclass(value)):
            _flatten(value, f"{whole}/", flat)
            continue
        if whole in flat:
            raise SchemaError("expected one value of this name, got two", feature=whole)
        try:
            flat[whole] = value if is_plain else plain_value(value)
        except SchemaError as error:
            raise SchemaError(error, feature=whole) from error


def _items(row: Any) -> list[tuple[Any, Any]]:
    if isinstance(row, Mapping):
        return list(row.items())
    return [(field.name, getattr(row, field.name)) for field in dataclasses.fields(row)]


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def plain_value(value: Any) -> Any:
    """Convert `value` to a plain one; raise SchemaError if that is impossible.

    Plain values are numbers, `str`, `bytes`, NumPy arrays and scalars of them, lists of these,
    `Sparse`, images (see `is_image`), and None.

    >>> plain_value(dt.date(2024, 2, 29))
    np.datetime64('2024-02-29')
    """
    if type(value) in _PLAIN:
        return value
    try:
        return _plain(value)
    except RecursionError:
        raise SchemaError(_ENDLESS) from None


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return _plain_list(value)
    if isinstance(value, np.ndarray):
        return _plain_array(value)
    if isinstance(value, np.generic):
        return value
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, _PLAIN) or is_image(value):
        return value
    return _plain_object(value)


def plain_times(values: list[Any]) -> NDArray[Any] | None:
    """Convert datetimes, or dates, to one array; return None if one of them is neither."""
    types = set(map(type, values))
    if types == {dt.date}:
        return np.array(values, "datetime64[D]")
    if types != {dt.datetime}:
        return None
    if all(value.tzinfo is None for value in values):
        return np.array(values, "datetime64[us]")
    offsets = [value.utcoffset() or dt.timedelta() for value in values]
    naive = np.array([value.replace(tzinfo=None) for value in values], "datetime64[us]")
    moved: NDArray[Any] = naive - np.array(offsets, "timedelta64[us]")
    return moved


def is_image(value: Any) -> bool:
    """Return whether `value` is an image: a path, the content of a file, or a Pillow image."""
    return isinstance(value, (PurePath, ImageBytes)) or _is_of(value, "PIL.")


def _is_of(value: Any, package: str) -> bool:
    return any(base.__module__.startswith(package) for base in type(value).__mro__)


def _plain_list(values: list[Any] | tuple[Any, ...]) -> Any:
    plain = [item if type(item) in _PLAIN else _plain(item) for item in values]
    try:
        plain = in_one_unit(plain)
    except InexactError as error:
        raise SchemaError(
            f"expected times that fit one unit, got {error}", hint="convert all of them to one unit"
        ) from None
    if len(plain) == len(values) and all(map(operator.is_, plain, values)):
        return values
    return tuple(plain) if isinstance(values, tuple) else plain


def _plain_array(array: NDArray[Any]) -> Any:
    if isinstance(array, np.ma.MaskedArray):
        raise SchemaError(
            "expected an array without a mask, got a masked one", hint="fill it, or pass lists"
        )
    if array.dtype.kind == "O":
        return _plain(array.tolist())
    return array if type(array) is np.ndarray else np.asarray(array)


def _plain_datetime(value: dt.datetime) -> Any:
    if value != value:  # NaT of pandas, which has no unit
        return None
    if hasattr(value, "to_datetime64"):  # of pandas, which may have nanoseconds
        return value.to_datetime64()
    offset = value.utcoffset() or dt.timedelta()  # subtracted by NumPy, whose years are unlimited
    return np.datetime64(value.replace(tzinfo=None), "us") - np.timedelta64(offset, "us")


def _plain_time(value: dt.time) -> Any:
    if value.tzinfo is not None:
        raise SchemaError("expected a time of day without a zone", hint="convert it to a datetime")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return np.timedelta64(seconds * 10**6 + value.microsecond, "us")


def _plain_timedelta(value: dt.timedelta) -> Any:
    if hasattr(value, "to_timedelta64"):
        return value.to_timedelta64()
    microseconds = value // _MICROSECOND
    if abs(microseconds) >= 2**63:  # NumPy would wrap it around
        raise SchemaError(
            f"expected a time span of at most 2^63 - 1 microseconds, got {value}",
            hint='np.timedelta64(value.days, "D") fits longer ones',
        )
    return np.timedelta64(microseconds, "us")


def _plain_view(view: memoryview) -> bytes:
    try:
        return bytes(view)
    except ValueError as error:
        raise SchemaError(f"expected bytes, got {error}") from None


# In this order: a datetime is also a date.
_CONVERSIONS: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (enum.Enum, lambda member: _plain(member.value)),
    (dt.datetime, _plain_datetime),
    (dt.date, lambda date: np.datetime64(date, "D")),
    (dt.time, _plain_time),
    (dt.timedelta, _plain_timedelta),
    (bytearray, bytes),
    (memoryview, _plain_view),
    (array.array, np.asarray),
    (Sparse, lambda sparse: sparse),
    (BytesColumn, lambda column: column.to_list()),
    (Ragged, lambda ragged: [_plain(row) for row in ragged]),
)


def _plain_object(value: Any) -> Any:
    """Convert an object of another package, recognised by its methods."""
    if type(value).__name__ == "NAType":  # of pandas
        return None
    tensor = sparse_from_tensor(value)
    if tensor is not None:
        return tensor
    if _is_of(value, "tensorflow") and hasattr(value, "to_list"):  # a ragged tensor
        return _plain(value.to_list())
    if hasattr(value, "tocoo") and not _is_of(value, "torch"):
        sparse = sparse_from_scipy(value)
        if len(sparse.dense_shape) == 2 and sparse.dense_shape[0] == 1:  # a row of SciPy
            return Sparse(sparse.indices[:, 1:], sparse.values, sparse.dense_shape[1:])
        return sparse
    if hasattr(value, "__array__"):
        return _plain_array(_array_of(value))
    hint = next((text for kind, text in _HINTS.items() if isinstance(value, kind)), None)
    raise SchemaError(
        f"expected numbers, strings, arrays or lists of them, got {type(value)!r}",
        hint=hint or "convert it to one of these, or leave it out",
    )


def _array_of(value: Any) -> NDArray[Any]:
    try:
        return array_of_tensor(value)
    except Exception as error:  # raised by the object's own __array__
        raise SchemaError(f"expected an array, got {type(value)!r}: {error}") from error


def array_of_tensor(value: Any) -> NDArray[Any]:
    """Return the array of a dense tensor, which may be on a device, or of an array-like."""
    if not (hasattr(value, "detach") and hasattr(value, "cpu")):
        return np.asarray(value)
    tensor = value.detach().cpu()
    if str(getattr(tensor, "dtype", "")) != "torch.bfloat16":
        return np.asarray(tensor)
    bits = tensor.contiguous().view(sys.modules["torch"].int16)  # NumPy has no bfloat16
    found: NDArray[Any] = np.asarray(bits).view(numpy_dtype("bfloat16"))
    return found


def sparse_from_tensor(value: Any) -> Sparse | None:
    """Convert a sparse tensor of TensorFlow or PyTorch; return None for anything else."""
    if _is_of(value, "tensorflow") and hasattr(value, "dense_shape"):
        indices, values = np.asarray(value.indices), np.asarray(value.values)
        order = np.lexsort(indices.T[::-1])
        shape = tuple(np.asarray(value.dense_shape).tolist())
        return Sparse(indices[order], values[order], shape)
    if not _is_of(value, "torch") or "sparse" not in str(getattr(value, "layout", "")):
        return None
    whole = value.detach().cpu().to_sparse_coo().coalesce()
    indices = np.ascontiguousarray(array_of_tensor(whole.indices()).T)
    return Sparse(indices, array_of_tensor(whole.values()), tuple(whole.shape))


def sparse_from_scipy(matrix: Any) -> Sparse:
    """Convert a SciPy sparse array; sum duplicates, like SciPy."""
    if getattr(matrix, "format", "") == "csr" and matrix.has_canonical_format:
        rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
        places = (rows, matrix.indices) if matrix.ndim == 2 else (matrix.indices,)
        return Sparse(np.stack(places, axis=1), matrix.data, matrix.shape)
    coo = matrix.tocoo().copy()
    coo.sum_duplicates()
    places = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
    return Sparse(np.stack(places, axis=1), coo.data, coo.shape)
