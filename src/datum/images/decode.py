"""Exact decoding of images into arrays."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from datum import _core
from datum.images.header import (
    PNG_START,
    ImageError,
    ImageHeader,
    open_image,
    parse_header,
    pixels_of,
)
from datum.schema import Feature

__all__ = [
    "check_channels",
    "decode",
    "decode_pixels",
    "decode_png",
    "fit_depth",
    "ids_as_grey",
    "ids_of_colours",
    "palette_of",
    "png_shape",
    "stack_images",
]

_PNG_CHANNELS = {0: 1, 2: 3, 3: 1, 6: 4}  # by colour type; ids for a palette
_PALETTE = 3
_HEADER = struct.Struct(">IIBBBBB")
_CHUNK = struct.Struct(">I4s")
_FIRST_CHUNK = 33  # after the signature and the header
_CHUNK_BYTES = 12  # length, kind and checksum


def png_shape(data: bytes | memoryview) -> tuple[int, int, int] | None:
    """Return height, width and channels from the header of a PNG; None if it does not suffice.

    That is the case for palettes, whose channels depend on the request, and for more than 8 bits.
    """
    if len(data) < _FIRST_CHUNK:
        return None
    width, height, bits, colour, *_ = _HEADER.unpack_from(data, 16)
    is_known = bits == 8 and colour in _PNG_CHANNELS and colour != _PALETTE
    return (height, width, _PNG_CHANNELS[colour]) if is_known else None


def decode_png(
    data: bytes | memoryview, channels: int, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8] | None:
    """Decode a complete PNG of eight bits and this number of channels, without conversion.

    Return None for every other image, and for a damaged one: Pillow reads them, or reports the
    fault. With `out`, a contiguous array, pixels are written there, and images of another shape
    return None, too; without it, the caller has to check the size before.
    """
    if len(data) < _FIRST_CHUNK:
        return None
    width, height, bits, colour, method, filtering, interlaced = _HEADER.unpack_from(data, 16)
    if bits != 8 or _PNG_CHANNELS.get(colour) != channels or method or filtering or interlaced:
        return None
    shape = (height, width, channels)
    if out is not None and out.shape != shape:
        return None
    packed = _find_pixels(data)
    if packed is None:
        return None
    row_bytes = width * channels
    inflated = _inflate(packed, height * (row_bytes + 1))
    if inflated is None:
        return None
    out = np.empty(shape, np.uint8) if out is None else out
    return out if _core.undo_png_filters(inflated, row_bytes, channels, out) else None


def _find_pixels(data: bytes | memoryview) -> bytes | memoryview | None:
    """Return the content of the pixel chunks, once verified; None if one is unexpected."""
    found: list[bytes | memoryview] = []
    view = memoryview(data)
    if isal_zlib.crc32(view[12:29]) != int.from_bytes(view[29:33], "big"):
        return None
    at, size = _FIRST_CHUNK, len(view)
    while at + _CHUNK_BYTES <= size:
        length, kind = _CHUNK.unpack_from(view, at)
        end = at + 8 + length
        if kind == b"IEND":
            return found[0] if len(found) == 1 else b"".join(found) or None
        if end + 4 > size or kind == b"acTL":  # truncated, or animated
            return None
        if kind == b"IDAT":
            if isal_zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
                return None
            found.append(view[at + 8 : end])
        at = end + 4
    return None


def _inflate(packed: bytes | memoryview, nbytes: int) -> bytes | None:
    """Return exactly `nbytes` bytes; None if there are more, fewer, or the stream is damaged."""
    stream: Any = isal_zlib.decompressobj()
    try:
        inflated: bytes = stream.decompress(packed, nbytes + 1)
    except isal_zlib.error:
        return None
    return inflated if stream.eof and len(inflated) == nbytes else None


WIDENED = 257  # the factor from 8 to 16 bits: 255 becomes 65535

_JPEG_COLOURS = {1: "GRAY", 3: "RGB", 4: "RGBA"}


def decode(data: bytes | Iterable[bytes], feature: Feature) -> Any:
    """Decode an image to the pixels of its feature: height x width x channels.

    For a feature that is a list of images, `data` are the bytes of each. They are returned as one
    array, with the number of images before the height; or as a list, if their sizes differ.

    None for the channels means those of the image. With one channel, a palette is decoded to its
    ids, not its colours; grey is repeated for three channels; opaque images get the highest alpha
    for four. An EXIF orientation is not applied; only the first of several frames is decoded. See
    `fit_depth` for conversion between 8 and 16 bits.
    """
    if feature.holds_images:
        return stack_images([_decode(one, feature.single_image) for one in data], feature)
    return _decode(data, feature)


def stack_images(
    images: Sequence[NDArray[Any]], feature: Feature
) -> NDArray[Any] | list[NDArray[Any]]:
    """Return the images of one record as one array, or as a list if their sizes differ."""
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
    """Convert pixels to uint8 or uint16, as required by their feature.

    Colours keep their appearance: white is 255 in 8 bits and 65535 in 16, so values are multiplied
    by 257, or lose their low byte. The values of a single channel may be ids and never change:
    ImageError is raised if they do not fit.

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
                hint="a feature of dtype uint16 fits them",
            )
        return array.astype(dtype)
    if dtype == "uint16":
        return array.astype(np.uint16) * np.uint16(WIDENED)
    return (array >> 8).astype(np.uint8)


