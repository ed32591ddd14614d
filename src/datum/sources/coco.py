"""Annotations in COCO's JSON: boxes, masks, keypoints, captions and panoptic segments."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError, count_of, suggest
from datum.images import ImageError, decode_pixels, read_file, read_file_header
from datum.images.regions import box_of_mask, mask_of_counts, mask_of_polygons
from datum.schema import Feature, Schema
from datum.sources.files import FoundFile, as_text, fingerprint_files, fingerprint_of, open_folder
from datum.sources.image_files import (
    BACKGROUND,
    IMAGE,
    FilePart,
    ImageIndex,
    UnusableRecordError,
    annotated_size,
    describe_classes,
    unusable,
)
from datum.sources.options import is_split_name
from datum.sources.protocol import Part, SourceInfo

__all__ = ["CocoAnnotations", "is_coco_file", "is_coco_folder"]

# Files of a folder that has several kinds are chosen in this order.
TASKS = ("instances", "person_keypoints", "panoptic", "stuff", "labels", "captions", "image_info")
_ROBOFLOW = "_annotations.coco.json"
_ANNOTATION_FOLDER = "annotations"
_NAMED = re.compile(r"(?P<task>.+?)_(?P<split>[^_]+)\.json", re.IGNORECASE)
_YEAR = re.compile(r"(?P<split>[a-z]+)(?P<year>20\d\d)", re.IGNORECASE)
_START_BYTES = 2**16  # of a file, in which its keys are searched
_KEYS = (b'"images"', b'"annotations"', b'"categories"', b'"image_id"')
_MAX_SEGMENTS = 65_535  # of a panoptic mask of 16 bits

_NUMBERS = Feature("float32", (None,))
_IDS = Feature("int64", (None,))
_BOXES = {"xmin": _NUMBERS, "xmax": _NUMBERS, "ymin": _NUMBERS, "ymax": _NUMBERS}


def is_coco_file(path: Path) -> bool:
    """Return whether a JSON file has COCO's keys, as far as its first bytes show."""
    try:
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
    except OSError:
        return False
    return sum(key in start for key in _KEYS) >= 2


def is_coco_folder(path: Path) -> bool:
    """Return whether a folder has COCO's annotations in a usual place."""
    return any(is_coco_file(file) for file in _annotation_files(path))


def _annotation_files(root: Path) -> list[Path]:
    """Return the JSON files that may be annotations, in the first folder that has any."""
    exports = sorted([*root.glob(_ROBOFLOW), *root.glob(f"*/{_ROBOFLOW}")])
    return (
        exports or sorted((root / _ANNOTATION_FOLDER).glob("*.json")) or sorted(root.glob("*.json"))
    )


