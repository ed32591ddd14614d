"""What the first bytes of an image tell."""

import struct

import numpy as np
import pytest
from PIL import Image

from datum.errors import SourceError
from datum.images.header import (
    MAX_PIXELS,
    ImageError,
    ImageHeader,
    parse_header,
    png_chunks,
    sniff_format,
)
from tests.unit.images.samples import (
    encoded,
    palette_image,
    pixels,
    png,
    png_of_16_bits,
)

FORMATS = ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"]


@pytest.mark.parametrize("name", FORMATS)
def test_format_and_size_are_told_by_content(name):
    header = parse_header(encoded(pixels(20, 30), name))
    assert header == ImageHeader(name.lower(), 20, 30, 3, has_palette=name == "GIF")


@pytest.mark.parametrize(
    ("mode", "name", "channels"),
    [
        ("1", "PNG", 1),
        ("L", "PNG", 1),
        ("LA", "PNG", 4),
        ("P", "PNG", 3),
        ("RGB", "PNG", 3),
        ("RGBA", "PNG", 4),
        ("L", "JPEG", 1),
        ("CMYK", "JPEG", 3),
        ("1", "TIFF", 1),
        ("CMYK", "TIFF", 3),
        ("LA", "TIFF", 4),
        ("L", "BMP", 1),
        ("RGBA", "WEBP", 4),
    ],
)
def test_the_channels_are_those_that_are_decoded(mode, name, channels):
    image = Image.fromarray(pixels(9, 7, 4 if mode.endswith("A") else 3)).convert(mode)
    assert parse_header(encoded(image, name)).channels == channels


@pytest.mark.parametrize("settings", [{}, {"lossless": True}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08"}])
def test_every_kind_of_webp_tells_its_transparency(settings):
    for channels in (3, 4):
        data = encoded(pixels(33, 17, channels), "WEBP", **settings)
        assert parse_header(data) == ImageHeader("webp", 33, 17, channels)


def test_an_animated_webp_has_the_size_of_its_canvas():
    frames = [Image.fromarray(pixels(8, 6)), Image.fromarray(pixels(8, 6)[::-1].copy())]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    assert parse_header(data) == ImageHeader("webp", 8, 6, 3)


def test_a_palette_with_transparency_has_four_channels():
    image = palette_image(pixels(5, 5, 1, most=3))
    assert parse_header(encoded(image, "PNG")).channels == 3
    data = encoded(image, "PNG", transparency=1)
    assert parse_header(data) == ImageHeader("png", 5, 5, 4, has_palette=True)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_16_bits_are_uint16(channels):
    data = png_of_16_bits(pixels(4, 6, channels, dtype=np.uint16, most=65535))
    assert parse_header(data) == ImageHeader("png", 4, 6, channels, "uint16")


def test_16_bit_grey_with_transparency_is_refused():
    data = png_of_16_bits(pixels(4, 6, 2, dtype=np.uint16))
    with pytest.raises(ImageError, match="16-bit grey with transparency"):
        parse_header(data)


def test_a_tiff_of_16_bits_is_uint16():
    data = encoded(pixels(4, 6, 1, dtype=np.uint16, most=65535), "TIFF")
    assert parse_header(data) == ImageHeader("tiff", 4, 6, 1, "uint16")


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pixels_of_32_bits_are_refused(dtype):
    data = encoded(np.ones((3, 3), dtype), "TIFF")
    with pytest.raises(ImageError, match=r"8 or 16 bits.*\nhint: convert it"):
        parse_header(data)


def test_progressive_and_padded_jpeg_headers_are_read():
    data = encoded(pixels(12, 10), "JPEG", progressive=True)
    assert parse_header(data[:2] + b"\xff\xff" + data[3:]) == ImageHeader("jpeg", 12, 10, 3)


def test_a_jpeg_with_junk_before_its_markers_is_read_as_pillow_does():
    data = encoded(pixels(12, 10), "JPEG")
    assert data[2:4] == b"\xff\xe0"
    assert parse_header(data[:20] + b"junk" + data[20:]) == ImageHeader("jpeg", 12, 10, 3)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff\xd8\xff\xe0", "jpeg"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"MM\0*", "tiff"),
        (b"II+\0", "tiff"),
        (b"", None),
        (b"<svg>", None),
    ],
)
def test_formats_are_sniffed(data, expected):
    assert sniff_format(data) == expected


@pytest.mark.parametrize("data", [b"", b"hello", b"%PDF-1.7"])
def test_what_is_no_image_is_refused(data):
    with pytest.raises(ImageError, match="expected a JPEG, PNG, WebP, GIF, BMP or TIFF image"):
        parse_header(data)
    assert issubclass(ImageError, SourceError)


@pytest.mark.parametrize("name", FORMATS)
def test_a_header_cut_anywhere_is_refused_or_right(name):
    data = encoded(pixels(20, 30), name)
    whole = parse_header(data)
    for end in range(min(len(data), 700)):
        try:
            assert parse_header(data[:end]) == whole
        except ImageError:
            continue


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_a_header_with_a_wrong_byte_never_raises_anything_else(name):
    data = bytearray(encoded(pixels(20, 30), name))
    for at in range(min(len(data), 300)):
        for value in (0, 255, data[at] ^ 1):
            changed = bytes(data[:at]) + bytes([value]) + bytes(data[at + 1 :])
            try:
                header = parse_header(changed)
            except ImageError:
                continue
            assert 0 < header.height * header.width <= MAX_PIXELS


def test_a_bomb_is_refused_without_being_decoded():
    data = png(50_000, 50_000, 8, 2, b"")
    with pytest.raises(ImageError, match="178,956,970 pixels, got 50,000 x 50,000"):
        parse_header(data)


def test_the_largest_image_is_let_through():
    assert parse_header(png(MAX_PIXELS, 1, 8, 0, b"")).width == MAX_PIXELS
    with pytest.raises(ImageError, match="pixels"):
        parse_header(png(MAX_PIXELS + 1, 1, 8, 0, b""))


@pytest.mark.parametrize("size", [(0, 5), (5, 0)])
def test_an_image_without_pixels_is_refused(size):
    with pytest.raises(ImageError, match="expected an image of 1 to"):
        parse_header(png(*size, 8, 0, b""))


@pytest.mark.parametrize(("bits", "colour"), [(3, 0), (8, 1), (4, 2), (16, 3), (8, 7)])
def test_kinds_of_png_that_do_not_exist_are_refused(bits, colour):
    with pytest.raises(ImageError, match="damaged header"):
        parse_header(png(2, 2, bits, colour, b"\0" * 20))


def test_chunks_before_the_pixels_are_listed():
    data = encoded(palette_image(pixels(5, 5, 1)), "PNG", transparency=0)
    assert png_chunks(data) == [b"IHDR", b"PLTE", b"tRNS"]
    length = struct.pack(">I", 2**32 - 1)
    assert png_chunks(data[:33] + length + b"PLTE") == [b"IHDR", b"PLTE"]
