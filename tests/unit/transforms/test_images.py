"""Transforms of images."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum import transforms
from datum.transforms import (
    BOXES,
    IMAGENET_MEAN,
    IMAGENET_STD,
    caffe,
    normalize,
    random_flip,
    resize,
    scale,
)
from datum.transforms.decoding import Wanted, checked_length, fit_channels, refuse, to_grey
from datum.transforms.graph import (
    Origin,
    find_factory,
    find_origin,
    join_origins,
    numpy_code,
    remember,
    update,
)
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


def made(name, **known):
    return remember(lambda record: record, Origin(name, **known))


def test_an_origin_is_found_of_what_was_made_alone():
    function = made("twice")
    assert find_origin(function).name == "twice"
    assert find_origin(functools.partial(function, seed=1)).name == "twice"
    assert find_origin(functools.wraps(function)(lambda record: record)) is None
    assert find_origin(len) is None
    assert find_origin([]) is None  # cannot be a key


def test_what_makes_functions_is_told_from_what_they_are():
    assert find_factory(transforms.scale) == "scale"
    assert find_factory(transforms.scale("image")) is None
    assert find_factory(len) is None
    assert find_factory(functools.partial(len)) is None


def test_functions_that_are_joined_are_known_together():
    def own(record):
        return record

    parts = [
        made("a", code=("record = 1",), imports=("import numpy",), draws=True),
        own,
        made("b", code=("record = 2",), imports=("import numpy",), is_for_graphs=False),
    ]
    origin = join_origins("compose", parts)
    assert origin.name == "compose of a"
    assert origin.code == ("record = 1", "record = own(record)", "record = 2")
    assert origin.imports == ("import numpy",)
    assert origin.draws
    assert origin.is_for_graphs
    assert not join_origins("compose", parts[1:]).is_for_graphs
    assert join_origins("compose", []).name == "compose"


def test_code_runs_for_any_name_of_a_feature():
    name = 'it\'s "odd" \\ <image>'
    code = Origin.of_pixels("twice", "record = {**record, <image>: record[<image>] * 2}")
    names = {}
    exec(numpy_code(code, name), names)
    assert names["prepare"]({name: np.int64(3), "x": 1}) == {name: 6, "x": 1}


def test_code_that_draws_takes_a_generator():
    origin = Origin("random_flip", code=(update({"x": "rng.random()"}),), draws=True)
    assert numpy_code(origin, "image").startswith("def prepare(record, rng):\n")
