from typing import Any

import pytest
import tensorflow as tf

from datum._frameworks.tensorflow.ops import checked


def _half(number: Any) -> Any:
    return checked(number // 2, tf.equal(number % 2, 0), "expected an even number")


def test_a_value_comes_back_if_its_condition_holds() -> None:
    assert _half(tf.constant([2, 4])).numpy().tolist() == [1, 2]


@pytest.mark.parametrize("number", [3, [2, 3]])
def test_a_condition_that_does_not_hold_everywhere_is_an_error(number: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an even number"):
        _half(tf.constant(number))


def test_a_check_runs_in_a_dataset_even_if_its_value_is_not_used() -> None:
    def check_and_forget(number: Any) -> Any:
        _half(number)
        return tf.zeros([])

    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an even number"):
        list(tf.data.Dataset.range(1, 2).map(check_and_forget))
