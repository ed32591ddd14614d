"""Small PNGs in TensorFlow, decoded before they get there."""

import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum.frameworks.tensorflow.images import MAX_PIXEL_BYTES, as_pixels, find_small
from datum.frameworks.tensorflow.options import TfOptions
from datum.schema import Feature, Schema

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
    datum.write([{"image": good}] * 3, tmp_path / "d", schema={"image": SMALL}, progress=False)
    ds = datum.load(tmp_path / "d")
    payload = next(iter(datum.format.RecordFile(next(ds.path.glob("*.tfrecord")))))
    bad = bytes(payload).replace(good, broken)
    shard = next(ds.path.glob("*.tfrecord"))
    shard.write_bytes(datum.format.frame([bad] * 3).to_bytes())
    with pytest.raises(tf.errors.OpError, match="expected a whole PNG image"):
        list(ds.to_tf("train", engine="native"))
