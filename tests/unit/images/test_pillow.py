"""Pixels through Pillow, exactly."""

import numpy as np
import pytest
from PIL import Image

from datum.images.header import describe_pixels, open_image, pixels_of
from tests.unit.images.samples import (
    encoded,
    palette,
    palette_image,
    pixels,
    png_of_16_bits,
    tiff_of_16_bits,
)


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
