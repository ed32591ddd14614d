"""Encoded images into arrays."""

import io

import numpy as np
import pytest
from PIL import Image

from datum import Feature
from datum.images import ImageError, decode, decode_pixels, ids_of_colours
from tests.unit.images.samples import encoded, palette_image, pixels, png_of_16_bits


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
