"""Records of image files: found by name, listed by split, read in any order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError, suggest
from datum.images import ImageError, read_file, read_file_header
from datum.schema import Feature, Schema
from datum.sources.files import IMAGE_EXTENSIONS, FoundFile, as_text, list_files, open_folder
from datum.sources.options import is_split_name
from datum.sources.protocol import Block, Part, PartInfo, Reject

__all__ = [
    "BACKGROUND",
    "IMAGE",
    "FilePart",
    "ImageIndex",
    "SetLine",
    "UnusableRecordError",
    "annotated_size",
    "describe_classes",
    "find_set_files",
    "read_set_file",
    "set_file_of",
    "unusable",
    "warn_of_images",
]

BACKGROUND = "background"  # the name of class 0 in datasets of boxes
_SHOWN = 3  # names of files in a warning

# Channels stay open: they are known once every image has been read.
IMAGE = Feature("uint8", (None, None, None), encoding="image")


class UnusableRecordError(SourceError):
    """A record to reject; `where` is the file with the fault."""

    def named_by(self, path: Path, line: int) -> UnusableRecordError:
        """Return the error of a missing file at the line of the list or table that names it."""
        problem = f"{self.problem} in {self.where}"
        return UnusableRecordError(problem, where=f"{path}, line {line}", hint=self.hint)


def unusable(path: Path, error: SourceError) -> UnusableRecordError:
    """Return the error of a file as the error of a record."""
    return UnusableRecordError(error.parts.beside(path), where=path, hint=error.hint)


def annotated_size(
    path: Path, width: float, height: float, *, is_checked: bool, where: str, hint: str
) -> tuple[float, float]:
    """Return the width and height that the boxes of an image are fractions of.

    Args:
        path: The image.
        width: Its width as annotated; 0 if unknown.
        height: Its height as annotated; 0 if unknown.
        is_checked: Whether an annotated size with other proportions than the image is refused:
            nothing says which pixels the boxes mean then. The same proportions are those of an
            image that was resized later, and the boxes hold.
        where: The annotation, for messages.
        hint: The next step for an image of another size.
    """
    try:
        header = read_file_header(path)
    except ImageError as error:
        raise unusable(path, error) from None
    if not is_checked or width <= 0 or height <= 0:
        return header.width, header.height
    if abs(width * header.height / height - header.width) < 1:  # resized to whole pixels
        return width, height
    is_swapped = (width, height) == (header.height, header.width)
    swapped = ", width and height swapped, as by an EXIF orientation" if is_swapped else ""
    raise UnusableRecordError(
        f"expected the size {header.width} x {header.height} of the image,"
        f" got {width:g} x {height:g}{swapped}",
        where=where,
        hint=hint,
    )


def describe_classes(
    kind: str, parts: Mapping[str, Part], feature: str, *, background: bool = False
) -> str:
    """Describe a layout by its number of classes, without the background."""
    names = [part.metadata.get(feature, {}).get("class_names", ()) for part in parts.values()]
    count = max(map(len, names), default=0) - background
    return f"{kind}: {count:,} class{'' if count == 1 else 'es'}"


def warn_of_images(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the warning for images that are in no record; `where` says why."""
    if not names:
        return ()
    more = ", ..." if len(names) > _SHOWN else ""
    count = "1 image is" if len(names) == 1 else f"{len(names):,} images are"
    return (f"{count} left out, {where}: {', '.join(names[:_SHOWN])}{more}",)


