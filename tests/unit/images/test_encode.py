"""Pillow's images into bytes."""

import io

import numpy as np
import pytest
from PIL import Image

from datum.images import ImageError, ImageOptions
from datum.images.prepare import encode_image
from tests.unit.images.samples import pixels


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
