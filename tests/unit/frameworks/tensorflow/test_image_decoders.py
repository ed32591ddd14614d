import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum import Feature, Schema, SchemaError
from datum._frameworks.tensorflow.image_decoders import (
    MAX_PIXEL_BYTES,
    as_pixels,
    decoder_for,
    find_small,
)
from datum._frameworks.tensorflow.options import TfOptions
from datum.images import ImageError, decode
from tests.unit.images.samples import encoded, pixels, png_of_16_bits
from tests.unit.transforms.pictures import in_graph, photo, png_images, webp_images

# What TensorFlow cannot do, or does otherwise: see docs/guides/transforms.md.
KNOWN_OTHERS = {
    "dispose_none_load_end.gif",  # transparent pixels
    "jpeg_ff00_header.jpg",  # faults, after which grey is made of colours here
    "junk_jpeg_header.jpg",
}


def feature_of(channels, *, dtype="uint8", size=(None, None), optional=False):
    return Feature(dtype, (*size, channels), encoding="image", optional=optional)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [1, 3, 4, None])
def test_pixels_are_those_that_are_decoded_without_tensorflow(channels, dtype):
    feature = feature_of(channels, dtype=dtype)
    found = in_graph(decoder_for(feature, exact=True))
    images = {**png_images(), **webp_images(), "photo": photo()}
    compared = 0
    for name, data in images.items():
        try:
            expected = decode(data, feature)
        except ImageError:
            continue
        np.testing.assert_array_equal(found(data), expected, err_msg=name)
        assert found(data).dtype == dtype
        compared += 1
    assert compared >= 20


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_odd_images_come_out_right_or_not_at_all(channels, shared_data):
    feature = feature_of(channels)
    found = in_graph(decoder_for(feature, exact=True))
    equal = 0
    for path in sorted((shared_data / "odd_images").iterdir()):
        data = path.read_bytes()
        try:
            image = found(data).numpy()
            expected = decode(data, feature)
        except (tf.errors.InvalidArgumentError, ImageError):
            continue
        if path.name not in KNOWN_OTHERS:
            np.testing.assert_array_equal(image, expected, err_msg=path.name)
            equal += 1
    assert equal > 170


@pytest.mark.parametrize("folder", ["clothing", "pets/images"])
def test_real_photos_are_equal_to_the_last_bit(folder, shared_data):
    paths = sorted((shared_data / folder).rglob("*.jpg"))[::20]
    exact, fast = (decoder_for(feature_of(3), exact=is_exact) for is_exact in (True, False))
    files = tf.data.Dataset.from_tensor_slices([str(path) for path in paths]).map(tf.io.read_file)
    for path, image, close in zip(paths, files.map(exact), files.map(fast), strict=True):
        expected = decode(path.read_bytes(), feature_of(3))
        np.testing.assert_array_equal(image, expected)
        assert np.abs(close.numpy().astype(int) - expected).mean() < 2


def test_real_masks_keep_their_ids(shared_data):
    paths = sorted((shared_data / "pets/annotations/trimaps").glob("[!.]*.png"))[:20]
    found = in_graph(decoder_for(feature_of(1)))
    assert paths
    for path in paths:
        expected = decode(path.read_bytes(), feature_of(1))
        np.testing.assert_array_equal(found(path.read_bytes()), expected)


