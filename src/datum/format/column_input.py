"""Columns prepared for the native encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.format.gather import gather, stack_values
from datum.format.layout import StoredColumn, lower, stand_in
from datum.schema import (
    Feature,
    FloatFacts,
    InexactError,
    ValueGuess,
    cast_exactly,
    numpy_dtype,
    widened,
)
from datum.schema.plain import sparse_from_scipy

__all__ = [
    "FloatLog",
    "make_guessed_sources",
    "make_sources",
]

_WATCHED = {
    name: getattr(_core.Element, name.upper())
    for name in ("int32", "int64", "uint32", "uint64", "float64")
}


class FloatLog:
    """What becomes of floats in one block.

    Args:
        watches: whether the values of a feature of this name may be stored as float32 only if
            float32 can serve them; of others, by default of all, no such value is looked for.

    Attributes:
        facts: what was found about features; records are counted from 0.
        exact: the sources of features that were rounded, as they would be without that.
    """

    def __init__(self, watches: Callable[[str], bool] = lambda _: False) -> None:
        self.watches = watches
        self.facts: dict[str, FloatFacts] = {}
        self.exact: dict[str, list[_core.Source]] = {}

    def add(self, name: str, facts: FloatFacts) -> None:
        """Take what was found about a feature."""
        if facts != FloatFacts():
            self.facts[name] = self.facts.get(name, FloatFacts()).merge(facts)

    def add_collected(self, name: str, column: _core.CollectedColumn) -> None:
        """Take what the native collector found about a feature."""
        self.add(name, FloatFacts(column.is_rounded, column.wide))
        if column.exact is not None:
            self.exact[name] = [column.exact, *column.sources[1:]]

    def is_wide(self, name: str) -> bool:
        """Whether a value of the feature was found that float32 cannot serve."""
        return name in self.facts and self.facts[name].wide is not None


def make_guessed_sources(
    name: str, guess: ValueGuess, column: Any, rows: int, log: FloatLog
) -> tuple[list[_core.Source], ValueGuess]:
    """The stored columns of a feature that was guessed, and the guess with what its floats say."""
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
) -> list[_core.Source]:
    """The stored columns of a feature, filled from `column`; raises SchemaError if it misfits.

    A list holds one value (or None) for each record. What becomes of floats goes into `log`.
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
    """`present` with the dimensions of `column`."""
    return present.reshape(-1, *[1] * (column.ndim - 1))


def _stack_fitting(feature: Feature, values: list[Any]) -> Any:
    """One array of `values`, if they make one that fits; else the values themselves."""
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
        self.exact: _core.Source | None = None  # the values before they were rounded
        self._log = log
        is_watched = log is not None and log.watches(name)
        self._is_narrowed = is_watched and feature.dtype == "float32" and not feature.is_raw
        self.given = widened(feature) if self._is_narrowed else feature  # what values come as

    def build(self, column: Any) -> list[_core.Source]:
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

    def _source(self, column: StoredColumn) -> _core.Source:
        return _core.Source(
            column.key.encode(), column.kind, column.layout, column.cell, column.unit
        )

    def _build_ragged(self, column: Any) -> list[_core.Source]:
        """Nested row splits, from records in to the values."""
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
                raise self.error(f"expected row splits that rise, got {level.row_splits}")
            lengths.set_values(level.row_lengths)
            lengths.set_splits(splits)
            sources.append(lengths)
        return sources

    def _set_splits(self, values: _core.Source, *splits: NDArray[np.int64]) -> None:
        for source in (values, self.exact):
            if source is not None:
                source.set_splits(*splits)

    def _build_shaped(self, column: Any) -> list[_core.Source]:
        """Raw tensors of differing shapes, each with its shape beside it; None is a blank."""
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

    def _build_sparse(self, column: Any) -> list[_core.Source]:
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

    def _set_items(self, source: _core.Source, items: Any, row_of: Callable[[int], int]) -> None:
        """Hand numbers or strings to a source; `row_of` tells which record an item is of."""
        if not self.feature.is_string:
            array = np.asarray(items)
            if self.feature.dtype == "float32" and array.dtype.kind in "fiu":
                array = self._to_float32(array, row_of)
            else:
                array = self._cast(array, row_of)
                self._look_for_wide(array, row_of)
            if array.dtype == np.bool_:  # NumPy takes any byte but 0 for true
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
        """Numbers as float32; what becomes of them is noted."""
        if self._log is None or (array.dtype != np.float64 and not self._is_narrowed):
            return self._cast(array, row_of)
        if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
            return self._cast(array, row_of)
        doubles = self._cast(array, row_of, "float64")
        floats, is_rounded, at = _core.narrow(doubles.reshape(-1))
        if at is not None and not self._is_narrowed:
            return self._cast(array, row_of)  # which refuses those that overflow
        self._note(FloatFacts(is_rounded, self._find_wide(doubles, at, row_of)))
        if is_rounded and self._is_narrowed:
            column = self.stored[0]
            unit = column.unit * doubles.itemsize
            self.exact = _core.Source(
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
    """A column of arrays, strings or ragged rows, ragged in so many dimensions."""
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
