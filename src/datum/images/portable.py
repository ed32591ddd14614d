"""Images that not every reader decodes alike, as PNG files of the same pixels.

TensorFlow has no decoder for TIFF, and its own ideas of animated WebP and of many a GIF and BMP: of
transparency, of frames that do not fill the image, of palettes. All else is stored as it is.
"""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.images.header import PNG_START, ImageHeader, jpeg_frame

__all__ = ["encode_png", "is_portable"]

_CMYK = 4  # components of a JPEG
_ANIMATED = 0x02  # of the flags of an extended WebP
_COLOUR_TYPES = {3: 2, 4: 6}  # of a PNG, by the channels
_SUB = 1  # the filter that stores how a value differs from that of the pixel before


def is_portable(data: bytes, header: ImageHeader, channels: int | None) -> bool:
    """Whether all readers give the same pixels of an image, with so many channels.

    None for the channels means those of the image. Colours that are to be grey are not: everybody
    weighs red, green and blue differently, but for those in a JPEG, which has the grey apart.
    """
    if header.format == "jpeg":  # not in CMYK as grey, nor with odd markers, which Pillow forgives
        frame = jpeg_frame(data)
        return frame is not None and (channels != 1 or frame[2] != _CMYK)
    if channels == 1 < header.channels or header.format == "tiff":
        return False
    if header.format == "gif":  # in colours, opaque, and with a first frame that fills the image
        return header.channels == 3 and _first_frame(data) == (0, 0, header.width, header.height)
    if header.format == "webp":  # not an animation
        return not (data[12:16] == b"VP8X" and data[20] & _ANIMATED)
    return header.format != "bmp" or _is_plain_bmp(data)


def _first_frame(data: bytes) -> tuple[int, ...]:
    """Left, top, width and height of the first frame of a GIF; nothing where there is none."""
    flags = data[10]
    at = 13 + (3 * 2 ** (1 + flags % 8) if flags & 0x80 else 0)
    while at < len(data) - 10:
        if data[at] == 0x2C:
            return struct.unpack_from("<4H", data, at + 1)
        if data[at] != 0x21:
            break
        at += 2
        while at < len(data) and data[at]:  # the blocks of an extension
            at += 1 + data[at]
        at += 1
    return ()


def _is_plain_bmp(data: bytes) -> bool:
    """Of 24 bits, not compressed, and with the usual header."""
    if len(data) < 34:
        return False
    head_bytes, _, _, _, bits, compression = struct.unpack_from("<IiiHHI", data, 14)
    return head_bytes >= 40 and (bits, compression) == (24, 0)


def encode_png(array: NDArray[Any]) -> bytes:
    """A PNG file of pixels: height x width x 1, 3 or 4, uint8 or uint16."""
    if array.dtype == np.uint16 and array.shape[-1] > 1:
        return _encode_deep_colours(array)  # which Pillow cannot
    from PIL import Image

    file = io.BytesIO()
    flat = array[..., 0] if array.shape[-1] == 1 else array
    Image.fromarray(np.ascontiguousarray(flat)).save(file, "png")
    return file.getvalue()


def _encode_deep_colours(array: NDArray[np.uint16]) -> bytes:
    height, width, channels = array.shape
    stored = np.ascontiguousarray(array.astype(">u2")).view(np.uint8).reshape(height, width, -1)
    rows = np.empty((height, 1 + width * 2 * channels), np.uint8)
    rows[:, 0] = _SUB
    filtered = rows[:, 1:].reshape(height, width, 2 * channels)
    filtered[:, 0] = stored[:, 0]
    np.subtract(stored[:, 1:], stored[:, :-1], out=filtered[:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 16, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return PNG_START + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
