"""Serialized records into the columns of a schema."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum import _core
from datum.columns import BytesColumn, Ragged
from datum.errors import CorruptRecordError, SchemaError
from datum.format.assemble import RowError, Stored, assemble
from datum.format.layout import StoredColumn, check_keys, lower, stand_in
from datum.format.payloads import Payloads, as_records
from datum.format.records import Located, Records
from datum.format.threads import thread_count
from datum.format.wording import count_of
from datum.schema import Feature, Schema, numpy_dtype
from datum.schema.dtypes import TIMES

__all__ = ["Parser", "parse", "place_of"]

_KINDS = ("unset", "bytes", "float", "int64")  # as `_core.Kind` counts


def parse(
    records: Payloads,
    schema: Schema | Mapping[str, Feature],
    *,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Parse serialized Examples or SequenceExamples into one column for each feature.

    A column is a NumPy array, `BytesColumn`, `Ragged`, `Sparse`, or a `Masked` around one of
    these for optional features without a default. Images come as the bytes of their files.
    Features other than `columns` are not touched.
    The result is the same for any number of `threads`, by default one for each core.

    >>> from datum.format import encode
    >>> schema = Schema({"x": Feature("int64"), "words": Feature("str", (None,))})
    >>> batch = parse(encode([{"x": 1, "words": ["a"]}, {"x": 2, "words": []}], schema), schema)
    >>> batch["x"], batch["words"].to_list()
    (array([1, 2]), [['a'], []])
    """
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    if columns is not None:
        schema = schema.select(columns)
    return _parser_for(schema).parse(as_records(records), threads=threads)


@functools.lru_cache(maxsize=64)
def _parser_for(schema: Schema) -> Parser:
    return Parser(schema)


_Make = Callable[[Stored, Located], Any]


@dataclass(frozen=True, slots=True)
class _Step:
    """How one feature of a batch is made."""

    name: str
    first: int  # of its stored columns
    stored: tuple[StoredColumn, ...]
    make: _Make | None  # if there is little to do, as for most features


class Parser:
    """A schema made ready for parsing; keep it to parse many batches.

    Attributes:
        schema: what the records hold.
        plan: what the core is asked for. Who has it carried out elsewhere makes columns of what
            was found with `columns`, and an error of a fault with `error`.
    """

    def __init__(self, schema: Schema) -> None:
        check_keys(schema)
        self.schema = schema
        self._steps: list[_Step] = []
        self._columns: list[tuple[str, StoredColumn]] = []
        for name, feature in schema.items():
            stored = lower(name, feature)
            self._steps.append(_Step(name, len(self._columns), stored, _simple_make(feature)))
            self._columns += [(name, column) for column in stored]
        self.plan = _core.Plan([_make_spec(schema[name], column) for name, column in self._columns])

    def parse(self, records: Records, *, threads: int | None = None) -> dict[str, Any]:
        """One column for each feature, as `datum.format.parse` tells."""
        try:
            found = self.plan.parse(
                records.buffer, records.starts, records.lengths, thread_count(threads)
            )
        except _core.Fault as fault:
            raise self.error(records, fault) from None
        return self.columns(found, records)

    def columns(self, found: list[Stored], records: Located) -> dict[str, Any]:
        """One column for each feature from what the core found in the records."""
        batch = {}
        for step in self._steps:
            if step.make is None:
                batch[step.name] = self._assemble(step, found, records)
            else:
                batch[step.name] = step.make(found[step.first], records)
        return batch

    def error(self, records: Located, fault: _core.Fault) -> Exception:
        """What to raise for a fault of the core in one of the records."""
        return self._error(records, *fault.args)

    def _assemble(self, step: _Step, found: list[Stored], records: Located) -> Any:
        parts = found[step.first : step.first + len(step.stored)]
        try:
            return assemble(self.schema[step.name], step.stored, parts, records)
        except RowError as error:
            where, record = place_of(records, error.row)
            where = f"{where}, feature {step.name!r}"
            raise SchemaError(error, where=where, record=record, feature=step.name) from None

    def _error(
        self,
        records: Located,
        code: str,
        row: int,
        column: int,
        step: int,
        expected: int,
        got: int,
    ) -> Exception:
        where, record = place_of(records, row)
        if code == "malformed":
            return CorruptRecordError(
                "expected a tf.train.Example or SequenceExample,"
                " got bytes that are no such message",
                where=where,
            )
        name, key = self._columns[column][0], self._columns[column][1].key
        feature = self.schema[name]
        at = f", key {key!r}" if key != name else ""
        at += f", step {step}" if step >= 0 else ""
        has_any = feature.ragged_rank > (1 if feature.sequence else 0)
        exactly = "a multiple of " if has_any and expected > 1 else ""
        if code == "kind":
            expected_kind, got_kind = _KINDS[expected], _KINDS[got]
            problem = f"expected {expected_kind} values, got {got_kind} values"
        else:
            problem = {
                "count": f"expected {exactly}{expected} values, got {got}",
                "missing": "expected a value, got none",
                "range": f"expected {feature.dtype}, got {got}",
                "text": "expected text in UTF-8, got other bytes",
                "raw bytes": f"expected {exactly}{expected} bytes of {feature.dtype}, got {got}",
                "blank": f"absent values of shape {feature.shape} in {count_of(got, 'record')}"
                " need too much memory to fill in",
            }[code]
        hints = {
            "missing": "mark the feature optional=True, or give it a default",
            "count": "use None in the shape for a length that differs",
            "text": "use dtype bytes",
            "blank": "read fewer records at a time, or leave the feature out with `columns`",
        }
        where = f"{where}, feature {name!r}{at}"
        hint = hints.get(code, "")
        return SchemaError(problem, where=where, hint=hint, record=record, feature=name)


