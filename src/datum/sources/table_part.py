"""A part of columns in memory, whose records can be read in any order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Message, SchemaError, SourceError
from datum.schema import Schema, SchemaGuess
from datum.sources.protocol import Block, PartInfo, Reject, SparseRows, as_slice, take_rows

__all__ = ["TablePart", "keys_of", "schema_of"]


class TablePart(PartInfo):
    """An `IndexedPart` of columns of one length.

    `rejects` are the records that could not be read; their numbers count too, so that a record has
    the same number whether others are valid or not. `notes` are assumptions about a file.

    >>> part = TablePart({"x": np.array([10, 20, 30])})
    >>> part.read(np.array([2, 0])).data
    {'x': array([30, 10])}
    """

    def __init__(
        self,
        columns: Mapping[str, Any],
        *,
        schema: Schema | None = None,
        metadata: Mapping[str, Mapping[str, Any]] | None = None,
        keys: Sequence[str] | None = None,
        rejects: Sequence[Reject] = (),
        fingerprint: str | None = None,
        rows: int | None = None,
        notes: Sequence[str] = (),
        remarks: Sequence[str] = (),
    ) -> None:
        self.schema: Schema | None = schema_of(columns) if schema is None else schema
        self.metadata: Mapping[str, Mapping[str, Any]] = dict(metadata or {})
        self.fingerprint = fingerprint or fingerprint_of(columns)
        self._remarks = tuple(remarks)
        self.stored_bytes: int | None = None  # better estimated from a few encoded records
        self.is_slow_python = False
        self.notes = notes
        self.rejects = sorted(rejects, key=lambda reject: reject.record)
        self._rejected = np.array([reject.record for reject in self.rejects], np.int64)
        self._rows = len(next(iter(columns.values()), ())) if rows is None else rows
        self._columns = {
            name: SparseRows(column) if isinstance(column, Sparse) else column
            for name, column in columns.items()
        }
        self.keys: Sequence[str] | None = None if keys is None else self._with_rejects(keys)

    def _with_rejects(self, keys: Sequence[str]) -> Sequence[str]:
        if not self.rejects:
            return keys
        named = list(keys)
        for reject in self.rejects:
            named.insert(reject.record, reject.key or f"record {reject.record}")
        return named

    @property
    def remarks(self) -> Sequence[str]:
        """Lines for the report."""
        return self._remarks

    def __len__(self) -> int:
        return self._rows + len(self.rejects)

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers, in this order."""
        numbers = np.asarray(numbers, np.int64)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(Message(f"expected numbers below {len(self)}, got {numbers}"))
        rejects: list[Reject] = []
        rows = numbers
        if self.rejects:
            before = np.searchsorted(self._rejected, numbers)
            is_bad = np.isin(numbers, self._rejected)
            rejects = [self.rejects[at] for at in before[is_bad].tolist()]
            numbers, rows = numbers[~is_bad], (numbers - before)[~is_bad]
        run = as_slice(rows)
        data = {name: take_rows(column, rows, run) for name, column in self._columns.items()}
        keys = self.keys
        named = None if keys is None else [keys[number] for number in numbers.tolist()]
        return Block(data, numbers, named, rejects)


def schema_of(columns: Mapping[str, Any]) -> Schema:
    """Return the schema of columns, by their types or by the values of lists."""
    guess = SchemaGuess()
    try:
        guess.add_columns(columns)
        return guess.to_schema()
    except SchemaError as error:
        raise SourceError(error) from error


def keys_of(
    name: str,
    column: Any,
    *,
    numbers: NDArray[np.int64] | None = None,
    class_names: Sequence[str] | None = None,
) -> list[str]:
    """Return the values of a column as keys: texts, or integers.

    `numbers` are those of the records, if they do not start at 0; `class_names` are the names of
    integer ids.
    """
    if isinstance(column, Masked):
        if not column.present.all():
            row = int(np.flatnonzero(~column.present)[0])
            record = row if numbers is None else int(numbers[row])
            raise SourceError(
                f"expected a key in column {name!r}, got none", where=f"record {record}"
            )
        column = column.values
    if isinstance(column, BytesColumn) and column.is_text and len(column.shape) == 1:
        return column.to_list()
    if isinstance(column, np.ndarray) and column.dtype.kind in "iu" and column.ndim == 1:
        if class_names is not None:
            return [class_names[number] for number in column.tolist()]
        return [str(number) for number in column.tolist()]
    raise SourceError(
        f"expected texts or integers as keys, got {column!r}", where=f"column {name!r}"
    )


def fingerprint_of(columns: Mapping[str, Any]) -> str | None:
    """Return the checksum of names, types and values; None if a column holds Python objects."""
    crc = 0
    seen: dict[int, tuple[Any, int]] = {}  # text columns of one file share their buffer
    for name, column in columns.items():
        arrays = _arrays_of(column)
        if arrays is None:
            return None
        crc = _core.crc32c(f"{name!r} {_kind_of(column)}".encode(), crc)
        for array in arrays:
            if id(array) not in seen:
                seen[id(array)] = array, _core.crc32c(_bytes_of(array))
            crc = _core.crc32c(f"{array.dtype} {array.shape} {seen[id(array)][1]}".encode(), crc)
    return f"{crc:08x}"


def _kind_of(column: Any) -> str:
    inner = column.values if isinstance(column, (Masked, Ragged, Sparse)) else None
    text = f" {column.is_text} {column.shape}" if isinstance(column, BytesColumn) else ""
    return f"{type(column).__name__}{text}" + ("" if inner is None else f" {_kind_of(inner)}")


def _bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _arrays_of(column: Any) -> list[NDArray[Any]] | None:
    if isinstance(column, np.ndarray):
        return None if column.dtype.hasobject else [column]
    own: list[NDArray[Any]]
    if isinstance(column, BytesColumn):
        buffer: Any = column.buffer
        whole = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer, np.uint8)
        return [whole, column.slices]
    if isinstance(column, Masked):
        inner, own = column.values, [column.present]
    elif isinstance(column, Ragged):
        inner, own = column.values, [column.row_splits]
    elif isinstance(column, Sparse):
        inner, own = column.values, [column.indices, np.array(column.dense_shape)]
    else:
        return None
    arrays = _arrays_of(inner)
    return None if arrays is None else own + arrays
