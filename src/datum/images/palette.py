"""Images of ids with a palette, made grey images of the same ids."""

from __future__ import annotations

import io
import struct
import zlib

from datum.images.decode import decode_pixels
from datum.images.header import PNG_START, ImageHeader, parse_header
from datum.images.pillow import open_image

__all__ = ["ids_as_grey", "palette_of"]

_HEADER_END = 33  # of a PNG: the start, and the first chunk


def ids_as_grey(data: bytes, header: ImageHeader) -> bytes:
    """A grey PNG whose values are the ids of an image with a palette.

    TensorFlow decodes a palette to its colours, and those to grey; of a grey image it gives the
    values as they are. The pixels of a PNG with 8 bits are not even decoded: only how they are
    called changes.
    """
    bits, colour = data[24:26]
    if header.format == "png" and (bits, colour) == (8, 3):
        return _rename_pixels(data)
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(decode_pixels(data, 1)[..., 0]).save(file, "png")
    return file.getvalue()


def palette_of(data: bytes) -> list[tuple[int, int, int]] | None:
    """The colours of the ids of an image; None if it has no palette."""
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
