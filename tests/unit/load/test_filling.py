"""Rows of every kind filled up or cut, with masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from datum._load.padding import Pad, Padder
from datum.columns import Ragged

NUMBERS = Ragged(np.array([1, 2, 3], np.uint8), np.array([0, 1, 3]))


def pad_one(column: Any, pad: Any) -> dict[str, Any]:
    made = Padder({"x": pad}).pad({"x": column})
    return {name: array.tolist() for name, array in made.items()}


def test_nested_rows_have_a_length_for_each_level() -> None:
    nested = Ragged(NUMBERS, np.array([0, 2, 2]))  # [[1], [2, 3]], []
    made = pad_one(nested, Pad(length=(3, 2), value=9))
    assert made["x"] == [[[1, 9], [2, 3], [9, 9]], [[9, 9]] * 3]
    assert made["x_mask"] == [
        [[True, False], [True, True], [False, False]],
        [[False, False]] * 3,
    ]
    cut = pad_one(nested, Pad(length=(1, 1), truncate=True))
    assert cut == {"x": [[[1]], [[0]]], "x_mask": [[[True]], [[False]]]}
    assert np.shape(pad_one(nested, Pad(multiple=4))["x"]) == (2, 4, 4)
    assert np.shape(pad_one(nested, Pad(multiple=(4, 3)))["x"]) == (2, 4, 3)
    with pytest.raises(ValueError, match=r"`length` of 2 number\(s\).*got 3") as caught:
        pad_one(nested, Pad(length=3))
    assert "datum.Pad(length=(64, 64))" in str(caught.value)
    with pytest.raises(ValueError, match="row 0, feature 'x': expected at most 1 values.*got 2"):
        pad_one(nested, Pad(length=(2, 1)))


def test_dimensions_that_do_not_differ_have_no_mask() -> None:
    pairs = Ragged(np.arange(6).reshape(3, 2), np.array([0, 1, 3]))
    made = Padder(Pad(length=2)).pad({"x": pairs})
    assert made["x"].tolist() == [[[0, 1], [0, 0]], [[2, 3], [4, 5]]]
    assert made["x_mask"].tolist() == [[True, False], [True, True]]


IMAGES = [np.ones((1, 3, 1), np.uint8), np.full((2, 2, 1), 2, np.uint8)]


def test_images_are_padded_to_height_and_width() -> None:
    made = Padder({"x": Pad(length=(2, 4), value=7)}).pad({"x": IMAGES})
    assert made["x"][..., 0].tolist() == [[[1, 1, 1, 7], [7] * 4], [[2, 2, 7, 7]] * 2]
    assert made["x_mask"].astype(int).tolist() == [[[1, 1, 1, 0], [0] * 4], [[1, 1, 0, 0]] * 2]
    cut = Padder({"x": Pad(length=(1, 2), truncate=True)}).pad({"x": IMAGES})
    assert cut["x"][..., 0].tolist() == [[[1, 1]], [[2, 2]]]
    assert cut["x_mask"].all()
    with pytest.raises(ValueError, match="row 1, feature 'x': expected at most 1 values.*got 2"):
        Padder({"x": Pad(length=(1, 3))}).pad({"x": IMAGES})
    with pytest.raises(ValueError, match="a number for each dimension that differs"):
        Padder(Pad(multiple=2)).pad({"x": IMAGES})
