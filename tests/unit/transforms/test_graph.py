"""What functions of a graph are made with."""

import numpy as np
import pytest
import tensorflow as tf

import datum
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
