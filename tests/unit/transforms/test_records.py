"""Transforms of records."""

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum.transforms import cast, compose, one_hot, random_flip, scale, select, supervised
from datum.transforms.graph import (
    apart,
    check_size,
    checked,
    fail,
    fold_in,
    leave_as_is,
    listed,
    random_seed,
    take,
)

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
    with pytest.raises(datum.SchemaError, match="before a record becomes a tuple"):
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


def test_functions_are_marked_if_they_take_a_seed():
    assert leave_as_is(lambda value, seed=None: value, takes_seed=True).takes_seed
    assert not leave_as_is(lambda value: value).takes_seed


def test_a_function_apart_is_one_operation_of_each_graph_and_traced_once():
    calls = []

    def double(value):
        calls.append(value)
        return value * 2 + 1

    doubled = apart(double, tf.TensorSpec([], tf.int32))
    for _ in range(2):
        graph = tf.function(lambda value: doubled(value))
        concrete = graph.get_concrete_function(tf.TensorSpec([], tf.int32))
        assert [node.op for node in concrete.graph.as_graph_def().node][1] == "PartitionedCall"
        assert graph(tf.constant(3)) == 7
    assert len(calls) == 1
    assert doubled(3) == 7


@pytest.mark.parametrize("value", [b"text", np.uint8(3), np.float32([1, 2])])
def test_a_check_fails_with_its_message_and_else_changes_nothing(value):
    @tf.function
    def run(number):
        return checked(tf.constant(value), number > 0, "expected more, got", number)

    np.testing.assert_array_equal(run(tf.constant(1)), value)
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected more, got -5"):
        run(tf.constant(-5))


def test_a_failure_can_stand_in_a_dataset_whose_position_is_saved():
    def run(number):
        return tf.cond(number < 3, lambda: number, lambda: number + tf.cast(fail("no"), tf.int64))

    iterator = iter(tf.data.Dataset.range(5).map(run))
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    tf.raw_ops.SerializeIterator(resource_handle=iterator._iterator_resource)
    assert next(iterator) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="no"):
        next(iterator)


def test_a_missing_feature_is_named_with_the_nearest():
    with pytest.raises(datum.SchemaError, match=r"scale: .*'imgae'.*\nhint: did you mean 'image'"):
        take({"image": 1, "label": 2}, "imgae", "scale")
    with pytest.raises(datum.SchemaError, match="got tuple\nhint"):
        take((1, 2), "image", "scale")


@pytest.mark.parametrize("size", [(0, 3), (3, -1), (2.5, 3), (3, "4"), (True, 3)])
def test_sizes_are_numbers_of_pixels(size):
    with pytest.raises(datum.SchemaError, match="resize: expected `(height|width)`"):
        check_size("resize", *size)


def test_a_given_seed_counts_with_that_of_the_function():
    given = tf.constant([5, 6])
    assert np.array_equal(random_seed(1, given), random_seed(1, given))
    assert not np.array_equal(random_seed(1, given), random_seed(2, given))
    assert random_seed(None, [2**40, 7]).dtype == tf.int64


def test_without_a_given_seed_one_is_drawn_each_time():
    draw = tf.function(lambda: random_seed(None, None))
    assert len({tuple(draw().numpy()) for _ in range(20)}) == 20


def test_folded_seeds_differ_for_neighbours():
    seeds = [fold_in([0, index], number) for index in range(30) for number in range(30)]
    assert len({tuple(seed.numpy()) for seed in seeds}) == 900


def test_one_name_is_as_good_as_a_list():
    assert listed("mask") == ("mask",)
    assert listed(["a", "b"]) == ("a", "b")
