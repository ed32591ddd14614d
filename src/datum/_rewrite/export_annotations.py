"""A split as images with annotations: COCO, YOLO and Pascal VOC."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from datum._rewrite.export import Names, create, json_rows, safe_name
from datum.columns import BytesColumn, Ragged
from datum.errors import Option, SchemaError, Text, WriteError, json_text
from datum.images import ImageError, decode_pixels, read_header, sniff_format
from datum.images.regions import counts_of_mask
from datum.schema import Schema

__all__ = ["ANNOTATION_FORMATS", "open_annotations"]

ANNOTATION_FORMATS = ("coco", "yolo", "voc")

_SIDES = ("xmin", "xmax", "ymin", "ymax")
_BACKGROUND = "background"
_EXTENSIONS = {"jpeg": "jpg", "tiff": "tif"}
# The features that each format holds; others are refused, so that nothing is lost unnoticed.
_HELD = {
    "coco": {
        *_SIDES,
        "image",
        "labels",
        "filename",
        "image_id",
        "area",
        "is_crowd",
        "annotation_id",
        "masks",
        "keypoints",
        "keypoints_visible",
        "captions",
    },
    "yolo": {*_SIDES, "image", "labels", "filename", "corners", "keypoints", "keypoints_visible"},
    "voc": {
        *_SIDES,
        "image",
        "labels",
        "filename",
        "pose",
        "is_truncated",
        "labels_difficult",
        "area",
    },
}


class _Classes:
    """The names of the classes, without the background; a label is a position in them."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        names = [str(name) for name in metadata.get("class_names", ())]
        self.first = 1 if names[:1] == [_BACKGROUND] else 0
        self.names = names[self.first :]
        ids = metadata.get("coco_ids", ())
        is_known = len(ids) == len(names)
        self.ids = ids[self.first :] if is_known else range(self.first, len(names))

    def position(self, label: int, where: str) -> int:
        """The position of a class among the names, counted from 0."""
        place = label - self.first
        if not 0 <= place < len(self.names):
            raise SchemaError(
                f"feature 'labels': expected a class from {self.first} to"
                f" {self.first + len(self.names) - 1}, got {label}",
                where=where,
                feature="labels",
            )
        return place


