"""One value a record, as rows hold them, into a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.schema import (
    Feature,
    InexactError,
    as_array,
    is_encodable,
    numpy_dtype,
    plain_value,
)
from datum.schema.plain import plain_times

__all__ = ["gather", "stack_values"]


def gather(name: str, feature: Feature, values: list[Any]) -> tuple[Any, NDArray[np.bool_]]:
    """The column of `values`, with blanks for None, and which of them are not None."""
    values = _make_plain(name, values)
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return _gatherer_of(feature)(_Rows(name, feature, values)), present


def stack_values(values: list[Any]) -> NDArray[Any] | Masked | None:
    """One array of all values, if they are arrays of one shape and type, or such scalars."""
    items = [value for value in values if value is not None]
    stacked = _stack(items) if items else None
    if stacked is None or len(items) == len(values):
        return stacked
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    whole = np.zeros((len(values), *stacked.shape[1:]), stacked.dtype)
    whole[present] = stacked
    return Masked(whole, present)


def _stack(items: list[Any]) -> NDArray[Any] | None:
    kinds = set(map(type, items))
    if kinds == {complex}:
        return np.array(items)
    first: Any = items[0]
    is_array = kinds == {np.ndarray} or (len(kinds) == 1 and isinstance(first, np.generic))
    if not is_array or first.dtype.kind in "OSUV":
        return plain_times(items)
    is_alike = all(item.dtype == first.dtype and item.shape == first.shape for item in items)
    return np.stack(items) if is_alike else None


def _make_plain(name: str, values: list[Any]) -> list[Any]:
    plain = []
    for row, value in enumerate(values):
        try:
            plain.append(plain_value(value))
        except SchemaError as error:
            where = f"record {row}, feature {name!r}"
            raise SchemaError(error, where=where, record=row, feature=name) from None
    return plain


def _gatherer_of(feature: Feature) -> Callable[[_Rows], Any]:
    if feature.encoding == "sparse":
        return _gather_sparse
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return _gather_shaped
    return _gather_ragged if feature.ragged_rank else _gather_dense


class _Rows:
    """The values of one feature, each converted on its own so that errors name their record."""

    def __init__(self, name: str, feature: Feature, values: list[Any]) -> None:
        self.name = name
        self.feature = feature
        self.values = values

    def convert(self, how: Callable[[Feature, Any], Any], *, blank: Callable[[], Any]) -> list[Any]:
        converted = []
        for row, value in enumerate(self.values):
            try:
                converted.append(blank() if value is None else how(self.feature, value))
            except InexactError as error:
                raise self._error(row, f"expected {self.feature.dtype}, got {error}") from None
            except (OverflowError, TypeError, ValueError) as error:
                raise self._error(row, error) from error
        return converted

    def _error(self, row: int, problem: str | Exception) -> SchemaError:
        where = f"record {row}, feature {self.name!r}"
        return SchemaError(problem, where=where, record=row, feature=self.name)


def _gather_dense(rows: _Rows) -> Any:
    feature = rows.feature
    shape: Any = (len(rows.values), *feature.shape)
    items = rows.convert(
        lambda feature, value: _items(feature, value, feature.shape),
        blank=lambda: _blank(feature, feature.shape),
    )
    return _join(feature, items, shape)


def _gather_shaped(rows: _Rows) -> list[Any]:
    def to_array(feature: Feature, value: Any) -> NDArray[Any]:
        array = as_array(value, feature.dtype)
        if array.size == 0 and array.ndim < len(feature.shape):  # an empty list of anything
            array = array.reshape(*array.shape, *(n or 0 for n in feature.shape[array.ndim :]))
        _check_shape(feature.shape, array.shape)
        return array

    return rows.convert(to_array, blank=lambda: None)


def _gather_ragged(rows: _Rows) -> Ragged:
    """Each row becomes its row lengths at every level, and its items in one run."""
    feature = rows.feature
    levels = feature.ragged_rank
    inner: Any = feature.shape[levels:]

    def flatten(feature: Feature, value: Any) -> tuple[list[list[int]], Any]:
        if isinstance(value, np.ndarray) and not feature.is_string and value.ndim >= levels:
            counts = np.cumprod([1, *value.shape[:levels]])
            lengths = [[n] * int(count) for n, count in zip(value.shape, counts[:-1], strict=False)]
            array = value.reshape(-1, *value.shape[levels:])
            return lengths, _items(feature, array, (len(array), *inner))
        lengths = []
        items = [value]
        for _ in range(levels):
            lengths.append([_length(item) for item in items])
            items = [part for item in items for part in item]
        return lengths, _items(feature, items, (len(items), *inner))

    blank = [[0], *([] for _ in range(levels - 1))], _blank(feature, (0, *inner))
    parts = rows.convert(flatten, blank=lambda: blank)
    lengths = [[n for part, _ in parts for n in part[level]] for level in range(levels)]
    count = sum(lengths[-1])
    column: Any = _join(feature, [items for _, items in parts], (count, *inner))
    for level in reversed(lengths):
        column = Ragged(column, np.concatenate([[0], np.cumsum(level, dtype=np.int64)]))
    assert isinstance(column, Ragged)
    return column


def _gather_sparse(rows: _Rows) -> Sparse:
    """Rows given as SciPy rows, `Sparse`, or (indices, values)."""
    feature = rows.feature
    rank = len(feature.shape)
    blank = np.empty((0, rank), np.int64), _blank(feature, (0,))
    parts = rows.convert(_sparse_row, blank=lambda: blank)
    numbers = np.repeat(np.arange(len(parts)), [len(places) for places, _ in parts])
    places = np.concatenate([np.empty((0, rank), np.int64), *(places for places, _ in parts)])
    items = _join(feature, [items for _, items in parts], (len(places),))
    shape: Any = (len(parts), *feature.shape)
    return Sparse(np.concatenate([numbers[:, None], places], axis=1), items, shape)


def _sparse_row(feature: Feature, value: Any) -> tuple[NDArray[np.int64], Any]:
    shape: Any = feature.shape
    if isinstance(value, Sparse):
        if len(value.dense_shape) < len(shape):  # a SciPy row lost its first dimension, which is 1
            blank = np.zeros((len(value.indices), 1), np.int64)
            indices = np.concatenate([blank, value.indices], axis=1)
            value = Sparse(indices, value.values, (1, *value.dense_shape))
        _check_shape(shape, value.dense_shape)
        places, items = value.indices, value.values
    elif isinstance(value, tuple) and len(value) == 2:
        places, items = as_array(value[0], "int64"), value[1]
        places = places.reshape(-1, len(shape)) if places.ndim < 2 else places
    else:
        raise TypeError(
            f"expected a SciPy row, a Sparse or (indices, values), got {type(value).__name__}"
        )
    _check_shape((None, len(shape)), places.shape)
    if ((places < 0) | (places >= np.array(shape))).any():
        raise ValueError(f"expected indices within {shape}, got {places.tolist()}")
    return places, _items(feature, items, (len(places),))


def _length(value: Any) -> int:
    if isinstance(value, (bytes, str, dict)) or not hasattr(value, "__len__"):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return len(value)


def _check_shape(wanted: tuple[int | None, ...], got: tuple[int, ...]) -> None:
    fits = len(wanted) == len(got) and all(
        want in (None, n) for want, n in zip(wanted, got, strict=True)
    )
    if not fits:
        raise ValueError(f"expected shape {wanted}, got {got}")


def _items(feature: Feature, value: Any, shape: tuple[int | None, ...]) -> Any:
    """The elements of a value of `shape`: an array, or a flat list of strings."""
    if feature.is_string:
        return _strings(
            value.to_list() if isinstance(value, BytesColumn) else value, feature, shape
        )
    array = as_array(value, feature.dtype)
    if array.size == 0 and 0 in shape:
        array = array.reshape(shape)  # type: ignore[arg-type]
    _check_shape(shape, array.shape)
    return array


def _strings(value: Any, feature: Feature, shape: tuple[int | None, ...]) -> list[bytes | str]:
    if not shape:
        if isinstance(value, np.ndarray) and value.ndim == 0:
            value = value.item()
        if feature.dtype == "bytes" and isinstance(value, (bytearray, memoryview)):
            value = bytes(value)
        if not isinstance(value, str if feature.dtype == "str" else bytes):
            raise TypeError(f"expected {feature.dtype}, got {type(value).__name__}")
        if not is_encodable(value):
            raise ValueError(f"expected text that UTF-8 can hold, got {value!r}")
        return [value]
    if _length(value) != shape[0]:
        raise ValueError(f"expected {shape[0]} strings, got {len(value)}")
    return [string for item in value for string in _strings(item, feature, shape[1:])]


def _blank(feature: Feature, shape: tuple[int | None, ...]) -> Any:
    lengths: Any = shape
    if feature.is_string:
        return ["" if feature.dtype == "str" else b""] * int(np.prod(lengths, dtype=np.int64))
    return np.zeros(lengths, numpy_dtype(feature.dtype))


def _join(feature: Feature, parts: list[Any], shape: tuple[int, ...]) -> Any:
    if feature.is_string:
        strings = BytesColumn.from_values(string for part in parts for string in part)
        is_text = feature.dtype == "str"
        return BytesColumn(strings.buffer, strings.slices, is_text=is_text, shape=shape)
    if not parts:
        return np.zeros(shape, numpy_dtype(feature.dtype))
    return np.concatenate([part.reshape(-1) for part in parts]).reshape(shape)