def decode_pixels(data: bytes, channels: int) -> NDArray[Any]:
    """Return the pixels of an image, uint8 or uint16, with 1, 3 or 4 channels."""
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
    except Exception as error:  # malicious bytes make decoders raise anything
        raise ImageError(
            f"expected a whole {header.format.upper()} image, got a damaged one: {error}"
        ) from None


def check_channels(header: ImageHeader, channels: int | None) -> None:
    """Raise ImageError for colours that are not converted to grey."""
    if header.dtype == "uint16" and channels == 1 != header.channels:
        raise ImageError(
            "expected grey or a palette for one channel, got 16-bit colour",
            hint="use a feature of 3 channels, or convert it to grey",
        )


def _decode_jpeg(data: bytes, channels: int) -> NDArray[np.uint8] | None:
    """Decode with libjpeg-turbo; return None for CMYK, and for faults that Pillow may forgive."""
    import simplejpeg

    try:
        array: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, _JPEG_COLOURS[channels])
    except (ValueError, RuntimeError):
        return None
    return array


def ids_of_colours(
    array: NDArray[np.uint8], colour_map: Mapping[tuple[int, int, int], int]
) -> NDArray[Any]:
    """Return the id of every pixel's colour: height x width, uint8 or, for larger ids, uint16.

    A colour that the map lacks raises an ImageError that names it and its position.

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
            f" and {(~is_known).sum()} such pixels in total",
            hint="add it to `colour_map`",
        )
    dtype = np.uint8 if known[:, 1].max(initial=0) < 256 else np.uint16
    ids: NDArray[Any] = known[:, 1].astype(dtype)[places]
    return ids


def _code(red: Any, green: Any, blue: Any) -> Any:
    return red << 16 | green << 8 | blue


_HEADER_END = 33  # of a PNG: the signature, and the first chunk


def ids_as_grey(data: bytes, header: ImageHeader) -> bytes:
    """Return a grey PNG whose values are the ids of an image with a palette.

    TensorFlow decodes a palette to its colours, and those to grey, but it leaves the values of a
    grey image unchanged. The pixels of a PNG of 8 bits are not even decoded: only the header
    changes.
    """
    bits, colour = data[24:26]
    if header.format == "png" and (bits, colour) == (8, 3):
        return _rename_pixels(data)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(decode_pixels(data, 1)[..., 0]).save(file, "png")
    return file.getvalue()


def palette_of(data: bytes) -> list[tuple[int, int, int]] | None:
    """Return the colours of the ids of an image; None if it has no palette."""
    header = parse_header(data)
    if not header.has_palette:
        return None
    values = open_image(data, header.format).getpalette("RGB") or []
    return list(zip(values[::3], values[1::3], values[2::3], strict=True))


def _rename_pixels(data: bytes) -> bytes:
    kept = b"IHDR" + data[16:25] + b"\0" + data[26:29]  # colour type 0, grey
    pieces = [PNG_START, struct.pack(">I", 13), kept, struct.pack(">I", zlib.crc32(kept))]
    at = _HEADER_END
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind in (b"IDAT", b"IEND"):
            pieces.append(data[at : at + 12 + length])
        at += 12 + length
    return b"".join(pieces)
