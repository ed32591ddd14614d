"""Generators of the older library: objects that yield the records of a split."""

from __future__ import annotations

import abc
import ast
import csv
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from datum.errors import SourceError
from datum.schema import Feature
from datum.sources.voc import read_annotation

__all__ = [
    "CLF",
    "DET",
    "SEG",
    "TEXTJSON",
    "ClfDatumGenerator",
    "DatumGenerator",
    "DetDatumGenerator",
    "SegDatumGenerator",
    "TextJsonDatumGenerator",
    "clf",
    "deserialize",
    "det",
    "seg",
    "textjson",
]

_Records = Iterator[tuple[Any, dict[str, Any]]]


class DatumGenerator(abc.ABC):
    """Base of generators: a subclass implements `generate_datum`.

    Args:
        path: The folder of the dataset.
        gen_config: Settings that the subclass reads.

    Attributes:
        features: Features whose values do not show what they are.
    """

    features: ClassVar[Mapping[str, Feature]] = {}

    def __init__(self, path: str | os.PathLike[str], gen_config: Any = None) -> None:
        if not path or not Path(path).exists():
            raise SourceError(f"expected `path` to be a folder that exists, got {path!r}")
        self.path = path
        self.gen_config = gen_config

    def __call__(self, **kwargs: Any) -> _Records:
        """Yield the records of one split; see `generate_datum`."""
        return self.generate_datum(**kwargs)

    @abc.abstractmethod
    def generate_datum(self, **kwargs: Any) -> _Records:
        """Yield pairs of a key and a dict of features for `split` and its options."""

    def _within(self, *parts: str) -> str:
        return os.path.join(self.path, *parts)  # noqa: PTH118  # the path as it was given

    def _lines(self, *parts: str) -> list[str]:
        text = Path(self._within(*parts)).read_text(encoding="utf-8")
        return [line.strip() for line in text.splitlines() if line.strip()]


class ClfDatumGenerator(DatumGenerator):
    """Images in `<split>/`, and labels in `<split>.csv` with a column `filename`."""

    def generate_datum(self, **kwargs: Any) -> _Records:
        """Yield the number of each line, and its image and labels.

        Options: `split`, `extension` (".jpg"), `image_dir` (the split), `csv_path`.
        """
        split = _split_of(kwargs)
        image_dir, extension = kwargs.get("image_dir", split), kwargs.get("extension", ".jpg")
        table = Path(self._within(kwargs.get("csv_path", f"{split}.csv")))
        with table.open(encoding="utf-8-sig", newline="") as file:
            for number, row in enumerate(csv.DictReader(file)):
                name = row.pop("filename")
                labels = {label: _literal(text) for label, text in row.items()}
                yield number, {"image": self._within(image_dir, name + extension), **labels}


class DetDatumGenerator(DatumGenerator):
    """Pascal VOC: images, XML annotations, and lists of the images of each split.

    `gen_config.class_map` has the number of each class by its name in lower case; without it, the
    lines of `classes.names` are numbered from 1. Where `gen_config.has_test_annotations` is False,
    no annotation is read.
    """

    def generate_datum(self, **kwargs: Any) -> _Records:
        """Yield the name of each image, and the image with its boxes.

        Options: `split`, `extension` (".jpg"), `set_dir` ("ImageSets"), `image_dir`
        ("JPEGImages"), `annotation_dir` ("Annotations").
        """
        split = _split_of(kwargs)
        image_dir, extension = (
            kwargs.get("image_dir", "JPEGImages"),
            kwargs.get("extension", ".jpg"),
        )
        folder = kwargs.get("annotation_dir", "Annotations")
        is_annotated = self.gen_config is None or self.gen_config.has_test_annotations
        classes = self._classes() if is_annotated else {}
        for name in self._lines(kwargs.get("set_dir", "ImageSets"), f"{split}.txt"):
            boxes = self._boxes(folder, name, classes) if is_annotated else _no_boxes()
            yield name, {"image": self._within(image_dir, name + extension), **boxes}

    def _classes(self) -> dict[str, int]:
        if self.gen_config is not None:
            classes: dict[str, int] = self.gen_config.class_map
            return classes
        return {name.lower(): number for number, name in enumerate(self._lines("classes.names"), 1)}

    def _boxes(self, folder: str, name: str, classes: dict[str, int]) -> dict[str, list[Any]]:
        path = Path(self._within(folder, f"{name}.xml"))
        found = read_annotation(path)
        width, height = found.width, found.height
        if not width or not height:
            raise SourceError("expected the size of the image, got none", where=path)
        boxes = _no_boxes()
        for one in found.objects:
            box = (one.xmin / width, one.xmax / width, one.ymin / height, one.ymax / height)
            area = (box[1] - box[0]) * (box[3] - box[2])
            label = classes.get(one.name.lower())
            if label is None:
                raise SourceError(
                    f"expected one of {len(classes)} classes, got {one.name}", where=path
                )
            values = (*box, area, one.pose.lower(), label, one.is_truncated, one.is_difficult)
            for column, value in zip(boxes.values(), values, strict=True):
                column.append(value)
        return boxes


