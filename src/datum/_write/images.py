"""Images of a block as the bytes that are stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datum.columns import BytesColumn, Masked
from datum.errors import Message, SourceError
from datum.schema import Feature, ImageBytes, Schema
from datum.sources import Block, Reject

if TYPE_CHECKING:
    from datum.images import ImageHeader, ImageOptions

__all__ = [
    "ImageFacts",
    "describe_images",
    "find_images",
    "open_sizes",
    "prepare_images",
    "refine_images",
]


@dataclass(slots=True)
class ImageFacts:
    """What the images of one feature have in common.

    Attributes:
        formats: how many there are of each format, as they are stored.
        dtypes: "uint8", "uint16" or both.
        smallest, largest: the least and the most of height, width and channels.
        converted: how many came in another format, by that, and are stored as PNG.
    """

    formats: Counter[str] = field(default_factory=Counter)
    dtypes: set[str] = field(default_factory=set)
    smallest: tuple[int, ...] = ()
    largest: tuple[int, ...] = ()
    converted: Counter[str] = field(default_factory=Counter)

    def add(self, header: ImageHeader, converted: str | None = None) -> None:
        """Count one more image, and the format that it came in if it is stored in another."""
        size = header.height, header.width, header.channels
        self.formats[header.format] += 1
        if size != self.smallest or size != self.largest:  # most images of a set are alike
            self._widen(size, size)
        if header.dtype not in self.dtypes:
            self.dtypes.add(header.dtype)
        if converted is not None:
            self.converted[converted] += 1

    def merge(self, other: ImageFacts) -> None:
        """Count what another has counted."""
        self.formats += other.formats
        self.dtypes |= other.dtypes
        self.converted += other.converted
        self._widen(other.smallest, other.largest)

    def _widen(self, smallest: tuple[int, ...], largest: tuple[int, ...]) -> None:
        self.smallest = tuple(map(min, self.smallest or smallest, smallest or self.smallest))
        self.largest = tuple(map(max, self.largest or largest, largest or self.largest))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
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
        """Read what `to_json` made."""
        ranges = [found[name] for name in ("height", "width", "channels") if name in found]
        return cls(
            Counter(found["formats"]),
            set(found["dtypes"]),
            tuple(least for least, _ in ranges),
            tuple(most for _, most in ranges),
            Counter(found.get("converted", {})),
        )


def refine_images(schema: Schema, facts: Mapping[str, ImageFacts]) -> Schema:
    """The schema with the types and shapes that images were found to have, where it left them open.

    Images of differing channels are decoded to the most there are: a grey one among coloured ones
    is given in colours. With one of 16 bits all are, as `datum.images.decode` says.
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
    """What is worth knowing of images that were written, a line each."""
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
            how = "with their values as they are" if is_single else "those of 8 bits times 257"
            yield f"{name!r}: images of 8 and of 16 bits come as uint16, {how}"


def open_sizes(schema: Schema, *, keep: Container[str]) -> Schema:
    """The schema with images of any size, as they may be shrunk; those named in `keep` as given."""
    return Schema(
        {
            name: replace(feature, shape=(*feature.shape[:-3], None, None, feature.shape[-1]))
            if feature.encoding == "image" and name not in keep
            else feature
            for name, feature in schema.items()
        }
    )


def find_images(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names of values that can only be images."""
    return {name for row in rows for name, value in row.items() if _holds_images(value)}


def _holds_images(value: Any) -> bool:
    """Whether a value is an image, or a list of some; a list may hold itself, so no deeper."""
    if isinstance(value, (list, tuple)) and value:
        return all(map(_is_image, value))
    return _is_image(value)


def _is_image(value: Any) -> bool:
    return isinstance(value, Path) or type(value).__module__.startswith("PIL.")


def prepare_images(
    block: Block, features: Mapping[str, Feature | None], options: ImageOptions
) -> tuple[Block, dict[str, ImageFacts]]:
    """The block with its images as bytes; those that cannot be read are rejected."""
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
        # Told apart from other bytes where no schema does that; it costs a copy.
        files = [one.data if feature is not None else ImageBytes(one.data) for one in prepared]
        changed[name] = files if is_list else files[0]
        images[name] = prepared
    for name, found in images.items():  # only once all images of the record are fine
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
    """The bytes of images; masked where some records have none."""
    if feature is not None and feature.holds_images:
        return images
    column = BytesColumn.from_values(image or b"" for image in images)
    if None not in images:
        return column
    return Masked(column, np.array([image is not None for image in images]))
