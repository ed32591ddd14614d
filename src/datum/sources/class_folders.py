"""Images in folders named after their class."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datum.errors import Call, SourceError, Text
from datum.schema import Feature, Schema
from datum.sources.files import (
    IMAGE_EXTENSIONS,
    FoundFile,
    as_text,
    fingerprint_of,
    list_files,
    list_folders,
    looks_like_image,
    open_folder,
    origin_in,
)
from datum.sources.image_files import IMAGE, FilePart, describe_classes, warn_of_images
from datum.sources.options import is_split_name
from datum.sources.protocol import Part, SourceInfo

__all__ = ["ClassFolders"]

_SCHEMA = Schema({"image": IMAGE, "label": Feature("int64"), "filename": Feature("str")})


@dataclass(frozen=True, slots=True)
class ClassFolders(SourceInfo):
    """Images in `<path>/<class>/` or `<path>/<split>/<class>/`, nested folders included.

    The features are image, label (an index into the class names, which are sorted and shared by
    all splits), and filename, the path within `path`, which is also the key. Images outside the
    folders of classes are skipped with a warning.

    Attributes:
        path: The folder.
        splits: The folders of splits: their names, or a dict of split and folder, where "." is
            `path` itself. By default, folders with the names of splits: train, val, test ...
    """

    kind: ClassVar[str] = "class folders"

    path: str | os.PathLike[str]
    _: KW_ONLY
    splits: Sequence[str] | Mapping[str, str] | None = None

    def origin_of(self, split: str) -> str:
        """Return the folder of a split."""
        return origin_in(self.path, split)

    def describe(self, parts: Mapping[str, Part]) -> str:
        """Describe the source: its kind, and the number of classes."""
        return describe_classes(self.kind, parts, "label")

    def parts(self) -> dict[str, FilePart]:
        """Return the images of each split; without folders of splits, of one split, `train`."""
        root = open_folder(self.path)
        listed = {
            split: _list_classes(open_folder(root / folder), "" if folder == "." else f"{folder}/")
            for split, folder in self._split_folders(root).items()
        }
        if "." not in self._split_folders(root).values():  # images beside the folders of splits
            names = [entry.name for entry in root.iterdir() if entry.is_file()]
            images = sorted(name for name in names if name.lower().endswith(IMAGE_EXTENSIONS))
            next(iter(listed.values())).loose.extend(map(as_text, images))
        classes = sorted({name for found in listed.values() for name in found.images})
        if not classes:
            raise SourceError(
                "expected folders of images, one for each class, got none",
                where=root,
                hint="the folder must contain `cat/1.jpg`, `dog/2.jpg` or `train/cat/1.jpg`",
            )
        ids = {name: number for number, name in enumerate(classes)}
        return {split: _make_part(root, found, ids) for split, found in listed.items()}

    def _split_folders(self, root: Path) -> dict[str, str]:
        if isinstance(self.splits, Mapping):
            return dict(self.splits)
        if self.splits is not None:
            if isinstance(self.splits, str):
                raise SourceError(f"expected `splits` as a list or a dict, got {self.splits!r}")
            return {name: name for name in self.splits}
        return _find_splits(root)


def _find_splits(root: Path) -> dict[str, str]:
    """Return the folders of splits: they contain folders, and at least one has a split's name."""
    folders = list_folders(root)
    if not any(map(is_split_name, folders)):
        return {"train": "."}
    nested, flat = [], []
    for name in folders:
        if list_folders(root / name) and (is_split_name(name) or not _has_images(root / name)):
            nested.append(name)
        elif _has_images(root / name):
            flat.append(name)
    named = [name for name in nested if is_split_name(name)]
    if not named and not (flat and all(map(is_split_name, flat))):
        return {"train": "."}
    if not flat:
        return {name: name for name in nested}
    got = f"{', '.join(flat[:5])} with images but no folders"
    if named:
        got = f"{', '.join(named)} with folders and {got}"
    only = Call(f"datum.sources.ClassFolders({str(root)!r}, splits={named!r})")
    take: tuple[str, ...] = (only, " reads only those, ") if named else ()
    every = Call(f"datum.sources.ClassFolders({str(root)!r}, splits={{'train': '.'}})")
    raise SourceError(
        f"expected folders of splits, each with a folder for each class, got {got}",
        where=root,
        hint=Text(*take, every, " reads every folder as a class"),
    )


def _has_images(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return any(
            not entry.name.startswith(".")
            and not entry.is_dir()
            and looks_like_image(folder, entry.name)
            for entry in entries
        )


@dataclass(frozen=True, slots=True)
class _Classes:
    """The files of one split: images by class, images outside classes, and other files."""

    images: dict[str, list[FoundFile]]
    loose: list[str]
    skipped: list[str]


def _list_classes(folder: Path, prefix: str) -> _Classes:
    images: dict[str, list[FoundFile]] = {}
    loose, skipped = [], []
    for file in list_files(folder):
        label, slash, _ = file.name.partition("/")
        if not looks_like_image(folder, file.name):
            skipped.append(as_text(prefix + file.name))
        elif slash:
            images.setdefault(label, []).append(file._replace(name=prefix + file.name))
        else:
            loose.append(as_text(prefix + file.name))
    return _Classes(images, loose, skipped)


@dataclass(frozen=True, slots=True)
class _RowMaker:
    """Makes records without reading their files."""

    root: str
    names: list[str]
    keys: list[str]
    labels: NDArray[np.int64]

    def __call__(self, number: int) -> dict[str, Any]:
        return {
            "image": Path(f"{self.root}/{self.names[number]}"),
            "label": int(self.labels[number]),
            "filename": self.keys[number],
        }


def _make_part(root: Path, found: _Classes, ids: Mapping[str, int]) -> FilePart:
    files = sorted(file for images in found.images.values() for file in images)
    names = [file.name for file in files]
    keys = [as_text(name) for name in names]
    label_of = {file.name: ids[label] for label, images in found.images.items() for file in images}
    labels = np.array([label_of[name] for name in names], np.int64)
    class_names = [as_text(name) for name in ids]
    return FilePart(
        _RowMaker(os.fspath(root), names, keys, labels),
        schema=_SCHEMA,
        keys=keys,
        fingerprint=fingerprint_of(files, "class folders", class_names),
        stored_bytes=sum(file.size for file in files),
        metadata={"label": {"class_names": class_names}},
        skipped=tuple(found.skipped),
        warnings=warn_of_images(found.loose, "outside the folders of classes"),
    )
