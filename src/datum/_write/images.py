"""Images of a block as stored bytes, and the keys of the TF Object Detection API."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from datum.columns import BytesColumn, Masked
from datum.errors import Message, Option, SchemaError, SourceError, Text
from datum.schema import Feature, ImageBytes, Schema
from datum.sources import Block, Reject

if TYPE_CHECKING:
    from datum.images import ImageHeader, ImageOptions

__all__ = [
    "KEYS",
    "DetectionKeys",
    "ImageFacts",
    "Keys",
    "describe_images",
    "find_images",
    "find_keys",
    "open_sizes",
    "prepare_images",
    "refine_images",
]


@dataclass(slots=True)
class ImageFacts:
    """Formats, types and sizes of the images of one feature.

    Attributes:
        formats: Count of images by stored format.
        dtypes: Pixel types that occur: "uint8", "uint16" or both.
        smallest, largest: Least and greatest height, width and channel count.
        converted: Count of images stored as PNG, by original format.
    """

    formats: Counter[str] = field(default_factory=Counter)
    dtypes: set[str] = field(default_factory=set)
    smallest: tuple[int, ...] = ()
    largest: tuple[int, ...] = ()
    converted: Counter[str] = field(default_factory=Counter)

    def add(self, header: ImageHeader, converted: str | None = None) -> None:
        """Count an image, and its original format if it was converted."""
        size = header.height, header.width, header.channels
        self.formats[header.format] += 1
        if size != self.smallest or size != self.largest:  # most images have the same size
            self._widen(size, size)
        if header.dtype not in self.dtypes:
            self.dtypes.add(header.dtype)
        if converted is not None:
            self.converted[converted] += 1

    def merge(self, other: ImageFacts) -> None:
        """Add the counts of another."""
        self.formats += other.formats
        self.dtypes |= other.dtypes
        self.converted += other.converted
        self._widen(other.smallest, other.largest)

    def _widen(self, smallest: tuple[int, ...], largest: tuple[int, ...]) -> None:
        self.smallest = tuple(map(min, self.smallest or smallest, smallest or self.smallest))
        self.largest = tuple(map(max, self.largest or largest, largest or self.largest))

    def to_json(self) -> dict[str, Any]:
        """Return plain values for the manifest."""
        names = ("height", "width", "channels")
        ranges = zip(names, self.smallest, self.largest, strict=False)
        return {
            "formats": dict(sorted(self.formats.items())),
            "dtypes": sorted(self.dtypes),
            **{name: [least, most] for name, least, most in ranges},
            **({"converted": dict(sorted(self.converted.items()))} if self.converted else {}),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ImageFacts:
        """Restore from the values of `to_json`."""
        ranges = [found[name] for name in ("height", "width", "channels") if name in found]
        return cls(
            Counter(found["formats"]),
            set(found["dtypes"]),
            tuple(least for least, _ in ranges),
            tuple(most for _, most in ranges),
            Counter(found.get("converted", {})),
        )


def refine_images(schema: Schema, facts: Mapping[str, ImageFacts]) -> Schema:
    """Fill in the types and shapes of images where the schema leaves them open.

    All images are decoded to the greatest channel count, so grey images among coloured ones are
    decoded to colours. One image of 16 bits makes all uint16, as in `datum.images.decode`.
    """
    features = dict(schema)
    for name, found in facts.items():
        feature = features.get(name)
        if feature is None or not found.largest:
            continue
        sizes = zip(found.smallest, found.largest, strict=True)
        height, width = (least if least == most else None for least, most in list(sizes)[:2])
        *counts, _, _, channels = feature.shape
        shape = (*counts, height, width, channels or found.largest[2])
        dtype = "uint16" if "uint16" in found.dtypes else feature.dtype
        features[name] = replace(feature, dtype=dtype, shape=shape)
    return Schema(features)


def describe_images(schema: Schema, facts: Mapping[str, ImageFacts]) -> Iterator[str]:
    """Describe conversions of images for the report, one line each."""
    for name, found in facts.items():
        if name not in schema:
            continue
        is_single = schema[name].shape[-1] == 1
        if found.converted:
            listed = " and ".join(
                f"{count:,} {kind.upper()}" for kind, count in sorted(found.converted.items())
            )
            images = "image is" if found.converted.total() == 1 else "images are"
            what = "grey PNG" if is_single else "PNG"
            yield f"{name!r}: {listed} {images} stored as {what}, with the same pixels"
        if len(found.dtypes) > 1:
            how = "values unchanged" if is_single else "8-bit values times 257"
            yield f"{name!r}: 8-bit and 16-bit images are decoded to uint16, {how}"


def open_sizes(schema: Schema, *, keep: Container[str]) -> Schema:
    """Allow any image size, because images may be resized; features in `keep` stay."""
    return Schema(
        {
            name: replace(feature, shape=(*feature.shape[:-3], None, None, feature.shape[-1]))
            if feature.encoding == "image" and name not in keep
            else feature
            for name, feature in schema.items()
        }
    )


def find_images(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """Names of values that must be images: paths and Pillow images."""
    return {name for row in rows for name, value in row.items() if _holds_images(value)}


def _holds_images(value: Any) -> bool:
    """Return whether a value is an image or a list of images, without deeper nesting."""
    if isinstance(value, (list, tuple)) and value:
        return all(map(_is_image, value))
    return _is_image(value)


def _is_image(value: Any) -> bool:
    return isinstance(value, Path) or type(value).__module__.startswith("PIL.")


def prepare_images(
    block: Block, features: Mapping[str, Feature | None], options: ImageOptions
) -> tuple[Block, dict[str, ImageFacts]]:
    """Read the images of a block as bytes; reject records whose images cannot be read."""
    facts = {name: ImageFacts() for name in features}
    if isinstance(block.data, dict):
        return _prepare_columns(block, features, options, facts)
    rows = []
    rejects = list(block.rejects)
    kept = []
    given: Any = block.data
    for at, row in enumerate(given):
        try:
            prepared = _prepare_row(row, features, options, facts)
        except (SourceError, OSError, TypeError, ValueError) as error:
            rejects.append(_reject(block, at, row, features, error))
            continue
        rows.append(prepared)
        kept.append(at)
    if len(kept) == len(block):
        return replace(block, data=rows), facts
    keys = None if block.keys is None else [block.keys[at] for at in kept]
    return Block(rows, block.numbers[kept], keys, rejects), facts


def _prepare_row(
    row: dict[str, Any],
    features: Mapping[str, Feature | None],
    options: ImageOptions,
    facts: dict[str, ImageFacts],
) -> dict[str, Any]:
    from datum.images import prepare

    changed = {}
    images = {}
    for name, feature in features.items():
        value = row.get(name)
        if value is None:
            continue
        is_list = isinstance(value, (list, tuple)) if feature is None else feature.holds_images
        single = None if feature is None else feature.single_image
        prepared = [
            prepare(Path(one) if isinstance(one, str) else one, single, options)
            for one in (value if is_list else [value])
        ]
        # Without a schema the type marks image bytes; this costs a copy.
        files = [one.data if feature is not None else ImageBytes(one.data) for one in prepared]
        changed[name] = files if is_list else files[0]
        images[name] = prepared
    for name, found in images.items():  # only if all images of the record are good
        for image in found:
            facts[name].add(image.header, image.converted)
    return {**row, **changed}


def _reject(
    block: Block, at: int, row: dict[str, Any], features: Iterable[str], error: Exception
) -> Reject:
    paths = [str(row[name]) for name in features if isinstance(row.get(name), Path)]
    where = paths[0] if len(paths) == 1 else ""
    told = Message.of(error)
    key = None if block.keys is None else block.keys[at]
    return Reject(int(block.numbers[at]), key, where, told.beside(where), told.hint)


def _prepare_columns(
    block: Block,
    features: Mapping[str, Feature | None],
    options: ImageOptions,
    facts: dict[str, ImageFacts],
) -> tuple[Block, dict[str, ImageFacts]]:
    columns: Any = block.data
    names = [name for name in features if name in columns]
    rows = [{name: columns[name][at] for name in names} for at in range(len(block))]
    prepared, facts = prepare_images(replace(block, data=rows), features, options)
    kept = np.flatnonzero(np.isin(block.numbers, prepared.numbers))
    taken = {
        name: column[kept] if len(kept) < len(block) else column for name, column in columns.items()
    }
    for name in names:
        made: Any = prepared.data
        taken[name] = _as_column([row[name] for row in made], features[name])
    return replace(prepared, data=taken), facts


def _as_column(images: list[Any], feature: Feature | None) -> Any:
    """Bytes of images as a column, masked where records have none."""
    if feature is not None and feature.holds_images:
        return images
    column = BytesColumn.from_values(image or b"" for image in images)
    if None not in images:
        return column
    return Masked(column, np.array([image is not None for image in images]))


Keys = Literal["tf_object_detection"]
KEYS = get_args(Keys)
_IMAGE = Feature("uint8", (None, None, 3), encoding="image")
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
    """Detection records under the keys of the TF Object Detection API.

    Features keep their names, so the same training code works; only the stored keys differ.
    `format`, `height`, `width`, `source_id` and `class_text` are added, from the stored image, its
    file name and the class names. Areas are in pixels.

    Attributes:
        class_names: Class names of `labels`, from id 0 on; empty if unknown.
    """

    class_names: tuple[str, ...]

    def schema(self, schema: Schema) -> Schema:
        """Return the schema under these keys; raise SchemaError for records without boxes."""
        _check_boxes(schema)
        if schema["image"].encoding != "image" or schema["image"].holds_images:
            raise SchemaError(
                Text(
                    Option("keys", KEYS[0]),
                    f": expected feature 'image' to be an image, got {schema['image']!r}",
                ),
                hint=Text(Option("schema", {"image": _IMAGE})),
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
        """Add the features that the API needs; images must be prepared."""
        data: Any = block.data
        if isinstance(data, Mapping):
            data = [{name: column[at] for name, column in data.items()} for at in range(len(block))]
        return replace(block, data=[self._complete(row) for row in data])

    def _complete(self, row: Mapping[str, Any]) -> dict[str, Any]:
        from datum.images.header import parse_header  # imports Pillow

        image = row.get("image")
        _check_boxes(row)
        if not isinstance(image, bytes) or isinstance(row.get("format"), str):
            return dict(row)  # no image, which the schema reports; or already done
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
            Text(
                Option("keys", KEYS[0]),
                f": expected records with an image and boxes, {', '.join(_NEEDED)}, got"
                f" {', '.join(sorted(known)[:12]) or 'none'}",
            ),
            hint=Text(
                "leave out ",
                Option("keys"),
                ", or write a dataset for detection: ",
                Option("problem", "image_det"),
            ),
        )


def find_keys(
    keys: str | None, metadata: Sequence[Mapping[str, Mapping[str, Any]]]
) -> DetectionKeys | None:
    """Return the keys that the option `keys` names, with the class names of the parts."""
    if keys is None:
        return None
    named = (one.get("labels", {}).get("class_names", ()) for one in metadata)
    return DetectionKeys(tuple(map(str, next((names for names in named if names), ()))))
