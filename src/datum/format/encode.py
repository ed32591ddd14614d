"""Rows or columns into serialized, framed records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from datum import _core
from datum.errors import SchemaError
from datum.format.collect import Collection, collect, collect_guessing
from datum.format.threads import thread_count
from datum.format.writer import Framed
from datum.schema import ROUND, Feature, Schema, SchemaGuess

__all__ = ["as_schema", "encode", "write_sources"]


def encode(
    data: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    schema: Schema | Mapping[str, Feature] | None = None,
    *,
    threads: int | None = None,
) -> Framed:
    r"""Serialize rows (dicts of values) or columns (a dict of arrays) to framed records.

    Columns may be NumPy arrays, lists, `BytesColumn`, `Ragged`, `Sparse`, SciPy sparse matrices or
    `Masked`; rows may hold scalars, lists, arrays, `bytes`, `str`, and None for what is absent.
    Without a schema the types are taken from the data; float64 is rounded to float32 unless values
    would overflow, or are of 2**24 or more and would change. Keys are written sorted; the bytes are
    the same for any number of `threads`, by default one for each core.

    >>> framed = encode([{"label": 3}], Schema({"label": Feature("int64")}))
    >>> list(framed)
    [b'\n\x10\n\x0e\n\x05label\x12\x05\x1a\x03\n\x01\x03']
    """
    threads = thread_count(threads)
    if schema is None:
        return write_sources(collect_guessing(data, SchemaGuess(), {}, ROUND), threads)
    return write_sources(collect(data, as_schema(schema)), threads)


def as_schema(schema: Schema | Mapping[str, Feature]) -> Schema:
    """A schema, if it is only a mapping of features yet."""
    return schema if isinstance(schema, Schema) else Schema(schema)


def write_sources(collection: Collection, threads: int) -> Framed:
    """The records of what was collected; the interpreter is free meanwhile."""
    sources = [source for part in collection.sources.values() for source in part]
    try:
        return Framed(*_core.encode(sources, collection.count, threads))
    except _core.Fault as fault:
        problem, row = fault.args
        raise SchemaError(
            f"expected at most 2 GiB, as protobuf allows, got {problem}",
            where=f"record {row}",
            record=row,
        ) from None
