from __future__ import annotations

import pytest
import tensorflow as tf

from datum.frameworks.tensorflow.stored import (
    DenseKey,
    parse_examples,
    parse_steps,
    refuse_missing_steps,
)
from tests.contract.oracle import make_example, make_sequence_example

RECORDS = [
    make_example({"": ("int64", [1, 2]), "list": ("bytes", [b"a"])}),
    make_example({"": ("int64", [3, 4])}),
]


def test_keys_are_parsed_together_even_an_empty_one() -> None:
    keys = [DenseKey("", (2,), tf.int64), DenseKey("no", (), tf.constant(b"blank"))]
    (numbers, blanks), ((values, splits),) = parse_examples(
        tf.constant(RECORDS), keys, [("list", tf.string)]
    )
    assert numbers.numpy().tolist() == [[1, 2], [3, 4]]
    assert blanks.numpy().tolist() == [b"blank", b"blank"]
    assert values.numpy().tolist() == [b"a"]
    assert splits.numpy().tolist() == [0, 1, 1]
    assert splits.dtype == tf.int64


def test_the_context_of_a_sequence_example_is_parsed_like_an_example() -> None:
    record = make_sequence_example({"x": ("int64", [5])}, {"x": [("int64", [6])]})
    (numbers,), _ = parse_examples([record], [DenseKey("x", (), tf.int64)])
    assert numbers.numpy().tolist() == [5]


def test_steps_are_parsed_with_the_splits_of_records_and_of_steps() -> None:
    steps = [("int64", [1, 2]), ("int64", []), ("int64", [3])]
    records = [make_sequence_example({}, {"x": steps}), make_sequence_example({}, {})]
    ((values, splits, inner_splits),) = parse_steps(records, [("x", tf.int64)])
    assert values.numpy().tolist() == [1, 2, 3]
    assert splits.numpy().tolist() == [0, 3, 3]
    assert inner_splits.numpy().tolist() == [0, 2, 2, 3]


def test_a_list_without_steps_is_no_missing_one() -> None:
    there, missing = make_sequence_example({}, {"x": []}), make_sequence_example({}, {"y": []})
    assert refuse_missing_steps([there, there], "x", tf.string) == 2
    assert refuse_missing_steps(tf.constant([], tf.string), "x", tf.string) == 0
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature list 'x' is required"):
        refuse_missing_steps([there, missing], "x", tf.string)