class _AnnotatedSplit(ABC):
    """Writes the images of a split and what belongs to each.

    Attributes:
        files: Number of files.
        nbytes: Their size, once they are closed.
    """

    def __init__(
        self, folder: Path, images: Path, name: str, schema: Schema, classes: _Classes, names: Names
    ) -> None:
        """Open the files of a split.

        Args:
            folder: Folder of the dataset.
            images: Folder of the images, within it.
            name: Name of the split.
            schema: The features to export.
            classes: The classes of the objects.
            names: Names of the images in their folder, which splits may share.
        """
        self.files = 0
        self.nbytes = 0
        self.name = name
        self._folder = folder
        self._images = images
        self._schema = schema
        self.classes = classes
        self._names = names
        self.number = 0
        (folder / images).mkdir(parents=True, exist_ok=True)

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the images and annotations of a batch."""
        plain = {
            name: batch[name]
            for name, feature in self._schema.items()
            if feature.encoding != "image"
        }
        masks = _masks_of(batch["masks"]) if "masks" in self._schema else iter([])
        images = batch["image"].to_list()
        for data, row in zip(images, json_rows(plain, records), strict=True):
            where = f"split {self.name!r}, record {self.number}"
            if data is None:
                raise SchemaError("expected an image, got none", where=where)
            if "masks" in self._schema:
                row["masks"] = next(masks)
            self._write_record(data, row, where)
            self.number += 1

    def _write_record(self, data: bytes, row: dict[str, Any], where: str) -> None:
        try:
            header = read_header(data)
        except ImageError as error:
            raise SchemaError(error.problem, where=where) from None
        found = sniff_format(data[:16])
        extension = "bin" if found is None else _EXTENSIONS.get(found, found)
        given = str(row.get("filename") or "").replace("\\", "/").rpartition("/")[2]
        stem = given.rpartition(".")[0] or f"{self.number:06}"
        name = self._names.choose(safe_name(stem).replace(" ", "_"), (self.name, self.number))
        self.save(self._images / f"{name}.{extension}", data)
        self.annotate(f"{name}.{extension}", header.width, header.height, row, where)

    @abstractmethod
    def annotate(self, file: str, width: int, height: int, row: dict[str, Any], where: str) -> None:
        """Write or remember what is known of an image."""

    def boxes(self, row: Mapping[str, Any], where: str) -> Iterator[tuple[int, list[float]]]:
        """The class of each object, counted from 0, and its sides as fractions."""
        sides = zip(*(row[name] for name in _SIDES), strict=True)
        for label, box in zip(row["labels"], sides, strict=True):
            yield self.classes.position(label, where), [float(side) for side in box]

    def save(self, place: Path, data: bytes) -> None:
        """Write a file of the dataset."""
        path = self._folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        with create(path) as file:
            file.write(data)
        self.files += 1
        self.nbytes += len(data)

    def close(self) -> None:  # noqa: B027 - not all formats have something left
        """Write what is known only at the end."""


class _CocoSplit(_AnnotatedSplit):
    """COCO's layout: `<split>/` and `annotations/instances_<split>.json`."""

    def __init__(self, *arguments: Any, keypoints: Mapping[str, Any]) -> None:
        super().__init__(*arguments)
        self._keypoints = keypoints
        self._listed: list[dict[str, Any]] = []
        self._objects: list[dict[str, Any]] = []
        self._captions: list[dict[str, Any]] = []

    def annotate(self, file: str, width: int, height: int, row: dict[str, Any], where: str) -> None:
        """Remember the image and its objects."""
        number = row.get("image_id", self.number)
        size = {"width": width, "height": height}
        self._listed.append({"id": number, "file_name": file, **size})
        for place, (label, sides) in enumerate(self.boxes(row, where)):
            left, right, top, bottom = sides
            across, down = (right - left) * width, (bottom - top) * height
            area = row["area"][place] * width * height if "area" in row else across * down
            one: dict[str, Any] = {
                "id": row.get("annotation_id", {place: len(self._objects) + 1})[place],
                "image_id": number,
                "category_id": self.classes.ids[label],
                "bbox": [left * width, top * height, across, down],
                "area": area,
                "iscrowd": int(row["is_crowd"][place]) if "is_crowd" in row else 0,
            }
            if "masks" in row:
                mask = row["masks"][place]
                one["segmentation"] = {"counts": counts_of_mask(mask), "size": [height, width]}
            if "keypoints" in row:
                one |= _keypoints_of(row, place, width, height)
            self._objects.append(one)
        for caption in row.get("captions", ()):
            described = {"id": len(self._captions) + 1, "image_id": number, "caption": caption}
            self._captions.append(described)

    def close(self) -> None:
        """Write the JSON files."""
        categories = [
            {"id": number, "name": name}
            for number, name in zip(self.classes.ids, self.classes.names, strict=True)
        ]
        if self._keypoints:
            points = self._keypoints
            for category in categories:
                category |= {"keypoints": points["names"], "skeleton": points["skeleton"]}
        has_boxes = "labels" in self._schema
        kinds = [("instances", self._objects, categories)] if has_boxes else []
        if "captions" in self._schema:
            kinds.append(("captions", self._captions, []))
        for kind, found, classes in kinds:
            content = {"images": self._listed, "annotations": found, "categories": classes}
            place = Path("annotations", f"{kind}_{self.name}.json")
            self.save(place, json.dumps(content, allow_nan=False).encode())


def _keypoints_of(row: Mapping[str, Any], place: int, width: int, height: int) -> dict[str, Any]:
    points = row["keypoints"][place]
    visible = row.get("keypoints_visible", {place: [2] * len(points)})[place]
    flat = [
        value
        for (x, y), seen in zip(points, visible, strict=True)
        for value in (x * width, y * height, int(seen))
    ]
    return {"keypoints": flat, "num_keypoints": sum(seen > 0 for seen in visible)}


class _YoloSplit(_AnnotatedSplit):
    """The layout of Ultralytics: `images/<split>/` and `labels/<split>/`."""

    def annotate(self, file: str, width: int, height: int, row: dict[str, Any], where: str) -> None:
        """Write the lines of an image."""
        del width, height  # lines are fractions
        lines = []
        for place, (label, sides) in enumerate(self.boxes(row, where)):
            left, right, top, bottom = sides
            numbers = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top]
            if "corners" in row:
                numbers = [value for point in row["corners"][place] for value in point]
            elif "keypoints" in row:
                seen = row.get("keypoints_visible", {}) and row["keypoints_visible"][place]
                for at, point in enumerate(row["keypoints"][place]):
                    numbers += [*point, seen[at] if seen else 2]
            lines.append(" ".join([str(label), *(f"{value:.8g}" for value in numbers)]))
        text = "".join(f"{line}\n" for line in lines)
        stem = file.rpartition(".")[0]
        self.save(Path("labels", self.name, f"{stem}.txt"), text.encode())


