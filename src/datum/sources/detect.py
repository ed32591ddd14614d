"""Which source fits a path: told by what is there, or by the problem that is named."""

from __future__ import annotations

import difflib
import itertools
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from datum.errors import SourceError
from datum.images import sniff_file
from datum.sources.class_folders import ClassFolders
from datum.sources.files import unpacked_suffix
from datum.sources.image_sets import read_set_file
from datum.sources.labelled_images import LabelledImages
from datum.sources.listing import IMAGE_EXTENSIONS, list_folders
from datum.sources.masks import SegmentationMasks
from datum.sources.path_column import find_path_column
from datum.sources.source import Source
from datum.sources.splits import is_split_name, split_of_file
from datum.sources.voc import VocDetection

__all__ = ["detect"]

_CLF: Final = "image_clf"
_DET: Final = "image_det"
_SEG: Final = "image_seg"
_TEXT: Final = "text_clf"
_PROBLEMS = (_CLF, _DET, _SEG, _TEXT)

_CSV = (".csv", ".tsv")
_ARROW = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
_LINES = (".jsonl", ".ndjson")
_TABLES = (*_CSV, *_ARROW, *_LINES, ".json")
# Folders that hold all images, or what is known of them: they are no classes.
_CONTAINERS = frozenset(
    ("annotations", "images", "imagesets", "imgs", "jpegimages", "labels", "masks", "photos")
)
_WANTED = {
    _CLF: "folders named after classes, or train.csv and train/",
    _DET: "JPEGImages/ and Annotations/ with XML files",
    _SEG: "JPEGImages/ and SegmentationClass/",
    _TEXT: "train.json, train.jsonl or train.csv",
}
_HINTS = {
    _CLF: (
        "ClassFolders(path, splits={'train': ...}),"
        " LabelledImages(path, splits={'train': {'csv_path': ..., 'image_dir': ...}})"
    ),
    _DET: "VocDetection(path, splits={'train': {'image_dir': ..., 'annotation_dir': ...}})",
    _SEG: "SegmentationMasks(path, splits={'train': {'image_dir': ..., 'label_dir': ...}})",
    _TEXT: "CsvTable(path), JsonLines(path) or JsonText(path)",
}


def detect(path: str | os.PathLike[str], problem: str | None = None) -> Source:
    """The source that reads a file or a folder; `problem` says which kind it must be.

    Raises SourceError if nothing fits, or more than one kind does: it says what was looked for,
    what was found, and how to name the source.
    """
    if problem is not None and problem not in _PROBLEMS:
        near = difflib.get_close_matches(str(problem), _PROBLEMS, 1)
        hint = f"\nhint: did you mean {near[0]!r}?" if near else ""
        raise SourceError(f"expected `problem` {', '.join(_PROBLEMS)}, got {problem!r}{hint}")
    place = Path(path)
    if place.is_dir():
        return _detect_folder(place, problem)
    if not place.exists():
        raise SourceError(f"{place}: expected a file or a folder, got nothing there")
    return _detect_file(place, problem)


def _detect_file(path: Path, problem: str | None) -> Source:
    suffix = unpacked_suffix(path)
    if problem in (_DET, _SEG):
        raise SourceError(f"{path}: expected a folder with {_WANTED[problem]}, got a file")
    column = find_path_column(path) if problem in (None, _CLF) else None
    if column is not None:
        from datum.sources.image_table import ImageTable

        return ImageTable(path, path_column=column)
    if problem == _CLF and suffix in (*_CSV, *_ARROW):
        raise SourceError(
            f"{path}: expected a folder with {_WANTED[_CLF]}, or a table with a column of images"
            " that are there, got a table without\n"
            "hint: ImageTable(path, path_column='path') reads images that a column names"
        )
    if suffix in _TABLES and problem != _CLF:
        return _table(suffix, path)
    got = f"an image ({path.suffix})" if sniff_file(path) else f"a file {path.name!r}"
    raise SourceError(
        f"{path}: expected a folder, or a file of {', '.join(_TABLES)}, got {got}\n"
        "hint: load it and pass its records or columns to datum.write"
    )


def _table(suffix: str, paths: Any) -> Source:
    if suffix in _CSV:
        from datum.sources.csv import CsvTable

        return CsvTable(paths)
    if suffix in _ARROW:
        from datum.sources.arrow import ArrowTable

        return ArrowTable(paths)
    if suffix in _LINES:
        from datum.sources.json_lines import JsonLines

        return JsonLines(paths)
    from datum.sources.json_text import JsonText

    return JsonText(paths)