def _no_boxes() -> dict[str, list[Any]]:
    names = ("xmin", "xmax", "ymin", "ymax", "area", "pose", "labels")
    return {name: [] for name in (*names, "is_truncated", "labels_difficult")}


class SegDatumGenerator(DatumGenerator):
    """Images, masks of class ids, and lists of the images of each split."""

    features: ClassVar[Mapping[str, Feature]] = {
        "label": Feature("uint8", (None, None, 1), encoding="image")
    }

    def generate_datum(self, **kwargs: Any) -> _Records:
        """Yield the name of each image, and the image with its mask.

        Options: `split`, `set_dir` (none), `image_dir` ("JPEGImages"), `label_dir`
        ("SegmentationClass"), `image_extension` (".jpg"), `label_extension` (".png").
        """
        split = _split_of(kwargs)
        images, masks = kwargs.get("image_dir", "JPEGImages"), kwargs.get("label_dir")
        image_extension = kwargs.get("image_extension", ".jpg")
        mask_extension = kwargs.get("label_extension", ".png")
        for name in self._lines(kwargs.get("set_dir") or "", f"{split}.txt"):
            yield (
                name,
                {
                    "image": self._within(images, name + image_extension),
                    "label": self._within(masks or "SegmentationClass", name + mask_extension),
                },
            )


class TextJsonDatumGenerator(DatumGenerator):
    """Texts with labels in `<split>*.json`: `{"id": {"text": "...", "label": {"name": value}}}`."""

    def generate_datum(self, **kwargs: Any) -> _Records:
        """Yield the id of each text, and the text with its labels.

        Options: `split`, `json_path` (all files whose names begin with the split).
        """
        split = _split_of(kwargs)
        given = kwargs.get("json_path")
        files = sorted(Path(self.path).glob(f"{split}*.json"))
        for file in [Path(self._within(given))] if given else files:
            for key, value in json.loads(file.read_text(encoding="utf-8")).items():
                labels = {name: _literal(label) for name, label in value["label"].items()}
                yield key, {"text": value["text"], **labels}


# Its shorter names.
clf = CLF = ClfDatumGenerator
det = DET = DetDatumGenerator
seg = SEG = SegDatumGenerator
textjson = TEXTJSON = TextJsonDatumGenerator


def deserialize(name: str) -> type[DatumGenerator]:
    """The class of a generator by its name: "ClfDatumGenerator", or "clf"."""
    found = globals().get(name)
    if not (isinstance(found, type) and issubclass(found, DatumGenerator)):
        raise SourceError(f"expected the name of a generator, got {name!r}")
    return found


def _split_of(kwargs: dict[str, Any]) -> str:
    split = kwargs.get("split")
    if not split:
        raise SourceError("expected the name of a split, got none", hint="pass split='train'")
    return str(split)


def _literal(value: Any) -> Any:
    """The number or list that a text represents; other text stays, and empty text is None."""
    if not isinstance(value, str):
        return value
    try:
        return ast.literal_eval(value.strip())
    except (MemoryError, RecursionError, SyntaxError, ValueError):
        return value or None
