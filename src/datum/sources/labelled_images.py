"""A folder of images and a CSV file of their labels, for each split."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

from datum._identity import identify
from datum.errors import SourceError
from datum.schema import Feature, Schema
from datum.sources.image_index import ImageIndex
from datum.sources.image_part import IMAGE, FilePart, UnusableRecordError, warn_of_images
from datum.sources.label_csv import LabelTable, feature_of_values, read_label_csv
from datum.sources.listing import (
    IMAGE_EXTENSIONS,
    FoundFile,
    as_text,
    fingerprint_of,
    open_folder,
)
from datum.sources.splits import read_split_options

__all__ = ["LabelledImages", "LabelledSplit"]

_FILENAME = "filename"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSplit:
    """Where the images and labels of a split are, within the folder of the dataset.

    Attributes:
        extension: of all images; by default any that is found.
        image_dir: the folder of the images; by default it is called as the split.
        csv_path: the table of labels; by default it is called as the split, with `.csv`.
    """

    extension: str | None = None
    image_dir: str | None = None
    csv_path: str | None = None


@dataclass(frozen=True, slots=True)
class LabelledImages:
    """Images in `<path>/<split>/`, their labels in `<path>/<split>.csv`.

    The table has a column `filename`, with or without extensions; its other columns are features:
    integers, floats, booleans or text, whichever all cells of a column are. Empty cells are
    absent. Gives image, those features, and filename, which is also the key.

    Attributes:
        path: the folder.
        splits: the options of each split, a `LabelledSplit` or a dict; by default there is a split
            for each CSV file that has a folder of its name.
    """

    path: str | os.PathLike[str]
    _: KW_ONLY
    splits: Mapping[str, LabelledSplit | Mapping[str, Any]] | None = None

    def parts(self) -> dict[str, FilePart]:
        """The images of each split."""
        root = open_folder(self.path)
        splits = _find_splits(root) if self.splits is None else self.splits
        options = read_split_options(LabelledSplit, splits, LabelledSplit())
        return {split: _make_part(root, split, given) for split, given in options.items()}


def _find_splits(root: Path) -> dict[str, LabelledSplit]:
    names = sorted(file.stem for file in root.glob("*.csv") if (root / file.stem).is_dir())
    if not names:
        raise SourceError(
            "expected a table and a folder of the same name, train.csv and train/, got none",
            where=root,
            hint="splits={'train': {'csv_path': 'labels.csv', 'image_dir': 'images'}}",
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
            f"line {line}" if name is None else as_text(name)  # all of them are to differ
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


def _schema_of(table: LabelTable) -> Schema:
    found = {
        name: feature_of_values([v for row, v in enumerate(values) if row not in table.faults])
        for name, values in table.columns.items()
        if name != _FILENAME
    }
    features = {name: feature for name, feature in found.items() if feature is not None}
    return Schema({"image": IMAGE, **features, _FILENAME: Feature("str")})


@dataclass(frozen=True, slots=True)
class _RowMaker:
    table: LabelTable
    labels: tuple[str, ...]
    index: ImageIndex
    extension: str | None

    def find_files(self) -> list[FoundFile]:
        """The files that rows refer to, as far as they are there."""
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
            problem = f"{error.problem} in {error.where}"
            raise UnusableRecordError(problem, where=where, hint=error.hint) from None
        row = {label: table.columns[label][number] for label in self.labels}
        return {"image": self.index.path_of(file), **row, _FILENAME: name}
