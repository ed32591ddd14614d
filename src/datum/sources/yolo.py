"""YOLO labels: a text file for each image, with a line for each object."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError, count_of
from datum.images import ImageError, read_file, read_file_header
from datum.images.regions import mask_of_polygons
from datum.schema import Feature, Schema
from datum.sources.files import (
    IMAGE_EXTENSIONS,
    as_text,
    fingerprint_of,
    list_files,
    look_at_file,
    open_folder,
)
from datum.sources.image_files import (
    BACKGROUND,
    IMAGE,
    FilePart,
    UnusableRecordError,
    describe_classes,
    read_set_file,
    unusable,
)
from datum.sources.options import is_split_name
from datum.sources.protocol import Part, SourceInfo

__all__ = ["YoloLabels", "find_yolo_file", "is_yolo_folder"]

Task = Literal["detect", "segment", "pose", "obb"]

_TASKS: Final = ("detect", "segment", "pose", "obb")
_SPLITS = ("train", "val", "test")
_IMAGE_FOLDERS = ("images", "Images")
_LABEL_FOLDERS = ("labels", "Labels", "annotations", "Annotations")
_CLASS_FILES = ("classes.txt", "obj.names", "classes.names", "labels.txt")
_MAX_YAML_BYTES = 2**20  # of data.yaml, which lists the classes and little else
_SLACK = 1e-3  # by which a coordinate may be outside, because of rounding

_NUMBERS = Feature("float32", (None,))
_SIDES = ("xmin", "xmax", "ymin", "ymax")


def find_yolo_file(folder: Path) -> Path | None:
    """Return the `data.yaml` or `*.data` file that describes a dataset; None if there is none."""
    for file in [*sorted(folder.glob("*.yaml")), *sorted(folder.glob("*.yml"))]:
        content = _read_yaml(file)
        if "names" in content and any(split in content for split in _SPLITS):
            return file
    return next(iter(sorted(folder.glob("*.data"))), None)


def is_yolo_folder(folder: Path) -> bool:
    """Return whether a folder has a YOLO description, or labels of this kind."""
    return find_yolo_file(folder) is not None or _is_loose(folder)


def _is_loose(folder: Path) -> bool:
    """Return whether there are folders of images and labels without a description."""
    if not any((folder / name).is_dir() for name in _IMAGE_FOLDERS):
        return False
    for name in _LABEL_FOLDERS:
        files = sorted((folder / name).glob("*.txt")) or sorted((folder / name).glob("*/*.txt"))
        if files:
            return any(_looks_like_labels(file) for file in files[:5])
    return False


def _looks_like_labels(file: Path) -> bool:
    try:
        lines = _parse_labels(read_file(file), file)
    except SourceError:
        return False
    return bool(lines)


def _read_yaml(file: Path) -> dict[str, Any]:
    """Return the content of a YAML file; empty if it is something else."""
    import yaml  # the only file that needs it

    try:
        if file.stat().st_size > _MAX_YAML_BYTES:
            return {}
        content = yaml.safe_load(read_file(file))
    except (OSError, SourceError, yaml.YAMLError, RecursionError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True, slots=True)
class YoloLabels(SourceInfo):
    """Images with YOLO labels.

    Known layouts are those of Ultralytics and Roboflow, a `data.yaml` that names the folders or
    lists of each split; of Darknet, an `obj.data` with lists; and `images/` beside `labels/`, with
    or without folders of splits, and the classes in `classes.txt` or `obj.names`.

    The features are image; xmin, xmax, ymin, ymax as fractions of the image's width and height,
    clipped to its borders; labels, indices into the class names, where 0 is the background; and
    filename. Outlines of objects become `masks`, one image of zeros and ones for each; oriented
    boxes `corners`, four points each; poses `keypoints` and `keypoints_visible`. An image without
    a file of labels has no objects.

    Attributes:
        path: The folder of the dataset, or its `data.yaml` or `obj.data`.
        task: The content of the lines: "detect" (boxes), "segment" (outlines), "pose" (keypoints,
            with `kpt_shape` in data.yaml) or "obb" (four corners). By default it is inferred: lines
            of five numbers are boxes, lines of nine only are corners, others are outlines.
        classes: Names of the classes; by default those of the dataset.
    """

    kind: ClassVar[str] = "YOLO labels"

    path: str | os.PathLike[str]
    _: KW_ONLY
    task: Task | None = None
    classes: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.task is not None and self.task not in _TASKS:
            raise SourceError(f"expected `task` to be {', '.join(_TASKS)}, got {self.task!r}")

    def describe(self, parts: Mapping[str, Part]) -> str:
        """Describe the source: its kind, and the number of classes."""
        return describe_classes(self.kind, parts, "labels", background=True)

    def parts(self) -> dict[str, FilePart]:
        """Return the images of each split."""
        layout = _Layout.read(Path(self.path))
        labelled = {
            split: [_Labelled.read(image) for image in images]
            for split, images in layout.splits.items()
        }
        everything = [one for images in labelled.values() for one in images]
        names = self._class_names(layout, everything)
        shape = _Lines.of(everything, self.task, layout.keypoints)
        return {
            split: _RowMaker(images, names, shape).to_part(layout)
            for split, images in labelled.items()
        }

    def _class_names(self, layout: _Layout, images: Iterable[_Labelled]) -> list[str]:
        if self.classes is not None:
            return list(self.classes)
        if layout.names is not None:
            return layout.names
        count = max((label for one in images for label in one.labels), default=-1) + 1
        return [f"class {number}" for number in range(count)]


@dataclass(frozen=True, slots=True)
class _Layout:
    """The images of each split, and the rest of the description."""

    files: list[Path]
    splits: dict[str, list[Path]]
    names: list[str] | None
    keypoints: tuple[int, int] | None

    @classmethod
    def read(cls, path: Path) -> _Layout:
        described = path if path.is_file() else find_yolo_file(open_folder(path))
        if described is None:
            return cls._of_folders(path)
        if described.suffix == ".data":
            return cls._of_darknet(described)
        return cls._of_yaml(described)

    @classmethod
    def _of_yaml(cls, file: Path) -> _Layout:
        content = _read_yaml(file)
        if "names" not in content:
            raise SourceError("expected a data.yaml with the `names` of the classes", where=file)
        base = file.parent
        if isinstance(content.get("path"), str):
            named = base / content["path"]
            base = named if named.is_dir() else base  # it may be a path of another machine
        found = {}
        for split in ("train", "val", "valid", "test"):
            given = content.get(split)
            places = [given] if isinstance(given, str) else given
            if isinstance(places, list) and places:
                found[split] = [image for place in places for image in _images_at(base, str(place))]
        if not found:
            raise SourceError("expected data.yaml to name train, val or test", where=file)
        return cls(
            [file],
            found,
            _names_of(content["names"], file),
            _keypoint_shape(content.get("kpt_shape"), file),
        )

    @classmethod
    def _of_darknet(cls, file: Path) -> _Layout:
        lines = read_file(file).decode("utf-8-sig", "replace").splitlines()
        pairs = (line.partition("=") for line in lines if "=" in line)
        content = {key.strip(): value.strip() for key, _, value in pairs}
        found = {}
        for split, key in (("train", "train"), ("val", "valid"), ("test", "test")):
            if key in content:
                found[split] = _images_at(file.parent, content[key])
        if not found:
            raise SourceError("expected the lists `train` or `valid`, got neither", where=file)
        names = None
        if "names" in content:
            names = _read_names(_find_end(file.parent, content["names"], file))
        return cls([file], found, names, None)

    @classmethod
    def _of_folders(cls, root: Path) -> _Layout:
        images = next((root / name for name in _IMAGE_FOLDERS if (root / name).is_dir()), None)
        if images is None:
            raise SourceError(
                "expected data.yaml, obj.data or a folder images/, got none of them", where=root
            )
        listed = next((root / name for name in _CLASS_FILES if (root / name).is_file()), None)
        names = None if listed is None else _read_names(listed)
        folders = sorted(entry for entry in images.iterdir() if entry.is_dir())
        splits = {
            folder.name: _images_in(folder) for folder in folders if is_split_name(folder.name)
        }
        return cls(
            [] if listed is None else [listed], splits or {"train": _images_in(images)}, names, None
        )


def _images_at(base: Path, place: str) -> list[Path]:
    """Return the images of a folder, a list or a pattern in a description."""
    path = _find_place(base, place)
    if path.is_dir():
        return _images_in(path)
    lines = [
        line.names[0] if len(line.names) == 1 else " ".join(line.names)
        for line in read_set_file(path)
    ]
    return [_find_image(base, path, line) for line in lines]


def _find_place(base: Path, place: str) -> Path:
    """Return the folder or list; Roboflow writes `../train/images` for one beside data.yaml."""
    tried = [base / place]
    while place.startswith("../"):
        place = place.removeprefix("../")
        tried.append(base / place)
    found = next((path for path in tried if path.exists()), None)
    if found is None:
        found = _find_end(base, place, base)
    return found


def _find_end(base: Path, place: str, where: Path) -> Path:
    """Return the longest end of a path that exists below a folder, as paths of other machines."""
    words = place.replace("\\", "/").split("/")
    for start in range(len(words)):
        end = words[start:]
        if ".." not in end and (base / "/".join(end)).exists():
            return base / "/".join(end)
    raise SourceError(f"expected {as_text(place)!r}, got no such file or folder", where=where)


def _find_image(base: Path, listed: Path, line: str) -> Path:
    """Return the image in a line of a list; if it is missing, its expected path."""
    if line.startswith("./"):  # relative to the list
        return listed.parent / line.removeprefix("./")
    direct = base / line
    if direct.exists():
        return direct
    try:
        return _find_end(base, line, listed)
    except SourceError:
        return direct


def _images_in(folder: Path) -> list[Path]:
    names = (file.name for file in list_files(folder))
    return [folder / name for name in names if name.lower().endswith(IMAGE_EXTENSIONS)]


def _names_of(given: Any, file: Path) -> list[str]:
    """Return the class names of data.yaml: a list, or a dict by number."""
    if isinstance(given, dict):
        numbers = sorted(key for key in given if isinstance(key, int))
        if numbers == list(range(len(given))):
            given = [given[number] for number in numbers]
    if not isinstance(given, list):
        raise SourceError("expected `names` to be a list, or a dict from 0 on", where=file)
    return [str(name) for name in given]


def _keypoint_shape(given: Any, file: Path) -> tuple[int, int] | None:
    """Return the number of keypoints, and of numbers for each."""
    if given is None:
        return None
    match given:
        case [int(count), 2 | 3 as numbers] if count > 0:
            return count, numbers
    raise SourceError(f"expected `kpt_shape` such as [17, 3], got {given!r}", where=file)


def _read_names(file: Path) -> list[str]:
    lines = read_file(file).decode("utf-8-sig", "replace").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _label_file(image: Path) -> Path | None:
    """Return the file of labels of an image: in the matching folder, or beside it."""
    parts = image.parts
    for at in range(len(parts) - 2, -1, -1):
        if parts[at].lower() == "images":
            for name in _LABEL_FOLDERS:
                found = Path(*parts[:at], name, *parts[at + 1 :]).with_suffix(".txt")
                if found.is_file():
                    return found
    beside = image.with_suffix(".txt")
    return beside if beside.is_file() else None


def _parse_labels(data: bytes, file: Path) -> list[list[float]]:
    """Return the numbers of each line."""
    found = []
    for number, line in enumerate(data.decode("utf-8-sig", "replace").splitlines(), 1):
        if not line.strip():
            continue
        try:
            values = [float(word) for word in line.split()]
        except ValueError:
            values = []
        is_label = len(values) >= 5 and all(map(math.isfinite, values))
        if not is_label or values[0] != int(values[0]) or values[0] < 0:
            raise UnusableRecordError(
                "expected a class and at least four numbers of its position",
                where=f"{file}, line {number}",
            )
        found.append(values)
    return found


@dataclass(frozen=True, slots=True)
class _Labelled:
    """An image and its lines, or the error of reading them."""

    image: Path
    file: Path | None
    lines: list[list[float]]
    error: SourceError | None = None

    @classmethod
    def read(cls, image: Path) -> _Labelled:
        file = _label_file(image)
        if file is None:
            return cls(image, None, [])
        try:
            return cls(image, file, _parse_labels(read_file(file), file))
        except SourceError as error:
            return cls(image, file, [], error)

    @property
    def labels(self) -> list[int]:
        return [int(line[0]) for line in self.lines]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The format of the lines of a dataset."""

    task: Task
    keypoints: tuple[int, int]

    @classmethod
    def of(
        cls, images: Iterable[_Labelled], task: Task | None, keypoints: tuple[int, int] | None
    ) -> _Lines:
        lengths = {len(line) for one in images for line in one.lines}
        if task is None:
            if keypoints is not None:
                task = "pose"
            elif lengths <= {5}:
                task = "detect"
            else:
                task = "obb" if lengths == {9} else "segment"
        if task == "pose" and keypoints is None:
            longest = max(lengths, default=5) - 5
            if longest % 3:
                raise SourceError(
                    f"expected x, y and visibility of keypoints, got {longest} numbers",
                    hint="kpt_shape: [17, 2] in data.yaml says how they are written",
                )
            keypoints = longest // 3, 3
        return cls(task, keypoints or (0, 0))

    @property
    def schema(self) -> Schema:
        features = {"image": IMAGE} | dict.fromkeys(_SIDES, _NUMBERS)
        features |= {"labels": Feature("int64", (None,)), "filename": Feature("str")}
        if self.task == "segment":
            features["masks"] = Feature("uint8", (None, None, None, 1), encoding="image")
        elif self.task == "obb":
            features["corners"] = Feature("float32", (None, 4, 2))
        elif self.task == "pose":
            features["keypoints"] = Feature("float32", (None, self.keypoints[0], 2))
            features["keypoints_visible"] = Feature("int64", (None, self.keypoints[0]))
        return Schema(features)

    def is_fitting(self, line: Sequence[float]) -> bool:
        """Return whether a line has as many numbers as its task requires."""
        if self.task == "pose":
            return len(line) == 5 + self.keypoints[0] * self.keypoints[1]
        if self.task == "obb":
            return len(line) == 9
        return len(line) == 5 or (self.task == "segment" and len(line) >= 7 and len(line) % 2 == 1)

    def outline_of(self, line: Sequence[float]) -> NDArray[np.float64]:
        """Return the points of an object: its outline, or the corners of its box."""
        if self.task in ("detect", "pose") or len(line) == 5:
            x, y, width, height = line[1:5]
            left, right, top, bottom = x - width / 2, x + width / 2, y - height / 2, y + height / 2
            return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])
        return np.array(line[1:]).reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class _RowMaker:
    images: list[_Labelled]
    names: list[str]
    lines: _Lines

    def to_part(self, layout: _Layout) -> FilePart:
        keys = _keys_of([one.image for one in self.images])
        images = [look_at_file(one.image) for one in self.images]
        labels = [look_at_file(one.file) for one in self.images if one.file is not None]
        described = [look_at_file(file) for file in layout.files]
        return FilePart(
            self,
            schema=self.lines.schema,
            keys=keys,
            fingerprint=fingerprint_of(
                [*described, *labels, *images], "yolo", keys, self.names, self.lines
            ),
            stored_bytes=sum(file.size for file in images),
            metadata={"labels": {"class_names": [BACKGROUND, *self.names]}},
            is_slow_python=self.lines.task == "segment",
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        if self.images and not any(one.file for one in self.images):
            yield f"no image has a file of labels: {as_text(str(self.images[0].image))}, ..."
        cut = 0
        for line in (line for one in self.images for line in one.lines):
            points = self.lines.outline_of(line) if self.lines.is_fitting(line) else np.zeros(2)
            cut += bool((points < -_SLACK).any() or (points > 1 + _SLACK).any())
        if cut:
            yield f"{count_of(cut, 'object')} cut at the border of the image"

    def __call__(self, number: int) -> dict[str, Any]:
        one = self.images[number]
        where = str(one.file or one.image)
        if one.error is not None:
            raise UnusableRecordError(one.error.problem, where=one.error.where)
        if not one.image.is_file():
            raise UnusableRecordError("expected an image, got no such file", where=one.image)
        for line in one.lines:
            self._check(line, where)
        outlines = [self.lines.outline_of(line) for line in one.lines]
        ends = [_clipped(points, where) for points in outlines]
        row: dict[str, Any] = {
            "image": one.image,
            "xmin": [low[0] for low, _ in ends],
            "xmax": [high[0] for _, high in ends],
            "ymin": [low[1] for low, _ in ends],
            "ymax": [high[1] for _, high in ends],
            "labels": [label + 1 for label in one.labels],
            "filename": as_text(one.image.name),
        }
        if self.lines.task == "segment":
            row["masks"] = _masks(one.image, outlines)
        elif self.lines.task == "obb":
            row["corners"] = np.array(outlines, np.float32).reshape(-1, 4, 2)
        elif self.lines.task == "pose":
            row |= self._keypoints(one.lines)
        return row

    def _check(self, line: Sequence[float], where: str) -> None:
        if not 0 <= line[0] < len(self.names):
            raise UnusableRecordError(
                f"expected a class from 0 to {len(self.names) - 1}, got {line[0]:g}", where=where
            )
        if not self.lines.is_fitting(line):
            raise UnusableRecordError(
                f"expected lines of the task {self.lines.task!r}, got one of {len(line)} numbers",
                where=where,
                hint=f"YoloLabels(path, task=...) takes {', '.join(map(repr, _TASKS))}",
            )

    def _keypoints(self, lines: Sequence[Sequence[float]]) -> dict[str, Any]:
        count, numbers = self.lines.keypoints
        values = np.array([line[5:] for line in lines]).reshape(-1, count, numbers)
        visible = values[:, :, 2] if numbers == 3 else np.full(values.shape[:2], 2)
        return {
            "keypoints": values[:, :, :2].astype(np.float32),
            "keypoints_visible": visible.astype(np.int64),
        }


def _keys_of(images: Sequence[Path]) -> list[str]:
    """Return the name of each image, with its folders if names occur twice."""
    names = [image.name for image in images]
    if len(set(names)) == len(names):
        return [as_text(name) for name in names]
    base = os.path.commonpath(images) if len(images) > 1 else ""
    return [as_text(os.path.relpath(image, base)) for image in images]


def _clipped(points: NDArray[np.float64], where: str) -> tuple[list[float], list[float]]:
    """Return the least and largest x and y of an object, clipped to the image."""
    low, high = points.min(axis=0), points.max(axis=0)
    if (low > 1).any() or (high < 0).any() or (high < low).any():
        raise UnusableRecordError(
            f"expected an object within the image, got x from {low[0]:g} to {high[0]:g}, y from"
            f" {low[1]:g} to {high[1]:g}",
            where=where,
            hint="coordinates are fractions of the image's width and height",
        )
    return np.clip(low, 0, 1).tolist(), np.clip(high, 0, 1).tolist()


def _masks(image: Path, outlines: Sequence[NDArray[np.float64]]) -> list[NDArray[np.uint8]]:
    try:
        header = read_file_header(image)
    except ImageError as error:
        raise unusable(image, error) from None
    size = np.array([header.width, header.height])
    return [
        mask_of_polygons([(points * size).ravel().tolist()], header.height, header.width)[
            :, :, None
        ]
        for points in outlines
    ]
