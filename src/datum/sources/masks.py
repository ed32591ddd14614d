"""Segmentation datasets: images, and masks with the class of every pixel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

from datum.errors import Call, SourceError, Text
from datum.images import (
    ImageError,
    ImageHeader,
    decode_pixels,
    ids_of_colours,
    palette_of,
    read_file,
    read_file_header,
)
from datum.schema import Feature, Schema
from datum.sources.files import FoundFile, as_text, fingerprint_of, open_folder, origin_in
from datum.sources.image_files import (
    IMAGE,
    FilePart,
    ImageIndex,
    SetLine,
    UnusableRecordError,
    find_set_files,
    read_set_file,
    set_file_of,
    unusable,
)
from datum.sources.options import read_split_options
from datum.sources.protocol import SourceInfo

__all__ = ["MaskSplit", "SegmentationMasks"]

_SET_FOLDERS = (".", "ImageSets/Segmentation", "ImageSets")
_SCHEMA = Schema(
    {
        "image": IMAGE,
        "label": Feature("uint8", (None, None, 1), encoding="image"),
        "filename": Feature("str"),
    }
)

ColourMap = Mapping[tuple[int, int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSplit:
    """The images and masks of a split, within the folder of the dataset.

    Attributes:
        set_dir: The folder with the list `<split>.txt`; by default the dataset's own,
            ImageSets/Segmentation or ImageSets.
        set_path: The list itself, if it is not named after the split.
        image_dir: The folder of the images.
        label_dir: The folder of the masks.
        image_extension: The extension of all images; by default any.
        label_extension: The extension of all masks; by default any.
    """

    set_dir: str | None = None
    set_path: str | None = None
    image_dir: str = "JPEGImages"
    label_dir: str = "SegmentationClass"
    image_extension: str | None = None
    label_extension: str | None = None


@dataclass(frozen=True, slots=True)
class SegmentationMasks(SourceInfo):
    """Images in `JPEGImages/`, masks in `SegmentationClass/`, the names of a split in a list.

    The features are image; label, a mask whose pixels are class ids, from a palette, from grey
    values of 8 or 16 bits, or from the colours in `colour_map`; and filename. The name in the list
    is the key. A line of a list may also contain two paths, of an image and of its mask: within
    `path`, or from another machine, in which case their ends are looked up within it. The palette
    of the first mask is kept in the metadata.

    Attributes:
        path: The folder.
        splits: The options of each split, a `MaskSplit` or a dict; by default there is a split for
            each list named train, val, test ..., or one, `train`, of all masks.
        colour_map: The id of each colour, for masks whose classes are colours: {(r, g, b): id}.
    """

    kind: ClassVar[str] = "images and masks (segmentation)"

    path: str | os.PathLike[str]
    _: KW_ONLY
    splits: Mapping[str, MaskSplit | Mapping[str, Any]] | None = None
    colour_map: ColourMap | None = None

    def __post_init__(self) -> None:
        colour: Any
        for colour, number in (self.colour_map or {}).items():
            is_colour = isinstance(colour, tuple) and len(colour) == 3
            if not is_colour or not all(value in range(256) for value in colour):
                raise SourceError(f"`colour_map`: expected (red, green, blue), got {colour!r}")
            if number not in range(65536):
                raise SourceError(f"`colour_map`: expected an id of 0 to 65535, got {number!r}")

    def origin_of(self, split: str) -> str:
        """Return the list or the folder of a split."""
        return origin_in(self.path, split, find_set_files(Path(self.path), _SET_FOLDERS).get(split))

    def parts(self) -> dict[str, FilePart]:
        """Return the images and masks of each split."""
        root = open_folder(self.path)
        splits = self.splits
        if splits is None:
            splits = dict.fromkeys(find_set_files(root, _SET_FOLDERS) or ["train"], MaskSplit())
        options = read_split_options(MaskSplit, splits)
        return {split: self._make_part(root, split, given) for split, given in options.items()}

    def _make_part(self, root: Path, split: str, options: MaskSplit) -> FilePart:
        listed = set_file_of(root, split, options.set_dir, options.set_path, _SET_FOLDERS)
        lines = None if listed is None else read_set_file(listed)
        pairs = _Pairs.of_paths(root) if _are_paths(lines) else _Pairs.of_folders(root, options)
        if lines is None:
            lines = [SetLine((stem,), 0) for stem in sorted(pairs.masks.stems)]
        rows = _RowMaker(pairs, lines, listed, self.colour_map)
        files = rows.find_files()
        colours = sorted((self.colour_map or {}).items())
        return FilePart(
            rows,
            schema=_SCHEMA,
            keys=[as_text(line.names[0]) for line in lines],
            fingerprint=fingerprint_of(files, "masks", colours, options, lines),
            stored_bytes=sum(file.size for file in files),
            metadata={} if colours else rows.describe_palette(),
            is_slow_python=self.colour_map is not None,
            skipped=pairs.unused(files) if listed is None else (),
        )


def _are_paths(lines: list[SetLine] | None) -> bool:
    return bool(lines) and all(len(line.names) == 2 for line in lines or ())


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Images and masks, looked up by their names."""

    images: ImageIndex
    masks: ImageIndex
    image_extension: str | None = None
    label_extension: str | None = None
    by_name: dict[str, list[str]] | None = None  # paths by file name, for lists of paths

    @classmethod
    def of_paths(cls, root: Path) -> _Pairs:
        index = ImageIndex.of_folder(root)
        by_name: dict[str, list[str]] = {}
        for path in index.files:
            by_name.setdefault(path.rpartition("/")[2], []).append(path)
        return cls(index, index, by_name=by_name)

    @classmethod
    def of_folders(cls, root: Path, options: MaskSplit) -> _Pairs:
        return cls(
            ImageIndex.of_folder(root / options.image_dir),
            ImageIndex.of_folder(root / options.label_dir),
            options.image_extension,
            options.label_extension,
        )

    def find(self, line: SetLine) -> tuple[FoundFile, FoundFile]:
        """Return the image and the mask of a line."""
        image, mask = line.names[0], line.names[-1]
        if self.by_name is not None:
            image, mask = self._find_end(image), self._find_end(mask)
        if len(line.names) == 1 and mask not in self.masks.stems:
            mask = mask.rpartition(".")[0] or mask  # the name has the extension of the image
        found = self.images.find(image, self.image_extension)
        return found, self.masks.find(mask, self.label_extension)

    def _find_end(self, path: str) -> str:
        """Return the longest end of a path that exists here; else the only file of its name."""
        folders = path.split("/")
        if ".." in folders:
            return path
        ends = ("/".join(folders[at:]) for at in range(len(folders)))
        named = (self.by_name or {}).get(folders[-1], [])
        found = next((end for end in ends if end in self.images.files), None)
        return found or (named[0] if len(named) == 1 else path)

    def unused(self, files: list[FoundFile]) -> tuple[str, ...]:
        """Return the names of images that have no mask."""
        used = {file.name for file in files}
        return tuple(as_text(name) for name in sorted(set(self.images.files) - used))


