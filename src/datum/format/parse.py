"""Parsing of records into the columns of a schema."""

from __future__ import annotations

import functools
import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._options import thread_count
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import (
    CorruptRecordError,
    Damage,
    DatumError,
    Message,
    Option,
    SchemaError,
    Text,
    count_of,
)
from datum.format.file import Payloads, RecordFile, Recovery, as_records, check_recovery
from datum.format.framing import Located, Records
from datum.format.layout import StoredColumn, check_keys, lower, stand_in
from datum.schema import Feature, InexactError, Schema, cast_exactly, numpy_dtype
from datum.schema.feature import TIMES

__all__ = [
    "BatchReader",
    "Parser",
    "RowError",
    "Stored",
    "assemble",
    "parse",
    "place_of",
    "read_batches",
]

# The parts of a stored column: values, row splits, inner row splits, present rows.
Stored = tuple[
    NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None, NDArray[np.bool_] | None
]


def assemble(
    feature: Feature, stored: tuple[StoredColumn, ...], parts: list[Stored], records: Located
) -> Any:
    """Return the column of a feature; raise RowError if its stored columns are inconsistent."""
    feature = stand_in(feature)
    try:
        if feature.encoding == "sparse":
            sparse, present = _assemble_sparse(feature, parts, records), parts[0][3]
            return Masked(sparse, present) if feature.optional and present is not None else sparse
        if len(stored) > 1:
            join = _assemble_shaped if stored[1].role == "shape" else _assemble_nested
            column = join(feature, parts, records)
        else:
            column = _assemble_single(feature, parts[0], records)
    except _ItemError as error:
        row = error.position // max(1, stored[0].unit)
        splits = parts[0][1]
        if splits is not None:
            row = int(np.searchsorted(splits, row, "right")) - 1
        raise RowError(row, f"expected {feature.dtype}, got {error}") from None
    present = parts[0][3]
    if present is None or (feature.default is not None and not feature.is_string):
        return column
    if feature.default is not None:
        return _fill_strings(feature, column, present)
    return Masked(column, present)


