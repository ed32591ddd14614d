"""Storage of features in records: keys, kinds and units."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Literal

from datum._core import Cell, Kind, Layout
from datum.errors import SchemaError
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, TIMES

__all__ = ["StoredColumn", "check_keys", "lower", "stand_in"]

_CELLS = {name: getattr(Cell, name.upper()) for name in INTEGERS} | dict.fromkeys(TIMES, Cell.INT64)


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One key of a record; a feature has one or more.

    Attributes:
        role: Its role in the feature: the values, the row lengths of an inner dimension, the
            indices along a dimension of a sparse feature, or the shape of a raw tensor.
        unit: The number of values (bytes, for raw tensors) of one item of `layout`.
    """

    key: str
    role: Literal["values", "lengths", "index", "shape"]
    kind: Kind
    layout: Layout
    cell: Cell
    unit: int = 1


@functools.lru_cache(maxsize=4096)  # called for every block
def lower(name: str, feature: Feature) -> tuple[StoredColumn, ...]:
    """Return the stored columns of a feature; its values come first."""
    lowerings = {"values": _lower_values, "raw": _lower_raw, "sparse": _lower_sparse}
    feature = stand_in(feature)
    return lowerings[feature.encoding](name, feature)


def stand_in(feature: Feature) -> Feature:
    """Return the feature with the same records: images are stored as byte strings."""
    if feature.encoding != "image":
        return feature
    return Feature("bytes", feature.shape[:-3], optional=feature.optional, keys=feature.keys)


def _value_type(feature: Feature) -> tuple[Kind, Cell]:
    if feature.is_raw:
        return Kind.BYTES, Cell.RAW
    if feature.is_string:
        return Kind.BYTES, Cell.SLICE
    if feature.dtype in FLOATS_ON_WIRE:
        return Kind.FLOAT, Cell.FLOAT32
    return Kind.INT64, _CELLS[feature.dtype]


def _integers(key: str, role: Literal["lengths", "index", "shape"]) -> StoredColumn:
    return StoredColumn(key, role, Kind.INT64, Layout.VARIABLE, Cell.INT64)


def _lower_values(name: str, feature: Feature) -> tuple[StoredColumn, ...]:
    rank = feature.ragged_rank
    unit = _item_bytes(feature) * math.prod(n for n in feature.shape[rank:] if n is not None)
    if feature.sequence:
        layout = Layout.STEPS if rank == 1 else Layout.NESTED_STEPS
        keys = feature.keys or (name,)
    else:
        layout = Layout.VARIABLE if rank else Layout.FIXED
        keys = feature.keys or (name, *(f"{name}_lengths_{level}" for level in range(1, rank)))
    values = StoredColumn(keys[0], "values", *_typed(feature, layout), unit)
    return (values, *(_integers(key, "lengths") for key in keys[1:]))


def _lower_raw(name: str, feature: Feature) -> tuple[StoredColumn, ...]:
    unit = _item_bytes(feature)
    if None in feature.shape[1:]:  # the byte count does not determine the shape
        keys = feature.keys or (name, f"{name}_shape")
        values = StoredColumn(keys[0], "values", *_typed(feature, Layout.VARIABLE), unit)
        return values, _integers(keys[1], "shape")
    layout = Layout.FIXED
    if feature.ragged_rank:
        layout = Layout.STEPS if feature.sequence else Layout.VARIABLE
    unit *= math.prod(n for n in feature.shape if n is not None)
    key = feature.keys[0] if feature.keys else name
    return (StoredColumn(key, "values", *_typed(feature, layout), unit),)


def _lower_sparse(name: str, feature: Feature) -> tuple[StoredColumn, ...]:
    if feature.keys:
        *indices, values = feature.keys
    elif len(feature.shape) == 1:
        indices, values = [f"{name}_index"], f"{name}_value"
    else:
        indices = [f"{name}_index_{dim}" for dim in range(len(feature.shape))]
        values = f"{name}_value"
    unit = _item_bytes(feature)
    column = StoredColumn(values, "values", *_typed(feature, Layout.VARIABLE), unit)
    return (column, *(_integers(key, "index") for key in indices))


def _item_bytes(feature: Feature) -> int:
    """Return the number of values of one element: the bytes of raw ones, else 1."""
    return numpy_dtype(feature.dtype).itemsize if feature.is_raw else 1


def _typed(feature: Feature, layout: Layout) -> tuple[Kind, Layout, Cell]:
    kind, cell = _value_type(feature)
    return kind, layout, cell


@functools.lru_cache(maxsize=64)  # most blocks have the same
def check_keys(schema: Schema) -> None:
    """Raise SchemaError if two features of a schema use the same key."""
    owners: dict[tuple[str, bool], str] = {}
    for name, feature in schema.items():
        for column in lower(name, feature):
            place = column.key, feature.sequence
            other = owners.setdefault(place, name)
            if other != name or sum(c.key == column.key for c in lower(name, feature)) > 1:
                raise SchemaError(
                    f"features {other!r} and {name!r} use the same key {column.key!r}",
                    hint="rename one, or set its `keys`",
                )
