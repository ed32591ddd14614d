"""Encoded images into arrays, exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.images.header import ImageError, parse_header
from datum.images.pillow import open_image, pixels_of
from datum.images.png import decode_png
from datum.schema import Feature

__all__ = ["decode", "decode_pixels", "ids_of_colours"]

_JPEG_COLOURS = {1: "GRAY", 3: "RGB", 4: "RGBA"}


def decode(data: bytes, feature: Feature) -> NDArray[Any]:
    """The pixels of an image as its feature says: height x width x channels.

    With None for the channels they are as many as the image has. With one a palette gives its
    ids, not its colours; grey is repeated for three; what is opaque gets the highest alpha for
    four. An orientation in EXIF is not applied; of several frames the first is given. Pixels keep
    their values: those of 16 bits that do not fit into uint8 are an ImageError.
    """
    channels = feature.shape[-1]
    if channels is None:
        channels = parse_header(data).channels
    if channels not in _JPEG_COLOURS:
        raise ImageError(f"expected a feature of 1, 3 or 4 channels, got {feature!r}")
    array = decode_pixels(data, channels)
    if feature.dtype == "uint8" and array.dtype != np.uint8:
        if array.max() > 255:
            raise ImageError(f"expected pixels of 8 bits, got {array.max()}")
        array = array.astype(np.uint8)
    fits = all(n is None or n == got for n, got in zip(feature.shape, array.shape, strict=True))
    if not fits:
        raise ImageError(f"expected an image of shape {feature.shape}, got {array.shape}")
    return array.astype(feature.dtype, copy=False)


def decode_pixels(data: bytes, channels: int) -> NDArray[Any]:
    """The pixels of an image, uint8 or uint16, with 1, 3 or 4 channels."""
    header = parse_header(data)
    if header.dtype == "uint16" and channels == 1 != header.channels:
        raise ImageError("expected grey or a palette for one channel, got 16-bit colour")
    if header.format == "jpeg":
        array = _decode_jpeg(data, channels)
        if array is not None:
            return array
    if header.format == "png":
        array = decode_png(data, channels)
        if array is not None:
            return array
    try:
        return pixels_of(open_image(data, header.format), channels)
    except Exception as error:  # decoders raise what they like on bytes made to harm
        raise ImageError(
            f"expected a whole {header.format.upper()} image, got a damaged one: {error}"
        ) from None


def _decode_jpeg(data: bytes, channels: int) -> NDArray[np.uint8] | None:
    """Decoded by libjpeg-turbo; None for CMYK, and for faults that Pillow may forgive."""
    import simplejpeg

    try:
        array: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, _JPEG_COLOURS[channels])
    except (ValueError, RuntimeError):
        return None
    return array


def ids_of_colours(
    array: NDArray[np.uint8], colour_map: Mapping[tuple[int, int, int], int]
) -> NDArray[Any]:
    """The id of every pixel's colour: height x width, uint8 or, for larger ids, uint16.

    A colour that the map lacks is an ImageError that names it and where it is.

    >>> ids_of_colours(np.array([[[255, 0, 0], [0, 0, 0]]]), {(0, 0, 0): 0, (255, 0, 0): 7})
    array([[7, 0]], dtype=uint8)
    """
    known = np.array(sorted((_code(*colour), number) for colour, number in colour_map.items()))
    known = known.reshape(-1, 2)
    parts = array[..., :3].astype(np.int64)
    codes = _code(parts[..., 0], parts[..., 1], parts[..., 2])
    places = np.searchsorted(known[:, 0], codes)
    is_known = np.append(known[:, 0], -1)[places] == codes
    if not is_known.all():
        row, column = np.argwhere(~is_known)[0].tolist()
        colour = tuple(array[row, column, :3].tolist())
        raise ImageError(
            f"expected colours of the colour map, got {colour} at row {row}, column {column}"
            f" and {(~is_known).sum()} such pixels in all\nhint: add it to `colour_map`"
        )
    dtype = np.uint8 if known[:, 1].max(initial=0) < 256 else np.uint16
    ids: NDArray[Any] = known[:, 1].astype(dtype)[places]
    return ids


def _code(red: Any, green: Any, blue: Any) -> Any:
    return red << 16 | green << 8 | blue
