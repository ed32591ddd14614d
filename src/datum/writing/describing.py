"""What was found at a path, and where each split comes from, in words."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datum.format.wording import count_of
from datum.sources import Source
from datum.sources.arrow import ArrowTable
from datum.sources.files import find_files, unpacked_suffix
from datum.sources.image_sets import find_set_files
from datum.sources.source import Part
from datum.sources.splits import splits_of_files

__all__ = [
    "Files",
    "describe_layout",
    "describe_origins",
    "find_table_files",
    "find_unread",
    "name_files",
]

_PARQUET = (".parquet", ".pq")
_SUFFIXES = {
    "CsvTable": (".csv", ".tsv"),
    "JsonLines": (".jsonl", ".ndjson"),
    "JsonText": (".json",),
    "NumpyFile": (".npy", ".npz"),
}
_KINDS = {
    "ArrowTable": "Arrow table",
    "ColumnTable": "columns in memory",
    "CsvTable": "CSV table",
    "Dataset": "dataset",
    "HuggingFaceDataset": "Hugging Face dataset",
    "HuggingFaceFolder": "Hugging Face dataset",
    "ImageTable": "table of image files",
    "JsonLines": "JSON lines",
    "JsonText": "texts in JSON",
    "LabelledImages": "images with a table of labels",
    "NumpyFile": "NumPy arrays",
    "PythonRows": "rows from Python",
    "SegmentationMasks": "images and masks (segmentation)",
    "Split": "split of a dataset",
}
_SET_FOLDERS = {
    "VocDetection": ("ImageSets", "ImageSets/Main"),
    "SegmentationMasks": (".", "ImageSets/Segmentation", "ImageSets"),
}

Files = Mapping[str, Sequence[Path]]


def find_table_files(given: Any, source: Source) -> dict[str, list[Path]]:
    """The files, by split, of a table that was given by its path; none of anything else."""
    if isinstance(source, ArrowTable) and source is not given:
        return {split: list(files) for split, files in source.files.items()}
    suffixes = _SUFFIXES.get(type(source).__name__)
    if suffixes is None or not isinstance(given, (str, os.PathLike)):
        return {}
    text = os.path.expanduser(os.fspath(given))  # noqa: PTH111 - it may be a pattern
    place = Path(text)
    if place.is_dir():
        files = sorted(file for file in place.iterdir() if not file.name.startswith("."))
        files = [file for file in files if unpacked_suffix(file) in suffixes]
    elif glob.has_magic(text) and not place.exists():
        files = find_files(text)
    else:
        return {"train": [place]}  # one file: no name divides it
    splits: dict[str, list[Path]] = {}
    for file, split in zip(files, splits_of_files(files), strict=True):
        splits.setdefault(split or "", []).append(file)
    return {"train": files} if "" in splits else splits


def find_unread(given: Any, files: Files) -> list[str]:
    """The names of files and folders beside the tables of a folder."""
    if not files or not Path(given).expanduser().is_dir():
        return []
    used = {file.name for some in files.values() for file in some}
    folder = Path(given).expanduser()
    if any(file.parent != folder for some in files.values() for file in some):
        return []  # a layout of folders, whose other files say what it is
    entries = sorted(folder.iterdir())
    return [
        f"{entry.name}/" if entry.is_dir() else entry.name
        for entry in entries
        if entry.name not in used and not entry.name.startswith(".")
    ]


def describe_layout(source: Source, parts: Mapping[str, Part], files: Files) -> str:
    """What was found, in a few words: "class folders: 10 classes", "CSV table, 3 files"."""
    describe = _DESCRIBERS.get(type(source).__name__)
    if describe is not None:
        return describe(parts)
    listed = [file for some in files.values() for file in some]
    kind = _KINDS.get(type(source).__name__, f"records of {type(source).__name__}")
    if kind == "Arrow table" and listed and unpacked_suffix(listed[0]) in _PARQUET:
        kind = "Parquet table"
    return f"{kind}, {len(listed)} files" if len(listed) > 1 else kind


def _describe_folders(parts: Mapping[str, Part]) -> str:
    return f"class folders: {count_of(len(_classes(parts, 'label')), 'class', 'classes')}"


def _describe_voc(parts: Mapping[str, Part]) -> str:
    classes = _classes(parts, "labels")[1:]  # the first is the background
    return f"Pascal VOC detection: {count_of(len(classes), 'class', 'classes')}"


def _classes(parts: Mapping[str, Part], feature: str) -> Sequence[str]:
    found = [part.metadata.get(feature, {}).get("class_names", ()) for part in parts.values()]
    return max(found, key=len, default=())


_DESCRIBERS: Mapping[str, Callable[[Mapping[str, Part]], str]] = {
    "ClassFolders": _describe_folders,
    "VocDetection": _describe_voc,
}


def describe_origins(
    given: Any, source: Source, splits: Sequence[str], files: Files
) -> dict[str, str]:
    """Where each split comes from; empty where that cannot be told."""
    if files:
        whole = [file for some in files.values() for file in some]
        return {split: name_files(files.get(split, whole)) for split in splits}
    path = getattr(source, "path", None)
    if not isinstance(path, (str, os.PathLike)):
        is_path = isinstance(given, (str, os.PathLike))
        return dict.fromkeys(splits, os.fspath(given) if is_path else "")
    root = Path(path)
    kind = type(source).__name__
    lists = find_set_files(root, _SET_FOLDERS[kind]) if kind in _SET_FOLDERS else {}
    return {split: _origin_in(root, split, lists.get(split)) for split in splits}


def _origin_in(root: Path, split: str, listed: Path | None) -> str:
    if listed is not None:
        return str(listed)
    folder, table = root / split, root / f"{split}.csv"
    if table.is_file() and folder.is_dir():
        return f"{table} and {folder}"
    return str(folder if folder.is_dir() else root)


def name_files(files: Sequence[Path]) -> str:
    """One file by its path, several by their number and the first.

    >>> name_files([Path("a.csv")]), name_files([Path("a.csv"), Path("b.csv")])
    ('a.csv', '2 files, a.csv ...')
    """
    if len(files) == 1:
        return str(files[0])
    return f"{len(files):,} files, {files[0]} ..." if files else ""
