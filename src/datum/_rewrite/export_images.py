"""A split as image files: class folders, masks beside, and other features in JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Hashable, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from datum._read.split import Split
from datum._rewrite.export import (
    Names,
    ParquetSplit,
    create,
    json_rows,
    safe_name,
    split_classes,
)
from datum.columns import BytesColumn, Masked
from datum.errors import Option, SchemaError, Text
from datum.images import sniff_format
from datum.schema import Feature, Schema

__all__ = [
    "ImageSplit",
    "find_images",
    "find_label",
]

_EXTENSIONS = {"jpeg": "jpg", "tiff": "tif"}
_FILENAME = "filename"
_UNLABELLED = "unlabelled"


class ImageSplit:
    """Writes a file for each image.

    Attributes:
        files: Number of files.
        nbytes: Their size, once they are closed.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        split: Split,
        schema: Schema,
        metadata: Mapping[str, Mapping[str, Any]],
        *,
        folders: Names,
        classes: Names,
    ) -> None:
        """Open the files of a split.

        Args:
            folder: Where files are made.
            name: Name of the split.
            split: Its records.
            schema: The features to export.
            metadata: What is known of them.
            folders: Names of the folders of images, of all splits.
            classes: Names of the folders of classes, of all splits.
        """
        self.files = 0
        self.nbytes = 0
        self._folder = folder
        self._split = name
        self._main, *self._others = find_images(split, schema)
        self._label = find_label(schema, metadata)
        self._class_names = metadata.get(self._label or "", {}).get("class_names", ())
        self._classes = classes
        classes.reserve({number: str(one) for number, one in enumerate(self._class_names)})
        self._places = {one: folders.choose(*_place(name, one)) for one in self._others}
        self._places[self._main] = name
        self._has_names = _FILENAME in schema and _is_text(schema, _FILENAME)
        used = {self._main, *self._others, self._label, _FILENAME if self._has_names else None}
        self._rest = [one for one in schema if one not in used]
        self._plain = [one for one in schema if one not in (self._main, *self._others)]
        self._file = "file" if "file" not in schema else "image_file"
        self._number = 0
        self._files: dict[str, Names] = {}  # by the folder of their class
        self._shown: dict[str, str] = {}  # what the folder of a class stands for
        self._lines = self._open(f"{name}.jsonl") if self._rest else None
        self._table = (
            self._open_table(schema, metadata) if self._rest and not self._others else None
        )
        is_paired = len(self._others) == 1 and not self._label
        self._pairs = self._open(f"{name}.txt") if is_paired else None

    def _open(self, name: str) -> Any:
        self.files += 1
        return io.TextIOWrapper(create(self._folder / name), encoding="utf-8", newline="\n")

    def _open_table(
        self, schema: Schema, metadata: Mapping[str, Mapping[str, Any]]
    ) -> ParquetSplit:
        """The other features beside the paths of images, as `datum.write` takes it."""
        self.files += 1
        features = {name: schema[name] for name in self._plain if name not in (_FILENAME, "image")}
        named = Schema({_FILENAME: Feature("str", optional=True), **features})
        return ParquetSplit(self._folder / f"{self._split}.parquet", named, metadata)

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the images of a batch, and what else is known of them."""
        images = {name: _bytes_of(batch[name]) for name in (self._main, *self._others)}
        labels = _values_of(batch[self._label]) if self._label else repeat(None, records)
        names = _values_of(batch[_FILENAME]) if self._has_names else repeat(None, records)
        rows = json_rows({name: batch[name] for name in self._plain}, records)
        paths: list[str | None] = []
        for at, (label, given, row) in enumerate(zip(labels, names, rows, strict=False)):
            taken = {name: values[at] for name, values in images.items()}
            paths.append(self._write_record(taken, label, given, row))
            self._number += 1
        if self._table is not None:
            column = BytesColumn.from_values([path or "" for path in paths])
            present = np.array([path is not None for path in paths])
            self._table.write({**batch, _FILENAME: Masked(column, present)}, records)

    def _write_record(
        self, images: Mapping[str, bytes | None], label: Any, given: Any, row: dict[str, Any]
    ) -> str | None:
        """Write one record; the path of its main image, if it has one."""
        main = images[self._main]
        within = self._folder_of(label)
        name = self._choose_name(within, given, main)
        placed: dict[str, str | None] = {}
        for feature, data in images.items():
            placed[feature] = None
            if data is None:
                continue
            folder = self._places[feature]
            file = name if feature == self._main else f"{_stem(name)}.{_extension(data)}"
            placed[feature] = "/".join(part for part in (folder, within, file) if part)
            self._save(placed[feature] or "", data)
        if self._lines is not None:
            others = {one: placed[one] for one in self._others}
            line = {self._file: placed[self._main], **others, **row}
            self._lines.write(json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n")
        if self._pairs is not None and all(placed.values()):
            self._pairs.write(f"{placed[self._main]} {placed[self._others[0]]}\n")
        return placed[self._main]

    def _folder_of(self, label: Any) -> str:
        """The folder of a class; empty where there are no classes."""
        if self._label is None:
            return ""
        if label is None:
            return self._classes.choose(_UNLABELLED, meaning=(None,))
        given = label if isinstance(label, str) else self._name_of(int(label))
        folder = self._classes.choose(given, meaning=label)
        self._shown[folder] = given
        return folder

    def _name_of(self, number: int) -> str:
        is_named = 0 <= number < len(self._class_names)
        return str(self._class_names[number]) if is_named else str(number)

    def _choose_name(self, within: str, given: Any, data: bytes | None) -> str:
        """The name that the file had, if it can have it again, or else its number."""
        names = self._files.setdefault(within, Names())
        base = str(given or "").replace("\\", "/").rpartition("/")[2]
        is_sound = base == safe_name(base) and " " not in base and bool(_stem(base))
        if is_sound and names.take(_stem(base)):
            return base
        return f"{names.choose(f'{self._number:06}', meaning=self._number)}.{_extension(data)}"

    def _save(self, place: str, data: bytes) -> None:
        path = self._folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with create(path) as file:
            file.write(data)
        self.files += 1
        self.nbytes += len(data)

    def _save_classes(self) -> None:
        """Write which class each folder stands for, where a class could not keep its name."""
        if any(folder != given for folder, given in self._shown.items()):
            table = json.dumps(self._shown, ensure_ascii=False, indent=2, sort_keys=True)
            self._save(split_classes(self._split), f"{table}\n".encode(errors="replace"))

    def close(self) -> None:
        """Put all lines into their files."""
        for file in (self._lines, self._pairs):
            if file is not None:
                file.flush()
                self.nbytes += file.tell()
                file.close()
        if self._table is not None:
            self._table.close()
            self.nbytes += self._table.nbytes
        self._save_classes()


def find_images(split: Split, schema: Schema) -> list[str]:
    """The features that are images, the main one first; of bytes, the first record tells."""
    found = [
        name
        for name, feature in schema.items()
        if feature.encoding == "image" and not feature.holds_images
    ]
    if not found:
        strings = [name for name, one in schema.items() if one.dtype == "bytes" and not one.shape]
        first = split.read([0], columns=strings) if len(split) and strings else {}
        found = [name for name in strings if name in first and _is_image(first[name])]
    if not found:
        raise SchemaError(
            f"expected a feature that holds images, got {', '.join(schema) or 'none'}",
            where=f"split {split.name!r}",
            hint=Text(Option("format", "parquet"), " takes any features"),
        )
    return sorted(found, key=lambda name: name != "image")


def _is_image(column: Any) -> bool:
    data = _bytes_of(column)[0]
    return data is not None and sniff_format(data[:16]) is not None


def find_label(schema: Schema, metadata: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The feature whose classes are folders: `label`, or the only one that has class names."""
    named = [
        name
        for name, feature in schema.items()
        if "class_names" in metadata.get(name, {}) and not feature.shape and "int" in feature.dtype
    ]
    label = schema.get("label")
    is_plain = label is not None and not label.shape and label.encoding != "image"
    if is_plain and label is not None and ("int" in label.dtype or label.dtype == "str"):
        return "label"
    return named[0] if len(named) == 1 else None


def _is_text(schema: Schema, name: str) -> bool:
    return schema[name].dtype == "str" and not schema[name].shape


def _bytes_of(column: Any) -> list[bytes | None]:
    values: list[bytes | None] = column.to_list()
    return values


def _values_of(column: Any) -> list[Any]:
    is_own = isinstance(column, (BytesColumn, Masked))
    values: list[Any] = column.to_list() if is_own else column.tolist()
    return values


def _place(split: str, feature: str) -> tuple[str, Hashable]:
    """The name that the folder of further images of a split should have, and what it means."""
    return f"{split}_{feature}", (split, feature)


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _extension(data: bytes | None) -> str:
    found = sniff_format((data or b"")[:16])
    return "bin" if found is None else _EXTENSIONS.get(found, found)
