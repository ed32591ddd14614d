"""The images of a split: which bytes are some, and how large they are once they are decoded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from datum.errors import SourceError
from datum.loading import LoadOptions
from datum.loading.decoding import find_decoders
from datum.measuring.stages import go_through
from datum.reading import Split

__all__ = ["ImageSizes", "decode_encoded", "find_image_sizes"]

_STARTS = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"GIF8")  # and RIFF....WEBP


@dataclass(frozen=True, slots=True)
class ImageSizes:
    """Of the images of a record, on average: the longer side in pixels, and all bytes decoded."""

    side: float
    bytes: float


def find_image_sizes(split: Split, options: LoadOptions) -> ImageSizes | None:
    """What one batch tells; None without images."""
    names = find_decoders(options.selected(split.schema), options).images
    if not names:
        return None
    asked = replace(options, map=None, shuffle=False, columns=tuple(names), epochs=1)
    batch: Any = next(iter(go_through(split, asked)))
    images = [[np.asarray(image) for image in batch[name]] for name in names]
    sides = [max(image.shape[:2], default=0) for column in images for image in column]
    nbytes = sum(image.nbytes for column in images for image in column)
    return ImageSizes(float(np.mean(sides)), nbytes / max(1, len(images[0])))


def decode_encoded(split: Split, options: LoadOptions) -> tuple[LoadOptions, tuple[str, ...]]:
    """Options that decode bytes which others stored images in, and a note on it.

    Whoever wrote them did not say that they are images; training decodes them all the same.
    """
    schema = options.selected(split.schema)
    strings = [
        name
        for name, feature in schema.items()
        if feature.dtype == "bytes" and not feature.shape and not feature.sequence
    ]
    if not strings:
        return options, ()
    plain = replace(options, map=None, shuffle=False, columns=tuple(strings), epochs=1)
    batch: Any = next(iter(go_through(split, plain)))
    names = [name for name in strings if all(map(_is_image, batch[name]))]
    if not names:
        return options, ()
    asked = replace(options, decode=dict.fromkeys(names, True))
    try:
        for _ in go_through(split, replace(asked, map=None)):
            pass
    except (SourceError, ValueError):  # they only looked like images
        return options, ()
    told = ", ".join(map(repr, names))
    return asked, (f"bytes of images were decoded, as decode={{name: True}} does: {told}",)


def _is_image(data: bytes) -> bool:
    return data.startswith(_STARTS) or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")