def test_the_shape_of_the_feature_is_known_and_checked():
    data = encoded(pixels(9, 7), "PNG")
    dataset = tf.data.Dataset.from_tensors(data)
    fitting = dataset.map(decoder_for(feature_of(3, size=(9, 7))))
    assert fitting.element_spec == tf.TensorSpec([9, 7, 3], tf.uint8)
    assert next(iter(fitting)).shape == (9, 7, 3)
    wrong = dataset.map(decoder_for(feature_of(3, size=(9, None)), exact=True))
    assert wrong.element_spec.shape.as_list() == [9, None, 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        next(iter(dataset.map(decoder_for(feature_of(3, size=(8, 7))))))


def test_an_absent_image_is_empty_or_of_zeros():
    empty = in_graph(decoder_for(feature_of(3, optional=True)))(b"")
    assert empty.shape == (0, 0, 3)
    fixed = in_graph(decoder_for(feature_of(1, size=(4, 5), dtype="uint16", optional=True)))(b"")
    assert fixed.dtype == tf.uint16
    np.testing.assert_array_equal(fixed, np.zeros((4, 5, 1)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected a JPEG, PNG"):
        in_graph(decoder_for(feature_of(3)))(b"")


def test_values_that_do_not_fit_are_an_error():
    deep = pixels(5, 6, 1, dtype=np.uint16, most=65535)
    data = png_of_16_bits(deep)
    found = in_graph(decoder_for(feature_of(1, dtype="uint16")))(data)
    np.testing.assert_array_equal(found[..., 0], deep)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected pixels of 8 bits"):
        in_graph(decoder_for(feature_of(1)))(data)


def test_damage_is_an_error_within_the_graph():
    for data in (photo()[:300], encoded(pixels(9, 7), "PNG")[:60], b"not an image"):
        with pytest.raises(tf.errors.InvalidArgumentError):
            in_graph(decoder_for(feature_of(3)))(data)


def test_the_graph_holds_no_python():
    dataset = tf.data.Dataset.from_tensors(photo()).map(decoder_for(feature_of(3)))
    graph = tf.compat.v1.GraphDef.FromString(dataset._as_serialized_graph().numpy())
    ops = {node.op for node in graph.node}
    ops |= {node.op for function in graph.library.function for node in function.node_def}
    assert "DecodeJpeg" in ops
    assert not any("PyFunc" in op for op in ops)


@pytest.mark.parametrize("channels", [1, 3, 4, None])
def test_the_position_of_an_iterator_can_be_saved(channels, tmp_path):
    files = tf.data.Dataset.from_tensor_slices([photo(height) for height in (20, 30, 40, 50)])
    iterator = iter(files.map(decoder_for(feature_of(channels))))
    next(iterator)
    checkpoint = tf.train.Checkpoint(iterator=iterator)
    path = checkpoint.write(str(tmp_path / "saved"))
    assert next(iterator).shape[0] == 30
    checkpoint.read(path)
    assert next(iterator).shape[0] == 30


def test_a_feature_of_two_channels_cannot_be_decoded():
    with pytest.raises(SchemaError, match="1, 3 or 4 channels"):
        decoder_for(Feature("uint8", (None, None, 2), encoding="raw"))


SMALL = Feature("uint8", (8, 8, 1), encoding="image")
PNG = {"image": {"formats": ["png"]}}


@pytest.fixture
def ds(tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (50, 8, 8, 1), dtype=np.uint8)
    schema = {"image": SMALL}
    datum.write(
        {"image": pixels, "n": np.arange(50)}, tmp_path / "d", schema=schema, progress=False
    )
    return datum.load(tmp_path / "d")


def test_small_images_are_found():
    assert find_small(Schema({"image": SMALL}), TfOptions(), PNG) == {"image"}


@pytest.mark.parametrize(
    ("feature", "metadata", "decode"),
    [
        (Feature("uint8", (8, 8, 1)), PNG, True),
        (Feature("uint8", (8, None, 1), encoding="image"), PNG, True),
        (Feature("uint8", (8, 8, 1), encoding="image", optional=True), PNG, True),
        (Feature("uint16", (8, 8, 1), encoding="image"), PNG, True),
        (Feature("uint8", (1, MAX_PIXEL_BYTES + 1, 1), encoding="image"), PNG, True),
        (SMALL, {"image": {"formats": ["jpeg", "png"]}}, True),
        (SMALL, {}, True),
        (SMALL, PNG, False),
        (SMALL, PNG, {"image": False}),
        (SMALL, PNG, {"image": lambda data: data}),
    ],
)
def test_others_stay_with_the_graph(feature, metadata, decode):
    found = find_small(Schema({"image": feature}), TfOptions(decode=decode), metadata)
    assert found == frozenset()


def test_only_the_images_become_pixels():
    schema = as_pixels(Schema({"image": SMALL, "other": SMALL}), {"image"})
    assert schema["image"] == Feature("uint8", (8, 8, 1), encoding="raw")
    assert schema["other"] == SMALL


def test_both_engines_give_the_same_pixels(ds):
    found = {}
    for engine in ("graph", "native"):
        batches = ds.to_tf("train", batch_size=16, engine=engine)
        assert batches.element_spec["image"].dtype == tf.uint8
        found[engine] = [(batch["n"].numpy(), batch["image"].numpy()) for batch in batches]
    for (n, image), (other_n, other) in zip(found["graph"], found["native"], strict=True):
        np.testing.assert_array_equal(n, other_n)
        np.testing.assert_array_equal(image, other)
        assert image.shape[1:] == (8, 8, 1)


def test_the_native_engine_is_chosen_for_them(ds):
    assert "engine=native" in repr(ds.to_tf("train"))


def test_functions_and_caches_get_the_pixels(ds):
    def brighten(record):
        return {"mean": tf.reduce_mean(tf.cast(record["image"], tf.float32)), "n": record["n"]}

    native, graph = (
        np.concatenate([batch["mean"].numpy() for batch in batches])
        for batches in (
            ds.to_tf("train", engine=engine, map=brighten, cache=True, epochs=2)
            for engine in ("native", "graph")
        )
    )
    np.testing.assert_allclose(native, graph)
    assert len(native) == 100


def test_a_damaged_image_is_an_error_that_says_so(tmp_path):
    file = io.BytesIO()
    Image.new("L", (8, 8)).save(file, "png")
    good = file.getvalue()
    broken = good[:45] + bytes([good[45] ^ 1]) + good[46:]
    datum.write([{"image": broken}] * 3, tmp_path / "d", schema={"image": SMALL}, progress=False)
    ds = datum.load(tmp_path / "d")
    with pytest.raises(tf.errors.OpError, match="expected a whole PNG image"):
        list(ds.to_tf("train", engine="native"))
