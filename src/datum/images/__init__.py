"""Images: recognised by content, checked, prepared for storage, and decoded exactly."""

from datum.images.check import check_decodes, read_header
from datum.images.decode import decode, decode_pixels, ids_of_colours, palette_of
from datum.images.header import (
    ImageError,
    ImageFormat,
    ImageHeader,
    read_file,
    read_file_header,
    sniff_file,
    sniff_format,
)
from datum.images.prepare import ImageOptions, PreparedImage, prepare

__all__ = [
    "ImageError",
    "ImageFormat",
    "ImageHeader",
    "ImageOptions",
    "PreparedImage",
    "check_decodes",
    "decode",
    "decode_pixels",
    "ids_of_colours",
    "palette_of",
    "prepare",
    "read_file",
    "read_file_header",
    "read_header",
    "sniff_file",
    "sniff_format",
]
