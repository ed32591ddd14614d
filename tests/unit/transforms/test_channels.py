"""Channels of decoded images, and images that are refused."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from datum.transforms.decoding import Wanted, checked_length, fit_channels, refuse, to_grey
from tests.unit.images.samples import pixels
from tests.unit.transforms.pictures import in_graph


def test_grey_values_are_those_of_pillow():
    image = pixels(50, 60)
    expected = np.asarray(Image.fromarray(image).convert("L"))
    np.testing.assert_array_equal(to_grey(tf.constant(image))[..., 0], expected)


@pytest.mark.parametrize(("dtype", "step"), [("uint8", 1), ("uint16", 257)])
@pytest.mark.parametrize("got", [3, 4])
def test_channels_are_left_out_or_opaque(got, dtype, step):
    image = pixels(5, 6, got)
    expected = image.astype(dtype) * np.array(step, dtype)
    same = fit_channels(tf.constant(image), got, Wanted(None, dtype))
    np.testing.assert_array_equal(same, expected)
    assert same.dtype == dtype
    np.testing.assert_array_equal(
        fit_channels(tf.constant(image), got, Wanted(3, dtype)), expected[..., :3]
    )
    opaque = fit_channels(tf.constant(image), got, Wanted(4, dtype)).numpy()
    np.testing.assert_array_equal(opaque[..., :3], expected[..., :3])
    assert got == 4 or (opaque[..., 3] == 255 * step).all()


def test_data_that_is_too_short_is_told_by_its_length_only():
    assert checked_length(tf.constant(b"\xff\xfe"), 2) == b"\xff\xfe"
    with pytest.raises(tf.errors.InvalidArgumentError, match="only the start of one, bytes: 2"):
        in_graph(lambda data: checked_length(data, 3))(b"\xff\xfe")


@pytest.mark.parametrize("channels", [1, 4, None])
def test_a_refused_image_is_an_error_only_where_it_is_reached(channels):
    def maybe(data):
        return tf.cond(
            data == b"bad",
            lambda: refuse(data, "not this one", Wanted(channels)),
            lambda: tf.zeros([2, 3, channels or 1], tf.uint8),
        )

    assert in_graph(maybe)(b"good").shape[:2] == (2, 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not this one, bytes: 3"):
        in_graph(maybe)(b"bad")
