"""Preparation of columns, and of lists of values, for the native encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.format.layout import StoredColumn, lower, stand_in
from datum.schema import (
    Feature,
    FloatFacts,
    InexactError,
    ValueGuess,
    as_array,
    cast_exactly,
    is_encodable,
    numpy_dtype,
    plain_value,
    widened,
)
from datum.schema.plain import plain_times, sparse_from_scipy

__all__ = [
    "FloatLog",
    "gather",
    "make_guessed_sources",
    "make_sources",
    "stack_values",
]

_WATCHED = {
    name: getattr(_core.Element, name.upper())
    for name in ("int32", "int64", "uint32", "uint64", "float64")
}


class FloatLog:
    """How the floats of one block are stored.

    Args:
        watches: Returns whether a feature of this name is checked for values that float32 cannot
            represent well enough; by default none is.

    Attributes:
        facts: The facts about the floats of features; records are counted from 0.
        exact: The sources of rounded features, before rounding.
    """

    def __init__(self, watches: Callable[[str], bool] = lambda _: False) -> None:
        self.watches = watches
        self.facts: dict[str, FloatFacts] = {}
        self.exact: dict[str, list[_core.ColumnInput]] = {}

    def add(self, name: str, facts: FloatFacts) -> None:
        """Add facts about a feature."""
        if facts != FloatFacts():
            self.facts[name] = self.facts.get(name, FloatFacts()).merge(facts)

    def add_collected(self, name: str, column: _core.CollectedColumn) -> None:
        """Add the facts that the native collector found about a feature."""
        self.add(name, FloatFacts(column.is_rounded, column.wide))
        if column.exact is not None:
            self.exact[name] = [column.exact, *column.sources[1:]]

    def is_wide(self, name: str) -> bool:
        """Return whether the feature has a value that float32 cannot represent well enough."""
        return name in self.facts and self.facts[name].wide is not None


def make_guessed_sources(
    name: str, guess: ValueGuess, column: Any, rows: int, log: FloatLog
) -> tuple[list[_core.ColumnInput], ValueGuess]:
    """Return the sources of a guessed feature, and its guess updated by its floats."""
    rounds = log.watches(name)
    feature = guess.to_feature(optional=True, rounds=rounds)
    sources = make_sources(name, feature, column, rows, log)
    if log.is_wide(name) and not guess.is_wide:
        guess = replace(guess, is_wide=True)
        if feature != guess.to_feature(optional=True, rounds=rounds):
            return make_guessed_sources(name, guess, column, rows, log)
    return sources, guess


def make_sources(
    name: str, feature: Feature, column: Any, rows: int, log: FloatLog | None = None
) -> list[_core.ColumnInput]:
    """Return the sources of a feature, filled from `column`; raise SchemaError if it misfits.

    A list contains one value (or None) for each record. Facts about floats go into `log`.
    """
    present: NDArray[np.bool_] | None = None
    feature = stand_in(feature)
    builder = _Builder(name, feature, rows, log)
    if isinstance(column, list):
        column = _stack_fitting(feature, column)
    if isinstance(column, Masked):
        column, present = column.values, column.present
        if log is not None and isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
            column = np.where(_along(present, column), column, np.zeros((), column.dtype))
    elif isinstance(column, list):
        column, present = gather(name, builder.given, column)
    if present is not None and not present.all() and not feature.optional:
        row = int(np.flatnonzero(~present)[0])
        raise builder.error(
            "expected a value, got none", row, hint="mark the feature optional=True"
        )
    sources = builder.build(column)
    exact = [builder.exact, *sources[1:]] if builder.exact is not None else []
    if present is not None and not present.all():
        for source in [*sources, *exact[:1]]:
            source.set_present(np.ascontiguousarray(present))
    if log is not None:
        log.exact.pop(name, None)
        log.exact |= {name: exact} if exact else {}
    return sources


def _along(present: NDArray[np.bool_], column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return `present` with the dimensions of `column`."""
    return present.reshape(-1, *[1] * (column.ndim - 1))


def _stack_fitting(feature: Feature, values: list[Any]) -> Any:
    """Return one array of `values`, if they form one that fits; else the values themselves."""
    if feature.is_string or feature.encoding == "sparse":
        return values
    stacked = stack_values(values)
    shape = (stacked.values if isinstance(stacked, Masked) else np.asarray(stacked)).shape[1:]
    return values if stacked is None or not _fits(feature.shape, shape) else stacked


