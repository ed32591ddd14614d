"""Parsed columns into those of a batch."""

from __future__ import annotations

import numpy as np
import pytest

from datum._load.collate import Finisher, as_objects, stack_or_list
from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import SchemaError
from datum.schema import Feature, Schema


def test_plain_columns_are_handed_on() -> None:
    columns = {"x": np.arange(3), "r": Ragged(np.arange(2), np.array([0, 1, 1, 2]))}
    schema = Schema({"x": Feature("int64"), "r": Feature("int64", (None,))})
    finisher = Finisher(schema, encoded={})
    made = finisher.settle(finisher.finish(columns))
    assert made["x"] is columns["x"]
    assert made["r"] is columns["r"]


def test_strings_become_object_arrays_in_their_shape() -> None:
    slices = np.array([[0, 1], [1, 1], [2, 1], [3, 1]])
    column = BytesColumn(b"abcd", slices, is_text=True, shape=(2, 2))
    finisher = Finisher(Schema({"t": Feature("str", (2,))}), encoded={})
    assert finisher.finish({"t": column})["t"].tolist() == [["a", "b"], ["c", "d"]]


def test_presence_is_a_column_beside_the_values() -> None:
    schema = Schema({"a": Feature("int64", optional=True), "b": Feature("int64", default=3)})
    finisher = Finisher(schema, encoded={})
    assert finisher.names == ["a", "a_present", "b"]
    present = np.array([True, False])
    made = finisher.finish({"a": Masked(np.array([1, 0]), present), "b": np.array([3, 3])})
    assert made["a_present"] is present
    made = finisher.finish({"a": np.array([1, 0]), "b": np.array([3, 3])})
    assert made["a_present"].tolist() == [True, True]


def test_images_are_left_to_be_decoded_but_for_their_presence() -> None:
    image = Feature("uint8", (None, 4, 3), encoding="image", optional=True)
    finisher = Finisher(Schema({"i": image}), encoded={"i": image})
    column = Masked(BytesColumn.from_values([b"", b"x"]), np.array([False, True]))
    assert list(finisher.finish({"i": column})) == ["i_present"]
    assert finisher.loose["i"].shape == (0, 4, 3)


def test_a_name_for_presence_that_is_taken_is_refused() -> None:
    schema = Schema({"a_present": Feature("bool"), "a": Feature("int64", optional=True)})
    with pytest.raises(SchemaError, match="expected no feature 'a_present'") as caught:
        Finisher(schema, encoded={})
    assert caught.value.feature == "a_present"


def test_rows_are_stacked_or_listed() -> None:
    blank = np.zeros((0, 2))
    one, two = np.ones((1, 2)), np.ones((2, 2))
    assert stack_or_list(as_objects([one, one]), blank).shape == (2, 1, 2)
    assert [row.shape for row in stack_or_list(as_objects([one, two, None]), blank)] == [
        *[(1, 2), (2, 2), (0, 2)]
    ]
    assert stack_or_list(as_objects([None, None]), blank).shape == (2, 0, 2)
    assert stack_or_list(as_objects([]), blank).shape == (0, 0, 2)
    whole = np.ones((3, 3))
    assert stack_or_list(whole, blank) is whole


def test_objects_keep_arrays_as_they_are() -> None:
    arrays = [np.ones((2, 2)), np.ones((2, 2))]
    assert as_objects(arrays)[1] is arrays[1]
