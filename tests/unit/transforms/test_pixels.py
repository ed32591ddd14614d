"""Values of pixels, against Keras and NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import datum
from datum.transforms import IMAGENET_MEAN, IMAGENET_STD, caffe, normalize, scale
from tests.unit.images.samples import pixels

BATCH = np.stack([pixels(9, 7), 255 - pixels(9, 7)])
FUNCTIONS = {
    "caffe": caffe("image"),
    "tf": scale("image", -1, 1),
    "torch": normalize("image"),
}


@pytest.mark.parametrize("mode", FUNCTIONS)
def test_modes_of_keras_are_met(mode):
    expected = keras.applications.imagenet_utils.preprocess_input(
        BATCH.astype(np.float32), data_format="channels_last", mode=mode
    )
    found = FUNCTIONS[mode]({"image": tf.constant(BATCH)})["image"]
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("mode", FUNCTIONS)
def test_a_record_is_done_like_one_of_a_batch_and_the_rest_is_left(mode):
    whole = FUNCTIONS[mode]({"image": tf.constant(BATCH), "label": tf.constant([1, 2])})
    alone = FUNCTIONS[mode]({"image": tf.constant(BATCH[1]), "label": tf.constant(2)})
    np.testing.assert_array_equal(whole["image"][1], alone["image"])
    assert alone["label"] == 2


def test_what_is_given_is_not_changed():
    record = {"image": tf.constant(BATCH)}
    scale("image")(record)
    assert record["image"].dtype == tf.uint8


def test_sixteen_bits_are_divided_by_their_largest_value():
    deep = tf.constant([[[0, 257, 65535]]], tf.uint16)
    np.testing.assert_allclose(scale("image")({"image": deep})["image"], [[[0, 1 / 255, 1]]])
    expected = caffe("image")({"image": tf.constant([[[0, 1, 255]]], tf.uint8)})["image"]
    np.testing.assert_allclose(caffe("image")({"image": deep})["image"], expected, rtol=1e-5)


def test_floats_are_taken_as_they_are():
    image = np.random.default_rng(0).random((5, 6, 3), np.float32)
    found = normalize("image")({"image": tf.constant(image)})["image"]
    np.testing.assert_allclose(found, (image - IMAGENET_MEAN) / IMAGENET_STD, rtol=1e-5, atol=1e-6)
    found = scale("image", -1, 1)({"image": tf.constant(image)})["image"]
    np.testing.assert_allclose(found, image * 2 - 1, atol=1e-6)


def test_grey_images_have_one_mean():
    grey = tf.constant(pixels(9, 7, 1)[..., None])
    found = normalize("image", [0.5], [0.25])({"image": grey})["image"]
    np.testing.assert_allclose(found, (grey.numpy() / 255 - 0.5) / 0.25, atol=1e-5)


def test_wrong_options_and_images_are_refused():
    with pytest.raises(datum.SchemaError, match="normalize: expected as many"):
        normalize("image", [0.5] * 3, [1])
    with pytest.raises(datum.SchemaError, match="above 0"):
        normalize("image", [0.5], [0])
    with pytest.raises(datum.SchemaError, match="`low` below `high`"):
        scale("image", 1, 1)
    with pytest.raises(datum.SchemaError, match="3 channels"):
        caffe("image")({"image": tf.zeros([4, 4, 1])})
    with pytest.raises(datum.SchemaError, match="did you mean 'image'"):
        scale("imag")({"image": tf.zeros([4, 4, 1])})
