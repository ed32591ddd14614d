"""PNG decoded by ISA-L and the core: the pixels that Pillow gives, or nothing."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from datum.images import decode
from datum.images.decode import decode_png, png_shape
from datum.schema import Feature

MODES = {1: "L", 3: "RGB", 4: "RGBA"}


def chunk(kind: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + kind
        + content
        + struct.pack(">I", zlib.crc32(kind + content))
    )


def make(
    rows: bytes, width: int, height: int, *, colour=0, bits=8, interlaced=0, pieces=1
) -> bytes:
    """A PNG of rows that are filtered already, their bytes in so many chunks."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    packed = zlib.compress(rows)
    size = -(-len(packed) // pieces)
    parts = [chunk(b"IDAT", packed[at : at + size]) for at in range(0, len(packed), size)]
    end = chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(parts) + end


def by_pillow(data: bytes, channels: int) -> np.ndarray:
    image = Image.open(io.BytesIO(data))
    return np.asarray(image).reshape(image.height, image.width, channels)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_filter_of_every_row_is_undone_as_pillow_does(data):
    channels = data.draw(st.sampled_from([1, 3, 4]))
    width, height = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 6))
    rows = b"".join(
        bytes([data.draw(st.integers(0, 4))])
        + data.draw(st.binary(min_size=width * channels, max_size=width * channels))
        for _ in range(height)
    )
    colour = {1: 0, 3: 2, 4: 6}[channels]
    png = make(rows, width, height, colour=colour, pieces=data.draw(st.integers(1, 3)))
    pixels = decode_png(png, channels)
    assert pixels.shape == (height, width, channels) == png_shape(png)
    np.testing.assert_array_equal(pixels, by_pillow(png, channels))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_what_pillow_wrote_is_read(channels):
    array = np.random.default_rng(0).integers(0, 256, (37, 200, channels), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(array.squeeze(-1) if channels == 1 else array).save(file, "png")
    out = np.zeros_like(array)
    assert decode_png(memoryview(file.getvalue()), channels, out) is out
    np.testing.assert_array_equal(out, array)


def test_a_palette_gives_its_ids_for_one_channel_only():
    image = Image.new("P", (3, 1))
    image.putdata([0, 1, 2])
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 255, 0] + [0] * 759)
    file = io.BytesIO()
    image.save(file, "png", bits=8)
    assert decode_png(file.getvalue(), 1).tolist() == [[[0], [1], [2]]]
    assert decode_png(file.getvalue(), 3) is None
    assert png_shape(file.getvalue()) is None


GREY = make(b"\0ab\0cd", 2, 2)


@pytest.mark.parametrize(
    "data",
    {
        "of 16 bits": make(bytes(10), 2, 2, bits=16),
        "interlaced": make(b"\0ab\0cd", 2, 2, interlaced=1),
        "too few rows": make(b"\0ab", 2, 2),
        "too many rows": make(b"\0ab\0cd\0ef", 2, 2),
        "half a row": make(b"\0ab\0c", 2, 2),
        "an unknown filter": make(b"\0ab\5cd", 2, 2),
        "cut": GREY[:-14],
        "cut within the header": GREY[:30],
        "without an end": GREY[:-12],
        "a flipped bit of pixels": GREY[:45] + bytes([GREY[45] ^ 1]) + GREY[46:],
        "a flipped bit of the header": GREY[:28] + b"\1" + GREY[29:],
        "animated": GREY[:33] + chunk(b"acTL", bytes(8)) + GREY[33:],
        "of a length beyond the file": GREY[:33] + b"\xff\xff\xff\xffIDAT" + GREY[41:],
        "without pixels": GREY[:33] + GREY[-12:],
    }.items(),
    ids=lambda item: item[0],
)
def test_anything_else_is_left_to_pillow(data):
    assert decode_png(data[1], 1) is None


def test_pixels_of_another_shape_than_asked_for_are_not_made():
    assert decode_png(GREY, 1, np.zeros((2, 3, 1), np.uint8)) is None
    assert decode_png(GREY, 3) is None


def test_a_small_file_that_inflates_to_much_is_not_inflated():
    bomb = make(bytes(50_000_000), 2, 2)
    assert len(bomb) < 100_000
    assert decode_png(bomb, 1) is None


def test_decode_takes_this_road_and_says_what_is_wrong_by_pillow():
    feature = Feature("uint8", (2, 2, 1), encoding="image")
    assert decode(GREY, feature).tolist() == [[[97], [98]], [[99], [100]]]
    with pytest.raises(ValueError, match="expected a whole PNG image, got a damaged one"):
        decode(GREY[:45] + bytes([GREY[45] ^ 1]) + GREY[46:], feature)
