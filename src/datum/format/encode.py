"""Rows or columns into serialized, framed records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.format.layout import check_keys, lower
from datum.format.sources import make_sources
from datum.format.threads import thread_count
from datum.format.writer import Framed
from datum.schema import Feature, Schema, infer_feature, infer_schema

__all__ = ["encode"]


def encode(
    data: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    schema: Schema | Mapping[str, Feature] | None = None,
    *,
    threads: int | None = None,
) -> Framed:
    r"""Serialize rows (dicts of values) or columns (a dict of arrays) to framed records.

    Columns may be NumPy arrays, lists, `BytesColumn`, `Ragged`, `Sparse`, SciPy sparse matrices or
    `Masked`; rows may hold scalars, lists, arrays, `bytes`, `str`, and None for what is absent.
    Without a schema the types are taken from the data. Keys are written sorted; the bytes are the
    same for any number of `threads`, by default one for each core.

    >>> framed = encode([{"label": 3}], Schema({"label": Feature("int64")}))
    >>> list(framed)
    [b'\n\x10\n\x0e\n\x05label\x12\x05\x1a\x03\n\x01\x03']
    """
    threads = thread_count(threads)
    if schema is not None and not isinstance(schema, Schema):
        schema = Schema(schema)
    if isinstance(data, Mapping):
        return _encode_columns(data, schema, threads)
    rows = []
    for number, row in enumerate(data):
        if not isinstance(row, Mapping):
            raise SchemaError(f"record {number}: expected a dict of values, got {type(row)!r}")
        rows.append(row if type(row) is dict else dict(row))
    return _encode_rows(rows, schema, threads)


def _encode_rows(rows: list[dict[str, Any]], schema: Schema | None, threads: int) -> Framed:
    ignored: set[str] = set()
    if schema is None:
        schema = infer_schema(rows)
        ignored = {name for row in rows for name in row if name not in schema}  # None in every row
    check_keys(schema)
    return _finish(_row_sources(rows, schema, ignored), len(rows), threads)


def _row_sources(
    rows: list[dict[str, Any]], schema: Schema, ignored: set[str]
) -> list[_core.Source]:
    """Plain features are collected natively; the others, and odd values, the long way."""
    plain = {name: feature for name, feature in schema.items() if _is_plain(feature)}
    while True:
        columns = [_row_column(name, feature) for name, feature in plain.items()]
        others = [name for name in schema if name not in plain]
        try:
            sources = _core.collect_rows(rows, columns, ignored.union(others))
            break
        except _core.Fault as fault:
            code, row, name = fault.args
            if code in ("unknown key", "missing"):
                raise _row_error(schema, code, row, name) from None
            del plain[name]
    for name in others:
        values = [row.get(name) for row in rows]
        sources += make_sources(name, schema[name], values, len(rows))
    return sources


def _encode_columns(data: Mapping[str, Any], schema: Schema | None, threads: int) -> Framed:
    lengths = {name: _row_count(name, column) for name, column in data.items()}
    if len(set(lengths.values())) > 1:
        raise SchemaError(f"expected columns of one length, got {lengths}")
    count = next(iter(lengths.values()), 0)
    if schema is None:
        schema = _infer_columns(data)
    check_keys(schema)
    strays = [name for name in data if name not in schema]
    if strays:
        raise SchemaError(f"expected features {', '.join(schema)}, got {strays[0]!r}")
    sources = []
    for name, feature in schema.items():
        if name not in data and not feature.optional:
            raise SchemaError(f"feature {name!r}: expected a column, got none")
        if name in data:
            sources += _column_sources(name, feature, data[name], count)
    return _finish(sources, count, threads)


def _column_sources(name: str, feature: Feature, column: Any, count: int) -> list[_core.Source]:
    is_loose = isinstance(column, (list, tuple)) or (
        isinstance(column, np.ndarray) and column.dtype.kind in "OSU"
    )
    if not is_loose:
        return make_sources(name, feature, column, count)
    values = list(column) if isinstance(column, (list, tuple)) else column.tolist()
    rows = [{name: value} for value in values]
    return _row_sources(rows, Schema({name: feature}), set())


def _finish(sources: list[_core.Source], count: int, threads: int) -> Framed:
    try:
        return Framed(*_core.encode(sources, count, threads))
    except _core.Fault as fault:
        problem, row = fault.args
        raise SchemaError(
            f"record {row}: expected at most 2 GiB, as protobuf allows, got {problem}"
        ) from None


# Rows and columns of these go through the native collector, value by value.
def _is_plain(feature: Feature) -> bool:
    is_nested = feature.sequence or feature.ragged_rank > 1
    return feature.encoding == "values" and not is_nested and "float16" not in feature.dtype


def _row_column(name: str, feature: Feature) -> _core.RowColumn:
    (stored,) = lower(name, feature)
    return _core.RowColumn(
        name,
        stored.key.encode(),
        stored.kind,
        stored.cell,
        feature.dtype == "str",
        feature.optional,
        [-1 if n is None else n for n in feature.shape],
    )


def _row_error(schema: Schema, code: str, row: int, name: str) -> SchemaError:
    if code == "unknown key":
        return SchemaError(
            f"record {row}: expected features {', '.join(schema)}, got {name!r} too\n"
            "hint: add it to the schema, or drop it from the rows"
        )
    return SchemaError(
        f"record {row}, feature {name!r}: expected a value, got none\n"
        "hint: mark the feature optional=True"
    )


def _row_count(name: str, column: Any) -> int:
    shape = getattr(column, "shape", None)
    if shape:
        return int(shape[0])
    if isinstance(column, (bytes, str)) or shape == () or not hasattr(column, "__len__"):
        raise SchemaError(
            f"feature {name!r}: expected a column, got {type(column)!r}\n"
            "hint: for a single row, pass a list of one dict"
        )
    return len(column)


def _infer_columns(data: Mapping[str, Any]) -> Schema:
    return Schema({name: _infer_column(name, column) for name, column in data.items()})


def _infer_column(name: str, column: Any) -> Feature:
    """The feature of a column; lists are looked through, typed columns tell by themselves."""
    if isinstance(column, Masked):
        return replace(_infer_column(name, column.values), optional=True)
    if isinstance(column, Ragged):
        inner = _infer_column(name, column.values)
        return Feature(inner.dtype, (None, *inner.shape), encoding=inner.encoding)
    if isinstance(column, Sparse):
        values = _infer_column(name, column.values)
        return Feature(values.dtype, column.dense_shape[1:], encoding="sparse")
    if isinstance(column, BytesColumn):
        return Feature("str" if column.is_text else "bytes", column.shape[1:])
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OSU":
        blank = np.empty(column.shape[1:], column.dtype)
        return infer_feature(blank)
    if hasattr(column, "tocsr"):
        return Feature(column.dtype.name, (column.shape[1],), encoding="sparse")
    return infer_schema([{name: value} for value in column]).get(name) or Feature(
        "float32", optional=True
    )
