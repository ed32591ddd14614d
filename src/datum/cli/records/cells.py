"""One record as its features: names, what is known of each, and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum import BytesColumn, DatumError, Feature, Masked, Ragged, Schema, Sparse, format
from datum.cli.records.bytes import text_of
from datum.errors import Message, suggest

__all__ = ["Cell", "cells_of"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A feature of one record.

    Attributes:
        value: an array, NumPy's scalar, `str`, `bytes` (also of images), `Sparse`, a list of such,
            or None where the record lacks it.
        class_names: what its integers stand for, if they are ids.
        told: what else the metadata says of the feature.
    """

    name: str
    feature: Feature
    value: Any
    class_names: Sequence[str] = ()
    told: Mapping[str, Any] | None = None


def cells_of(
    payload: bytes,
    schema: Schema | None,
    *,
    columns: Sequence[str] | None = None,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """The features of a serialized record; without a schema, those that are found in it.

    Then features that it lacks are absent, unless it lacks all that are asked for.

    Raises DatumError for what is no Example, and for what does not fit the schema.
    """
    is_guess = schema is None
    if schema is None:
        found = format.discover([payload])
        if not any(feature.kinds for feature in found.features.values()):
            raise DatumError("expected a tf.train.Example with features, got a record without")
        schema = found.schema(text=True)
    lacking = [name for name in columns or () if is_guess and name not in schema]
    if columns is not None and len(lacking) < len(columns):
        schema = schema.select(name for name in columns if name not in lacking)
    elif columns is not None:
        hint = suggest("".join(columns[:1]), schema, f"there are {', '.join(schema)}")
        got = ", ".join(map(repr, columns))
        raise ValueError(
            Message(f"--columns: expected features of the records, got {got}", hint=hint)
        )
    batch = format.parse([payload], schema, threads=1)
    known = metadata or {}
    cells = []
    for name, feature in schema.items():
        told = known.get(name, {})
        value = _only(batch[name])
        names = [str(one) for one in told.get("class_names") or ()]
        if is_guess and isinstance(value, str) and text_of(value.encode()) is None:
            value, feature = value.encode(), Feature("bytes")  # bytes that happen to be UTF-8
        cells.append(Cell(name, feature, value, names, told))
    return cells + [Cell(name, Feature("bytes", optional=True), None) for name in lacking]


def _only(column: Any) -> Any:
    """The value of the one record of a column."""
    if isinstance(column, Masked):
        return _only(column.values) if column.present[0] else None
    if isinstance(column, Ragged):
        return _plain(column[0])
    if isinstance(column, Sparse):
        return column[0]
    return column.to_list()[0] if isinstance(column, BytesColumn) else column[0]


def _plain(rows: Any) -> Any:
    """Rows as an array, or as lists where they differ in length, or are strings."""
    if isinstance(rows, Ragged):
        return [_plain(row) for row in rows]
    return rows.to_list() if isinstance(rows, BytesColumn) else np.asarray(rows)
