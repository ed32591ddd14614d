"""Image files decoded and encoded."""

import io
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from datum import Feature
from datum.images import ImageError, ImageOptions, decode, decode_pixels, ids_of_colours, palette_of
from datum.images.decode import decode_png, ids_as_grey, png_shape
from datum.images.header import describe_pixels, open_image, parse_header, pixels_of
from datum.images.prepare import encode_image
from tests.unit.images.samples import (
    encoded,
    palette,
    palette_image,
    pixels,
    png_of_16_bits,
    tiff_of_16_bits,
)


def image_feature(channels, *, dtype="uint8", size=(None, None)):
    return Feature(dtype, (*size, channels), encoding="image")


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("BMP", (1, 3)), ("PNG", (1, 3, 4)), ("TIFF", (1, 3, 4)), ("WEBP", (3, 4))],
)
def test_what_is_stored_without_loss_comes_back(name, kinds):
    settings = {"lossless": True, "exact": True} if name == "WEBP" else {}
    for channels in kinds:
        array = pixels(11, 13, channels)
        found = decode(encoded(array, name, **settings), image_feature(channels))
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, array.reshape(11, 13, channels))


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_jpeg_decodes_as_pillow_decodes_it(mode):
    data = encoded(Image.fromarray(pixels(40, 50)).convert(mode), "JPEG")
    found = decode(data, image_feature(3))
    with Image.open(io.BytesIO(data)) as image:
        np.testing.assert_array_equal(found, np.asarray(image.convert("RGB")))


def test_a_cmyk_jpeg_decodes_to_its_colours():
    array = np.full((16, 16, 3), (200, 40, 90), np.uint8)
    data = encoded(Image.fromarray(array).convert("CMYK"), "JPEG", quality=100)
    found = decode(data, image_feature(3)).astype(int)
    assert np.abs(found - array).max() <= 4


def test_a_jpeg_that_libjpeg_warns_of_is_still_decoded():
    data = encoded(pixels(12, 10), "JPEG")
    found = decode(data[:20] + b"junk" + data[20:], image_feature(3))
    np.testing.assert_array_equal(found, decode(data, image_feature(3)))


def test_open_channels_are_those_of_the_image():
    for channels in (1, 3, 4):
        data = encoded(pixels(5, 6, channels), "PNG")
        assert decode(data, image_feature(None)).shape == (5, 6, channels)


def test_the_orientation_is_not_applied():
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(pixels(10, 20), "JPEG", exif=exif)
    assert decode(data, image_feature(3)).shape == (10, 20, 3)


def test_values_of_8_bits_are_kept_in_16():
    array = pixels(5, 6, 1)
    found = decode(encoded(array, "PNG"), image_feature(1, dtype="uint16"))
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found[..., 0], array)


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_of_8_bits_look_the_same_in_16(channels):
    array = pixels(5, 6, channels)
    feature = image_feature(channels, dtype="uint16")
    found = decode(encoded(array, "PNG"), feature)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, array.astype(np.uint16) * 257)
    grey = decode(encoded(array[..., 0], "PNG"), feature)
    np.testing.assert_array_equal(grey[..., 2], array[..., 0].astype(np.uint16) * 257)
    if channels == 4:
        assert (grey[..., 3] == 65535).all()


def test_colours_of_16_bits_lose_their_low_byte_in_8():
    array = pixels(5, 6, 3, dtype=np.uint16, most=65535)
    found = decode(png_of_16_bits(array), image_feature(3))
    np.testing.assert_array_equal(found, array >> 8)


def test_values_of_16_bits_are_kept_in_8_if_they_fit():
    small = pixels(5, 6, 1, dtype=np.uint16, most=255)
    found = decode(encoded(small, "PNG"), image_feature(1))
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found[..., 0], small)
    with pytest.raises(ImageError, match="expected pixels of 8 bits, got 300"):
        decode(encoded(np.full((2, 2), 300, np.uint16), "PNG"), image_feature(1))


