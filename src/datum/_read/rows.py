"""Columns into records: one dict of values for each."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SourceError
from datum.schema import Feature, Schema

__all__ = [
    "iterate_rows",
    "row_values",
    "single_row",
]


def iterate_rows(
    batch: dict[str, Any],
    schema: Schema,
    numbers: Sequence[int] | NDArray[np.int64],
    *,
    where: str,
) -> Iterator[dict[str, Any]]:
    """The records of a batch; where they are from, and their numbers there, are for messages.

    Numbers are NumPy scalars and arrays of their dtype, texts and byte strings `str` and `bytes`,
    several of them lists. Ragged values are arrays, or lists of arrays where rows within one record
    differ in length; sparse ones are `Sparse`; what is absent is None. Images are decoded, each
    when its record is asked for.
    """
    names, images = _plan(schema)
    if not names:
        return ({} for _ in numbers)
    columns = [row_values(batch[name]) for name in names]
    for at, feature in images:
        columns[at] = _decode_images(columns[at], feature, numbers, (where, names[at]))
    # All in C, but for images: records may be small, and many are asked for.
    return map(dict, map(zip, repeat(names), zip(*columns, strict=True)))


def single_row(batch: dict[str, Any], schema: Schema, number: int, *, where: str) -> dict[str, Any]:
    """The one record of a batch, as `iterate_rows` gives it, but without the cost of many."""
    record = {
        name: column[0] if type(column) is np.ndarray else next(iter(row_values(column)))
        for name, column in batch.items()
    }
    names, images = _plan(schema)
    for at, feature in images:
        name = names[at]
        record[name] = next(_decode_images([record[name]], feature, [number], (where, name)))
    return record


@functools.lru_cache(maxsize=64)
def _plan(schema: Schema) -> tuple[tuple[str, ...], list[tuple[int, Feature]]]:
    """The names of the columns, and which of them are images."""
    features = list(schema.values())
    images = [(at, one) for at, one in enumerate(features) if one.encoding == "image"]
    return tuple(schema), images


def row_values(column: Any) -> Iterable[Any]:
    """The value of each record of a column, as records have them; images stay encoded."""
    if type(column) is np.ndarray:  # the most, by far
        return column
    if isinstance(column, Masked):
        present = column.present.tolist()
        values = zip(row_values(column.values), present, strict=True)
        return (value if is_there else None for value, is_there in values)
    if isinstance(column, Ragged):
        return _ragged_values(column)
    if isinstance(column, Sparse):
        return _sparse_values(column)
    strings: BytesColumn = column
    return strings.to_list()


def _ragged_values(column: Ragged) -> list[Any]:
    """Arrays, and where rows within a record differ in length lists of them; lists of texts."""
    levels, values = [column.row_splits], column.values
    while isinstance(values, Ragged):
        levels.append(values.row_splits)
        values = values.values
    if isinstance(values, np.ndarray) and len(levels) > 1:
        return [_nested_value(column, levels, values, at) for at in range(len(column))]
    items: Any = values if len(levels) == 1 else column.values
    items = items if isinstance(items, np.ndarray) else list(row_values(items))
    return [items[start:end] for start, end in pairwise(column.row_splits.tolist())]


def _nested_value(
    column: Ragged, levels: Sequence[NDArray[np.int64]], values: NDArray[Any], at: int
) -> Any:
    """A record's value: a view of one array if its rows make one, as those of an array do."""
    first, last = at, at + 1
    shape: list[int] = []
    for splits in levels:
        lengths = np.diff(splits[first : last + 1])
        if len(lengths) and (lengths != lengths[0]).any():
            return _ragged_values(column[at])
        shape.append(int(lengths[0]) if len(lengths) else 0)
        first, last = int(splits[first]), int(splits[last])
    return values[first:last].reshape(*shape, *values.shape[1:])


def _sparse_values(column: Sparse) -> Iterator[Sparse]:
    """Rows found by their place: `Sparse` itself would look through all values for each."""
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    for start, end in pairwise(ends):
        values: Any = column.values[start:end]
        yield Sparse(column.indices[start:end, 1:], values, column.dense_shape[1:])


def _decode_images(
    values: Iterable[Any],
    feature: Feature,
    numbers: Sequence[int] | NDArray[np.int64],
    place: tuple[str, str],
) -> Iterator[Any]:
    from datum.images import decode  # brings Pillow, which not every dataset needs

    for data, number in zip(values, numbers, strict=True):
        try:
            pixels = None if data is None else decode(data, feature)
            # What Pillow decoded cannot be written to, and PyTorch warns of that.
            yield np.require(pixels, requirements="W") if type(pixels) is np.ndarray else pixels
        except SourceError as error:
            where, name = place
            where = f"{where}, record {number}, feature {name!r}"
            raise SourceError(error, where=where) from error
