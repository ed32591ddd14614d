"""Features that lie under several keys which contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from datum import Feature, Schema, SchemaError
from datum.format import encode, parse


def nested(values: list[int], lengths: list[int]) -> Any:
    parts = Schema({"v": Feature("int64", (None,)), "l": Feature("int64", (None,))})
    ragged = Schema({"x": Feature("int64", (None, None), keys=("v", "l"))})
    sound = {"v": [7, 8, 9], "l": [1, 2]}
    return parse(encode([sound, {"v": values, "l": lengths}], parts), ragged)["x"]


def test_row_lengths_that_add_up_are_read():
    assert nested([1, 2, 3], [0, 3, 0]).to_list() == [[[7], [8, 9]], [[], [1, 2, 3], []]]


@pytest.mark.parametrize(
    "lengths",
    [
        [],
        [1],
        [3],
        [-1, 3],
        [2**62] * 4 + [2],  # their sum, in 64 bits, is right
        [2**63 - 1, 2**63 - 1, 4],
        [-(2**63), -(2**63), 2],
        [2**63 - 1, -(2**63) + 3],
    ],
)
def test_row_lengths_that_do_not_add_up_name_their_record(lengths):
    with pytest.raises(SchemaError, match=r"record 1.*'x'"):
        nested([1, 2], lengths)


def tensor(data: bytes, shape: list[int]) -> Any:
    parts = Schema({"x": Feature("bytes"), "x_shape": Feature("int64", (None,))})
    wanted = Schema({"x": Feature("float64", (None, None))})
    return parse(encode([{"x": data, "x_shape": shape}], parts), wanted)["x"][0]


def test_shapes_that_fit_are_read():
    assert tensor(bytes(48), [2, 3]).shape == (2, 3)
    assert tensor(b"", [0, 5]).shape == (0, 5)


@pytest.mark.parametrize(
    "shape",
    [
        [],
        [6],
        [2, 3, 1],
        [3, 3],
        [-2, -3],
        [-1, 6],
        [2**32, 2**32],
        [2**33, 2**33],
        [2**62, 0],
        [2**63 - 1, 0],
    ],
)
def test_shapes_that_do_not_fit_are_refused(shape):
    with pytest.raises(SchemaError, match=r"record 0.*'x'"):
        tensor(bytes(48), shape)
    with pytest.raises(SchemaError, match=r"record 0.*'x'"):
        tensor(b"", shape)


def sparse(indices: list[int], values: list[float]) -> Any:
    parts = Schema({"x_index": Feature("int64", (None,)), "x_value": Feature("float32", (None,))})
    wanted = Schema({"x": Feature("float32", (10,), encoding="sparse")})
    return parse(encode([{"x_index": indices, "x_value": values}], parts), wanted)["x"]


@pytest.mark.parametrize("index", [-1, 10, 2**40, 2**63 - 1, -(2**63)])
def test_sparse_indices_outside_are_refused(index):
    with pytest.raises(SchemaError, match=rf"record 0.*'x'.*{index}"):
        sparse([1, index], [1.0, 2.0])


@pytest.mark.parametrize(("indices", "values"), [([1], []), ([], [1.0]), ([1, 2], [1.0])])
def test_sparse_parts_of_differing_length_are_refused(indices, values):
    with pytest.raises(SchemaError, match=r"record 0.*'x'"):
        sparse(indices, values)
