"""Image files recognised by their bytes and checked."""

import os
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from datum.errors import SourceError
from datum.images import (
    ImageError,
    ImageHeader,
    check_decodes,
    read_file,
    read_file_header,
    read_header,
    sniff_file,
)
from datum.images import check as module
from datum.images.header import MAX_PIXELS, name_file, parse_header, png_chunks, sniff_format
from tests.unit.images.samples import (
    encoded,
    palette_image,
    pixels,
    png,
    png_chunk,
    png_of_16_bits,
    save,
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


def test_a_file_is_read_whole(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(bytes(range(256)) * 1000)
    assert read_file(path) == path.read_bytes()
    assert read_file(str(path)) == path.read_bytes()


def test_an_empty_file_has_no_bytes(tmp_path):
    (tmp_path / "a.jpg").touch()
    assert read_file(tmp_path / "a.jpg") == b""
    with pytest.raises(ImageError, match="a.jpg: expected a JPEG.*got no bytes"):
        read_file_header(tmp_path / "a.jpg")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ImageError, match="gone.jpg: expected a file, got: no such file"):
        read_file(tmp_path / "gone.jpg")


def test_a_name_with_a_null_is_refused():
    with pytest.raises(ImageError, match="null"):
        read_file("a\0b")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ImageError, match="got a folder|is a directory"):
        read_file(tmp_path)


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(ImageError, match="a.jpg: expected a regular file, got a pipe"):
        read_file(tmp_path / "a.jpg")
    assert sniff_file(tmp_path / "a.jpg") is None


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices here")
def test_a_device_is_refused():
    with pytest.raises(ImageError, match="got a device"):
        read_file("/dev/zero")


def test_a_file_that_shrinks_while_it_is_read_is_told(tmp_path, monkeypatch):
    path = tmp_path / "a.jpg"
    path.write_bytes(b"x" * 100)
    real = os.read

    def read_less(file, count):
        os.truncate(path, 40)
        return real(file, count)

    monkeypatch.setattr(os, "read", read_less)
    with pytest.raises(ImageError, match="expected 100 bytes, got 40: the file has changed"):
        read_file(path)


def test_a_file_read_in_pieces_is_whole(tmp_path, monkeypatch):
    path = tmp_path / "a.jpg"
    path.write_bytes(bytes(range(100)))
    real = os.read
    monkeypatch.setattr(os, "read", lambda file, count: real(file, min(count, 7)))
    assert read_file(path) == bytes(range(100))


def test_the_header_of_a_file_is_read(tmp_path):
    header = read_file_header(save(tmp_path / "a.png", pixels(8, 9)))
    assert (header.format, header.height, header.width) == ("png", 8, 9)


def test_a_header_that_comes_late_is_found(tmp_path):
    data = encoded(pixels(8, 9), "JPEG")
    comment = b"\xff\xfe\xff\xff" + b"c" * 65533
    path = tmp_path / "late.jpg"
    path.write_bytes(data[:2] + comment * 3 + data[2:])
    assert read_file_header(path).width == 9


def test_an_error_names_its_file_once(tmp_path):
    error = name_file("a.jpg", ImageError("expected"))
    assert str(error) == "a.jpg: expected"
    assert name_file("a.jpg", error) is error


def test_files_are_sniffed_whatever_they_are_called(tmp_path):
    path = save(tmp_path / "a.txt", pixels(4, 4), "WEBP")
    assert sniff_file(path) == "webp"
    (tmp_path / "b.jpg").write_text("no image")
    assert sniff_file(tmp_path / "b.jpg") is None
    assert sniff_file(tmp_path / "gone") is None


@pytest.fixture
def decoded(monkeypatch):
    """The images that were decoded, by format."""
    seen = []
    real = module.decode_pixels
    monkeypatch.setattr(
        module,
        "decode_pixels",
        lambda data, channels: seen.append(data[:3]) or real(data, channels),
    )
    return seen


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_image_is_not_decoded(name, decoded):
    assert read_header(encoded(pixels(20, 30), name)).format == name.lower()
    assert decoded == []


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_an_image_cut_anywhere_is_refused(name):
    data = encoded(pixels(16, 16), name)
    first = next(end for end in range(len(data), 0, -1) if _is_refused(data[:end]))
    # What may follow the pixels: a WebP's padding, the directory's end of a TIFF, an end marker.
    assert first > len(data) - 12
    for end in range(0, first, 7):
        with pytest.raises(ImageError):
            read_header(data[:end])


def _is_refused(data):
    try:
        read_header(data)
    except ImageError:
        return True
    return False


def test_a_jpeg_without_its_end_marker_is_decoded_to_decide(decoded):
    data = encoded(pixels(20, 30), "JPEG")
    with pytest.raises(ImageError, match="expected a whole JPEG image, got a damaged one"):
        read_header(data[: len(data) - 200])
    assert len(decoded) == 1


@pytest.mark.parametrize("name", ["GIF", "JPEG", "PNG"])
@pytest.mark.parametrize("extra", [b"\0" * 100, b"\0"])
def test_bytes_after_the_end_do_no_harm(name, extra, decoded):
    data = encoded(pixels(20, 30), name)
    assert read_header(data + extra) == read_header(data)
    assert decoded == []


def test_packed_text_that_would_fill_the_memory_is_refused():
    text = png_chunk(b"zTXt", b"note\0\0" + zlib.compress(b"\0" * 2**24))
    with pytest.raises(ImageError, match="too large"):
        read_header(png(1, 1, 8, 0, b"\0\0", text))


def test_packed_text_of_ordinary_size_is_fine(decoded):
    text = png_chunk(b"zTXt", b"note\0\0" + zlib.compress(b"hello"))
    assert read_header(png(1, 1, 8, 0, b"\0\0", text)).width == 1
    assert len(decoded) == 1


def test_damage_within_is_found_by_decoding():
    data = bytearray(encoded(pixels(40, 40), "PNG"))
    data[len(data) // 2] ^= 255
    header = read_header(bytes(data))
    with pytest.raises(ImageError, match="expected a whole PNG image, got a damaged one"):
        check_decodes(bytes(data), header)


def test_whole_images_decode():
    for name in FORMATS:
        data = encoded(pixels(20, 30), name)
        check_decodes(data, read_header(data))


@pytest.mark.filterwarnings("ignore")
def test_odd_images_are_read_or_refused(shared_data):
    read, refused = {}, {}
    for path in sorted((shared_data / "odd_images").iterdir()):
        data = path.read_bytes()
        try:
            header = read_header(data)
            check_decodes(data, header)
            read[path.name] = header
        except ImageError as error:
            refused[path.name] = str(error)
    assert len(read) > 180
    assert read["hopper_gray.jpg"] == ImageHeader("jpeg", 128, 128, 1)
    assert read["16bit.MM.cropped.tif"] == ImageHeader("tiff", 64, 64, 1, "uint16")
    assert read["tiff_tiled_planar_16bit_RGB.tiff"].dtype == "uint16"
    assert read["tiff_strip_cmyk_jpeg.tif"].channels == 3
    assert read["sugarshack.mpo"].format == "jpeg"
    assert read["pil123p.png"].channels == 4
    expected = {"LICENSE", "broken.png", "truncated_image.png", "truncated_jpeg.jpg"}
    expected |= {"png_decompression_dos.png", "libtiff_segfault.tif", "l2rgb_read.bmp"}
    assert expected <= set(refused)


def test_a_palette_is_no_reason_to_decode(decoded):
    assert read_header(encoded(palette_image(pixels(5, 5, 1)), "PNG")).has_palette
    assert decoded == []
