"""Encoded images within the graph, whatever their format."""

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum.transforms import decode_image
from datum.transforms.decoding import Wanted, decode_any, decode_other
from tests.unit.images.samples import encoded, pixels
from tests.unit.transforms.pictures import in_graph, photo


@pytest.mark.parametrize("name", ["BMP", "PNG", "WEBP"])
def test_the_format_is_told_by_the_content(name):
    array = pixels(9, 7)
    data = encoded(array, name, **({"lossless": True} if name == "WEBP" else {}))
    found = in_graph(decode_image())(data)
    np.testing.assert_array_equal(found, array)


def test_exact_is_for_jpeg():
    data = photo()
    exact, fast = (decode_image(exact=is_exact)(data).numpy() for is_exact in (True, False))
    feature = datum.Feature("uint8", (None, None, 3), encoding="image")
    np.testing.assert_array_equal(exact, datum.images.decode(data, feature))
    assert not np.array_equal(exact, fast)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_shape_is_known_as_far_as_it_can_be(channels):
    dataset = tf.data.Dataset.from_tensors(photo()).map(decode_image(channels))
    assert dataset.element_spec == tf.TensorSpec([None, None, channels], tf.uint8)


def test_no_bytes_give_an_image_without_pixels():
    assert in_graph(decode_image(4))(b"").shape == (0, 0, 4)
    fixed = decode_any(b"", Wanted(3), shape=(5, 6, 3))
    np.testing.assert_array_equal(fixed, np.zeros((5, 6, 3), np.uint8))


@pytest.mark.parametrize("data", [b"", b"x", b"RIFF", b"II*\0 a TIFF", b"<svg/>" * 20])
def test_what_is_no_image_is_an_error_within_the_graph(data):
    with pytest.raises(tf.errors.InvalidArgumentError):
        in_graph(lambda data: decode_other(data, Wanted()))(data)


def test_a_tiff_is_named_in_the_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="TIFF"):
        in_graph(decode_image())(encoded(pixels(3, 4), "TIFF"))


def test_functions_of_others_find_nothing_to_rewrite():
    calls = []

    def prepare(data):
        image = decode_image()(data)
        calls.append(image)
        if tf.shape(image)[0] > 50:  # AutoGraph makes a graph of this
            image = image[:50]
        return image

    dataset = tf.data.Dataset.from_tensors(photo(60, 80)).map(prepare)
    assert next(iter(dataset)).shape == (50, 80, 3)
    assert len(calls) == 1


@pytest.mark.parametrize("channels", [0, 2, "3"])
def test_other_channels_are_refused_at_once(channels):
    with pytest.raises(datum.SchemaError, match="`channels` of 1, 3, 4 or None"):
        decode_image(channels)
