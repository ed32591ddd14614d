"""Headers of image files: format, size, channels."""

from __future__ import annotations

import importlib
import io
import os
import stat
import struct
import sys
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError, inert

__all__ = [
    "MAX_PIXELS",
    "ImageError",
    "ImageFormat",
    "ImageHeader",
    "describe_pixels",
    "jpeg_frame",
    "name_file",
    "open_image",
    "parse_header",
    "pixels_of",
    "read_file",
    "read_file_header",
    "sniff_file",
    "sniff_format",
]

# Opened by their own classes: `Image.open` would detect the format again, and warn of large images.
_CLASSES = {
    "bmp": ("PIL.BmpImagePlugin", "BmpImageFile"),
    "gif": ("PIL.GifImagePlugin", "GifImageFile"),
    "jpeg": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "png": ("PIL.PngImagePlugin", "PngImageFile"),
    "tiff": ("PIL.TiffImagePlugin", "TiffImageFile"),
    "webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
}
_CHANNELS = {"1": 1, "L": 1, "P": 3, "RGB": 3, "RGBX": 3, "CMYK": 3, "YCbCr": 3}
_CHANNELS |= {"HSV": 3, "LA": 4, "La": 4, "PA": 4, "RGBA": 4, "RGBa": 4}
_OPAQUE_16 = 65535


def open_image(data: bytes, name: str) -> Any:
    """Return Pillow's image of `data`, not yet decoded; errors of Pillow are raised unchanged."""
    module, kind = _CLASSES[name]
    return getattr(importlib.import_module(module), kind)(io.BytesIO(data))


def describe_pixels(image: Any) -> tuple[int, Literal["uint8", "uint16"]] | None:
    """Return channels and type of the result of `pixels_of`; None for pixels it cannot convert."""
    mode = image.mode
    if mode.startswith("I;16"):
        return 1, "uint16"
    if mode not in _CHANNELS:
        return None
    stored = _stored_mode(image)
    if ";16" in stored:  # narrowed to eight bits by Pillow
        return (_CHANNELS[mode], "uint16") if stored[:-1] == f"{mode};16" else None
    is_transparent = mode == "P" and "transparency" in image.info
    return 4 if is_transparent else _CHANNELS[mode], "uint8"


def pixels_of(image: Any, channels: int) -> NDArray[Any]:
    """Return an array of height x width x `channels`, of type uint8 or uint16.

    Palettes are converted to their ids for one channel, and to their colours for more.
    """
    if image.mode.startswith("I"):
        return _fit_channels(_to_uint16(np.asarray(image)[..., None]), channels)
    if ";16" in _stored_mode(image):
        return _fit_channels(_read_colours_of_16_bits(image), channels)
    if channels == 1:
        is_direct = image.mode in ("P", "L")
        band = image if is_direct else _single_band(image)
        return np.asarray(band)[..., None]
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # handles every kind of transparency
    return np.asarray(image.convert("RGB" if channels == 3 else "RGBA"))


def _single_band(image: Any) -> Any:
    if image.mode in ("PA", "LA", "La"):
        return image.getchannel(0)
    return image.convert("L")


def _stored_mode(image: Any) -> str:
    """Return Pillow's name for the pixels in the file, if they are not decoded yet."""
    tiles = getattr(image, "tile", None) or [(None, None, None, "")]
    args = tiles[0][3]
    mode = args[0] if isinstance(args, tuple) and args else args
    return mode if isinstance(mode, str) else ""


def _read_colours_of_16_bits(image: Any) -> NDArray[np.uint16]:
    """Decode twice: Pillow keeps the high byte of two, and the low one if its mode says swapped."""
    stored = _stored_mode(image)
    native = "L" if sys.byteorder == "little" else "B"
    order = stored[-1].replace("N", native)
    lied = stored[:-1] + ("B" if order == "L" else "L")
    other = type(image)(io.BytesIO(image.fp.getvalue()))
    for tile in other.tile:
        if _mode_of(tile) != stored:
            raise ValueError(f"expected pixels of one kind, got {stored} and {_mode_of(tile)}")
    other.tile = [_with_mode(tile, lied) for tile in other.tile]
    colours = np.asarray(image).astype(np.uint16)
    colours <<= 8
    colours |= np.asarray(other)
    return colours


def _mode_of(tile: Any) -> str:
    args = tile[3]
    return str(args[0] if isinstance(args, tuple) else args)


