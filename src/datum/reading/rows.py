"""Columns into records: one dict of values for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SourceError
from datum.schema import Feature, Schema

__all__ = ["iterate_rows"]


def iterate_rows(
    batch: dict[str, Any], schema: Schema, numbers: range, *, where: str
) -> Iterator[dict[str, Any]]:
    """The records of a batch; where they are from, and their numbers there, are for messages.

    Numbers are NumPy scalars and arrays of their dtype, texts and byte strings `str` and `bytes`,
    several of them lists. Ragged values are arrays, or lists of arrays where they are ragged more
    than once; sparse ones are `Sparse`; images are decoded; what is absent is None.
    """
    takers = {name: _taker(batch[name], feature) for name, feature in schema.items()}
    for at, number in enumerate(numbers):
        row = {}
        for name, take in takers.items():
            try:
                row[name] = take(at)
            except SourceError as error:  # of an image that cannot be decoded
                place = f"{where}, record {number}, feature {name!r}"
                raise SourceError(f"{place}: {error}") from error
        yield row


def _taker(column: Any, feature: Feature) -> Callable[[int], Any]:
    """What gives the value of one record of a column."""
    if isinstance(column, Masked):
        take, present = _taker(column.values, feature), column.present
        return lambda at: take(at) if present[at] else None
    if isinstance(column, Sparse):
        return _sparse_taker(column)
    if feature.encoding == "image":
        return lambda at: _decode_image(column[at], feature)
    return lambda at: _plain(column[at])


def _sparse_taker(column: Sparse) -> Callable[[int], Sparse]:
    """Rows found by their place: `Sparse` itself would look through all values for each."""
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1))

    def take(at: int) -> Sparse:
        values: Any = column.values[ends[at] : ends[at + 1]]
        return Sparse(column.indices[ends[at] : ends[at + 1], 1:], values, column.dense_shape[1:])

    return take


def _plain(value: Any) -> Any:
    if isinstance(value, BytesColumn):
        return value.to_list()
    if isinstance(value, Ragged):
        return [_plain(row) for row in value]
    return value


def _decode_image(data: bytes, feature: Feature) -> Any:
    from datum.images import decode  # brings Pillow, which not every dataset needs

    return decode(data, feature)
