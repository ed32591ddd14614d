"""Records written under one schema, written again under a wider one."""

from __future__ import annotations

from collections.abc import Mapping
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

__all__ = ["fit_columns", "reencode", "stores_alike"]


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
    if a is b:
        return True
    a, b = stand_in(a), stand_in(b)
    is_same_place = a.sequence == b.sequence and len(a.shape) == len(b.shape)
    return is_same_place and _form(name, a) == _form(name, b)


def _form(name: str, feature: Feature) -> list[Any]:
    """All that tells how a value lies in a record."""
    columns = [(column.key, column.role, column.kind) for column in lower(name, feature)]
    has_own_bytes = feature.is_raw or feature.dtype.endswith("]")  # times count their own units
    return [columns, feature.dtype if has_own_bytes else None]


def reencode(
    records: Records,
    from_schema: Schema,
    to_schema: Schema,
    *,
    exact: tuple[Records, Schema] | None = None,
    threads: int | None = None,
) -> Framed:
    """Write records again as they would have been written under `to_schema`.

    Every value stays what it is, or SchemaError names the record. Values that were rounded are
    taken from the same records in `exact`, where `to_schema` has another type for them.
    """
    if not len(records) or not from_schema:  # nothing tells how long columns would be
        return encode([{}] * len(records), to_schema, threads=threads)
    columns = Parser(from_schema).parse(records, threads=threads)
    columns |= _parse_exact(exact, from_schema, to_schema, threads)
    return encode(fit_columns(columns, to_schema), to_schema, threads=threads)


def fit_columns(columns: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Columns as they were parsed, in the form in which `encode` takes them for `schema`."""
    strays = [name for name in columns if name not in schema]
    if strays:
        raise SchemaError(
            "expected it in both schemas", where=f"feature {strays[0]!r}", feature=strays[0]
        )
    return {name: _fit(column, schema[name]) for name, column in columns.items()}


def _parse_exact(
    exact: tuple[Records, Schema] | None,
    from_schema: Schema,
    to_schema: Schema,
    threads: int | None,
) -> dict[str, Any]:
    """The columns of features that have another type than they were rounded to."""
    if exact is None:
        return {}
    records, schema = exact
    asked = schema.select(
        name for name in schema if from_schema[name].dtype != to_schema[name].dtype
    )
    if not asked:
        return {}
    return Parser(asked).parse(records, threads=threads)


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
