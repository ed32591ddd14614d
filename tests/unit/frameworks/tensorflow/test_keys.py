from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from datum import Feature
from datum.format.layout import lower
from datum.frameworks.tensorflow.stored import Key


def _keys(feature: Feature) -> list[Key]:
    return [Key(column, feature) for column in lower("x", feature)]


@pytest.mark.parametrize(
    ("feature", "types"),
    [
        (Feature("uint8"), [tf.int64]),
        (Feature("datetime64[s]"), [tf.int64]),
        (Feature("bfloat16", (None,)), [tf.float32]),
        (Feature("str"), [tf.string]),
        (Feature("int64", (3,), encoding="raw"), [tf.string]),
        (Feature("float64", (None, None), encoding="values"), [tf.string, tf.int64]),
        (Feature("float32", (3,), encoding="sparse"), [tf.float32, tf.int64]),
    ],
)
def test_lists_are_of_the_three_types(feature: Feature, types: list[Any]) -> None:
    assert [key.dtype for key in _keys(feature)] == types


@pytest.mark.parametrize(
    ("feature", "shape"),
    [
        (Feature("int64", (2, 3)), (2, 3)),
        (Feature("float64", (2, 3)), ()),
        (Feature("float64", (None, 3)), ()),
        (Feature("float64", (0,)), ()),
    ],
)
def test_numbers_and_raw_strings_are_fixed(feature: Feature, shape: tuple[int, ...]) -> None:
    (key,) = _keys(feature)
    assert key.is_fixed
    assert key.dense_key().shape == shape


@pytest.mark.parametrize(
    "feature",
    [
        Feature("int64", (None,)),
        Feature("int64", (0,)),
        Feature("int64", (None, 2), sequence=True),
        Feature("float64", (None, 2), sequence=True),
    ],
)
def test_lists_and_shapes_without_values_are_not_fixed(feature: Feature) -> None:
    assert not _keys(feature)[0].is_fixed


@pytest.mark.parametrize(
    ("feature", "stored"),
    [
        (Feature("uint64", default=2**64 - 1), np.array(-1)),
        (Feature("bool", (2,), default=True), np.array([1, 1])),
        (Feature("float16", default=0.5), np.array(0.5, np.float32)),
        (Feature("str", default="ä"), b"\xc3\xa4"),
        (Feature("float64", default=1.0), b"\0\0\0\0\0\0\xf0\x3f"),
        (Feature("uint16", (None,), encoding="raw", default=[1, 2]), b"\1\0\2\0"),
    ],
)
def test_a_default_is_asked_for_as_it_would_be_stored(feature: Feature, stored: Any) -> None:
    (key,) = _keys(feature)
    default = key.dense_key().default.numpy()
    np.testing.assert_array_equal(default, stored)
    assert not key.is_doubtful


def test_presence_is_of_interest_only_where_it_is_told_or_decides() -> None:
    asked = {
        "told": Feature("int64", (None,), optional=True),
        "filled": Feature("int64", (None,), default=[1]),
        "sparse": Feature("int64", (3,), encoding="sparse", optional=True),
    }
    not_asked = {
        "required": Feature("int64", (None,)),
        "filled with nothing": Feature("int64", (None,), default=[]),
    }
    assert all(_keys(feature)[0].needs_presence for feature in asked.values())
    assert not any(_keys(feature)[0].needs_presence for feature in not_asked.values())
    _, lengths = _keys(Feature("int64", (None, None), optional=True))
    assert not lengths.needs_presence


@pytest.mark.parametrize(
    ("feature", "blank"),
    [
        (Feature("float32", optional=True), 0.0),
        (Feature("bytes", optional=True), b""),
        (Feature("float64", (2,), optional=True), bytes(16)),
        (Feature("float64", (None,), optional=True), b""),
    ],
)
def test_a_blank_is_what_an_absent_value_reads_as(feature: Feature, blank: Any) -> None:
    (key,) = _keys(feature)
    assert key.is_doubtful
    assert key.blank().numpy() == blank
