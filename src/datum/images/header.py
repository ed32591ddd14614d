"""What an encoded image says of itself in its first bytes."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal

from datum.errors import SourceError
from datum.images.pillow import describe_pixels, open_image

__all__ = [
    "MAX_PIXELS",
    "ImageError",
    "ImageFormat",
    "ImageHeader",
    "jpeg_frame",
    "parse_header",
    "sniff_format",
]

ImageFormat = Literal["bmp", "gif", "jpeg", "png", "tiff", "webp"]

MAX_PIXELS = 178_956_970  # where Pillow sees a decompression bomb: half a GiB once decoded to RGB

PNG_START = b"\x89PNG\r\n\x1a\n"
_STARTS: tuple[tuple[bytes, ImageFormat], ...] = (
    (b"\xff\xd8\xff", "jpeg"),
    (PNG_START, "png"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"BM", "bmp"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),  # files of more than 4 GiB
    (b"MM\x00+", "tiff"),
)
_FRAME_MARKERS = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))  # the kinds of JPEG that are in use
_BARE_MARKERS = frozenset((0x01, *range(0xD0, 0xD8)))  # those that no length follows
_PNG_BITS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 4, 6: 4}


class ImageError(SourceError):
    """An image that cannot be used: damaged, too large, or of a kind that is not supported."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """What an image is once it is decoded.

    Attributes:
        format: how it is encoded.
        height, width: in pixels, as they are stored; an orientation in EXIF is not applied.
        channels: 1 for grey, 3 for colour, 4 with transparency. Palettes count as the colours
            they stand for, CMYK as 3, and grey with transparency as 4.
        dtype: "uint16" if pixels have more than eight bits.
        has_palette: whether pixels are ids of colours; with one channel they are read as such.
    """

    format: ImageFormat
    height: int
    width: int
    channels: int
    dtype: Literal["uint8", "uint16"] = "uint8"
    has_palette: bool = False


def sniff_format(data: bytes) -> ImageFormat | None:
    r"""The format that the first bytes tell, whatever the file is called.

    >>> sniff_format(b"GIF89a\x01\x00")
    'gif'
    """
    if data[:4] == b"RIFF":
        return "webp" if data[8:12] == b"WEBP" else None
    return next((name for start, name in _STARTS if data.startswith(start)), None)


def parse_header(data: bytes) -> ImageHeader:
    """The header of an image; raises ImageError for what is none, or above `MAX_PIXELS`.

    What follows the header is not looked at: see `read_header` for whole images.
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
    except Exception as error:  # decoders raise what they like on bytes made to harm
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
    """Height, width and components of a JPEG; None where its markers are odd, for Pillow to say.

    Of four components, an image is in CMYK.
    """
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # filling
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
    """The kinds of the chunks before the pixels."""
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
