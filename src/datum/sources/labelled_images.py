"""A folder of images with a CSV file of labels for each split."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

from datum._identity import identify
from datum.errors import Call, SourceError, Text
from datum.images import read_file
from datum.schema import Feature, Schema
from datum.sources.files import (
    IMAGE_EXTENSIONS,
    FoundFile,
    as_text,
    fingerprint_of,
    open_folder,
    origin_in,
)
from datum.sources.image_files import (
    IMAGE,
    FilePart,
    ImageIndex,
    UnusableRecordError,
    warn_of_images,
)
from datum.sources.options import read_split_options
from datum.sources.protocol import SourceInfo

__all__ = [
    "LabelledImages",
    "LabelledSplit",
    "feature_of_values",
    "read_label_csv",
    "type_cells",
]

_DELIMITERS = (",", ";", "\t")
_INTEGER = re.compile(r"-?[1-9][0-9]{0,18}|0")  # a leading zero, as in 01, means a name
_FLOAT = re.compile(r"-?(?:(?:[1-9][0-9]*|0)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NO_NUMBER = re.compile(r"nan|-?inf", re.IGNORECASE)
_BOOLEANS = {"true": True, "false": False, "True": True, "False": False}
_BLANKS = frozenset(("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none"))


@dataclass(frozen=True, slots=True)
class _LabelTable:
    """The rows of a CSV file.

    Attributes:
        path: The path of the file.
        columns: The values of each column; None for empty cells and in rows of another length.
        lines: The line that each row ends on, counted from 1.
        faults: The faults of rows, by their number.
    """

    path: Path
    columns: dict[str, list[Any]]
    lines: list[int]
    faults: dict[int, str]


def read_label_csv(path: str | os.PathLike[str], *, needed: str) -> _LabelTable:
    """Read a table with a column `needed`, delimited by commas, semicolons or tabs.

    Cells are integers, floats, booleans or text, whichever fits all cells of their column. Text is
    UTF-8, or else Windows-1252.
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
    return _LabelTable(file, columns, numbers, faults)


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
                name.strip() or f"column_{at}"  # the index column of a table
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
    """Return the values of a column, in the narrowest type that fits; None for empty cells.

    In columns of numbers and booleans, words such as NA count as empty.

    >>> type_cells(["1", "", "20"]), type_cells(["NA", "2.5"]), type_cells(["1", "02"])
    ([1, None, 20], [None, 2.5], ['1', '02'])
    """
    stripped = [cell.strip() for cell in cells]
    convert = _find_type(set(stripped) - _BLANKS)
    if convert is None:
        return [cell if cell.strip() else None for cell in cells]
    return [None if cell in _BLANKS else convert(cell) for cell in stripped]


def feature_of_values(values: Sequence[Any]) -> Feature | None:
    """Return the feature of typed cells, optional if some are empty; None if all are."""
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


_FILENAME = "filename"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """The images and labels of a split, within the folder of the dataset.

    Attributes:
        extension: The extension of all images; by default any.
        image_dir: The folder of the images; by default named after the split.
        csv_path: The table of labels; by default `<split>.csv`.
    """

    extension: str | None = None
    image_dir: str | None = None
    csv_path: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledImages(SourceInfo):
    """Images in `<path>/<split>/`, their labels in `<path>/<split>.csv`.

    The table has a column `filename`, with or without extensions; its other columns are features:
    integers, floats, booleans or text, whichever fits all cells of a column. Empty cells are
    absent. The features are image, those columns, and filename, which is also the key.

    Attributes:
        path: The folder.
        splits: The options of each split, a `LabelledSplit` or a dict; by default there is a split
            for each CSV file with a folder of the same name.
    """

    kind: ClassVar[str] = "images with a table of labels"

    path: str | os.PathLike[str]
    _: KW_ONLY
    splits: Mapping[str, LabelledSplit | Mapping[str, Any]] | None = None

    def origin_of(self, split: str) -> str:
        """Return the table and the folder of a split."""
        return origin_in(self.path, split)

    def parts(self) -> dict[str, FilePart]:
        """Return the images of each split."""
        root = open_folder(self.path)
        splits = _find_splits(root) if self.splits is None else self.splits
        options = read_split_options(LabelledSplit, splits)
        return {split: _make_part(root, split, given) for split, given in options.items()}


def _find_splits(root: Path) -> dict[str, LabelledSplit]:
    names = sorted(file.stem for file in root.glob("*.csv") if (root / file.stem).is_dir())
    if not names:
        raise SourceError(
            "expected a table and a folder of the same name, train.csv and train/, got none",
            where=root,
            hint=Text(
                Call(
                    f"datum.sources.LabelledImages({str(root)!r}, splits="
                    "{'train': {'csv_path': 'labels.csv', 'image_dir': 'images'}})"
                )
            ),
        )
    return {name: LabelledSplit() for name in names}


def _make_part(root: Path, split: str, options: LabelledSplit) -> FilePart:
    table = read_label_csv(root / (options.csv_path or f"{split}.csv"), needed=_FILENAME)
    if "image" in table.columns:
        raise SourceError(
            "expected no column 'image', which is the name of the images themselves",
            where=table.path,
        )
    index = ImageIndex.of_folder(root / (options.image_dir or split))
    schema = _schema_of(table)
    labels = tuple(name for name in schema if name in table.columns and name != _FILENAME)
    rows = _RowMaker(table, labels, index, options.extension)
    used = rows.find_files()
    unused = sorted(set(index.files) - {file.name for file in used})
    loose = [name for name in unused if name.lower().endswith(IMAGE_EXTENSIONS)]
    return FilePart(
        rows,
        schema=schema,
        keys=[
            f"line {line}" if name is None else as_text(name)  # keys must be unique
            for name, line in zip(table.columns[_FILENAME], table.lines, strict=True)
        ],
        fingerprint=fingerprint_of(used, "labelled images", identify(table.path), options),
        stored_bytes=table.path.stat().st_size + sum(file.size for file in used),
        metadata={},
        skipped=tuple(map(as_text, sorted(set(unused) - set(loose)))),
        warnings=warn_of_images(
            [as_text(name) for name in loose], f"as no row of {table.path.name} names them"
        ),
    )


def _schema_of(table: _LabelTable) -> Schema:
    found = {
        name: feature_of_values([v for row, v in enumerate(values) if row not in table.faults])
        for name, values in table.columns.items()
        if name != _FILENAME
    }
    features = {name: feature for name, feature in found.items() if feature is not None}
    return Schema({"image": IMAGE, **features, _FILENAME: Feature("str")})


@dataclass(frozen=True, slots=True)
class _RowMaker:
    table: _LabelTable
    labels: tuple[str, ...]
    index: ImageIndex
    extension: str | None

    def find_files(self) -> list[FoundFile]:
        """Return the files that rows refer to, as far as they exist."""
        found = []
        for name in self.table.columns[_FILENAME]:
            try:
                found.append(self.index.find(name or "", self.extension))
            except UnusableRecordError:
                continue
        return sorted(set(found))

    def __call__(self, number: int) -> dict[str, Any]:
        table = self.table
        name = table.columns[_FILENAME][number]
        where = f"{table.path}, line {table.lines[number]}"
        if number in table.faults:
            raise UnusableRecordError(table.faults[number], where=where)
        if name is None:
            raise UnusableRecordError("expected a file name, got an empty cell", where=where)
        try:
            file = self.index.find(name, self.extension)
        except UnusableRecordError as error:
            raise error.named_by(table.path, table.lines[number]) from None
        row = {label: table.columns[label][number] for label in self.labels}
        return {"image": self.index.path_of(file), **row, _FILENAME: name}