class RowError(Exception):
    """Stored columns of one feature that are inconsistent in one record."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _fill_strings(feature: Feature, column: BytesColumn, present: NDArray[np.bool_]) -> Any:
    if present.all():
        return column
    values = zip(column.to_list(), present, strict=True)
    return BytesColumn.from_values(value if there else feature.default for value, there in values)


def _values(feature: Feature, stored: NDArray[Any], records: Located) -> Any:
    """Convert the cells of a stored column to items of the feature's dtype and inner shape."""
    inner: Any = feature.shape[feature.ragged_rank :]
    shape = (-1 if feature.ragged_rank else len(records), *inner)
    if feature.is_string:
        if shape[0] < 0:
            shape = (len(stored) // 2 // math.prod(inner), *inner)
        is_text = feature.dtype == "str"
        return BytesColumn(records.buffer, stored, is_text=is_text, shape=shape)
    if feature.is_raw:
        if feature.dtype == "bool" and stored.max(initial=0) > 1:
            raise _ItemError(int(np.argmax(stored > 1)), f"byte {stored.max()}")
        stored = stored.view(numpy_dtype(feature.dtype))
    elif feature.dtype in TIMES:
        stored = stored.view(feature.dtype)
    elif feature.dtype == "bfloat16" and not (stored.view(np.uint32) & 0xFFFF).any():
        # Bits, not numbers: a cast would change the payload of a NaN.
        upper = (stored.view(np.uint32) >> 16).astype(np.uint16)
        stored = upper.view(numpy_dtype("bfloat16"))
    elif feature.dtype in ("float16", "bfloat16"):
        try:
            stored = cast_exactly(stored, feature.dtype)
        except InexactError as error:
            raise _ItemError(error.position, str(error)) from None
    return stored.reshape(shape) if inner else stored


class _ItemError(Exception):
    """An item of a stored column that its dtype cannot hold."""

    def __init__(self, position: int, got: str) -> None:
        super().__init__(got)
        self.position = position


def _assemble_single(feature: Feature, stored: Stored, records: Located) -> Any:
    values, splits, inner_splits, _ = stored
    column = _values(feature, values, records)
    if splits is None:
        return column
    if inner_splits is not None:
        column = Ragged(column, inner_splits)
    return Ragged(column, splits)


def _assemble_nested(feature: Feature, parts: list[Stored], records: Located) -> Any:
    """Assemble values, and the row lengths of each inner dimension from the outermost in."""
    column = _values(feature, parts[0][0], records)
    below = parts[0][1]  # for each record, where it ends in the level below
    assert below is not None
    for lengths, splits, _, _ in reversed(parts[1:]):
        assert splits is not None
        wrong = np.flatnonzero((lengths < 0) | (lengths > below[-1]))
        if len(wrong):
            row = int(np.searchsorted(splits, wrong[0], "right")) - 1
            raise RowError(row, f"expected row lengths of existing rows, got {lengths[wrong[0]]}")
        inner = np.concatenate([[0], np.cumsum(lengths)])
        wrong = np.flatnonzero(inner[splits] != below)
        if len(wrong):
            row = int(wrong[0]) - 1
            total, count = inner[splits[row + 1]] - inner[splits[row]], below[row + 1] - below[row]
            raise RowError(row, f"expected row lengths that sum to {count}, got {total}")
        column = Ragged(column, inner)
        below = splits
    return Ragged(column, below)


def _assemble_shaped(feature: Feature, parts: list[Stored], records: Located) -> Any:
    """Assemble raw tensors stored with their shape: an object array of arrays."""
    values = _values(replace(feature, shape=(None,), keys=()), parts[0][0], records)
    splits, shapes, shape_splits = parts[0][1], parts[1][0], parts[1][1]
    present = parts[0][3]
    assert splits is not None
    assert shape_splits is not None
    tensors = np.empty(len(records), object)
    for row in range(len(records)):
        if present is not None and not present[row]:
            continue
        shape = tuple(shapes[shape_splits[row] : shape_splits[row + 1]].tolist())
        flat = values[splits[row] : splits[row + 1]]
        fits = len(shape) == len(feature.shape) and all(
            want in (None, got) and 0 <= got < 2**31
            for want, got in zip(feature.shape, shape, strict=True)
        )
        if not fits or math.prod(shape) != len(flat):
            raise RowError(row, f"expected {feature.shape} of {len(flat)} items, got {shape}")
        tensors[row] = flat.reshape(shape)
    return tensors


def _assemble_sparse(feature: Feature, parts: list[Stored], records: Located) -> Any:
    splits, index_parts = parts[0][1], parts[1:]
    assert splits is not None
    encoding: Any = "raw" if feature.is_raw else "values"
    flat = replace(feature, encoding=encoding, shape=(None,), keys=())
    values = _values(flat, parts[0][0], records)
    for _, index_splits, _, _ in index_parts:
        assert index_splits is not None
        wrong = np.flatnonzero(index_splits != splits)
        if len(wrong):
            row = int(wrong[0]) - 1
            counts = np.diff(splits)[row], np.diff(index_splits)[row]
            raise RowError(row, f"expected {counts[0]} indices, one a value, got {counts[1]}")
    rows = np.repeat(np.arange(len(records)), np.diff(splits))
    indices = np.stack([rows, *(part[0] for part in index_parts)], axis=1)
    places = indices[:, 1:]
    outside = np.flatnonzero(((places < 0) | (places >= np.array(feature.shape))).any(axis=1))
    if len(outside):
        at = tuple(places[outside[0]].tolist())
        raise RowError(int(rows[outside[0]]), f"expected indices within {feature.shape}, got {at}")
    order = np.lexsort(indices.T[::-1])
    if (order[1:] < order[:-1]).any():  # stored out of order
        indices, values = indices[order], values[order]
    return Sparse(indices, values, (len(records), *feature.shape))  # type: ignore[arg-type]


_KINDS = ("unset", "bytes", "float", "int64")  # in the order of `_core.Kind`


def parse(
    records: Payloads,
    schema: Schema | Mapping[str, Feature],
    *,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Parse serialized Examples or SequenceExamples into one column for each feature.

    A column is a NumPy array, `BytesColumn`, `Ragged`, `Sparse`, or a `Masked` around one of
    these for optional features without a default. Images are returned as the bytes of their files.
    Features other than `columns` are skipped. The result is the same for any number of `threads`,
    by default one for each core.

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
class _FeatureStep:
    """How one feature of a batch is assembled."""

    name: str
    first: int  # the first of its stored columns
    stored: tuple[StoredColumn, ...]
    make: _Make | None  # a shortcut for most features, which are simple


class Parser:
    """A schema prepared for parsing; keep it to parse many batches.

    Attributes:
        schema: The features of the records.
        plan: The request for the core. Callers that run it elsewhere assemble the result with
            `columns`, and turn a fault into an error with `error`.
    """

    def __init__(self, schema: Schema) -> None:
        check_keys(schema)
        self.schema = schema
        self._steps: list[_FeatureStep] = []
        self._columns: list[tuple[str, StoredColumn]] = []
        for name, feature in schema.items():
            stored = lower(name, feature)
            self._steps.append(
                _FeatureStep(name, len(self._columns), stored, _simple_make(feature))
            )
            self._columns += [(name, column) for column in stored]
        self.plan = _core.Plan([_make_spec(schema[name], column) for name, column in self._columns])

    def parse(self, records: Records, *, threads: int | None = None) -> dict[str, Any]:
        """Return one column for each feature, like `datum.format.parse`."""
        try:
            found = self.plan.parse(
                records.buffer, records.starts, records.lengths, thread_count(threads)
            )
        except _core.Fault as fault:
            raise self.error(records, fault) from None
        return self.columns(found, records)

    def columns(self, found: list[Stored], records: Located) -> dict[str, Any]:
        """Assemble one column for each feature from the stored columns that the core returned."""
        batch = {}
        for step in self._steps:
            if step.make is None:
                batch[step.name] = self._assemble(step, found, records)
            else:
                batch[step.name] = step.make(found[step.first], records)
        return batch

    def error(self, records: Located, fault: _core.Fault) -> Exception:
        """Return the error for a fault of the core in one of the records."""
        return self._error(records, *fault.args)

    def _assemble(self, step: _FeatureStep, found: list[Stored], records: Located) -> Any:
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
                "expected a tf.train.Example or SequenceExample, got other bytes",
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
            "missing": "mark the feature optional=True, or set its default",
            "count": "use None in the shape for a length that differs",
            "text": "use dtype bytes",
            "blank": Text(
                "read fewer records at a time, or leave the feature out of ", Option("columns")
            ),
        }
        where = f"{where}, feature {name!r}{at}"
        hint = hints.get(code, "")
        return SchemaError(problem, where=where, hint=hint, record=record, feature=name)


def _simple_make(feature: Feature) -> _Make | None:
    """Return a function equivalent to `assemble` for features that only need a shape."""
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
        # Not validated like the splits of a caller: the core made them of these values.
        rows = object.__new__(Ragged)
        rows.values = stored[0].reshape(shape) if inner else stored[0]
        rows.row_splits = stored[1]  # type: ignore[assignment]
        return rows

    return make


def place_of(records: Located, row: int) -> tuple[str, int]:
    """Return the location of a row for messages, and the number of its record."""
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


def read_batches(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    schema: Schema | Mapping[str, Feature],
    *,
    batch_size: int = 1024,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
    drop_remainder: bool = False,
    check_crc: bool = True,
    recovery: Recovery = "strict",
) -> BatchReader:
    """Read files one after the other into batches of `batch_size` records.

    Each batch is a result of `parse`. Batches are prepared ahead by `threads` (by default one for
    each core, including the caller's); content and order do not depend on their number.
    """
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    schema = schema if isinstance(schema, Schema) else Schema(schema)
    if columns is not None:
        schema = schema.select(columns)
    if batch_size < 1:
        raise ValueError(Message(f"expected `batch_size` of 1 or more, got {batch_size}"))
    return BatchReader(
        paths=[os.fspath(path) for path in paths],
        parser=Parser(schema),
        batch_size=batch_size,
        threads=thread_count(threads),
        drop_remainder=drop_remainder,
        check_crc=check_crc,
        recovery=check_recovery(recovery),
    )


class BatchReader:
    """An iterable of batches; each iteration reads the files again and fills `damage`."""

    def __init__(
        self,
        *,
        paths: list[str],
        parser: Parser,
        batch_size: int,
        threads: int,
        drop_remainder: bool,
        check_crc: bool,
        recovery: Recovery,
    ) -> None:
        self.paths = paths
        self.damage: list[Damage] = []
        self._parser = parser
        self._batch_size = batch_size
        self._threads = threads
        self._drop_remainder = drop_remainder
        self._check_crc = check_crc
        self._recovery: Recovery = recovery

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.damage = []
        runs = self._runs()
        if self._threads == 1:
            return (self._parser.parse(run, threads=1) for run in runs)
        return self._parse_ahead(runs)

    def _parse_ahead(self, runs: Iterator[Records]) -> Iterator[dict[str, Any]]:
        """Keep every thread busy and one batch more ready, in order.

        The caller's own thread counts: it finds the records and verifies their CRCs.
        """
        with ThreadPoolExecutor(self._threads - 1, "datum-parse") as pool:
            pending: deque[Future[dict[str, Any]]] = deque()
            error: DatumError | None = None
            try:
                while True:
                    try:
                        run = next(runs, None)
                    except DatumError as found:  # raised after the batches before it are yielded
                        run, error = None, found
                    if run is None:
                        break
                    pending.append(pool.submit(self._parser.parse, run, threads=1))
                    if len(pending) > self._threads + 1:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
                if error is not None:
                    raise error
            finally:
                for future in pending:
                    future.cancel()

    def _runs(self) -> Iterator[Records]:
        """Yield runs of exactly `batch_size` records, across files."""
        held: list[Records] = []

        def missing() -> int:
            return self._batch_size - sum(map(len, held))

        for path in self.paths:
            with RecordFile(path, check_crc=self._check_crc, recovery=self._recovery) as file:
                for records in file.runs(missing):
                    held.append(records)
                    if not missing():
                        yield Records.join(held)
                        held.clear()
                self.damage += file.damage
        if held and not self._drop_remainder:
            yield Records.join(held)
