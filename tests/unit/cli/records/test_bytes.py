import io

import numpy as np
import pytest
from PIL import Image

from datum.cli.record_values import hex_dump, look_at, read_image_header, text_of


def png(array, **options):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png", **options)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "0 B"),
        (b"\x1f\x8b\x08xx", "5 B, gzip"),
        (b"RIFF\x00\x00\x00\x00WAVE", "12 B, WAV"),
        (b"\x00\x00\x00\x18ftypmp42", "12 B, MP4"),
        (b"\x00\x01\x02", "3 B, 00 01 02"),
        (bytes(20), "20 B, 00 00 00 00 00 00 00 00 00 00 00 00 …"),
        (b"hello", '5 B, text "hello"'),
    ],
)
def test_bytes_are_told_by_length_and_looks(data, told):
    assert look_at(data, 80) == told


def test_images_are_told_by_format_size_and_colours():
    grey = png(np.zeros((5, 7), np.uint8))
    assert look_at(grey, 80) == f"PNG 7 x 5, grey, {len(grey)} B"
    assert look_at(png(np.zeros((5, 7, 4), np.uint8)), 80, is_short=True) == (
        "PNG 7 x 5, with transparency"
    )
    assert "16 bits" in look_at(png(np.zeros((5, 7), np.uint16)), 80)
    palette = Image.fromarray(np.zeros((5, 7), np.uint8)).convert("P")
    file = io.BytesIO()
    palette.save(file, "png")
    assert "palette" in look_at(file.getvalue(), 80)


def test_a_damaged_image_is_no_image():
    assert read_image_header(png(np.zeros((5, 7), np.uint8))[:20]) is None
    assert read_image_header(b"text") is None


def test_text_is_what_can_be_read():
    assert text_of("größe\n".encode()) == "größe\n"
    assert text_of(b"\x00\x01") is None
    assert text_of(b"\xff\xfe") is None


def test_a_dump_shows_place_bytes_and_letters():
    first, second = hex_dump(b"0123456789abcdef\x00")
    assert first == ("000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef")
    assert second.startswith("000010  00  ")
    assert second.endswith("  .")
    assert len(hex_dump(bytes(1000), lines=3)) == 3