@dataclass(eq=False, slots=True)
class FilePart(PartInfo):
    """The records of one split, each made by a call of `make_row` with its number.

    Attributes:
        make_row: Returns a record, or raises UnusableRecordError.
        schema, metadata, fingerprint, keys, stored_bytes, is_slow_python: See `IndexedPart`.
        skipped: Names of files without records: files that are not images, or unused ones.
        warnings: Likely mistakes, such as images that are left out.
    """

    make_row: Callable[[int], dict[str, Any]]
    _: KW_ONLY
    schema: Schema | None
    keys: Sequence[str] | None
    fingerprint: str | None
    stored_bytes: int | None
    metadata: Mapping[str, Mapping[str, Any]]
    is_slow_python: bool = False
    skipped: Sequence[str] = ()
    warnings: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.keys or ())

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers, in the order given."""
        rows, kept, rejects = [], [], []
        keys = self.keys or ()
        make_row = self.make_row
        for number in numbers.tolist():
            try:
                rows.append(make_row(number))
                kept.append(number)
            except UnusableRecordError as error:
                rejects.append(Reject(number, keys[number], error.where, error.problem, error.hint))
        return Block(
            rows, np.array(kept, np.int64), [keys[number] for number in kept], tuple(rejects)
        )


@dataclass(frozen=True, slots=True)
class ImageIndex:
    """Files of a folder by name, and by name without extension.

    Attributes:
        folder: The folder.
        files: All files, by their path within the folder.
        stems: The names of images, by name without extension.
    """

    folder: Path
    files: dict[str, FoundFile]
    stems: dict[str, list[str]]

    @classmethod
    def of_folder(cls, folder: str | os.PathLike[str]) -> ImageIndex:
        """List a folder; raise SourceError if it does not exist."""
        path = open_folder(folder)
        files = {file.name: file for file in list_files(path)}
        stems: dict[str, list[str]] = {}
        for name in files:
            stem, dot, extension = name.rpartition(".")
            if f"{dot}{extension.lower()}" in IMAGE_EXTENSIONS:
                stems.setdefault(stem, []).append(name)
        return cls(path, files, stems)

    def find(self, name: str, extension: str | None = None) -> FoundFile:
        """Return the file with a name, given with or without its extension, in any case.

        Raises UnusableRecordError if there is none, or more than one.
        """
        plain = PurePosixPath(name.replace("\\", "/")).as_posix()
        if extension is None:
            names = [plain] if plain in self.files else self.stems.get(plain, [])
        else:
            names = self._with_extension(plain, extension)
        if len(names) == 1:
            return self.files[names[0]]
        wanted = f"an image {plain + (extension or '')!r}"
        if names:
            listed = " and ".join(map(as_text, names))
            raise UnusableRecordError(
                f"expected {wanted}, got {listed}",
                where=self.folder,
                hint="pass the `extension`",
            )
        raise UnusableRecordError(f"expected {wanted}, got no such file", where=self.folder)

    def _with_extension(self, plain: str, extension: str) -> list[str]:
        ending = extension if extension.startswith(".") or not extension else f".{extension}"
        for name in (plain + ending, plain):
            if name in self.files and name.endswith(ending):
                return [name]
        found = self.stems.get(plain, [])
        return [name for name in found if name.lower().endswith(ending.lower())]

    def path_of(self, file: FoundFile) -> Path:
        """Return the path of a file of this folder."""
        return Path(f"{self.folder}/{file.name}")


_FLAGS = ("-1", "0", "1")  # in lists for one class: whether an image shows it


class SetLine(NamedTuple):
    """A line of a list.

    Attributes:
        names: One name, or the paths of an image and its mask.
        number: The line number, counted from 1; 0 if there is no list.
    """

    names: tuple[str, ...]
    number: int


def find_set_files(root: Path, folders: Sequence[str]) -> dict[str, Path]:
    """Return the lists of splits in the first of these folders that has any.

    `trainval` is left out beside `train` and `val`, which it consists of.
    """
    for folder in folders:
        files = sorted(path for path in (root / folder).glob("*.txt") if is_split_name(path.stem))
        found = {path.stem: path for path in files}
        if len(found) > 1:
            found.pop("trainval", None)
        if found:
            return found
    return {}


def set_file_of(
    root: Path, split: str, set_dir: str | None, set_path: str | None, folders: Sequence[str]
) -> Path | None:
    """Return the list of a split; None if none was asked for and no split has one.

    Raises SourceError if only other splits have lists.
    """
    if set_path is not None:
        return root / set_path
    if set_dir is not None:
        return root / set_dir / f"{split}.txt"
    places = [root / folder / f"{split}.txt" for folder in folders]
    found = next((place for place in places if place.exists()), None)
    others = [] if found else sorted(find_set_files(root, folders))
    if others:
        hint = suggest(split, others, "pass its `set_dir` or `set_path`")
        raise SourceError(
            f"expected a list {split}.txt for split {split!r}, got those of {', '.join(others)}",
            where=root,
            hint=hint,
        )
    return found


def read_set_file(path: Path) -> list[SetLine]:
    """Return the lines of a list, without empty lines and comments (#)."""
    data = read_file(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    if "\0" in text:
        raise SourceError("expected a list of names, got binary data", where=path)
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if name and not name.startswith("#"):
            lines.append(SetLine(_split_line(name), number))
    return lines


def _split_line(line: str) -> tuple[str, ...]:
    words = line.split()
    if len(words) == 2 and words[1] in _FLAGS:
        return (words[0],)
    if len(words) == 2 and all("/" in word for word in words):
        return tuple(word.lstrip("/") for word in words)
    return (line,)  # a name may contain spaces
