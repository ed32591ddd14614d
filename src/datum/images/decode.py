"""Encoded images into arrays, exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.images.header import ImageError, ImageHeader, parse_header
from datum.images.pillow import open_image, pixels_of
from datum.images.png import decode_png
from datum.schema import Feature

__all__ = [
    "check_channels",
    "decode",
    "decode_pixels",
    "fit_depth",
    "ids_of_colours",
    "stack_images",
]

WIDENED = 257  # what a value of 8 bits is multiplied by: 255 becomes 65535

_JPEG_COLOURS = {1: "GRAY", 3: "RGB", 4: "RGBA"}


def decode(data: bytes | Iterable[bytes], feature: Feature) -> Any:
    """The pixels of an image as its feature says: height x width x channels.

    Of a feature that holds a list of images, `data` are the bytes of each. They come as one array,
    with the number of images before the height; or as a list, where they are of several sizes.

    With None for the channels they are as many as the image has. With one a palette gives its
    ids, not its colours; grey is repeated for three; what is opaque gets the highest alpha for
    four. An orientation in EXIF is not applied; of several frames the first is given. For how
    8 bits become 16, see `fit_depth`.
    """
    if feature.holds_images:
        return stack_images([_decode(one, feature.single_image) for one in data], feature)
    return _decode(data, feature)


def stack_images(
    images: Sequence[NDArray[Any]], feature: Feature
) -> NDArray[Any] | list[NDArray[Any]]:
    """The images of one record as one array, or as a list where they are of several sizes."""
    count = feature.shape[0]
    if count is not None and len(images) != count:
        raise ImageError(f"expected {count} images, got {len(images)}")
    if not images:
        return np.zeros([n or 0 for n in (0, *feature.shape[1:])], feature.dtype)
    is_alike = all(image.shape == images[0].shape for image in images)
    return np.stack(images) if is_alike else list(images)


def _decode(data: Any, feature: Feature) -> NDArray[Any]:
    channels = feature.shape[-1]
    if channels is None:
        channels = parse_header(data).channels
    if channels not in _JPEG_COLOURS:
        raise ImageError(f"expected a feature of 1, 3 or 4 channels, got {feature!r}")
    array = fit_depth(decode_pixels(data, channels), feature.dtype)
    fits = all(n is None or n == got for n, got in zip(feature.shape, array.shape, strict=True))
    if not fits:
        raise ImageError(f"expected an image of shape {feature.shape}, got {array.shape}")
    return array


def fit_depth(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Pixels as uint8 or uint16, whichever their feature has.

    Colours keep their look: white is 255 in 8 bits and 65535 in 16, so values are multiplied by
    257, or lose their low byte. The values of a single channel may be ids, and are never changed:
    an ImageError if they do not fit.

    >>> fit_depth(np.array([[[0, 128, 255]]], np.uint8), "uint16")
    array([[[    0, 32896, 65535]]], dtype=uint16)
    >>> fit_depth(np.array([[[7]]], np.uint8), "uint16")
    array([[[7]]], dtype=uint16)
    """
    if array.dtype == dtype:
        return array
    if array.shape[-1] == 1:
        if dtype == "uint8" and array.max() > 255:
            raise ImageError(
                f"expected pixels of 8 bits, got {array.max()}",
                hint="a feature of dtype uint16 holds them",
            )
        return array.astype(dtype)
    if dtype == "uint16":
        return array.astype(np.uint16) * np.uint16(WIDENED)
    return (array >> 8).astype(np.uint8)


def decode_pixels(data: bytes, channels: int) -> NDArray[Any]:
    """The pixels of an image, uint8 or uint16, with 1, 3 or 4 channels."""
    header = parse_header(data)
    check_channels(header, channels)
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


def check_channels(header: ImageHeader, channels: int | None) -> None:
    """Raise ImageError for colours that are not made grey."""
    if header.dtype == "uint16" and channels == 1 != header.channels:
        raise ImageError(
            "expected grey or a palette for one channel, got 16-bit colour",
            hint="a feature of 3 channels holds it, or convert it to grey",
        )


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
            f" and {(~is_known).sum()} such pixels in all",
            hint="add it to `colour_map`",
        )
    dtype = np.uint8 if known[:, 1].max(initial=0) < 256 else np.uint16
    ids: NDArray[Any] = known[:, 1].astype(dtype)[places]
    return ids


def _code(red: Any, green: Any, blue: Any) -> Any:
    return red << 16 | green << 8 | blue
