"""Boxes under the keys of the TF Object Detection API, which Model Garden reads too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum.errors import SchemaError
from datum.schema import Feature, Schema
from datum.sources import Block

__all__ = ["KEYS", "DetectionKeys", "find_keys"]

KEYS = ("tf_object_detection",)
_NEEDED = ("image", "xmin", "xmax", "ymin", "ymax", "labels")
_BOX = "image/object/bbox/"
_NAMES = {
    "image": "image/encoded",
    "format": "image/format",
    "height": "image/height",
    "width": "image/width",
    "filename": "image/filename",
    "source_id": "image/source_id",
    **{side: f"{_BOX}{side}" for side in ("xmin", "xmax", "ymin", "ymax")},
    "area": "image/object/area",
    "class_text": "image/object/class/text",
    "is_crowd": "image/object/is_crowd",
    "is_truncated": "image/object/truncated",
    "labels": "image/object/class/label",
    "labels_difficult": "image/object/difficult",
    "pose": "image/object/view",
}
_ADDED = {
    "format": Feature("str"),
    "height": Feature("int64"),
    "width": Feature("int64"),
    "source_id": Feature("str"),
    "class_text": Feature("str", (None,)),
}


@dataclass(frozen=True, slots=True)
class DetectionKeys:
    """What these keys make of detection records: other places, and what they want besides.

    The features of Datum keep their names, so that the same code trains with them; only the keys
    of the records are others. `format`, `height`, `width`, `source_id` and `class_text` are added,
    told by the image as it is stored, its file name and the names of the classes. An area is in
    pixels there.

    Attributes:
        class_names: of `labels`, from id 0 on; empty where nobody knows them.
    """

    class_names: tuple[str, ...]

    def schema(self, schema: Schema) -> Schema:
        """The schema of the records; SchemaError where there are no boxes."""
        _check_boxes(schema)
        if schema["image"].encoding != "image" or schema["image"].holds_images:
            raise SchemaError(
                f"keys={KEYS[0]!r}: expected feature 'image' to be an image, got"
                f" {schema['image']!r}",
                hint='schema={"image": datum.Feature("uint8", (None, None, 3), encoding="image")}',
                feature="image",
            )
        added = {name: feature for name, feature in _ADDED.items() if self._has(name, schema)}
        features = {**schema, **{n: one for n, one in added.items() if n not in schema}}
        return Schema(
            {
                name: replace(one, keys=(_NAMES[name],)) if name in _NAMES else one
                for name, one in features.items()
            }
        )

    def _has(self, name: str, known: Iterable[str]) -> bool:
        if name == "source_id":
            return "filename" in known
        return name != "class_text" or bool(self.class_names)

    def __call__(self, block: Block) -> Block:
        """The block with what the keys want besides; images are prepared already."""
        data: Any = block.data
        if isinstance(data, Mapping):
            data = [{name: column[at] for name, column in data.items()} for at in range(len(block))]
        return replace(block, data=[self._complete(row) for row in data])

    def _complete(self, row: Mapping[str, Any]) -> dict[str, Any]:
        from datum.images.header import parse_header  # brings Pillow

        image = row.get("image")
        _check_boxes(row)
        if not isinstance(image, bytes) or isinstance(row.get("format"), str):
            return dict(row)  # no image, as the schema will tell; or done already
        header = parse_header(image)
        made: dict[str, Any] = {
            "format": header.format,
            "height": header.height,
            "width": header.width,
        }
        if "filename" in row:
            made["source_id"] = row["filename"]
        if self.class_names:
            made["class_text"] = [self._name(label) for label in row["labels"]]
        if row.get("area") is not None:
            made["area"] = np.asarray(row["area"], np.float32) * (header.height * header.width)
        return {**row, **made}

    def _name(self, label: Any) -> str:
        number = int(label)
        return self.class_names[number] if 0 <= number < len(self.class_names) else str(number)


def _check_boxes(names: Iterable[str]) -> None:
    known = set(names)
    if any(name not in known for name in _NEEDED):
        raise SchemaError(
            f"keys={KEYS[0]!r}: expected records with an image and boxes,"
            f" {', '.join(_NEEDED)}, got {', '.join(sorted(known)[:12]) or 'none'}",
            hint="leave out keys, or write a dataset for detection: problem='image_det'",
        )


def find_keys(
    keys: str | None, metadata: Sequence[Mapping[str, Mapping[str, Any]]]
) -> DetectionKeys | None:
    """What the option `keys` asks for, with the class names that parts tell."""
    if keys is None:
        return None
    named = (one.get("labels", {}).get("class_names", ()) for one in metadata)
    return DetectionKeys(tuple(map(str, next((names for names in named if names), ()))))
