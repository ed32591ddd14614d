"""A table with a column of paths to images."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.files import find_files
from datum.sources.image_part import IMAGE
from datum.sources.label_csv import read_label_csv
from datum.sources.listing import FoundFile, as_text, fingerprint_of
from datum.sources.source import Block, Reject
from datum.sources.table import ColumnTable, is_arrow, is_pandas
from datum.sources.table_part import TablePart

__all__ = ["ImageTable"]

_FILENAME = "filename"


@dataclass(frozen=True, slots=True)
class ImageTable:
    """Images whose paths stand in a column; all other columns are features.

    Gives image, the other columns, and filename, the path as the table has it, which is also the
    key.

    Attributes:
        table: a CSV, Parquet or Feather file, a pandas DataFrame, an Arrow table, or a dict of
            columns.
        path_column: the name of the column with the paths.
        root: what paths are relative to; by default the folder of the table's file, or else the
            current folder.
        split: what the split is called.
    """

    table: Any
    _: KW_ONLY
    path_column: str
    root: str | os.PathLike[str] | None = None
    split: str = "train"

    def parts(self) -> dict[str, ImageTablePart]:
        """The one split."""
        table, root = self.table, self.root
        faults: dict[int, tuple[str, str]] = {}
        if isinstance(table, (str, os.PathLike)):
            path, *more = find_files(table)
            if more:
                raise SourceError(f"{table}: expected one table, got {1 + len(more)} files")
            root = path.parent if root is None else root
            table, faults = _read_file(path, self.path_column)
        paths, others = _take_out(table, self.path_column)
        names = []
        for number, value in enumerate(paths):
            is_path = isinstance(value, (str, os.PathLike)) and os.fspath(value) != ""
            if not is_path:
                got = "none" if _is_absent(value) else repr(value)
                faults.setdefault(number, ("", f"{self.path_column}: expected a path, got {got}"))
            names.append(os.fspath(value) if is_path else "")
        return {self.split: ImageTablePart(others, names, Path(root or "."), faults)}


class ImageTablePart:
    """The rows of a table, with the images that they name: an `IndexedPart`."""

    def __init__(
        self, table: Any, names: list[str], root: Path, faults: dict[int, tuple[str, str]]
    ) -> None:
        keys = [as_text(name) or f"record {number}" for number, name in enumerate(names)]
        self._rows: TablePart = ColumnTable(_put_in(table, keys)).parts()["train"]
        self._names = names
        self._root = root
        self._faults = faults
        files = [_look_at(root, name) for name in names]
        features = {"image": IMAGE, **(self._rows.schema or Schema({}))}
        self.schema: Schema | None = Schema(features)
        self.metadata: Mapping[str, Mapping[str, Any]] = self._rows.metadata
        self.keys: Sequence[str] | None = keys
        own = self._rows.fingerprint
        self.fingerprint = None if own is None else fingerprint_of(files, "image table", own)
        self.stored_bytes: int | None = sum(file.size for file in files)
        self.is_slow_python = False

    def __len__(self) -> int:
        return len(self._names)

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers, in the order given."""
        asked = np.asarray(numbers, np.int64).tolist()
        good = [number for number in asked if number not in self._faults]
        keys = self.keys or ()
        rejects = [
            Reject(number, keys[number], *self._faults[number])
            for number in asked
            if number in self._faults
        ]
        block = self._rows.read(np.array(good, np.int64))
        images = np.empty(len(good), object)
        images[:] = [self._root / self._names[number] for number in good]
        data: Any = block.data
        named = [keys[number] for number in good]
        return Block({"image": images, **data}, block.numbers, named, rejects)


def _look_at(root: Path, name: str) -> FoundFile:
    try:
        status = (root / name).stat()
    except (OSError, ValueError):  # whoever reads it says so
        return FoundFile(name, 0, 0)
    return FoundFile(name, status.st_size, status.st_mtime_ns)


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or value != value or type(value).__name__ == "NAType"


def _read_file(path: Path, column: str) -> tuple[Any, dict[int, tuple[str, str]]]:
    """The table of a file, and what is wrong with its rows."""
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".txt"):
        table = read_label_csv(path, needed=column)
        lines = table.lines
        faults = {row: (f"{path}, line {lines[row]}", fault) for row, fault in table.faults.items()}
        return {name: _keep_floats(values) for name, values in table.columns.items()}, faults
    try:
        if suffix in (".parquet", ".pq"):
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path), {}
        if suffix in (".feather", ".arrow", ".ipc"):
            import pyarrow.feather

            return pyarrow.feather.read_table(path), {}
    except Exception as error:  # Arrow raises what it likes on bytes made to harm
        raise SourceError(f"{path}: expected a table, got: {error}") from None
    raise SourceError(f"{path}: expected a CSV, Parquet or Feather file, got {suffix!r}")


def _keep_floats(values: list[Any]) -> Any:
    """Numbers of a CSV file are float64, whatever a narrower type could hold."""
    if not any(isinstance(value, float) for value in values):
        return values
    is_absent = [value is None for value in values]
    floats = np.array([0.0 if value is None else value for value in values], np.float64)
    return np.ma.MaskedArray(floats, is_absent) if any(is_absent) else floats


def _take_out(table: Any, column: str) -> tuple[list[Any], Any]:
    """The values of a column, and the table without it."""
    if is_pandas(table, "DataFrame"):
        _check_names(list(map(str, table.columns)), column)
        return table[column].tolist(), table.drop(columns=[column])
    if is_arrow(table, "Table"):
        _check_names(table.column_names, column)
        return table[column].to_pylist(), table.drop_columns([column])
    if isinstance(table, Mapping):
        _check_names(list(map(str, table)), column)
        others = {name: values for name, values in table.items() if name != column}
        return list(table[column]), others
    raise SourceError(
        f"expected a path, a DataFrame, an Arrow table or a dict of columns, got {type(table)!r}"
    )


def _check_names(names: Sequence[str], column: str) -> None:
    if column not in names:
        near = difflib.get_close_matches(column, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
        raise SourceError(f"expected a column {column!r} of paths, got none\nhint: {hint}")
    for taken in ("image", _FILENAME):
        if taken in names and taken != column:
            raise SourceError(
                f"expected no column {taken!r} beside {column!r}: it is what the images, or their"
                " paths, are called\nhint: rename it, or leave it out"
            )


def _put_in(table: Any, keys: list[str]) -> Any:
    """The table with the paths as its last column."""
    if is_pandas(table, "DataFrame"):
        return table.assign(**{_FILENAME: keys})
    if is_arrow(table, "Table"):
        import pyarrow as pa

        return table.append_column(_FILENAME, pa.array(keys, pa.large_string()))
    return {**table, _FILENAME: keys}