@dataclass(frozen=True, slots=True)
class CocoAnnotations(SourceInfo):
    """Images with annotations in COCO's JSON.

    Known layouts are `annotations/<task>_<split>.json` with images in `<split>/`,
    `images/<split>/` or `images/`; `<split>/_annotations.coco.json` beside the images (Roboflow);
    and a single JSON file. A split takes its name from the file or folder, without a year:
    `instances_train2017.json` is `train`.

    The features depend on the annotations, so that each kind of file works:

    - image, image_id and filename, always;
    - xmin, xmax, ymin, ymax, the boxes as fractions of the image's width and height, clipped to
      its borders; area, as a fraction of the image; labels, indices into the class names, where 0
      is the background; is_crowd; annotation_id;
    - masks, one image of zeros and ones for each object, from polygons and run-length codes;
    - keypoints, x and y of each point as fractions; keypoints_visible: 0 not labelled, 1 hidden,
      2 visible;
    - captions;
    - segments, a panoptic mask: 0, or the position of a segment in labels and the boxes, from 1.

    Class names, the ids of COCO, and names and skeleton of keypoints are kept in the metadata.

    Attributes:
        path: The folder of the dataset, or one JSON file.
        task: The annotations to read if a folder has several kinds: instances, person_keypoints,
            panoptic, stuff, labels, captions or image_info. By default the first of these that
            exists.
        image_dir: The folder of the images, within `path`; by default it is detected.
        masks: Whether to store the masks of objects.
        sizes: "check" rejects images whose size is not the annotated one; "image" ignores the
            annotated size.
    """

    kind: ClassVar[str] = "COCO annotations"

    path: str | os.PathLike[str]
    _: KW_ONLY
    task: str | None = None
    image_dir: str | None = None
    masks: bool = True
    sizes: str = "check"

    def __post_init__(self) -> None:
        if self.sizes not in ("check", "image"):
            raise SourceError(f"expected `sizes` to be 'check' or 'image', got {self.sizes!r}")

    @property
    def _root(self) -> Path:
        path = Path(self.path)
        if path.is_dir():
            return open_folder(path)
        return path.parent.parent if path.parent.name == _ANNOTATION_FOLDER else path.parent

    def origin_of(self, split: str) -> str | None:
        """Return the file with the annotations of a split."""
        found = self._find_files().get(split)
        return None if found is None else str(found)

    def describe(self, parts: Mapping[str, Part]) -> str:
        """Describe the source: its kind, the task among several, and the number of classes."""
        path, kind = Path(self.path), self.kind
        tasks = _tasks_of(_annotation_files(path)) if path.is_dir() else {}
        if len(tasks) > 1:
            task = self._choose(tasks, path)
            kind += f" ({task}, not {', '.join(sorted(tasks.keys() - {task}))})"
        return describe_classes(kind, parts, "labels", background=True)

    def parts(self) -> dict[str, FilePart]:
        """Return the images of each split."""
        root = self._root
        images = ImageIndex.of_folder(root)
        read = {split: _Annotations.read(file) for split, file in self._find_files().items()}
        classes = _Classes.of(read.values())
        features = _features_of(read.values(), has_masks=self.masks)
        made = {}
        for split, found in read.items():
            finder = _Finder(images, self.image_dir, found.file, split)
            rows = _RowMaker(found, finder, classes, features, self.sizes == "check")
            made[split] = rows.to_part()
        return made

    def _find_files(self) -> dict[str, Path]:
        path = Path(self.path)
        if not path.is_dir():
            named = _NAMED.fullmatch(path.name)
            token = named["split"] if named else path.parent.name
            return {_without_year(token) if is_split_name(token) else "train": path}
        found = _annotation_files(open_folder(path))
        if found and found[0].name == _ROBOFLOW:
            if self.task is not None:
                raise SourceError(
                    f"expected no `task` for {_ROBOFLOW}, got {self.task!r}", where=path
                )
            return {file.parent.name if file.parent != path else "train": file for file in found}
        tasks = _tasks_of(found)
        return _by_split(tasks[self._choose(tasks, path)])

    def _choose(self, tasks: Mapping[str, Any], path: Path) -> str:
        if not tasks:
            raise SourceError("expected COCO's annotations, got no JSON file of them", where=path)
        if self.task is None:
            return next((task for task in TASKS if task in tasks), min(tasks))
        if self.task not in tasks:
            raise SourceError(
                f"expected annotations {self.task}_<split>.json, got those of {', '.join(tasks)}",
                where=path,
                hint=suggest(self.task, tasks),
            )
        return self.task


def _tasks_of(files: Sequence[Path]) -> dict[str, dict[str, Path]]:
    """Return the files of each task by the word in their names for the split."""
    tasks: dict[str, dict[str, Path]] = {}
    for file in files:
        named = _NAMED.fullmatch(file.name)
        if named and is_split_name(named["split"]):
            tasks.setdefault(named["task"], {})[named["split"]] = file
        elif is_split_name(file.stem):
            tasks.setdefault("", {})[file.stem] = file
        elif file.name != _ROBOFLOW and is_coco_file(file):  # such as instances_default.json
            tasks.setdefault(named["task"] if named else file.stem, {})["train"] = file
    return tasks


def _by_split(files: Mapping[str, Path]) -> dict[str, Path]:
    """Return the files by split, without years if the names still differ."""
    short = {_without_year(token): file for token, file in files.items()}
    return short if len(short) == len(files) else dict(files)


def _without_year(token: str) -> str:
    found = _YEAR.fullmatch(token)
    return found["split"] if found else token