def _simple_make(feature: Feature) -> _Make | None:
    """Makes a column where stored values need no look, but a shape: the same as `assemble`."""
    feature = stand_in(feature)
    inner: Any = feature.shape[feature.ragged_rank :]
    if feature.encoding != "values" or feature.optional or 0 in inner:
        return None
    if feature.is_string:
        return None if feature.ragged_rank else _strings_of(feature.dtype == "str", inner)
    if "float16" in feature.dtype or feature.dtype in TIMES or feature.ragged_rank > 1:
        return None
    return _rows_of(inner) if feature.ragged_rank else _numbers_of(inner)


def _numbers_of(inner: tuple[int, ...]) -> _Make:
    shape = (-1, *inner)
    return (lambda stored, _: stored[0].reshape(shape)) if inner else lambda stored, _: stored[0]


def _strings_of(is_text: bool, inner: tuple[int, ...]) -> _Make:
    def make(stored: Stored, records: Located) -> Any:
        shape = (len(records), *inner)
        return BytesColumn(records.buffer, stored[0], is_text=is_text, shape=shape)

    return make


def _rows_of(inner: tuple[int, ...]) -> _Make:
    shape = (-1, *inner)

    def make(stored: Stored, _: Located) -> Any:
        # Not checked as splits of a caller are: the core made them of these values.
        rows = object.__new__(Ragged)
        rows.values = stored[0].reshape(shape) if inner else stored[0]
        rows.row_splits = stored[1]  # type: ignore[assignment]
        return rows

    return make


def place_of(records: Located, row: int) -> tuple[str, int]:
    """Where a row is, in words, and the number of its record."""
    file, number, offset = records.locate(row)
    return f"{file}: record {number}" + ("" if offset is None else f" at byte {offset}"), number


def _make_spec(feature: Feature, column: StoredColumn) -> _core.ColumnSpec:
    default = b""
    if feature.default is not None and not feature.is_string:
        is_widened = feature.encoding == "values" and "float16" in feature.dtype
        stored = "float32" if is_widened else feature.dtype
        default = np.array(feature.default, numpy_dtype(stored)).tobytes()
    return _core.ColumnSpec(
        column.key.encode(),
        column.kind,
        column.layout,
        column.cell,
        column.unit,
        feature.dtype == "str",
        feature.optional or feature.encoding == "sparse",
        default,
    )