@dataclass(frozen=True, slots=True)
class _Folder:
    """What lies in a folder, as far as it has to be known."""

    path: Path
    folders: list[str]
    files: list[str]

    @classmethod
    def read(cls, path: Path) -> _Folder:
        folders = list_folders(path)
        with os.scandir(path) as entries:
            names = {entry.name for entry in entries if not entry.name.startswith(".")}
        return cls(path, folders, sorted(names.difference(folders)))

    def has_folder(self, name: str, suffix: str | tuple[str, ...]) -> bool:
        """Whether there is such a folder, with a file of such an ending."""
        return name in self.folders and _has_file(self.path / name, suffix)

    def is_voc(self) -> bool:
        return "JPEGImages" in self.folders and self.has_folder("Annotations", ".xml")

    def is_masks(self) -> bool:
        if self.has_folder("SegmentationClass", IMAGE_EXTENSIONS):
            return "JPEGImages" in self.folders
        lists = [name for name in self.files if name.endswith(".txt")]
        return any(_names_pairs(self.path / name) for name in lists if is_split_name(name[:-4]))

    def is_labelled(self) -> bool:
        tables = (name[: -len(".csv")] for name in self.files if name.endswith(".csv"))
        return any(name in self.folders for name in tables)

    def is_classes(self, least: int) -> bool:
        """Whether `least` folders, also of one split, hold images and may be classes."""
        if any(name.lower() in _CONTAINERS for name in self.folders):
            return False
        splits = [self.path / name for name in self.folders if is_split_name(name)]
        return any(_has_classes(path, least) for path in splits or [self.path])

    def tables(self) -> dict[str, list[str]]:
        """The files of tables and texts, by the ending they share."""
        found: dict[str, list[str]] = {}
        for name in self.files:
            suffix = unpacked_suffix(Path(name))
            if suffix in _TABLES:
                found.setdefault(suffix, []).append(name)
        return found

    def describe(self) -> str:
        """What there is, in short."""
        shown = [f"{name}/" for name in self.folders[:8]] + self.files[:8]
        left = len(self.folders) + len(self.files) - len(shown)
        listed = ", ".join(shown) or "nothing"
        return f"{listed} and {left} more" if left else listed


def _has_file(folder: Path, suffix: str | tuple[str, ...]) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(entry.name.lower().endswith(suffix) for entry in entries)
    except OSError:
        return False


def _has_classes(folder: Path, least: int) -> bool:
    names = (name for name in list_folders(folder) if _has_file(folder / name, IMAGE_EXTENSIONS))
    return len(list(itertools.islice(names, least))) == least


def _has_images(folder: Path) -> bool:
    places = [folder, *(folder / name for name in list_folders(folder))]
    return any(_has_file(place, IMAGE_EXTENSIONS) for place in places)


def _names_pairs(path: Path) -> bool:
    """Whether a list gives the paths of an image and its mask on its first line."""
    try:
        lines = read_set_file(path)
    except SourceError:
        return False
    return bool(lines) and len(lines[0].names) == 2


def _detect_folder(path: Path, problem: str | None) -> Source:
    folder = _Folder.read(path)
    layouts: Mapping[str, tuple[str, Callable[[], bool], Callable[[Path], Source]]] = {
        "VocDetection": (_DET, folder.is_voc, VocDetection),
        "SegmentationMasks": (_SEG, folder.is_masks, SegmentationMasks),
        "LabelledImages": (_CLF, folder.is_labelled, LabelledImages),
        "ClassFolders": (_CLF, lambda: folder.is_classes(2 - (problem == _CLF)), ClassFolders),
    }
    found = [
        (name, kind, make)
        for name, (kind, fits, make) in layouts.items()
        if problem in (None, kind) and fits()
    ]
    if len(found) > 1 and found[0][1] == _CLF:  # a table says more than the folders' names
        found = found[:1]
    if len(found) == 1:
        return found[0][2](path)
    if found:
        names = " or ".join(f"problem={kind!r} ({name})" for name, kind, _ in found)
        raise SourceError(f"{path}: expected one layout, got several that fit\nhint: give {names}")
    if problem in (None, _TEXT):
        table = _detect_tables(folder, problem)
        if table is not None:
            return table
    raise _no_layout(folder, problem)


def _detect_tables(folder: _Folder, problem: str | None) -> Source | None:
    """The source of files of one kind; None if there are none, or images beside them."""
    tables = folder.tables()
    is_mixed = len(tables) > 1 or (problem is None and _has_images(folder.path))
    if not tables or is_mixed:
        return None
    ((suffix, names),) = tables.items()
    if suffix == ".json":
        return _table(suffix, folder.path)
    splits: dict[str | None, list[Path]] = {}
    for name in names:
        splits.setdefault(split_of_file(name), []).append(folder.path / name)
    if None in splits:
        return _table(suffix, [folder.path / name for name in names])
    return _table(suffix, splits)


def _no_layout(folder: _Folder, problem: str | None) -> SourceError:
    kinds = _PROBLEMS if problem is None else (problem,)
    wanted = "; or ".join(_WANTED[kind] for kind in kinds)
    tables = [name for names in folder.tables().values() for name in names]
    if problem in (None, _CLF) and tables and _has_images(folder.path):
        hint = f"{_HINTS[_CLF]} or ImageTable({tables[0]!r}, path_column=...)"
    elif problem is None and _has_file(folder.path, IMAGE_EXTENSIONS):
        hint = (
            "without labels, pass rows: [{'image': path} for path in sorted(Path(...).iterdir())]"
        )
    elif problem is None:
        hint = "name the source, one of datum.sources, such as " + _HINTS[_DET]
    else:
        hint = _HINTS[problem]
    return SourceError(f"{folder.path}: expected {wanted}, got {folder.describe()}\nhint: {hint}")
