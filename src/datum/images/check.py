"""Completeness of image files: checked by their end, or by decoding them if in doubt."""

from __future__ import annotations

import struct
from typing import Any

from datum.images.decode import decode_pixels
from datum.images.header import ImageError, ImageHeader, open_image, parse_header, png_chunks

__all__ = ["check_decodes", "check_sums", "read_header"]

_END_BYTES = 4096  # that cameras and programs may add after the end of a JPEG or GIF


def read_header(data: bytes) -> ImageHeader:
    """Return the header of a complete image, recognised by content; raise ImageError otherwise.

    An image that looks truncated, or may harm a decoder, is decoded to decide. Damage within is
    found only by decoding: see `check_decodes`.
    """
    header = parse_header(data)
    if not _LOOKS_WHOLE[header.format](data):
        check_decodes(data, header)
    return header


def check_decodes(data: bytes, header: ImageHeader) -> None:
    """Decode all pixels; raise ImageError if that fails."""
    check_sums(data, header)
    decode_pixels(data, header.channels)


def check_sums(data: bytes, header: ImageHeader) -> None:
    """Verify the checksums of a PNG, which Pillow does not do when it decodes."""
    if header.format != "png":
        return
    try:
        open_image(data, "png").verify()
    except Exception as error:
        raise ImageError(f"expected a whole PNG image, got a damaged one: {error}") from None


def _is_jpeg_whole(data: bytes) -> bool:
    return data.endswith(b"\xff\xd9") or data.rfind(b"\xff\xd9", -_END_BYTES) >= 0


def _is_png_whole(data: bytes) -> bool:
    # Compressed text may fill the memory; Pillow then refuses the image.
    is_plain = not {b"zTXt", b"iTXt"}.intersection(png_chunks(data))
    return is_plain and data.rfind(b"IEND\xaeB`\x82", -_END_BYTES) >= 0


def _is_gif_whole(data: bytes) -> bool:
    return data.rstrip(b"\x00").endswith(b"\x3b")


def _is_webp_whole(data: bytes) -> bool:
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def _is_bmp_whole(data: bytes) -> bool:
    size, _, start = struct.unpack_from("<III", data, 2)
    return bool(start < size <= len(data))


def _is_tiff_whole(data: bytes) -> bool:
    """Return whether every strip or tile of the first image is within the file."""
    tags: Any = open_image(data, "tiff").tag_v2
    for starts, lengths in ((273, 279), (324, 325)):
        if starts in tags:
            places = zip(_listed(tags[starts]), _listed(tags.get(lengths, ())), strict=False)
            return all(start + length <= len(data) for start, length in places)
    return False


def _listed(value: Any) -> tuple[int, ...]:
    return value if isinstance(value, tuple) else (value,)


_LOOKS_WHOLE = {
    "bmp": _is_bmp_whole,
    "gif": _is_gif_whole,
    "jpeg": _is_jpeg_whole,
    "png": _is_png_whole,
    "tiff": _is_tiff_whole,
    "webp": _is_webp_whole,
}
