"""A split as JSON lines: an object for each record."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.remaking.exporting_target import create
from datum.schema import Schema

__all__ = ["JsonSplit", "json_rows"]


class JsonSplit:
    """Writes a line for each record.

    Attributes:
        files: how many files there are.
        nbytes: how large they are, once they are closed.
    """

    def __init__(self, path: Path, schema: Schema) -> None:
        self.files = 1
        self.nbytes = 0
        self._path = path
        self._names = list(schema)
        self._file = io.TextIOWrapper(create(path), encoding="utf-8", newline="\n")

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the records of a batch."""
        columns = {name: batch[name] for name in self._names}
        for row in json_rows(columns, records):
            self._file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")

    def close(self) -> None:
        """Put all lines into the file."""
        self._file.close()
        self.nbytes = self._path.stat().st_size


def json_rows(columns: Mapping[str, Any], records: int) -> Iterator[dict[str, Any]]:
    """The records of some columns as what JSON holds.

    Byte strings are base64, times ISO 8601, time spans counts of their unit, complex numbers pairs;
    what is sparse is `indices`, `values` and `shape`. Floats that JSON has no number for are the
    texts "NaN", "Infinity" and "-Infinity". What is absent is None, and so is a time that is none.

    >>> list(json_rows({"x": np.array([1.5, np.nan]), "y": [b"a", b"b"]}, 2))
    [{'x': 1.5, 'y': 'YQ=='}, {'x': 'NaN', 'y': 'Yg=='}]
    """
    names = list(columns)
    values = [iter(_values(column)) for column in columns.values()]
    for _ in range(records):
        yield {name: next(one) for name, one in zip(names, values, strict=True)}


def _values(column: Any) -> Iterable[Any]:
    if isinstance(column, Masked):
        pairs = zip(_values(column.values), column.present.tolist(), strict=True)
        return [value if is_there else None for value, is_there in pairs]
    if isinstance(column, Ragged):
        items = list(_values(column.values))
        return [items[first:last] for first, last in pairwise(column.row_splits.tolist())]
    if isinstance(column, Sparse):
        return _sparse_values(column)
    if isinstance(column, BytesColumn):
        values = column.to_list()
        return values if column.is_text else [_encoded(value) for value in values]
    if isinstance(column, np.ndarray) and column.dtype != object:
        return _array_values(column)
    return [_encoded(value) for value in column]


def _array_values(array: NDArray[Any]) -> list[Any]:
    kind = array.dtype.kind
    found: NDArray[Any] = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    if kind in "mM":
        found = np.datetime_as_string(array) if kind == "M" else array.astype(np.int64)
        if np.isnat(array).any():
            found = found.astype(object)
            found[np.isnat(array)] = None
    elif kind == "c":
        found = np.stack([array.real, array.imag], axis=-1)
    if found.dtype.kind == "f" and not (is_finite := np.isfinite(found)).all():
        names = [_name_float(value) for value in found[~is_finite].tolist()]
        found = found.astype(object)
        found[~is_finite] = names
    values: list[Any] = found.tolist()
    return values


def _encoded(value: Any) -> Any:
    """A value of Python's, also in lists, as what JSON holds."""
    if isinstance(value, (list, tuple)):
        return [_encoded(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, np.ndarray):
        return _array_values(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _name_float(value)
    return value


def _name_float(value: float) -> str:
    """What JSON has no number for, as JavaScript calls it."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _sparse_values(column: Sparse) -> Iterator[dict[str, Any]]:
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    shape = list(column.dense_shape[1:])
    values = list(_values(column.values))
    for first, last in pairwise(ends):
        places = column.indices[first:last, 1:]
        indices = places[:, 0] if len(shape) == 1 else places
        yield {"indices": indices.tolist(), "values": values[first:last], "shape": shape}
