"""Ids with a palette as grey images."""

import io

import numpy as np
import pytest
from PIL import Image

from datum.images import palette_of
from datum.images.decode import ids_as_grey
from datum.images.header import parse_header
from tests.unit.images.samples import encoded, palette, palette_image, pixels


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
