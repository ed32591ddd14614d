from __future__ import annotations

from typing import Any

import pytest
import tensorflow as tf

from datum import Feature, Schema
from datum.frameworks.tensorflow.stored import DenseKey, find_present, refuse_empty, refuse_missing
from tests.contract.wire import (
    delimited,
    entry,
    example,
    feature_lists,
    float_list,
    int64_list,
    packed,
)
from tests.unit.frameworks.tensorflow.agreement import assert_agrees, parse_eagerly

EMPTY = entry(b"key", int64_list())
REFUSED = tf.errors.InvalidArgumentError

# Records whose list under "key" has no values, and whether they have it at all.
RECORDS = {
    "nothing": (b"", False),
    "no features": (example(), False),
    "another key": (example(entry(b"other", int64_list())), False),
    "an empty list": (example(EMPTY), True),
    "a list of an empty chunk": (example(entry(b"key", int64_list(packed()))), True),
    "no kind": (example(entry(b"key")), False),
    "the value first": (
        example(delimited(1, delimited(2, int64_list()), delimited(1, b"key"))),
        True,
    ),
    "two maps": (example(EMPTY) + example(entry(b"other", int64_list(packed(1)))), True),
    "two entries, the last without a kind": (example(EMPTY, entry(b"key")), False),
    "two entries, the last with one": (example(entry(b"key"), EMPTY), True),
    "the letters in another key": (example(entry(b"the key", int64_list())), False),
    "the letters in a text": (example(entry(b"other", delimited(1, delimited(1, b"key")))), False),
    "the record in a text": (
        example(entry(b"other", delimited(1, delimited(1, example(EMPTY))))),
        False,
    ),
    "a list of the context": (feature_lists(EMPTY), False),
}


def _present(records: list[bytes], key: str, **options: Any) -> list[bool]:
    splits = tf.zeros([len(records) + 1], tf.int64)
    found = find_present(tf.constant(records), key, splits=splits, **options)
    return [bool(there) for there in found.numpy()]


@pytest.mark.parametrize(("record", "is_there"), RECORDS.values(), ids=RECORDS)
def test_an_empty_list_is_told_from_an_absent_one(record: bytes, is_there: bool) -> None:
    assert _present([record], "key", is_sequence=False) == [is_there]
    schema = Schema({"key": Feature("int64", (None,), optional=True)})
    assert_agrees(schema, [record], parse_eagerly(schema, [record]))


def test_each_record_is_told_on_its_own() -> None:
    records = [record for record, _ in RECORDS.values()]
    expected = [is_there for _, is_there in RECORDS.values()]
    assert _present(records, "key", is_sequence=False) == expected


def test_lists_with_values_are_there_without_being_looked_at() -> None:
    found = find_present(tf.constant(["?", "?"]), "key", splits=[0, 1, 3], is_sequence=False)
    assert found.numpy().tolist() == [True, True]


def test_no_records_have_nothing() -> None:
    none = tf.constant([], tf.string)
    found = find_present(none, "key", splits=tf.constant([0]), is_sequence=False)
    assert found.shape == (0,)


# Entries that TensorFlow's parser refuses, which protobuf takes.
@pytest.mark.parametrize(
    ("content", "is_there"),
    [
        ([delimited(1, b"key")], False),
        ([delimited(1, b"key"), delimited(2, int64_list()), delimited(2)], True),
        ([delimited(1, b"other"), delimited(1, b"key"), delimited(2, int64_list())], True),
        ([delimited(1, b"key"), delimited(1, b"other"), delimited(2, int64_list())], False),
    ],
)
def test_entries_are_merged_as_protobuf_merges_them(content: list[bytes], is_there: bool) -> None:
    assert _present([example(delimited(1, *content))], "key", is_sequence=False) == [is_there]


@pytest.mark.parametrize("key", ["", "a.b", "a\0b", r"\C*", "ключ", "(", "x" * 300])
def test_keys_of_any_letters_are_found(key: str) -> None:
    record = example(entry(key.encode(), float_list()))
    assert _present([record, b""], key, is_sequence=False) == [True, False]


def test_an_empty_feature_list_is_told_from_an_absent_one() -> None:
    records = [feature_lists(EMPTY), feature_lists(entry(b"key")), example(EMPTY), b""]
    assert _present(records, "key", is_sequence=True) == [True, True, False, False]


def test_records_that_lack_a_list_are_refused() -> None:
    full = example(entry(b"key", int64_list(packed(1))))
    splits = tf.constant([0, 1, 1], tf.int64)
    records = tf.constant([full, example(EMPTY)])
    found = refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)
    assert found.numpy().tolist() == [0, 1, 1]
    records = tf.constant([full, example()])
    with pytest.raises(REFUSED, match="Feature: key .* is required"):
        refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)


def test_records_that_have_a_key_without_its_values_are_refused() -> None:
    keys = [DenseKey("key", (), tf.zeros([], tf.int64)), DenseKey("b", (), tf.zeros([], tf.int64))]
    present = [tf.constant([False]), tf.constant([False])]
    assert refuse_empty(tf.constant([example()]), keys, present) == present
    with pytest.raises(REFUSED, match="Key: key"):
        refuse_empty(tf.constant([example(EMPTY)]), keys, present)


def test_the_optimised_graph_still_refuses() -> None:
    def refuse(records: Any) -> Any:
        splits = tf.zeros([2], tf.int64)
        return refuse_missing(records, "key", tf.int64, splits=splits, is_sequence=False)

    records = tf.data.Dataset.from_tensors(tf.constant([b""]))
    with pytest.raises(REFUSED, match="Feature: key .* is required"):
        list(records.map(refuse))