def test_an_image_of_another_size_than_the_feature_is_refused():
    data = encoded(pixels(5, 6), "PNG")
    assert decode(data, image_feature(3, size=(5, 6))).shape == (5, 6, 3)
    with pytest.raises(ImageError, match=r"shape \(6, 5, 3\), got \(5, 6, 3\)"):
        decode(data, image_feature(3, size=(6, 5)))


def test_two_channels_are_refused():
    with pytest.raises(ImageError, match="1, 3 or 4 channels"):
        decode(encoded(pixels(5, 6), "PNG"), image_feature(2))


def test_16_bit_colour_is_not_made_grey():
    data = png_of_16_bits(pixels(4, 4, dtype=np.uint16, most=65535))
    with pytest.raises(ImageError, match="got 16-bit colour"):
        decode_pixels(data, 1)


@pytest.mark.parametrize("name", ["BMP", "GIF", "JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.filterwarnings("ignore")
def test_a_cut_image_is_refused(name):
    data = encoded(pixels(60, 60), name)
    with pytest.raises(ImageError):
        decode_pixels(data[: len(data) // 2], 3)


def test_colours_become_ids():
    array = np.array([[[0, 0, 0], [128, 0, 0]], [[0, 128, 0], [0, 0, 0]]], np.uint8)
    found = ids_of_colours(array, {(0, 0, 0): 0, (128, 0, 0): 1, (0, 128, 0): 255})
    assert found.dtype == np.uint8
    assert found.tolist() == [[0, 1], [255, 0]]


def test_large_ids_need_16_bits():
    array = np.zeros((1, 1, 3), np.uint8)
    found = ids_of_colours(array, {(0, 0, 0): 1000, (1, 1, 1): 2})
    assert (found.dtype, found.tolist()) == (np.uint16, [[1000]])


def test_alpha_is_no_colour():
    array = np.array([[[1, 2, 3, 77]]], np.uint8)
    assert ids_of_colours(array, {(1, 2, 3): 4}).tolist() == [[4]]


@pytest.mark.parametrize("colour_map", [{}, {(0, 0, 0): 0}, {(255, 255, 255): 9}])
def test_an_unknown_colour_is_named_with_its_place(colour_map):
    array = np.zeros((2, 3, 3), np.uint8)
    array[1, 2] = (9, 8, 7)
    if (0, 0, 0) not in colour_map:
        array[:] = (9, 8, 7)
    row, column, count = (1, 2, 1) if (0, 0, 0) in colour_map else (0, 0, 6)
    message = rf"\(9, 8, 7\) at row {row}, column {column} and {count} such pixels"
    with pytest.raises(ImageError, match=message):
        ids_of_colours(array, colour_map)


def test_a_palette_mask_becomes_its_ids():
    ids = pixels(6, 6, 1, most=20)
    data = encoded(palette_image(ids), "PNG")
    np.testing.assert_array_equal(decode(data, image_feature(1))[..., 0], ids)


def encode_and_open(image, name, *, is_exact=False, **options):
    data = encode_image(image, name, is_exact=is_exact, options=ImageOptions(**options))
    found = Image.open(io.BytesIO(data))
    found.load()
    return found


def test_pixels_are_left_out_or_mixed():
    array = np.array([[0, 255] * 20] * 40, np.uint8)
    exact = encode_and_open(Image.fromarray(array), "png", is_exact=True, max_side=20)
    assert set(np.unique(np.asarray(exact))) <= {0, 255}
    mixed = encode_and_open(Image.fromarray(array), "png", max_side=20)
    assert len(np.unique(np.asarray(mixed))) > 2


def test_the_image_given_stays_as_it_is():
    image = Image.fromarray(pixels(40, 40))
    before = image.tobytes()
    encode_and_open(image, "jpeg", max_side=10)
    assert (image.size, image.tobytes()) == ((40, 40), before)


def test_the_same_image_gives_the_same_bytes():
    image = Image.fromarray(pixels(40, 40))
    for name in ("jpeg", "png", "webp"):
        options = ImageOptions(max_side=20)
        found = {encode_image(image, name, is_exact=False, options=options) for _ in range(3)}
        assert len(found) == 1


@pytest.mark.parametrize("order", ["<u2", ">u2"])
def test_16_bits_are_written_in_either_byte_order(order):
    array = pixels(6, 6, 1, dtype=np.uint16, most=65535)
    mode = "I;16" if order == "<u2" else "I;16B"
    image = Image.frombytes(mode, (6, 6), array.astype(order).tobytes())
    np.testing.assert_array_equal(np.asarray(encode_and_open(image, "png", is_exact=True)), array)
    with pytest.raises(ImageError, match="expected 8-bit pixels for JPEG"):
        encode_and_open(image, "jpeg")


def as_grey(data):
    return ids_as_grey(data, parse_header(data))


@pytest.mark.parametrize("most", [1, 3, 15, 200, 255])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (300, 200)])
def test_a_png_keeps_its_ids(most, size):
    ids = pixels(*size, 1, most=most)
    data = as_grey(encoded(palette_image(ids), "PNG"))
    with Image.open(io.BytesIO(data)) as image:
        assert image.mode == "L"
        image.verify()
    with Image.open(io.BytesIO(data)) as image:
        np.testing.assert_array_equal(np.asarray(image), ids)


def test_the_pixels_of_8_bits_are_taken_over_as_they_lie():
    data = encoded(palette_image(pixels(50, 60, 1)), "PNG")
    grey = as_grey(data)
    assert data[data.index(b"IDAT") :] == grey[grey.index(b"IDAT") :]
    assert b"PLTE" not in grey


def test_transparency_goes_with_the_palette():
    ids = pixels(7, 5, 1)
    data = as_grey(encoded(palette_image(ids), "PNG", transparency=3))
    assert b"tRNS" not in data
    with Image.open(io.BytesIO(data)) as image:
        np.testing.assert_array_equal(np.asarray(image), ids)


@pytest.mark.parametrize("name", ["BMP", "GIF", "TIFF"])
def test_other_formats_become_png(name):
    given = encoded(palette_image(pixels(7, 5, 1)), name)
    with Image.open(io.BytesIO(given)) as image:
        ids = np.asarray(image)  # a GIF has them numbered anew
    with Image.open(io.BytesIO(as_grey(given))) as image:
        assert (image.format, image.mode) == ("PNG", "L")
        np.testing.assert_array_equal(np.asarray(image), ids)


def test_tensorflow_reads_the_ids():
    tf = pytest.importorskip("tensorflow")
    ids = pixels(7, 5, 1)
    data = as_grey(encoded(palette_image(ids), "PNG"))
    np.testing.assert_array_equal(tf.io.decode_png(data, channels=1).numpy()[..., 0], ids)


def test_the_colours_are_given():
    data = encoded(palette_image(pixels(7, 5, 1)), "PNG")
    assert palette_of(data) == [tuple(row) for row in np.reshape(palette(), (-1, 3)).tolist()]
    assert palette_of(encoded(pixels(7, 5, 1), "PNG")) is None


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_of_16_bits_are_kept(channels):
    array = pixels(7, 5, channels, dtype=np.uint16, most=65535)
    image = open_image(png_of_16_bits(array), "png")
    assert describe_pixels(image) == (channels, "uint16")
    np.testing.assert_array_equal(pixels_of(image, channels), array)


@pytest.mark.parametrize("order", ["<", ">"])
def test_colours_of_16_bits_in_tiff_are_kept_in_either_byte_order(order):
    array = pixels(7, 5, 3, dtype=np.uint16, most=65535)
    image = open_image(tiff_of_16_bits(array, order), "tiff")
    assert describe_pixels(image) == (3, "uint16")
    np.testing.assert_array_equal(pixels_of(image, 3), array)


@pytest.mark.parametrize("name", ["PNG", "TIFF"])
def test_grey_of_16_bits_is_kept_and_repeated(name):
    array = pixels(7, 5, 1, dtype=np.uint16, most=65535)
    data = encoded(array, name)
    for channels in (1, 3, 4):
        found = pixels_of(open_image(data, name.lower()), channels)
        assert found.shape == (7, 5, channels)
        assert found.dtype == np.uint16
        np.testing.assert_array_equal(found[..., 0], array)
        if channels > 1:
            np.testing.assert_array_equal(found[..., 2], array)
        if channels == 4:
            assert (found[..., 3] == 65535).all()


def test_16_bit_colour_gets_and_loses_its_alpha():
    array = pixels(7, 5, 4, dtype=np.uint16, most=65535)
    np.testing.assert_array_equal(
        pixels_of(open_image(png_of_16_bits(array), "png"), 3), array[..., :3]
    )
    with_alpha = pixels_of(open_image(png_of_16_bits(array[..., :3].copy()), "png"), 4)
    assert (with_alpha[..., 3] == 65535).all()


@pytest.mark.parametrize("most", [1, 3, 15, 255])
def test_a_palette_gives_ids_or_colours(most):
    ids = pixels(7, 5, 1, most=most)
    data = encoded(palette_image(ids), "PNG")
    np.testing.assert_array_equal(pixels_of(open_image(data, "png"), 1)[..., 0], ids)
    colours = np.array(palette(), np.uint8).reshape(256, 3)
    np.testing.assert_array_equal(pixels_of(open_image(data, "png"), 3), colours[ids])


def test_a_transparent_palette_gives_its_alpha():
    ids = pixels(7, 5, 1, most=3)
    data = encoded(palette_image(ids), "PNG", transparency=bytes([0, 128, 255, 255]))
    found = pixels_of(open_image(data, "png"), 4)
    np.testing.assert_array_equal(found[..., 3], np.array([0, 128, 255, 255])[ids])
    assert pixels_of(open_image(data, "png"), 3).shape == (7, 5, 3)


def test_one_channel_of_grey_with_transparency_is_its_grey():
    array = pixels(7, 5, 2)
    data = encoded(_grey_with_alpha(array), "PNG")
    np.testing.assert_array_equal(pixels_of(open_image(data, "png"), 1)[..., 0], array[..., 0])
    found = pixels_of(open_image(data, "png"), 4)
    np.testing.assert_array_equal(found[..., 3], array[..., 1])


def _grey_with_alpha(array):
    return Image.merge("LA", [Image.fromarray(array[..., band].copy()) for band in (0, 1)])


def test_a_single_bit_is_black_or_white():
    ones = Image.fromarray(pixels(7, 5, 1, most=1) * 255).convert("1")
    found = pixels_of(open_image(encoded(ones, "PNG"), "png"), 1)
    assert set(np.unique(found)) == {0, 255}


def test_frames_after_the_first_do_not_count():
    frames = [palette_image(pixels(6, 6, 1)), palette_image(pixels(6, 6, 1)[::-1].copy())]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    first = pixels_of(open_image(encoded(frames[0], "GIF"), "gif"), 3)
    np.testing.assert_array_equal(pixels_of(open_image(data, "gif"), 3), first)


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


def test_nothing_is_changed_by_default():
    assert not ImageOptions().changes_bytes
    assert not ImageOptions(verify=True).changes_bytes


@pytest.mark.parametrize("option", [{"max_side": 8}, {"quality": 90}, {"format": "png"}])
def test_options_that_change_images_say_so(option):
    assert ImageOptions(**option).changes_bytes


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "8", 2**31])
def test_a_side_is_a_positive_integer(value):
    with pytest.raises(ImageError, match="expected `max_side` to be an integer of 1 to 2147483647"):
        ImageOptions(max_side=value)


@pytest.mark.parametrize("value", [0, 101, 95.0])
def test_a_quality_is_1_to_100(value):
    with pytest.raises(ImageError, match="expected `quality` to be an integer of 1 to 100"):
        ImageOptions(quality=value)


def test_a_misspelt_format_names_the_nearest():
    with pytest.raises(ImageError, match="got 'JPG'\nhint: did you mean 'jpeg'"):
        ImageOptions(format="JPG")
    with pytest.raises(ImageError, match="expected `format` jpeg, png or webp, got 'tiff'$"):
        ImageOptions(format="tiff")
