"""Sizes and sides of images, with their masks and boxes."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum.transforms import BOXES, random_flip, resize
from tests.unit.images.samples import pixels

IMAGE = pixels(40, 60)
IDS = pixels(40, 60, 1)[..., None]
BOX = {"xmin": [0.1, 0.5], "xmax": [0.3, 1.0], "ymin": [0.0, 0.25], "ymax": [0.5, 0.75]}


def record_of(**more):
    boxes = {name: tf.constant(values) for name, values in BOX.items()}
    return {"image": tf.constant(IMAGE), "mask": tf.constant(IDS), **boxes, **more}


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_an_image_is_resized_as_tensorflow_does_and_keeps_its_type(dtype):
    image = tf.cast(IMAGE, dtype)
    found = resize("image", 20, 25)({"image": image})["image"]
    expected = tf.image.resize(image, (20, 25)).numpy()
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected if dtype == "float32" else expected.round())


def test_with_antialias_an_image_is_pillows():
    found = resize("image", 20, 25, antialias=True)({"image": tf.constant(IMAGE)})["image"]
    expected = Image.fromarray(IMAGE).resize((25, 20), Image.Resampling.BILINEAR)
    assert np.abs(found.numpy().astype(int) - np.asarray(expected)).max() <= 1


@pytest.mark.parametrize("method", ["bicubic", "lanczos3"])
def test_values_beyond_those_of_the_type_are_cut(method):
    edge = np.zeros((8, 8, 1), np.uint8)
    edge[:, 4:] = 255
    found = resize("image", 24, 24, method=method)({"image": tf.constant(edge)})["image"].numpy()
    assert found[:, :8].max() < 60
    assert found[:, 16:].min() > 200


def test_ids_of_masks_are_never_mixed():
    found = resize("image", 21, 23, masks="mask")(record_of())["mask"]
    expected = Image.fromarray(IDS[..., 0]).resize((23, 21), Image.Resampling.NEAREST)
    np.testing.assert_array_equal(found[..., 0], expected)
    assert found.dtype == tf.uint8


def test_a_batch_is_resized_like_its_records():
    batch = tf.stack([IMAGE, 255 - IMAGE])
    for options in ({}, {"keep_ratio": True}):
        function = resize("image", 30, 30, **options)
        found = function({"image": batch})["image"]
        np.testing.assert_array_equal(found[0], function({"image": tf.constant(IMAGE)})["image"])
        assert found.shape == (2, 30, 30, 3)


def test_with_its_ratio_kept_an_image_lies_in_the_middle_and_boxes_with_it():
    found = resize("image", 30, 30, keep_ratio=True, masks=["mask"], boxes=BOXES)(record_of())
    image = found["image"].numpy()
    np.testing.assert_array_equal(image[:5], 0)
    np.testing.assert_array_equal(image[25:], 0)
    expected = tf.round(tf.image.resize(IMAGE, (20, 30)))
    np.testing.assert_array_equal(image[5:25], expected)
    assert found["mask"].shape == (30, 30, 1)
    np.testing.assert_allclose(found["xmin"], BOX["xmin"])
    np.testing.assert_allclose(found["ymin"], [5 / 30, 10 / 30], rtol=1e-6)
    np.testing.assert_allclose(found["ymax"], [15 / 30, 20 / 30], rtol=1e-6)


def test_sizes_are_known_in_the_graph():
    def unknown(image):
        return {"image": tf.ensure_shape(image, (None, None, 3))}

    spec = tf.TensorSpec([None, None, 3], tf.uint8)
    dataset = tf.data.Dataset.from_generator(lambda: [IMAGE], output_signature=spec).map(unknown)
    for options in ({}, {"keep_ratio": True}):
        made = dataset.map(resize("image", 30, 20, **options))
        assert made.element_spec["image"].shape == (30, 20, 3)
        assert next(iter(made))["image"].shape == (30, 20, 3)


def test_half_of_the_images_are_mirrored_with_all_that_belongs_to_them():
    function = random_flip("image", masks="mask", boxes=BOXES)
    flipped = 0
    dataset = tf.data.Dataset.from_tensors(record_of()).repeat(200).map(function)
    for found in dataset.as_numpy_iterator():
        is_flipped = not np.array_equal(found["image"], IMAGE)
        flipped += is_flipped
        step = -1 if is_flipped else 1
        np.testing.assert_array_equal(found["image"], IMAGE[:, ::step])
        np.testing.assert_array_equal(found["mask"], IDS[:, ::step])
        low, high = ([0.7, 0.0], [0.9, 0.5]) if is_flipped else (BOX["xmin"], BOX["xmax"])
        np.testing.assert_allclose(found["xmin"], low, atol=1e-6)
        np.testing.assert_allclose(found["xmax"], high, atol=1e-6)
        np.testing.assert_allclose(found["ymin"], BOX["ymin"])
    assert 70 < flipped < 130


@pytest.mark.parametrize("is_ragged", [False, True])
def test_each_image_of_a_batch_is_drawn_for_by_itself(is_ragged):
    count = 64
    batch = {"image": tf.tile(tf.constant(IMAGE)[None], [count, 1, 1, 1])}
    for name, values in BOX.items():
        rows = tf.tile(tf.constant(values)[None], [count, 1])
        batch[name] = tf.RaggedTensor.from_tensor(rows) if is_ragged else rows
    found = random_flip("image", boxes=BOXES, seed=1)(batch)
    is_flipped = [not np.array_equal(image, IMAGE) for image in found["image"].numpy()]
    assert 16 < sum(is_flipped) < 48
    for row, is_row_flipped in enumerate(is_flipped):
        expected = [0.7, 0.0] if is_row_flipped else BOX["xmin"]
        np.testing.assert_allclose(found["xmin"][row], expected, atol=1e-6)
    assert isinstance(found["xmax"], tf.RaggedTensor) == is_ragged


def test_a_flip_is_decided_by_its_seed():
    function = random_flip("image")
    record = record_of()
    for numbers in ([1, 2], [3, 4], [5, 6]):
        first, second = (function(record, seed=numbers)["image"] for _ in range(2))
        np.testing.assert_array_equal(first, second)
    again = [
        [int(image["image"][0, 0, 0]) for image in dataset]
        for dataset in (
            tf.data.Dataset.from_tensors(record).repeat(30).map(random_flip("image", seed=5)),
            tf.data.Dataset.from_tensors(record).repeat(30).map(random_flip("image", seed=5)),
        )
    ]
    assert again[0] == again[1]
    assert len(set(again[0])) == 2


def test_wrong_options_are_refused():
    with pytest.raises(datum.SchemaError, match="expected a method of area"):
        resize("image", 3, 3, method="cubic")
    with pytest.raises(datum.SchemaError, match="`height` as a number of pixels"):
        resize("image", 0, 3)
    for boxes in (("xmin", "xmax"), "xmin"):
        with pytest.raises(datum.SchemaError, match=r"names of xmin, xmax.*\nhint: boxes="):
            random_flip("image", boxes=boxes)
    with pytest.raises(datum.SchemaError, match="random_flip: expected a feature 'masks'"):
        random_flip("image", masks="masks")(record_of())
