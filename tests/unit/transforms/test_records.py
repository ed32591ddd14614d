"""Functions that say which features a record has, and of what type."""

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum.transforms import cast, compose, one_hot, random_flip, scale, select, supervised

RECORD = {"image": tf.ones([2, 3, 3], tf.uint8), "label": tf.constant(2), "id": tf.constant(7)}


def test_composed_functions_run_one_after_the_other():
    prepare = compose(scale("image"), one_hot("label", 4), supervised("image", "label"))
    image, label = prepare(RECORD)
    np.testing.assert_allclose(image, np.full((2, 3, 3), 1 / 255))
    np.testing.assert_array_equal(label, [0, 0, 1, 0])
    assert compose()(RECORD) is RECORD


def test_composed_functions_hand_each_a_seed_of_its_own():
    seen = []

    def random(value, seed=None):
        seen.append(tuple(seed.numpy()))
        return value

    random.takes_seed = True
    prepare = compose(random, select("label"), random)
    assert prepare.takes_seed
    prepare(RECORD, seed=[1, 2])
    assert len(set(seen)) == 2
    assert not compose(select("label")).takes_seed
    assert compose(compose(random_flip("image"))).takes_seed


def test_composing_what_is_no_function_is_an_error():
    with pytest.raises(datum.SchemaError, match="compose: expected functions, got 'image'"):
        compose(scale("image"), "image")


def test_selected_features_stay():
    assert list(select("label", "image")(RECORD)) == ["label", "image"]
    with pytest.raises(datum.SchemaError, match="did you mean 'label'"):
        select("labels")(RECORD)


def test_pairs_for_keras():
    assert supervised("image", "label")(RECORD) == (RECORD["image"], RECORD["label"])
    inputs, targets = supervised(("image", "id"), ("label",))(RECORD)
    assert list(inputs) == ["image", "id"]
    assert list(targets) == ["label"]
    with pytest.raises(datum.SchemaError, match="before a record is made a tuple"):
        select("image")(supervised("image", "label")(RECORD))


def test_a_cast_feature_keeps_its_values():
    assert cast("label", "float16")(RECORD)["label"].dtype == tf.float16
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert cast("x", "float32")({"x": ragged})["x"].to_list() == [[1.0, 2.0], [3.0]]
    with pytest.raises(datum.SchemaError, match="name of a dtype, got 'flaot'"):
        cast("label", "flaot")


@pytest.mark.parametrize("shape", [(), (5,), (5, 2)])
def test_one_hot_vectors_are_those_of_numpy(shape):
    labels = np.random.default_rng(0).integers(0, 6, shape)
    found = one_hot("label", 6)({"label": tf.constant(labels)})["label"]
    np.testing.assert_array_equal(found, np.eye(6, dtype=np.float32)[labels])
    named = one_hot("label", list("abcdef"), dtype="uint8")({"label": tf.constant(labels)})
    assert named["label"].dtype == tf.uint8


def test_one_hot_vectors_of_ragged_classes_stay_ragged():
    found = one_hot("label", 3)({"label": tf.ragged.constant([[0, 2], []], dtype=tf.int64)})
    assert found["label"].to_list() == [[[1, 0, 0], [0, 0, 1]], []]


@pytest.mark.parametrize("label", [-1, 4])
def test_a_class_that_is_not_there_is_an_error_within_the_graph(label):
    dataset = tf.data.Dataset.from_tensors({"label": label}).map(one_hot("label", 4))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"of 0 to 3, got .*: {label} {label}"):
        next(iter(dataset))


def test_wrong_classes_and_labels_are_refused():
    with pytest.raises(datum.SchemaError, match="one class or more"):
        one_hot("label", [])
    with pytest.raises(datum.SchemaError, match="expected integers in 'label', got float32"):
        one_hot("label", 3)({"label": tf.constant(1.0)})
