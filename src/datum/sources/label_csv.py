"""Tables of labels in CSV files: small, with a type for each column that holds for all rows."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datum.errors import SourceError
from datum.images import read_file
from datum.schema import Feature

__all__ = ["LabelTable", "feature_of_values", "read_label_csv", "type_cells"]

_DELIMITERS = (",", ";", "\t")
_INTEGER = re.compile(r"-?[1-9][0-9]{0,18}|0")  # no leading zero: 01 is a name, not a number
_FLOAT = re.compile(r"-?(?:(?:[1-9][0-9]*|0)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"nan|-?inf", re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
_BLANKS = frozenset(("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none"))


@dataclass(frozen=True, slots=True)
class LabelTable:
    """The rows of a CSV file.

    Attributes:
        path: the file.
        columns: the values of each column; None for empty cells, and in rows of another length.
        lines: the line that each row ends on, counted from 1.
        faults: what is wrong with a row, by its number.
    """

    path: Path
    columns: dict[str, list[Any]]
    lines: list[int]
    faults: dict[int, str]


def read_label_csv(path: str | os.PathLike[str], *, needed: str) -> LabelTable:
    """Read a table with a column `needed`; delimited by commas, semicolons or tabs.

    Cells are integers, floats, booleans or text, as all of their column can be read. Text is UTF-8,
    or else Windows-1252.
    """
    file = Path(path)
    lines = _read_text(file)
    header, rows, numbers = _split_rows(file, lines, needed)
    cells: list[list[str]] = [[] for _ in header]
    faults = {}
    for number, row in enumerate(rows):
        if len(row) != len(header):
            faults[number] = f"expected {len(header)} cells, got {len(row)}"
        for at, column in enumerate(cells):
            column.append(row[at] if at < len(row) else "")
    columns = {
        name: [cell or None for cell in column] if name == needed else type_cells(column)
        for name, column in zip(header, cells, strict=True)
    }
    return LabelTable(file, columns, numbers, faults)


def _read_text(path: Path) -> str:
    data = read_file(path)
    for encoding in ("utf-8-sig", "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _split_rows(path: Path, text: str, needed: str) -> tuple[list[str], list[list[str]], list[int]]:
    seen: list[str] = []
    for delimiter in _DELIMITERS:
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True
        )
        try:
            header = [
                name.strip() or f"column_{at}"  # as tables that were written with their index have
                for at, name in enumerate(next(reader, []))
            ]
            if needed not in header:
                seen = seen or header
                continue
            rows, lines = [], []
            for row in reader:
                if row:
                    rows.append(row)
                    lines.append(reader.line_num)
        except csv.Error as error:
            raise SourceError(
                f"line {reader.line_num}: expected CSV, got: {error}", where=path
            ) from None
        _check_header(path, header)
        return header, rows, lines
    got = f"columns {', '.join(map(repr, seen[:20]))}" if seen else "an empty file"
    raise SourceError(f"expected a column {needed!r}, got {got}", where=path)


def _check_header(path: Path, header: Sequence[str]) -> None:
    for at, name in enumerate(header):
        if name in header[:at]:
            raise SourceError(
                f"expected columns of different names, got {name!r} twice", where=path
            )


def type_cells(cells: Sequence[str]) -> list[Any]:
    """The values of a column, of the narrowest type that all cells have; None for empty cells.

    In columns of numbers and truth values, words such as NA count as empty.

    >>> type_cells(["1", "", "20"]), type_cells(["NA", "2.5"]), type_cells(["1", "02"])
    ([1, None, 20], [None, 2.5], ['1', '02'])
    """
    stripped = [cell.strip() for cell in cells]
    convert = _find_type(set(stripped) - _BLANKS)
    if convert is None:
        return [cell if cell.strip() else None for cell in cells]
    return [None if cell in _BLANKS else convert(cell) for cell in stripped]


def feature_of_values(values: Sequence[Any]) -> Feature | None:
    """The feature of typed cells, optional if some are empty; None if all are."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    dtypes = {int: "int64", bool: "bool", str: "str", float: "float64"}
    return Feature(dtypes[type(given[0])], optional=len(given) < len(values))


def _find_type(given: set[str]) -> Callable[[str], Any] | None:
    if not given:
        return None
    if all(map(_is_integer, given)):
        return int
    if all(cell in _BOOLEANS for cell in given):
        return _BOOLEANS.__getitem__
    numbers = {cell for cell in given if not _NO_NUMBER.fullmatch(cell)}
    if numbers and all(map(_FLOAT.fullmatch, numbers)):
        return float
    return None


def _is_integer(cell: str) -> bool:
    return _INTEGER.fullmatch(cell) is not None and -(2**63) <= int(cell) < 2**63