def _with_mode(tile: Any, mode: str) -> Any:
    args = tile[3]
    return type(tile)(*tile[:3], (mode, *args[1:]) if isinstance(args, tuple) else mode)


def _to_uint16(array: NDArray[Any]) -> NDArray[np.uint16]:
    if array.dtype.itemsize > 2 and (array.min() < 0 or array.max() > _OPAQUE_16):
        raise ValueError("expected pixels of 16 bits, got larger ones")
    return array.astype(np.uint16)


def _fit_channels(array: NDArray[np.uint16], channels: int) -> NDArray[np.uint16]:
    got = array.shape[-1]
    if got == 1 and channels > 1:
        array = np.repeat(array, 3, axis=-1)
    if channels == 4 and got != 4:
        opaque = np.full((*array.shape[:2], 1), _OPAQUE_16, np.uint16)
        array = np.concatenate([array, opaque], axis=-1)
    return array[..., :channels]


ImageFormat = Literal["bmp", "gif", "jpeg", "png", "tiff", "webp"]

MAX_PIXELS = 178_956_970  # Pillow's limit for decompression bombs: half a GiB once decoded to RGB

PNG_START = b"\x89PNG\r\n\x1a\n"
_STARTS: tuple[tuple[bytes, ImageFormat], ...] = (
    (b"\xff\xd8\xff", "jpeg"),
    (PNG_START, "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),  # BigTIFF, of more than 4 GiB
    (b"MM\x00+", "tiff"),
)
_FRAME_MARKERS = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))  # the kinds of JPEG in use
_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD8)))  # not followed by a length
_PNG_BITS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 4, 6: 4}


class ImageError(SourceError):
    """An image that cannot be used: damaged, too large, or of a kind that is not supported."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """The properties of a decoded image.

    Attributes:
        format: The file format.
        height: The height in stored pixels; an EXIF orientation is not applied.
        width: The width in stored pixels.
        channels: 1 for grey, 3 for colour, 4 with transparency. Palettes count as their colours,
            CMYK as 3, and grey with transparency as 4.
        dtype: "uint16" if pixels have more than eight bits.
        has_palette: Whether pixels are ids of colours; with one channel they are read as ids.
    """

    format: ImageFormat
    height: int
    width: int
    channels: int
    dtype: Literal["uint8", "uint16"] = "uint8"
    has_palette: bool = False


def sniff_format(data: bytes) -> ImageFormat | None:
    r"""Return the format of an image by its first bytes, whatever the file name.

    >>> sniff_format(b"GIF89a\x01\x00")
    'gif'
    """
    if data[:4] == b"RIFF":
        return "webp" if data[8:12] == b"WEBP" else None
    return next((name for start, name in _STARTS if data.startswith(start)), None)


def parse_header(data: bytes) -> ImageHeader:
    """Return the header of an image; raise ImageError if it is none, or above `MAX_PIXELS`.

    The rest of the file is not read: see `read_header` for complete images.
    """
    name = sniff_format(data)
    if name is None:
        got = f"bytes that start with {data[:8]!r}" if data else "no bytes"
        raise ImageError(f"expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, got {got}")
    parse = {"jpeg": _parse_jpeg, "png": _parse_png, "webp": _parse_webp}.get(name)
    try:
        header = parse(data) if parse else None
        if header is None:
            header = _parse_with_pillow(data, name)
    except ImageError:
        raise
    except Exception as error:  # malicious bytes make decoders raise anything
        raise ImageError(
            f"expected a {name.upper()} image, got a damaged header: {error}"
        ) from None
    if not 0 < header.height * header.width <= MAX_PIXELS:
        raise ImageError(
            f"expected an image of 1 to {MAX_PIXELS:,} pixels,"
            f" got {header.width:,} x {header.height:,}"
        )
    return header


def _parse_jpeg(data: bytes) -> ImageHeader | None:
    frame = jpeg_frame(data)
    return None if frame is None else ImageHeader("jpeg", *frame[:2], 1 if frame[2] == 1 else 3)


def jpeg_frame(data: bytes) -> tuple[int, int, int] | None:
    """Return height, width and components of a JPEG; None if its markers are for Pillow to judge.

    An image of four components is in CMYK.
    """
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker in _BARE_MARKERS:
            at += 2
        elif marker in _FRAME_MARKERS:
            bits, height, width, count = struct.unpack_from(">BHHB", data, at + 4)
            if bits != 8 or height == 0 or count not in (1, 3, 4):
                return None
            return height, width, count
        else:
            at += 2 + (data[at + 2] << 8) + data[at + 3]
    return None


def _parse_png(data: bytes) -> ImageHeader:
    length, kind, width, height, bits, colour = struct.unpack_from(">I4sIIBB", data, 8)
    if (length, kind) != (13, b"IHDR") or bits not in _PNG_BITS.get(colour, ()):
        raise ImageError("expected a PNG image, got a damaged header")
    if bits == 16 and colour == 4:
        raise ImageError(
            "expected grey or colour, got 16-bit grey with transparency",
            hint="save it as 16-bit RGBA, or without its alpha",
        )
    has_palette = colour == 3
    channels = 4 if has_palette and b"tRNS" in png_chunks(data) else _PNG_CHANNELS[colour]
    dtype: Literal["uint8", "uint16"] = "uint16" if bits == 16 else "uint8"
    return ImageHeader("png", height, width, channels, dtype, has_palette)


def png_chunks(data: bytes) -> list[bytes]:
    """Return the kinds of the chunks before the pixels."""
    found: list[bytes] = []
    at = 8
    while at + 8 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IDAT":
            break
        found.append(kind)
        at += 12 + length
    return found


def _parse_webp(data: bytes) -> ImageHeader | None:
    kind = data[12:16]
    if kind == b"VP8X":
        width = 1 + int.from_bytes(data[24:27], "little")
        height = 1 + int.from_bytes(data[27:30], "little")
        return ImageHeader("webp", height, width, 4 if data[20] & 0x10 else 3)
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = int.from_bytes(data[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        return ImageHeader("webp", height, width, 4 if bits >> 28 & 1 else 3)
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageHeader("webp", height & 0x3FFF, width & 0x3FFF, 3)
    return None


def _parse_with_pillow(data: bytes, name: ImageFormat) -> ImageHeader:
    image: Any = open_image(data, name)
    described = describe_pixels(image)
    if described is None:
        raise ImageError(
            f"expected pixels of 8 or 16 bits, grey or RGB, got mode {image.mode!r}",
            hint="convert it, or store its values with encoding='raw'",
        )
    width, height = image.size
    return ImageHeader(name, height, width, *described, image.mode in ("P", "PA"))


_START_BYTES = 64 * 2**10  # contains the header of nearly every image
_SNIFF_BYTES = 16
# Opening a pipe would wait for its other end.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file; raise ImageError for any other path."""
    return _read(path, None)[0]