@dataclass(frozen=True)
class _Annotations:
    """One JSON file, with its annotations grouped by image."""

    file: Path
    images: list[dict[str, Any]]
    by_image: dict[Any, list[dict[str, Any]]]
    categories: list[dict[str, Any]]
    orphans: int  # annotations of images that are not listed

    @classmethod
    def read(cls, file: Path) -> _Annotations:
        try:
            content = json.loads(read_file(file))
        except (ValueError, RecursionError) as error:
            raise SourceError(f"expected JSON, got: {error}", where=file) from None
        if not isinstance(content, dict):
            raise SourceError("expected COCO's annotations, an object", where=file)
        images = _objects(content, "images", file)
        _check_images(images, file)
        by_image: dict[Any, list[dict[str, Any]]] = {image["id"]: [] for image in images}
        orphans = 0
        for annotation in _objects(content, "annotations", file):
            found = by_image.get(annotation.get("image_id"))
            if found is None:
                orphans += 1
            else:
                found.append(annotation)
        return cls(file, images, by_image, _objects(content, "categories", file), orphans)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of all annotations that have a value."""
        found: set[str] = set()
        for one in itertools.chain.from_iterable(self.by_image.values()):
            found.update(key for key, value in one.items() if value not in (None, []))
        return frozenset(found)

    @property
    def points(self) -> int:
        """The largest number of keypoints of an object."""
        everything = itertools.chain.from_iterable(self.by_image.values())
        return max((len(one.get("keypoints") or ()) // 3 for one in everything), default=0)


def _objects(content: Mapping[str, Any], key: str, file: Path) -> list[dict[str, Any]]:
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise SourceError(f"expected {key!r} to be a list of objects", where=file)
    return found


def _check_images(images: Iterable[dict[str, Any]], file: Path) -> None:
    seen: set[Any] = set()
    for place, image in enumerate(images):
        name, number = image.get("file_name"), image.get("id")
        if not isinstance(name, str) or not isinstance(number, (int, str)):
            raise SourceError(
                f"image {place}: expected an `id` and a `file_name`, got {number!r} and {name!r}",
                where=file,
            )
        if number in seen:
            raise SourceError(f"expected an id for each image, got {number!r} twice", where=file)
        seen.add(number)


@dataclass(frozen=True, slots=True)
class _Classes:
    """The classes of all files: ids of COCO, which have gaps, to positions in the names."""

    names: list[str]
    ids: list[int | None]
    positions: dict[int, int]
    keypoints: dict[str, Any]

    @classmethod
    def of(cls, files: Iterable[_Annotations]) -> _Classes:
        by_id: dict[int, dict[str, Any]] = {}
        for file in files:
            for category in file.categories:
                number, name = category.get("id"), category.get("name")
                if not isinstance(number, int) or not isinstance(name, str):
                    raise SourceError(
                        f"expected categories with an `id` and a `name`, got {number!r}, {name!r}",
                        where=file.file,
                    )
                other = by_id.setdefault(number, category)
                if other["name"] != name:
                    raise SourceError(
                        f"category {number}: expected {other['name']!r} as in the other files,"
                        f" got {name!r}",
                        where=file.file,
                    )
        ids = sorted(by_id)
        names = _unique([by_id[number]["name"] for number in ids], ids)
        points = [by_id[number] for number in ids if by_id[number].get("keypoints")]
        keypoints = {}
        if points:
            skeleton = points[0].get("skeleton") or []
            keypoints = {"names": points[0]["keypoints"], "skeleton": skeleton}
        positions = {number: place for place, number in enumerate(ids, 1)}
        return cls([BACKGROUND, *names], [None, *ids], positions, keypoints)


def _unique(names: list[str], ids: list[int]) -> list[str]:
    """Return names, with the id if several classes share one, or one is named background."""
    counts = Counter([BACKGROUND, *names])
    return [
        f"{name} ({number})" if counts[name] > 1 else name
        for name, number in zip(names, ids, strict=True)
    ]


def _features_of(files: Iterable[_Annotations], *, has_masks: bool) -> Schema:
    files = list(files)
    keys = frozenset[str]().union(*(file.keys for file in files))
    features = {"image": IMAGE, "image_id": Feature("int64"), "filename": Feature("str")}
    if any(isinstance(image["id"], str) for file in files for image in file.images):
        features["image_id"] = Feature("str")
    if "caption" in keys:
        features["captions"] = Feature("str", (None,))
    has_boxes = not keys.isdisjoint(("bbox", "segmentation", "segments_info"))
    if has_boxes:
        features |= _BOXES | {"area": _NUMBERS, "is_crowd": Feature("bool", (None,))}
    if has_boxes or ("category_id" in keys and "caption" not in keys):
        features["labels"] = _IDS
    if has_boxes and "segments_info" not in keys:
        features["annotation_id"] = _IDS
    if "segments_info" in keys:
        features["segments"] = Feature("uint16", (None, None, 1), encoding="image")
    elif "segmentation" in keys and has_masks:
        features["masks"] = Feature("uint8", (None, None, None, 1), encoding="image")
    points = max((file.points for file in files), default=0)
    if points:
        features["keypoints"] = Feature("float32", (None, points, 2))
        features["keypoints_visible"] = Feature("int64", (None, points))
    return Schema(features)


@dataclass(frozen=True)
class _Finder:
    """Finds the files that annotations refer to."""

    images: ImageIndex
    image_dir: str | None
    file: Path
    split: str

    @cached_property
    def _folders(self) -> list[str]:
        """The usual folders of images, the likeliest first."""
        if self.image_dir is not None:
            return [PurePosixPath(self.image_dir).as_posix()]
        named = _NAMED.fullmatch(self.file.name)
        token = named["split"] if named else self.file.stem
        beside = self.file.parent.relative_to(self.images.folder).as_posix()
        splits = dict.fromkeys((token, self.split))
        places = [f"images/{name}" for name in splits] + list(splits)
        return [*places, "images", "data", "" if beside == "." else beside, ""]

    @cached_property
    def _names(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in self.images.files:
            found.setdefault(path.rpartition("/")[2], []).append(path)
        return found

    def find(self, name: str) -> FoundFile:
        """Return the file of an image; raise UnusableRecordError if there is none."""
        plain = PurePosixPath(name.replace("\\", "/")).as_posix()
        for folder in self._folders:
            found = self.images.files.get(f"{folder}/{plain}" if folder else plain)
            if found is not None:
                return found
        named = self._names.get(plain.rpartition("/")[2], []) if self.image_dir is None else []
        if len(named) == 1:
            return self.images.files[named[0]]
        got = "several of that name" if named else "no such file"
        raise UnusableRecordError(
            f"expected an image {as_text(name)!r}, got {got}", where=self.images.folder
        )

    def segments_path(self, name: str) -> Path:
        """Return the PNG file of a panoptic mask, in the folder named after the annotations."""
        return self.file.with_suffix("") / PurePosixPath(name).name


@dataclass(frozen=True)
class _RowMaker:
    annotations: _Annotations
    finder: _Finder
    classes: _Classes
    schema: Schema
    is_size_checked: bool

    def to_part(self) -> FilePart:
        files, keys = [], []
        for image in self.annotations.images:
            keys.append(as_text(image["file_name"]))
            try:
                files.append(self.finder.find(image["file_name"]))
            except UnusableRecordError:
                continue
        metadata: dict[str, dict[str, Any]] = {}
        if "labels" in self.schema:
            metadata["labels"] = {
                "class_names": self.classes.names,
                "coco_ids": self.classes.ids,
            }
        if "keypoints" in self.schema and self.classes.keypoints:
            metadata["keypoints"] = self.classes.keypoints
        origin = self.annotations.file
        return FilePart(
            self,
            schema=self.schema,
            keys=keys,
            fingerprint=fingerprint_of(
                sorted(set(files)),
                "coco",
                fingerprint_files([origin]),
                list(self.schema.items()),
                self.is_size_checked,
            ),
            stored_bytes=sum(file.size for file in files),
            metadata=metadata,
            is_slow_python="masks" in self.schema or "segments" in self.schema,
            warnings=tuple(self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        name = self.annotations.file.name
        if self.annotations.orphans:
            count = count_of(self.annotations.orphans, "annotation")
            yield f"{name}: skipped {count} of images that are not listed"
        cut = empty = 0
        for image in self.annotations.images:
            width, height = image.get("width"), image.get("height")
            for box in map(_box_of, self._objects_of(image["id"])):
                if box is None or not width or not height:
                    continue
                left, top, right, bottom = box
                cut += left < 0 or top < 0 or right > width or bottom > height
                empty += right <= left or bottom <= top
        if cut:
            yield f"{name}: {count_of(cut, 'box', 'boxes')} cut at the border of the image"
        if empty:
            yield f"{name}: {count_of(empty, 'box', 'boxes')} without area"

    def _objects_of(self, image_id: Any) -> list[dict[str, Any]]:
        """Return the objects of an image; those of a panoptic mask are its segments."""
        found = self.annotations.by_image[image_id]
        if "segments" not in self.schema:
            return found
        return [segment for one in found for segment in one.get("segments_info") or ()]

    def __call__(self, number: int) -> dict[str, Any]:
        image = self.annotations.images[number]
        path = self.finder.images.path_of(self.finder.find(image["file_name"]))
        found = self.annotations.by_image[image["id"]]
        where = f"{self.annotations.file}: image {image['id']} ({as_text(path.name)})"
        row = {"image": path, "image_id": image["id"], "filename": as_text(path.name)}
        if "captions" in self.schema:
            row["captions"] = [str(one["caption"]) for one in found if one.get("caption")]
        objects = self._objects_of(image["id"])
        if "labels" in self.schema:
            row["labels"] = [self._label_of(one, where) for one in objects]
        if "xmin" not in self.schema:
            return row
        size = annotated_size(
            path,
            _positive(image.get("width")),
            _positive(image.get("height")),
            is_checked=self.is_size_checked,
            where=where,
            hint="CocoAnnotations(path, sizes='image') reads boxes as pixels of the stored images",
        )
        if "masks" in self.schema or "segments" in self.schema:
            _check_same_size(path, size, where)
        width, height = size
        row["is_crowd"] = [bool(one.get("iscrowd")) for one in objects]
        if "annotation_id" in self.schema:
            row["annotation_id"] = [_whole(one.get("id", 0), where) for one in objects]
        masks = self._masks(objects, (int(width), int(height)), where)
        if "masks" in self.schema:
            row["masks"] = [mask[:, :, None] for mask in masks]
        if "segments" in self.schema:
            row["segments"] = self._segments(found, objects, size, where)
        row |= self._boxes(objects, masks, size, where)
        if "keypoints" in self.schema:
            row |= self._keypoints(objects, size, where)
        return row

    def _label_of(self, one: Mapping[str, Any], where: str) -> int:
        position = self.classes.positions.get(one.get("category_id"))  # type: ignore[arg-type]
        if position is None:
            raise UnusableRecordError(
                f"expected a category of the list, got {one.get('category_id')!r}", where=where
            )
        return position

    def _masks(
        self,
        objects: Sequence[Mapping[str, Any]],
        size: tuple[int, int],
        where: str,
    ) -> list[NDArray[np.uint8]]:
        """Return the mask of each object, if masks are stored or boxes derived from them."""
        has_boxes = all(_box_of(one) is not None for one in objects)
        if "masks" not in self.schema and (has_boxes or "segments" in self.schema):
            return []
        width, height = size
        try:
            return [_mask_of(one.get("segmentation"), height, width) for one in objects]
        except ImageError as error:
            raise UnusableRecordError(error.problem, where=where) from None

    def _segments(
        self,
        found: Sequence[Mapping[str, Any]],
        objects: Sequence[Mapping[str, Any]],
        size: tuple[float, float],
        where: str,
    ) -> NDArray[np.uint16]:
        width, height = int(size[0]), int(size[1])
        mask = np.zeros((height, width, 1), np.uint16)
        if len(objects) > _MAX_SEGMENTS:
            raise UnusableRecordError(
                f"expected at most {_MAX_SEGMENTS:,} segments, got {len(objects):,}", where=where
            )
        positions = {one.get("id"): place for place, one in enumerate(objects, 1)}
        for one in found:
            path = self.finder.segments_path(str(one.get("file_name", "")))
            try:
                pixels = decode_pixels(read_file(path), 3).astype(np.uint32)
            except ImageError as error:
                raise unusable(path, error) from None
            if pixels.shape[:2] != (height, width):
                raise UnusableRecordError(
                    f"expected a mask of {width} x {height} pixels like the image, got"
                    f" {pixels.shape[1]} x {pixels.shape[0]}",
                    where=path,
                )
            ids = pixels[:, :, 0] + 256 * pixels[:, :, 1] + 65536 * pixels[:, :, 2]
            seen, inverse = np.unique(ids, return_inverse=True)
            unknown = [int(number) for number in seen if number and int(number) not in positions]
            if unknown:
                raise UnusableRecordError(
                    f"expected ids of the segments listed, got {unknown[0]}", where=path
                )
            table = np.array([positions.get(int(number), 0) for number in seen], np.uint16)
            mask = np.maximum(mask, table[inverse].reshape(height, width, 1))
        return mask

    def _boxes(
        self,
        objects: Sequence[Mapping[str, Any]],
        masks: Sequence[NDArray[np.uint8]],
        size: tuple[float, float],
        where: str,
    ) -> dict[str, list[float]]:
        width, height = size
        found: dict[str, list[float]] = {name: [] for name in (*_BOXES, "area")}
        for place, one in enumerate(objects):
            box = _box_of(one)
            if box is None:
                left, top, across, down = box_of_mask(masks[place]) if masks else (0, 0, 0, 0)
                box = left, top, left + across, top + down
            xmin, ymin, xmax, ymax = box
            if xmin > width or ymin > height or xmax < 0 or ymax < 0 or xmax < xmin or ymax < ymin:
                raise UnusableRecordError(
                    f"expected a box within {width:g} x {height:g}, got"
                    f" {xmin:g}, {ymin:g}, {xmax:g}, {ymax:g}",
                    where=where,
                )
            left_, right = (min(max(x / width, 0.0), 1.0) for x in (xmin, xmax))
            top_, bottom = (min(max(y / height, 0.0), 1.0) for y in (ymin, ymax))
            area = _positive(one.get("area")) / (width * height)
            share = area or (right - left_) * (bottom - top_)
            for name, value in zip(found, (left_, right, top_, bottom, share), strict=True):
                found[name].append(value)
        return found

    def _keypoints(
        self, objects: Sequence[Mapping[str, Any]], size: tuple[float, float], where: str
    ) -> dict[str, Any]:
        points = self.schema["keypoints"].shape[1] or 0
        places = np.zeros((len(objects), points, 2), np.float32)
        visible = np.zeros((len(objects), points), np.int64)
        for row, one in enumerate(objects):
            given = one.get("keypoints") or []
            try:
                values = np.asarray(given, np.float64).reshape(-1, 3)
            except (TypeError, ValueError):
                raise UnusableRecordError(
                    "expected keypoints as x, y, visibility, ..., got other values", where=where
                ) from None
            places[row, : len(values)] = values[:, :2] / size
            visible[row, : len(values)] = values[:, 2]
        return {"keypoints": places, "keypoints_visible": visible}


def _check_same_size(path: Path, size: tuple[float, float], where: str) -> None:
    """Raise UnusableRecordError for masks of an image that was resized: they do not fit it."""
    header = read_file_header(path)
    if size != (header.width, header.height):
        raise UnusableRecordError(
            f"expected masks of {header.width} x {header.height} pixels like the image,"
            f" got {size[0]:g} x {size[1]:g}",
            where=where,
            hint="CocoAnnotations(path, masks=False) leaves masks out",
        )


def _box_of(one: Mapping[str, Any]) -> tuple[float, float, float, float] | None:
    """Return left, top, right and bottom in pixels; None without a box."""
    box = one.get("bbox")
    if not isinstance(box, list) or len(box) != 4:
        return None
    if not all(isinstance(value, (int, float)) and np.isfinite(value) for value in box):
        return None
    left, top, width, height = map(float, box)
    return left, top, left + width, top + height


def _mask_of(region: Any, height: int, width: int) -> NDArray[np.uint8]:
    """Return the mask of a segmentation: polygons, a run-length code, or nothing."""
    if not region:
        return np.zeros((height, width), np.uint8)
    if isinstance(region, list):
        return mask_of_polygons(region, height, width)
    if not isinstance(region, dict):
        raise ImageError("expected polygons or a run-length code, got other values")
    size = region.get("size")
    if size != [height, width]:
        raise ImageError(f"expected a mask of the size [{height}, {width}], got {size!r}")
    return mask_of_counts(region.get("counts"), height, width)


def _positive(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and np.isfinite(value) and value > 0 else 0.0


def _whole(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UnusableRecordError(f"expected a whole number as `id`, got {value!r}", where=where)
    return value
