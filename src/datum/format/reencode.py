"""Records written under one schema, written again under a wider one."""

from __future__ import annotations

from typing import Any

import numpy as np

from datum.columns import Masked, Ragged
from datum.errors import SchemaError
from datum.format.encode import encode
from datum.format.layout import lower, stand_in
from datum.format.parse import Parser
from datum.format.records import Records
from datum.format.writer import Framed
from datum.schema import Feature, Schema

__all__ = ["reencode", "stores_alike", "tell_absent_sparse"]


def stores_alike(a: Schema, b: Schema) -> bool:
    """Whether a record written under `a` is, byte for byte, what it would be under `b`.

    The record must fit both.

    >>> three = Schema({"x": Feature("int8", (3,))})
    >>> stores_alike(three, Schema({"x": Feature("int64", (None,))}))
    True
    >>> stores_alike(three, Schema({"x": Feature("float32", (3,))}))
    False
    """
    added = [name for name in b if name not in a]
    return (
        all(name in b and _is_alike(name, a[name], b[name]) for name in a)
        and all(b[name].optional for name in added)
        and _is_sequence(a) == _is_sequence(b)
    )


def _is_sequence(schema: Schema) -> bool:
    """Whether records are SequenceExamples."""
    return any(feature.sequence for feature in schema.values())


def _is_alike(name: str, a: Feature, b: Feature) -> bool:
    a, b = stand_in(a), stand_in(b)
    is_same_place = a.sequence == b.sequence and len(a.shape) == len(b.shape)
    return is_same_place and _form(name, a) == _form(name, b)


def _form(name: str, feature: Feature) -> list[Any]:
    """All that tells how a value lies in a record."""
    columns = [(column.key, column.role, column.kind) for column in lower(name, feature)]
    has_own_bytes = feature.is_raw or feature.dtype.endswith("]")  # times count their own units
    return [columns, feature.dtype if has_own_bytes else None]


def reencode(
    records: Records, from_schema: Schema, to_schema: Schema, *, threads: int | None = None
) -> Framed:
    """Write records again as they would have been written under `to_schema`.

    Every value stays what it is, or SchemaError names the record.
    """
    if not len(records) or not from_schema:  # nothing tells how long columns would be
        return encode([{}] * len(records), to_schema, threads=threads)
    columns = Parser(from_schema).parse(records, threads=threads)
    columns |= tell_absent_sparse(columns, records, from_schema, threads)
    strays = [name for name in columns if name not in to_schema]
    if strays:
        raise SchemaError(f"feature {strays[0]!r}: expected it in both schemas", feature=strays[0])
    fitted = {name: _fit(column, to_schema[name]) for name, column in columns.items()}
    return encode(fitted, to_schema, threads=threads)


def tell_absent_sparse(
    columns: dict[str, Any], records: Records, schema: Schema, threads: int | None
) -> dict[str, Masked]:
    """Sparse columns with what parsing leaves out: whether records lack them or have no values."""
    indices = {
        name: Feature("int64", (None,), optional=True, keys=(lower(name, feature)[1].key,))
        for name, feature in schema.items()
        if feature.encoding == "sparse" and feature.optional
    }
    found = Parser(Schema(indices)).parse(records, threads=threads)
    return {name: Masked(columns[name], index.present) for name, index in found.items()}


def _fit(column: Any, wanted: Feature) -> Any:
    """A column that `encode` takes for `wanted`: as it is, but for tensors that were ragged."""
    if isinstance(column, Masked):
        values = _fit(column.values, wanted)
        if not isinstance(values, list):
            return Masked(values, column.present)
        pairs = zip(values, column.present.tolist(), strict=True)
        return [value if there else None for value, there in pairs]
    if isinstance(column, Ragged) and _is_blank(column):
        return column.to_list()  # empty lists, which may be of any type
    has_shape = wanted.encoding == "raw" and None in wanted.shape[1:]
    if has_shape and isinstance(column, Ragged):
        return [_row(value) for value in column]
    if not has_shape and isinstance(column, np.ndarray) and column.dtype == object:
        return list(column)
    return column


def _is_blank(column: Any) -> bool:
    while isinstance(column, Ragged):
        column = column.values
    return len(column) == 0


def _row(value: Any) -> Any:
    """The value of one record: an array, or lists of arrays where it is ragged."""
    return [_row(row) for row in value] if isinstance(value, Ragged) else value
