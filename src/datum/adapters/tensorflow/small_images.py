"""Small images decoded by the native core as they are read, where ops cost more than pixels.

Images of 8 x 8 pixels come 5.7 times as fast as from ops on two cores, those of 32 x 32 in colour
twice. But one thread decodes them, where the graph has all cores: so only the smallest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from datum.adapters.tensorflow.options import TfOptions
from datum.loading.decoding import Pictures, encoded_images
from datum.schema import Feature, Schema

__all__ = ["as_pixels", "decode_small", "find_small"]

MAX_PIXEL_BYTES = 2**10  # MNIST has 784; of larger ones a graph with four cores gives more


def find_small(
    schema: Schema, options: TfOptions, metadata: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """The images of one small shape that are all PNG, whose pixels are the same for any decoder."""
    if options.decode is False:
        return frozenset()
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    return frozenset(
        name
        for name, feature in schema.items()
        if asked.get(name, True) is True
        and _is_small(feature)
        and list(metadata.get(name, {}).get("formats", ())) == ["png"]
    )


def _is_small(feature: Feature) -> bool:
    is_single = feature.encoding == "image" and not feature.holds_images
    is_plain = is_single and feature.dtype == "uint8" and not feature.optional
    if not is_plain or None in feature.shape:
        return False
    return math.prod(feature.shape) <= MAX_PIXEL_BYTES  # type: ignore[arg-type]


def as_pixels(schema: Schema, names: Collection[str]) -> Schema:
    """The schema of records whose images of these names are decoded.

    >>> image = Feature("uint8", (8, 8, 1), encoding="image")
    >>> as_pixels(Schema({"image": image}), ["image"])["image"]
    Feature('uint8', (8, 8, 1), encoding='raw')
    """
    decoded = {name: replace(schema[name], encoding="raw", keys=()) for name in names}
    return Schema({name: decoded.get(name, feature) for name, feature in schema.items()})


def decode_small(columns: dict[str, Any], schema: Schema, names: Collection[str]) -> dict[str, Any]:
    """Parsed columns with the pixels of these images."""
    for name in names:
        pictures = Pictures(schema[name], encoded_images(columns[name]))
        for row in range(len(pictures.rows)):
            pictures.decode(row)
        columns[name] = pictures.column()
    return columns
