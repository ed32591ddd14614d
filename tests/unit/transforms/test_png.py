"""PNG images within the graph, against Pillow."""

import numpy as np
import pytest
import tensorflow as tf

from datum import Feature
from datum.images import ImageError, decode
from datum.transforms.decoding import Wanted, decode_png, decode_simple_png, is_simple_png
from tests.unit.transforms.pictures import ids_png, in_graph, png_images

IMAGES = png_images()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 3, 4, None])
def test_all_kinds_decode_as_pillow_decodes_them_or_are_refused_alike(channels, dtype):
    feature = Feature(dtype, (None, None, channels), encoding="image")
    found = in_graph(lambda data: decode_png(data, Wanted(channels, dtype)))
    for name, data in IMAGES.items():
        try:
            expected = decode(data, feature)
        except ImageError:
            with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
                found(data)
            continue
        np.testing.assert_array_equal(found(data), expected, err_msg=name)
        assert found(data).dtype == dtype


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_those_that_are_simple_decode_alike_without_a_look_at_their_header(channels):
    wanted = Wanted(channels)
    simple = {name for name, data in IMAGES.items() if is_simple_png(data, wanted)}
    assert {"L", "LA"} <= simple
    assert not any("16" in name or "of 4 bits" in name for name in simple)
    assert ("RGB" in simple) == (channels > 1)
    for name in simple:
        expected = decode_png(IMAGES[name], wanted)
        np.testing.assert_array_equal(decode_simple_png(IMAGES[name], wanted), expected)


def test_ids_survive_whatever_the_palette_says_of_transparency():
    for settings in ({}, {"transparency": 1}, {"transparency": b"\0\1"}):
        data = ids_png(8, **settings)
        found = in_graph(lambda data: decode_png(data, Wanted(1)))(data)
        feature = Feature("uint8", (None, None, 1), encoding="image")
        np.testing.assert_array_equal(found, decode(data, feature))


@pytest.mark.parametrize("kept", [8, 24, 26, 33, 60])
def test_a_png_that_is_cut_off_is_an_error_that_can_be_shown(kept):
    for channels in (1, 3, 4, None):
        found = in_graph(lambda data, n=channels: decode_png(data, Wanted(n)))
        with pytest.raises(tf.errors.InvalidArgumentError):
            found(ids_png(8)[:kept])