@dataclass(frozen=True, slots=True)
class _RowMaker:
    pairs: _Pairs
    lines: list[SetLine]
    listed: Path | None
    colour_map: ColourMap | None

    def find_files(self) -> list[FoundFile]:
        """Return the images and masks, as far as they exist."""
        found: set[FoundFile] = set()
        for line in self.lines:
            try:
                found.update(self.pairs.find(line))
            except UnusableRecordError:
                continue
        return sorted(found)

    def describe_palette(self) -> dict[str, dict[str, Any]]:
        """Return the colours of the ids, from the first mask that can be read."""
        for line in self.lines:
            try:
                colours = palette_of(read_file(self.pairs.masks.path_of(self.pairs.find(line)[1])))
            except (ImageError, UnusableRecordError):
                continue
            return {"label": {"palette": [list(colour) for colour in colours]}} if colours else {}
        return {}

    def __call__(self, number: int) -> dict[str, Any]:
        line = self.lines[number]
        try:
            image, mask = self.pairs.find(line)
        except UnusableRecordError as error:
            if self.listed is None:
                raise
            raise error.named_by(self.listed, line.number) from None
        image_path = self.pairs.images.path_of(image)
        mask_path = self.pairs.masks.path_of(mask)
        self._check_pair(image_path, mask_path)
        label = mask_path if self.colour_map is None else self._read_ids(mask_path)
        return {"image": image_path, "label": label, "filename": as_text(image.name)}

    def _check_pair(self, image_path: Path, mask_path: Path) -> None:
        image, mask = _header(image_path), _header(mask_path)
        if (image.height, image.width) != (mask.height, mask.width):
            raise UnusableRecordError(
                f"expected a mask of {image.width} x {image.height} pixels like the image,"
                f" got {mask.width} x {mask.height}",
                where=mask_path,
            )
        if self.colour_map is None and mask.channels > 1 and not mask.has_palette:
            raise UnusableRecordError(
                "expected class ids, grey or in a palette, got colours",
                where=mask_path,
                hint=Text(
                    Call(
                        "datum.sources.SegmentationMasks(path,"
                        " colour_map={(0, 0, 0): 0, (128, 0, 0): 1})"
                    ),
                    " maps colours to ids",
                ),
            )

    def _read_ids(self, path: Path) -> Any:
        try:
            return ids_of_colours(decode_pixels(read_file(path), 3), self.colour_map or {})
        except ImageError as error:
            raise unusable(path, error) from None


def _header(path: Path) -> ImageHeader:
    try:
        return read_file_header(path)
    except ImageError as error:
        raise unusable(path, error) from None
