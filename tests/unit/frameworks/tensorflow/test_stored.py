from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from datum import Feature
from datum.format.layout import lower
from datum.frameworks.tensorflow.stored import Key, Stored, StoredReader, count_records, pad_rows
from tests.contract.oracle import make_example, make_sequence_example


def _keys(**features: Feature) -> list[Key]:
    return [Key(column, item) for name, item in features.items() for column in lower(name, item)]


def _read(keys: list[Key], *records: bytes, **options: Any) -> dict[tuple[str, bool], Stored]:
    return StoredReader(tf.constant(records), **options).read(keys)


def test_each_key_is_found_under_its_name_and_kind() -> None:
    keys = _keys(x=Feature("int64", (None, None)), steps=Feature("int64", (None,), sequence=True))
    context = {"x": ("int64", [1]), "x_lengths_1": ("int64", [1])}
    found = _read(keys, make_sequence_example(context, {"steps": []}))
    assert set(found) == {("x", False), ("x_lengths_1", False), ("steps", True)}


def test_absent_numbers_become_rows_of_zeros_and_are_told() -> None:
    keys = _keys(x=Feature("int64", (2,), optional=True), y=Feature("bytes", optional=True))
    records = make_example({"x": ("int64", [1, 2])}), make_example({"y": ("bytes", [b"a"])})
    found = _read(keys, *records)
    assert found["x", False].values.numpy().tolist() == [[1, 2], [0, 0]]
    assert found["x", False].present.numpy().tolist() == [True, False]
    assert found["y", False].values.numpy().tolist() == [b"", b"a"]
    assert found["y", False].present.numpy().tolist() == [False, True]


@pytest.mark.parametrize("is_trusted", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_a_part_of_optional_values_is_refused(count: int, is_trusted: bool) -> None:
    record = make_example({"x": ("int64", [1] * count)})
    keys = _keys(x=Feature("int64", (2,), optional=True))
    with pytest.raises(tf.errors.InvalidArgumentError, match="key `x`: expected 2 value"):
        _read(keys, record, is_trusted=is_trusted)


def test_only_what_is_not_trusted_is_searched_for_missing_lists() -> None:
    keys = _keys(x=Feature("int64", (None,)))
    assert _read(keys, make_example({}), is_trusted=True)["x", False].splits.shape == (2,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Feature: x .* is required"):
        _read(keys, make_example({}))


def test_rows_are_cut_off_or_filled_up() -> None:
    stored = Stored(tf.constant([1, 2, 3, 4]), tf.constant([0, 3, 3, 4], tf.int64))
    rows = pad_rows(stored, (3, 2), blank=tf.constant(9))
    assert rows.numpy().tolist() == [[1, 2], [9, 9], [4, 9]]


def test_records_are_counted_before_the_graph_runs_if_possible() -> None:
    assert count_records(tf.constant(["", ""])) == 2
    dynamic = tf.function(count_records, input_signature=[tf.TensorSpec((None,), tf.string)])
    assert dynamic(tf.constant(["", "", ""])).numpy() == 3