class _Builder:
    """Fills the sources of one feature."""

    def __init__(self, name: str, feature: Feature, rows: int, log: FloatLog | None) -> None:
        self.name = name
        self.feature = feature
        self.rows = rows
        self.stored = lower(name, feature)
        self.exact: _core.ColumnInput | None = None  # the values before rounding
        self._log = log
        is_watched = log is not None and log.watches(name)
        self._is_narrowed = is_watched and feature.dtype == "float32" and not feature.is_raw
        self.given = widened(feature) if self._is_narrowed else feature  # the type of the input

    def build(self, column: Any) -> list[_core.ColumnInput]:
        if self.feature.encoding == "sparse":
            return self._build_sparse(column)
        if len(self.stored) > 1 and self.stored[1].role == "shape":
            return self._build_shaped(column)
        if self.feature.ragged_rank:
            return self._build_ragged(column)
        self._check_shape(column, (self.rows, *self.feature.shape))
        source = self._source(self.stored[0])
        self._set_items(source, column, lambda position: position)
        return [source]

    def _source(self, column: StoredColumn) -> _core.ColumnInput:
        return _core.ColumnInput(
            column.key.encode(), column.kind, column.layout, column.cell, column.unit
        )

    def _build_ragged(self, column: Any) -> list[_core.ColumnInput]:
        """Build nested row splits, from records down to the values."""
        rank = self.feature.ragged_rank
        if len(getattr(column, "shape", ())) == len(self.feature.shape) + 1:
            column = _to_ragged(column, rank)
        levels: list[Ragged] = []
        inner = column
        while isinstance(inner, Ragged):
            levels.append(inner)
            inner = inner.values
        if len(levels) != rank or len(column) != self.rows:
            wanted = f"{self.rows} rows, ragged in {rank} dimension(s)"
            raise self.error(f"expected {wanted}, got {_describe(column)}")
        self._check_shape(inner, (len(inner), *self.feature.shape[rank:]))
        ends = [levels[0].row_splits]  # for each level, where the records end in it
        for level in levels[1:]:
            ends.append(np.ascontiguousarray(level.row_splits[ends[-1]]))
        values = self._source(self.stored[0])
        self._set_items(values, inner, lambda at: int(np.searchsorted(ends[-1], at, "right")) - 1)
        if self.feature.sequence:
            inner_splits = (level.row_splits for level in levels[1:])
            self._set_splits(values, levels[0].row_splits, *inner_splits)
            return [values]
        self._set_splits(values, ends[-1])
        sources = [values]
        for stored, level, splits in zip(self.stored[1:], levels[1:], ends, strict=False):
            lengths = self._source(stored)
            if (level.row_lengths < 0).any():
                raise self.error(f"expected row splits that increase, got {level.row_splits}")
            lengths.set_values(level.row_lengths)
            lengths.set_splits(splits)
            sources.append(lengths)
        return sources

    def _set_splits(self, values: _core.ColumnInput, *splits: NDArray[np.int64]) -> None:
        for source in (values, self.exact):
            if source is not None:
                source.set_splits(*splits)

    def _build_shaped(self, column: Any) -> list[_core.ColumnInput]:
        """Build raw tensors of different shapes, each stored with its shape; None is a blank."""
        blank = np.zeros([n or 0 for n in self.feature.shape], numpy_dtype(self.feature.dtype))
        arrays = []
        for row, item in enumerate(column):
            array = blank if item is None else np.asarray(item)
            self._check_shape(array, self.feature.shape, row)
            arrays.append(self._cast(array, row))
        if len(arrays) != self.rows:
            raise self.error(f"expected {self.rows} rows, got {len(arrays)}")
        values, shapes = map(self._source, self.stored)
        flat = [blank[:0].reshape(-1), *(array.reshape(-1) for array in arrays)]
        values.set_values(np.concatenate(flat).view(np.uint8))
        values.set_splits(_ends([array.size for array in arrays]))
        shapes.set_values(np.array([n for array in arrays for n in array.shape], np.int64))
        shapes.set_splits(_ends([array.ndim for array in arrays]))
        return [values, shapes]

    def _build_sparse(self, column: Any) -> list[_core.ColumnInput]:
        wanted: Any = (self.rows, *self.feature.shape)
        if hasattr(column, "tocoo"):
            column = sparse_from_scipy(column)
        if not isinstance(column, Sparse) or column.dense_shape != wanted:
            raise self.error(f"expected a Sparse of shape {wanted}, got {_describe(column)}")
        is_outside = ((column.indices < 0) | (column.indices >= wanted)).any(axis=1)
        if is_outside.any():
            at = column.indices[is_outside][0].tolist()
            raise self.error(f"expected indices within {wanted}, got {at}", max(at[0], 0))
        order = np.lexsort(column.indices.T[::-1])
        indices, items = column.indices[order], column.values[order]
        splits = np.searchsorted(indices[:, 0], np.arange(self.rows + 1)).astype(np.int64)
        values, *places = map(self._source, self.stored)
        self._set_items(values, items, lambda at: int(indices[at, 0]))
        self._set_splits(values, splits)
        for dim, place in enumerate(places, 1):
            place.set_values(np.ascontiguousarray(indices[:, dim]))
            place.set_splits(splits)
        return [values, *places]

    def _set_items(
        self, source: _core.ColumnInput, items: Any, row_of: Callable[[int], int]
    ) -> None:
        """Set the numbers or strings of a source; `row_of` returns the record of an item."""
        if not self.feature.is_string:
            array = np.asarray(items)
            if self.feature.dtype == "float32" and array.dtype.kind in "fiu":
                array = self._to_float32(array, row_of)
            else:
                array = self._cast(array, row_of)
                self._look_for_wide(array, row_of)
            if array.dtype == np.bool_:  # NumPy reads any byte but 0 as true
                array = array.view(np.uint8) != 0
            if self.stored[0].cell == _core.Cell.FLOAT32:
                array = np.ascontiguousarray(array, np.float32)
            source.set_values(array.reshape(-1).view(np.uint8))
            return
        if not isinstance(items, BytesColumn):
            raise self.error(f"expected {self.feature.dtype}, got {_describe(items)}")
        if items.is_text != (self.feature.dtype == "str") and len(items.slices):
            got = "str" if items.is_text else "bytes"
            raise self.error(f"expected {self.feature.dtype}, got {got}", row_of(0))
        slices = np.ascontiguousarray(items.slices).reshape(-1)
        bad = _core.find_bad_text(items.buffer, slices) if items.is_text else None
        if bad is not None:
            row = row_of(bad // max(1, self.stored[0].unit))
            raise self.error("expected text in UTF-8, got other bytes", row)
        source.set_slices(items.buffer, slices)

    def _to_float32(self, array: NDArray[Any], row_of: Callable[[int], int]) -> NDArray[Any]:
        """Convert numbers to float32; note the facts about them."""
        if self._log is None or (array.dtype != np.float64 and not self._is_narrowed):
            return self._cast(array, row_of)
        if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
            return self._cast(array, row_of)
        doubles = self._cast(array, row_of, "float64")
        floats, is_rounded, at = _core.narrow(doubles.reshape(-1))
        if at is not None and not self._is_narrowed:
            return self._cast(array, row_of)  # raises for overflow
        self._note(FloatFacts(is_rounded, self._find_wide(doubles, at, row_of)))
        if is_rounded and self._is_narrowed:
            column = self.stored[0]
            unit = column.unit * doubles.itemsize
            self.exact = _core.ColumnInput(
                column.key.encode(), _core.Kind.BYTES, column.layout, _core.Cell.RAW, unit
            )
            self.exact.set_values(doubles.reshape(-1).view(np.uint8))
        return floats.reshape(array.shape)

    def _look_for_wide(self, array: NDArray[Any], row_of: Callable[[int], int]) -> None:
        element = _WATCHED.get(array.dtype.name)
        if self._log is not None and self._log.watches(self.name) and element is not None:
            at = _core.find_wide(np.ascontiguousarray(array).reshape(-1).view(np.uint8), element)
            self._note(FloatFacts(wide=self._find_wide(array, at, row_of)))

    def _find_wide(
        self, array: NDArray[Any], at: int | None, row_of: Callable[[int], int]
    ) -> tuple[int, float] | None:
        if at is None:
            return None
        width = array.size // len(array)
        return row_of(at // width), array.reshape(-1)[at].item()

    def _note(self, facts: FloatFacts) -> None:
        if self._log is not None:
            self._log.add(self.name, facts)

    def _cast(
        self,
        array: NDArray[Any],
        row_of: Callable[[int], int] | int,
        dtype: str | None = None,
    ) -> NDArray[Any]:
        try:
            return cast_exactly(array, dtype or self.feature.dtype)
        except InexactError as error:
            row = row_of if isinstance(row_of, int) else row_of(error.position)
            raise self.error(f"expected {self.feature.dtype}, got {error}", row) from None

    def _check_shape(self, column: Any, wanted: tuple[int | None, ...], row: int = -1) -> None:
        got = getattr(column, "shape", None)
        if got is None or not _fits(wanted, got):
            raise self.error(f"expected shape {wanted}, got {_describe(column)}", row)

    def error(self, problem: str, row: int = -1, *, hint: str = "") -> SchemaError:
        where, record = f"feature {self.name!r}", None
        if row >= 0:
            where, record = f"record {row}, {where}", row
        return SchemaError(problem, where=where, hint=hint, record=record, feature=self.name)


def _fits(wanted: tuple[int | None, ...], got: tuple[int | None, ...]) -> bool:
    pairs = zip(wanted, got, strict=False)
    return len(wanted) == len(got) and all(want in (None, n) for want, n in pairs)


def _describe(column: Any) -> str:
    shape = getattr(column, "shape", None)
    kind = type(column).__name__
    return kind if shape is None else f"{kind} of shape {tuple(shape)}"


def _ends(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _to_ragged(column: Any, levels: int) -> Any:
    """Convert a column of arrays, strings or ragged rows to one ragged in `levels` dimensions."""
    if levels == 0:
        return column
    if isinstance(column, Ragged):
        return Ragged(_to_ragged(column.values, levels - 1), column.row_splits)
    rows, width, *inner = column.shape
    if isinstance(column, BytesColumn):
        shape = (rows * width, *inner)
        values: Any = BytesColumn(column.buffer, column.slices, is_text=column.is_text, shape=shape)
    else:
        values = column.reshape(rows * width, *inner)
    return Ragged(_to_ragged(values, levels - 1), np.arange(rows + 1, dtype=np.int64) * width)


def gather(name: str, feature: Feature, values: list[Any]) -> tuple[Any, NDArray[np.bool_]]:
    """Return the column of `values`, with blanks for None, and a mask of those that are not."""
    values = _make_plain(name, values)
    present = np.fromiter((value is not None for value in values), np.bool_, len(values))
    return _gatherer_of(feature)(_Values(name, feature, values)), present


def stack_values(values: list[Any]) -> NDArray[Any] | Masked | None:
    """Return one array of all values, if they are arrays or scalars of one shape and type."""
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


def _gatherer_of(feature: Feature) -> Callable[[_Values], Any]:
    if feature.encoding == "sparse":
        return _gather_sparse
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return _gather_shaped
    return _gather_ragged if feature.ragged_rank else _gather_dense


class _Values:
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


def _gather_dense(rows: _Values) -> Any:
    feature = rows.feature
    shape: Any = (len(rows.values), *feature.shape)
    items = rows.convert(
        lambda feature, value: _items(feature, value, feature.shape),
        blank=lambda: _blank(feature, feature.shape),
    )
    return _join(feature, items, shape)


def _gather_shaped(rows: _Values) -> list[Any]:
    def to_array(feature: Feature, value: Any) -> NDArray[Any]:
        array = as_array(value, feature.dtype)
        if array.size == 0 and array.ndim < len(feature.shape):  # an empty list fits any shape
            array = array.reshape(*array.shape, *(n or 0 for n in feature.shape[array.ndim :]))
        _check_shape(feature.shape, array.shape)
        return array

    return rows.convert(to_array, blank=lambda: None)


def _gather_ragged(rows: _Values) -> Ragged:
    """Convert each row to its row lengths at every level, and its items."""
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


def _gather_sparse(rows: _Values) -> Sparse:
    """Convert rows that are SciPy rows, `Sparse`, or (indices, values)."""
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
        if len(value.dense_shape) < len(shape):  # a SciPy row lacks the first dimension, which is 1
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
    """Return the elements of a value of `shape`: an array, or a flat list of strings."""
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
            raise ValueError(f"expected text that UTF-8 can encode, got {value!r}")
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