class _VocSplit(_AnnotatedSplit):
    """The layout of Pascal VOC: `JPEGImages/`, `Annotations/` and `ImageSets/Main/<split>.txt`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._stems: list[str] = []

    def annotate(self, file: str, width: int, height: int, row: dict[str, Any], where: str) -> None:
        """Write the XML file of an image."""
        stem = file.rpartition(".")[0]
        self._stems.append(stem)
        objects = []
        for place, (label, sides) in enumerate(self.boxes(row, where)):
            left, right, top, bottom = sides
            box = {
                "xmin": left * width,
                "ymin": top * height,
                "xmax": right * width,
                "ymax": bottom * height,
            }
            inner = "".join(f"<{side}>{value:.8g}</{side}>" for side, value in box.items())
            pose = row["pose"][place] if "pose" in row else "Unspecified"
            objects.append(
                f"<object><name>{escape(self.classes.names[label])}</name>"
                f"<pose>{escape(pose)}</pose>"
                f"<truncated>{_flag(row, 'is_truncated', place)}</truncated>"
                f"<difficult>{_flag(row, 'labels_difficult', place)}</difficult>"
                f"<bndbox>{inner}</bndbox></object>\n"
            )
        size = f"<size><width>{width}</width><height>{height}</height><depth>3</depth></size>\n"
        text = f"<annotation><filename>{escape(file)}</filename>\n{size}{''.join(objects)}"
        self.save(Path("Annotations", f"{stem}.xml"), f"{text}</annotation>\n".encode())

    def close(self) -> None:
        """Write the list of the split."""
        text = "".join(f"{stem}\n" for stem in self._stems)
        self.save(Path("ImageSets/Main", f"{self.name}.txt"), text.encode())


def _flag(row: Mapping[str, Any], name: str, place: int) -> int:
    return int(row[name][place]) if name in row else 0


def open_annotations(
    format: str,
    folder: Path,
    splits: Sequence[str],
    schema: Schema,
    metadata: Mapping[str, Mapping[str, Any]],
) -> Callable[[str], _AnnotatedSplit]:
    """Return what opens the writer of a split by its name.

    Args:
        format: "coco", "yolo" or "voc".
        folder: Folder of the dataset.
        splits: Names of all splits.
        schema: The features to export.
        metadata: What is known of them, such as class names.
    """
    _check_features(format, schema)
    classes = _Classes(metadata.get("labels", {}))
    if "labels" in schema and not classes.names:
        raise SchemaError(
            "feature 'labels': expected class names, got none",
            feature="labels",
            hint="format='parquet' needs no class names",
        )
    shared = Names()  # the images of all splits are in one folder
    left = {"splits": list(splits)}  # the files of the whole dataset are written with the first

    def open_split(name: str) -> _AnnotatedSplit:
        made: _AnnotatedSplit
        if format == "coco":
            given = (folder, Path(name), name, schema, classes, Names())
            made = _CocoSplit(*given, keypoints=metadata.get("keypoints", {}))
        elif format == "yolo":
            made = _YoloSplit(folder, Path("images", name), name, schema, classes, Names())
        else:
            made = _VocSplit(folder, Path("JPEGImages"), name, schema, classes, shared)
        for place, text in _whole(format, left.pop("splits", []), schema, classes):
            made.save(Path(place), text.encode())
        return made

    return open_split


def _whole(
    format: str, splits: Sequence[str], schema: Schema, classes: _Classes
) -> Iterator[tuple[str, str]]:
    """The files that belong to all splits."""
    if not splits:
        return
    if format == "voc":
        if any("\n" in name for name in classes.names):
            raise WriteError("expected class names of one line for classes.names")
        yield "classes.names", "".join(f"{name}\n" for name in classes.names)
    elif format == "yolo":
        lines = [f"{split}: images/{split}" for split in splits]
        if "keypoints" in schema:
            lines.append(f"kpt_shape: [{schema['keypoints'].shape[1]}, 3]")
        lines.append("names:")
        lines += [f"  {number}: {json_text(name)}" for number, name in enumerate(classes.names)]
        yield "data.yaml", "".join(f"{line}\n" for line in lines)


def _check_features(format: str, schema: Schema) -> None:
    is_described = format == "coco" and "captions" in schema
    needed = [] if is_described and "labels" not in schema else [*_SIDES, "labels"]
    lacking = [name for name in ("image", *needed) if name not in schema]
    if lacking:
        raise SchemaError(
            f"expected the features image, {', '.join(_SIDES)} and labels for {format}, got no"
            f" {lacking[0]}",
            hint="format='parquet' or 'jsonl' takes any features",
        )
    others = [name for name in schema if name not in _HELD[format]]
    if others:
        raise SchemaError(
            f"expected features that {format} can hold, got {', '.join(others)}",
            hint=Text(
                Option("columns", [name for name in schema if name in _HELD[format]]),
                " leaves them out; format='parquet' keeps them",
            ),
        )


def _masks_of(column: Any) -> Iterator[list[NDArray[np.uint8]]]:
    """The masks of each record."""
    assert isinstance(column, Ragged)
    assert isinstance(column.values, BytesColumn)
    files = column.values.to_list()
    for first, last in pairwise(column.row_splits.tolist()):
        yield [decode_pixels(data, 1)[:, :, 0] for data in files[first:last]]