def read_file_header(path: str | os.PathLike[str]) -> ImageHeader:
    """Return the header of an image file; the rest of the file is not checked."""
    try:
        start, size = _read(path, _START_BYTES)
        try:
            return parse_header(start)
        except ImageError:
            if len(start) >= size:
                raise
        return parse_header(read_file(path))
    except ImageError as error:
        raise name_file(path, error) from None


def sniff_file(path: str | os.PathLike[str]) -> ImageFormat | None:
    """Return the format by the first bytes of a file; None if it is not an image file."""
    try:
        return sniff_format(_read(path, _SNIFF_BYTES)[0])
    except ImageError:
        return None


def name_file(path: str | os.PathLike[str], error: ImageError) -> ImageError:
    """Return the same error, with its file."""
    return error if error.where.startswith(inert(path)) else ImageError(error, where=path)


def _read(path: str | os.PathLike[str], limit: int | None) -> tuple[bytes, int]:
    """Return at most `limit` bytes of the file, and its size."""
    try:
        file = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageError(f"expected a file, got: {reason.lower()}", where=path) from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ImageError(f"expected a regular file, got {_kind(status.st_mode)}", where=path)
        size = status.st_size
        wanted = size if limit is None else min(size, limit)
        return _read_exactly(file, wanted, path), size
    except OSError as error:
        raise ImageError(f"expected a file that can be read, got: {error}", where=path) from None
    finally:
        os.close(file)


def _read_exactly(file: int, wanted: int, path: str | os.PathLike[str]) -> bytes:
    data = os.read(file, wanted)
    if len(data) == wanted:  # nearly always
        return data
    pieces = [data]
    while data and sum(map(len, pieces)) < wanted:
        data = os.read(file, wanted - sum(map(len, pieces)))
        pieces.append(data)
    whole = b"".join(pieces)
    if len(whole) != wanted:
        raise ImageError(
            f"expected {wanted} bytes, got {len(whole)}: the file has changed", where=path
        )
    return whole


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
