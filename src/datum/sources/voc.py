"""Object detection datasets in Pascal VOC layout: images with boxes in XML files."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from datum.errors import Call, SourceError, Text, nearest
from datum.images import ImageError, read_file
from datum.schema import Feature, Schema
from datum.sources.files import (
    FoundFile,
    as_text,
    fingerprint_of,
    list_files,
    open_folder,
    origin_in,
)
from datum.sources.image_files import (
    BACKGROUND,
    IMAGE,
    FilePart,
    ImageIndex,
    SetLine,
    UnusableRecordError,
    annotated_size,
    describe_classes,
    find_set_files,
    read_set_file,
    set_file_of,
    unusable,
)
from datum.sources.options import read_split_options
from datum.sources.protocol import Part, SourceInfo

__all__ = [
    "ANNOTATION_FOLDERS",
    "IMAGE_FOLDERS",
    "Annotation",
    "VocDetection",
    "VocObject",
    "VocSplit",
    "read_annotation",
]

MAX_XML_BYTES = 64 * 2**20  # of one annotation; real ones take kilobytes
MAX_TAGS = 2**20  # about 50,000 objects; a tag of four bytes takes a hundred once parsed
_UNSPECIFIED = "Unspecified"  # VOC's word for an unknown pose


@dataclass(frozen=True, slots=True)
class VocObject:
    """An object in an image, its box in pixels."""

    name: str
    pose: str
    is_truncated: bool
    is_difficult: bool
    xmin: float
    ymin: float
    xmax: float
    ymax: float


@dataclass(frozen=True, slots=True)
class Annotation:
    """The annotation of an image; width and height are 0 if the file does not state them."""

    width: float
    height: float
    objects: list[VocObject]


def read_annotation(path: Path) -> Annotation:
    """Read an XML file; raise UnusableRecordError if it is not an annotation.

    Entities and external references are refused: they can fill the memory or read other files.
    """
    try:
        data = read_file(path)
    except ImageError as error:
        raise unusable(path, error) from None
    if len(data) > MAX_XML_BYTES:
        raise UnusableRecordError(
            f"expected at most {MAX_XML_BYTES:,} bytes of XML, got {len(data):,}", where=path
        )
    if data.count(b"<") > MAX_TAGS:
        raise UnusableRecordError(
            f"expected at most {MAX_TAGS:,} tags of XML, got more", where=path
        )
    try:
        root = _parse(data)
        size = root.find("size")
        return Annotation(
            0.0 if size is None else _number(size, "width", default=0.0),
            0.0 if size is None else _number(size, "height", default=0.0),
            [_read_object(element) for element in root.findall("object")],
        )
    except _FaultError as fault:
        raise UnusableRecordError(fault, where=path) from None


class _FaultError(Exception):
    """A fault of an annotation."""


def _parse(data: bytes) -> Any:
    import defusedxml.ElementTree

    try:
        return defusedxml.ElementTree.fromstring(data)
    except defusedxml.DefusedXmlException as error:
        raise _FaultError(f"expected XML without entities, got {type(error).__name__}") from None
    except Exception as error:  # malicious bytes make parsers raise anything
        raise _FaultError(f"expected XML, got a damaged file: {error}") from None


def _read_object(element: Any) -> VocObject:
    name = _text(element, "name")
    if not name:
        raise _FaultError("expected every object to have a name, got one without")
    box = element.find("bndbox")
    if box is None:
        raise _FaultError(f"object {name!r}: expected a bndbox, got none")
    xmin, ymin, xmax, ymax = (_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax"))
    if xmin > xmax or ymin > ymax:
        raise _FaultError(
            f"object {name!r}: expected xmin <= xmax and ymin <= ymax,"
            f" got {xmin:g}, {ymin:g}, {xmax:g}, {ymax:g}"
        )
    pose = _text(element, "pose") or _UNSPECIFIED
    is_truncated = _number(element, "truncated", default=0.0) != 0
    is_difficult = _number(element, "difficult", default=0.0) != 0
    return VocObject(name, pose, is_truncated, is_difficult, xmin, ymin, xmax, ymax)


def _text(element: Any, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _number(element: Any, name: str, *, default: float | None = None) -> float:
    text = _text(element, name)
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _FaultError(f"{name}: expected a number, got {text!r}")
    return value


IMAGE_FOLDERS = ("JPEGImages", "images")
ANNOTATION_FOLDERS = ("Annotations", "annotations")
_SET_FOLDERS = ("ImageSets", "ImageSets/Main")
_NUMBERS = Feature("float32", (None,))
_SCHEMA = Schema(
    {
        "image": IMAGE,
        "xmin": _NUMBERS,
        "xmax": _NUMBERS,
        "ymin": _NUMBERS,
        "ymax": _NUMBERS,
        "area": _NUMBERS,
        "pose": Feature("str", (None,)),
        "labels": Feature("int64", (None,)),
        "is_truncated": Feature("bool", (None,)),
        "labels_difficult": Feature("bool", (None,)),
        "filename": Feature("str"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class VocSplit:
    """The files of a split, within the folder of the dataset.

    Attributes:
        extension: The extension of all images; by default any.
        set_dir: The folder with the list `<split>.txt`; by default ImageSets or ImageSets/Main.
        set_path: The list itself, if it is not named after the split.
        image_dir: The folder of the images; by default JPEGImages or images.
        annotation_dir: The folder of the XML files; by default Annotations or annotations.
    """

    extension: str | None = None
    set_dir: str | None = None
    set_path: str | None = None
    image_dir: str | None = None
    annotation_dir: str | None = None


@dataclass(frozen=True, slots=True)
class VocDetection(SourceInfo):
    """Images in `JPEGImages/`, boxes in `Annotations/`, the names of a split in `ImageSets/`.

    Folders named `images/` and `annotations/` work as well.

    The features are image; xmin, xmax, ymin, ymax as fractions of the image's width and height,
    clipped to its borders; area, of the box in those fractions; pose; labels, indices into the
    class names, where 0 is the background; is_truncated; labels_difficult; and filename. The name
    in the list is the key. Boxes without area are kept.

    An annotation states the size of its image. If only the scale differs, the image was resized
    later and the boxes hold. Any other difference, above all width and height swapped, as by an
    EXIF orientation, makes a bad record: it is unknown which pixels the boxes refer to.

    Attributes:
        path: The folder.
        splits: The options of each split, a `VocSplit` or a dict; by default there is a split for
            each list named train, val, test ..., or one, `train`, of all annotations.
        classes: The class names, from id 1 on; by default the lines of `classes.names`, or else
            the names in all annotations, sorted.
        unannotated: How to treat images without an XML file, in a split where others have one:
            "reject" them, or store them as "empty" of objects.
        sizes: "check" rejects annotations whose size is not that of the image; "image" ignores
            the stated size, and reads boxes as pixels of the stored images.
    """

    kind: ClassVar[str] = "Pascal VOC detection"

    path: str | os.PathLike[str]
    _: KW_ONLY
    splits: Mapping[str, VocSplit | Mapping[str, Any]] | None = None
    classes: Sequence[str] | None = None
    unannotated: Literal["reject", "empty"] = "reject"
    sizes: Literal["check", "image"] = "check"

    def __post_init__(self) -> None:
        if self.sizes not in ("check", "image"):
            raise SourceError(f"expected `sizes` to be 'check' or 'image', got {self.sizes!r}")
        if self.unannotated not in ("reject", "empty"):
            raise SourceError(
                f"expected `unannotated` to be 'reject' or 'empty', got {self.unannotated!r}"
            )

    def origin_of(self, split: str) -> str:
        """Return the list or the folder of a split."""
        return origin_in(self.path, split, find_set_files(Path(self.path), _SET_FOLDERS).get(split))

    def describe(self, parts: Mapping[str, Part]) -> str:
        """Describe the source: its kind, and the number of classes."""
        return describe_classes(self.kind, parts, "labels", background=True)

    def parts(self) -> dict[str, FilePart]:
        """Return the images of each split."""
        root = open_folder(self.path)
        splits = self.splits
        if splits is None:
            splits = dict.fromkeys(find_set_files(root, _SET_FOLDERS) or ["train"], VocSplit())
        options = read_split_options(VocSplit, splits)
        drafts = {split: _Draft.read(root, split, given) for split, given in options.items()}
        names = self._class_names(root, drafts.values())
        return {
            split: draft.to_part(names, self.unannotated, options[split], sizes=self.sizes)
            for split, draft in drafts.items()
        }

    def _class_names(self, root: Path, drafts: Iterable[_Draft]) -> list[str]:
        listed = root / "classes.names"
        if self.classes is not None:
            names = list(self.classes)
        elif listed.exists():
            lines = read_file(listed).decode("utf-8-sig", "replace").splitlines()
            names = [line.strip() for line in lines if line.strip()]
        else:
            names = sorted({name for draft in drafts for name in draft.find_classes()})
        others = [name for name in names if name.lower() != BACKGROUND]
        twice = next((name for name, count in Counter(others).items() if count > 1), None)
        if twice is not None:
            raise SourceError(f"expected different class names, got {twice!r} twice", where=root)
        return [BACKGROUND, *others]


@dataclass(frozen=True, slots=True)
class _Draft:
    """The images and annotations of a split, before the classes are known."""

    lines: list[SetLine]
    listed: Path | None
    images: ImageIndex
    annotations: dict[str, FoundFile]
    folder: Path
    extension: str | None

    @classmethod
    def read(cls, root: Path, split: str, options: VocSplit) -> _Draft:
        images = ImageIndex.of_folder(_folder_of(root, options.image_dir, IMAGE_FOLDERS))
        folder = open_folder(_folder_of(root, options.annotation_dir, ANNOTATION_FOLDERS))
        annotations = {
            file.name[: -len(".xml")]: file
            for file in list_files(folder)
            if file.name.lower().endswith(".xml")
        }
        listed = set_file_of(root, split, options.set_dir, options.set_path, _SET_FOLDERS)
        if listed is not None:
            lines = read_set_file(listed)
        else:
            lines = [SetLine((name,), 0) for name in sorted(annotations)]
        return cls(lines, listed, images, annotations, folder, options.extension)

    def find_classes(self) -> set[str]:
        """Return the names of all objects; unreadable files are reported when they are written."""
        found: set[str] = set()
        for line in self.lines:
            try:
                annotation = self.read_annotation(line)
            except UnusableRecordError:
                continue
            if annotation is not None:
                found.update(item.name for item in annotation.objects)
        return found

    def read_annotation(self, line: SetLine) -> Annotation | None:
        """Return the annotation of an image; None if it has no XML file."""
        file = self.annotation_file(line)
        return None if file is None else read_annotation(self.folder / file.name)

    def annotation_file(self, line: SetLine) -> FoundFile | None:
        """Return the XML file of an image, whether its name has an extension or not."""
        name = line.names[0]
        return self.annotations.get(name) or self.annotations.get(name.rpartition(".")[0])

    def find_image(self, line: SetLine) -> FoundFile:
        """Return the image of a line, or raise an error that names the line."""
        try:
            return self.images.find(line.names[0], self.extension)
        except UnusableRecordError as error:
            if self.listed is None:
                raise
            raise error.named_by(self.listed, line.number) from None

    def find_files(self) -> list[FoundFile]:
        """Return the images and annotations of the split, as far as they exist."""
        found = []
        for line in self.lines:
            annotation = self.annotation_file(line)
            if annotation is not None:
                found.append(annotation)
            try:
                found.append(self.find_image(line))
            except UnusableRecordError:
                continue
        return sorted(set(found))

    def to_part(
        self, names: list[str], unannotated: str, options: VocSplit, *, sizes: str
    ) -> FilePart:
        files = self.find_files()
        is_labelled = any(self.annotation_file(line) for line in self.lines)
        is_empty_fine = unannotated == "empty" or not is_labelled
        used = {file.name for file in files}
        unused = sorted(set(self.images.files) - used) if self.listed is None else []
        return FilePart(
            _RowMaker(self, _ids_of(names), is_empty_fine, sizes == "check"),
            schema=_SCHEMA,
            keys=[as_text(line.names[0]) for line in self.lines],
            fingerprint=fingerprint_of(
                files, "voc", names, options, is_empty_fine, sizes, self.lines
            ),
            stored_bytes=sum(file.size for file in files),
            metadata={"labels": {"class_names": names}},
            is_slow_python=True,
            skipped=tuple(map(as_text, unused)),
        )


@dataclass(frozen=True, slots=True)
class _RowMaker:
    draft: _Draft
    ids: dict[str, int]
    is_empty_fine: bool
    is_size_checked: bool

    def __call__(self, number: int) -> dict[str, Any]:
        draft, line = self.draft, self.draft.lines[number]
        image = draft.find_image(line)
        path = draft.images.path_of(image)
        annotation = draft.read_annotation(line)
        if annotation is None:
            if not self.is_empty_fine:
                raise UnusableRecordError(
                    f"expected an annotation {line.names[0]}.xml in {draft.folder}, got none",
                    where=path,
                    hint=Text(
                        Call("datum.sources.VocDetection(path, unannotated='empty')"),
                        " stores it as an image without objects",
                    ),
                )
            annotation = Annotation(0.0, 0.0, [])
        where = str(draft.folder / f"{line.names[0]}.xml")
        boxes = self._boxes(annotation, path, where)
        objects = annotation.objects
        return {
            "image": path,
            **boxes,
            "pose": [item.pose for item in objects],
            "labels": [self._id_of(item, where) for item in objects],
            "is_truncated": [item.is_truncated for item in objects],
            "labels_difficult": [item.is_difficult for item in objects],
            "filename": as_text(image.name),
        }

    def _id_of(self, item: VocObject, where: str) -> int:
        number = self.ids.get(item.name, self.ids.get(item.name.lower()))
        if number is not None:
            return number
        near = nearest(item.name, self.ids)
        got = f"{item.name!r}, similar to {near[0]!r}" if near else repr(item.name)
        raise UnusableRecordError(f"expected one of the classes, got {got}", where=where)

    def _boxes(self, annotation: Annotation, path: Path, where: str) -> dict[str, list[float]]:
        width, height = self._size(annotation, path, where) if annotation.objects else (1.0, 1.0)
        found: dict[str, list[float]] = {"xmin": [], "xmax": [], "ymin": [], "ymax": [], "area": []}
        for item in annotation.objects:
            is_inside = item.xmin <= width and item.xmax >= 0 and item.ymin <= height
            if not is_inside or item.ymax < 0:
                raise UnusableRecordError(
                    f"object {item.name!r}: expected a box within {width:g} x {height:g},"
                    f" got {item.xmin:g}, {item.ymin:g}, {item.xmax:g}, {item.ymax:g}",
                    where=where,
                )
            left, right = _fraction(item.xmin, width), _fraction(item.xmax, width)
            top, bottom = _fraction(item.ymin, height), _fraction(item.ymax, height)
            values = (left, right, top, bottom, (right - left) * (bottom - top))
            for column, value in zip(found.values(), values, strict=True):
                column.append(value)
        return found

    def _size(self, annotation: Annotation, path: Path, where: str) -> tuple[float, float]:
        """Return the width and height that boxes are fractions of."""
        return annotated_size(
            path,
            annotation.width,
            annotation.height,
            is_checked=self.is_size_checked,
            where=where,
            hint=Text(
                Call("datum.sources.VocDetection(path, sizes='image')"),
                " reads boxes as pixels of the stored images",
            ),
        )


def _folder_of(root: Path, given: str | None, usual: tuple[str, ...]) -> Path:
    if given is not None:
        return root / given
    return next((root / name for name in usual if (root / name).is_dir()), root / usual[0])


def _ids_of(names: list[str]) -> dict[str, int]:
    """Return the id of each class, by its name and by its name in lower case."""
    exact = {name: number for number, name in enumerate(names)}
    return {name.lower(): number for name, number in exact.items()} | exact


def _fraction(position: float, length: float) -> float:
    return min(max(position / length, 0.0), 1.0)
