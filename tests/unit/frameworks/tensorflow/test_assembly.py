from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from datum import Feature, Schema
from datum.format import encode
from tests.contract.oracle import make_example, make_sequence_example
from tests.unit.frameworks.tensorflow.agreement import parse_eagerly

REFUSED = tf.errors.InvalidArgumentError


def _parse(feature: Feature, *contexts: dict[str, Any]) -> Any:
    payloads = [make_example(context) for context in contexts]
    return parse_eagerly(Schema({"x": feature}), payloads)["x"]


NESTED = Feature("int64", (None, None))


def test_nested_lists_are_cut_by_their_row_lengths() -> None:
    first = {"x": ("int64", [7, 8, 9]), "x_lengths_1": ("int64", [1, 0, 2])}
    second = {"x": ("int64", []), "x_lengths_1": ("int64", [0])}
    found = _parse(NESTED, first, second)
    assert found.to_list() == [[[7], [], [8, 9]], [[]]]


@pytest.mark.parametrize("lengths", [[2], [4], [-1, 4], [2**62, 2**62, 2**62, 2**62, 3], []])
def test_row_lengths_that_do_not_sum_to_the_values_are_refused(lengths: list[int]) -> None:
    context = {"x": ("int64", [7, 8, 9]), "x_lengths_1": ("int64", lengths)}
    with pytest.raises(REFUSED, match="feature `x`: expected row lengths that sum"):
        _parse(NESTED, context)


def test_row_lengths_that_only_sum_to_the_values_of_all_records_are_refused() -> None:
    first = {"x": ("int64", [7, 8]), "x_lengths_1": ("int64", [1])}
    second = {"x": ("int64", [9]), "x_lengths_1": ("int64", [2])}
    with pytest.raises(REFUSED, match="feature `x`: expected row lengths that sum"):
        _parse(NESTED, first, second)


def test_values_that_only_fill_the_rows_of_all_records_together_are_refused() -> None:
    feature = Feature("int64", (None, 2))
    with pytest.raises(REFUSED, match="feature `x`: expected a multiple of 2 values"):
        _parse(feature, {"x": ("int64", [1, 2, 3])}, {"x": ("int64", [4])})


SHAPED = Feature("uint8", (None, 2, None), encoding="raw")


def test_tensors_have_the_shape_that_lies_beside_them() -> None:
    arrays = [np.arange(12).reshape(2, 2, 3), np.zeros((0, 2, 5)), np.zeros((1, 2, 0))]
    schema = Schema({"x": SHAPED})
    payloads = list(encode([{"x": array.astype(np.uint8)} for array in arrays], schema))
    found = parse_eagerly(schema, payloads)["x"]
    assert found.to_list() == [array.tolist() for array in arrays]
    assert found.shape == (3, None, 2, None)


@pytest.mark.parametrize(
    "shape",
    [[1, 2, 4], [1, 2], [1, 2, 3, 1], [1, 3, 2], [-1, 2, -3], [2**31, 2, 0], [2**30, 2, 2**33]],
)
def test_shapes_that_do_not_hold_all_items_are_refused(shape: list[int]) -> None:
    context = {"x": ("bytes", [bytes(6)]), "x_shape": ("int64", shape)}
    with pytest.raises(REFUSED, match="feature `x`: expected a shape .* of all items"):
        _parse(SHAPED, context)


@pytest.mark.parametrize("shape", [[2**31 - 1, 2, 2**31 - 1], [2**31 - 1] * 3])
def test_shapes_whose_product_overflows_are_refused(shape: list[int]) -> None:
    feature = Feature("uint8", (None, None, None), encoding="raw")
    wrapped = np.prod(np.array(shape, np.int64)).item() % 100
    context = {"x": ("bytes", [bytes(wrapped)]), "x_shape": ("int64", shape)}
    with pytest.raises(REFUSED, match="of all items"):
        _parse(feature, context)


SPARSE = Feature("float32", (3, 4), encoding="sparse")


def _sparse(rows: list[int], columns: list[int], values: list[float]) -> dict[str, Any]:
    return {
        "x_index_0": ("int64", rows),
        "x_index_1": ("int64", columns),
        "x_value": ("float", values),
    }


def test_sparse_values_are_sorted_and_equal_places_stay_in_order() -> None:
    count = 40  # more than a sort that is not stable leaves alone
    places = [2] * count + [0]
    values = [float(i) for i in range(count + 1)]
    found = _parse(SPARSE, {}, _sparse(places, [1] * (count + 1), values))
    assert found.values.numpy().tolist() == [float(count), *values[:-1]]
    assert found.indices.numpy().tolist() == [[1, 0, 1]] + [[1, 2, 1]] * count
    assert found.dense_shape.numpy().tolist() == [2, 3, 4]


@pytest.mark.parametrize("places", [([3], [0]), ([0], [4]), ([-1], [0])])
def test_indices_outside_of_the_shape_are_refused(places: Any) -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected indices within"):
        _parse(SPARSE, _sparse(*places, [1.0]))


@pytest.mark.parametrize(
    "context",
    [
        _sparse([0], [0, 1], [1.0]),
        _sparse([0, 1], [0, 1], [1.0]),
        _sparse([0], [0], []),
        {"x_value": ("float", [1.0])},
    ],
)
def test_another_number_of_indices_than_values_is_refused(context: dict[str, Any]) -> None:
    with pytest.raises(REFUSED, match="feature `x`: expected an index for each value"):
        _parse(SPARSE, context)


def test_indices_that_only_match_the_values_of_all_records_are_refused() -> None:
    contexts = _sparse([0], [0], [1.0, 2.0]), _sparse([0, 1], [0, 1], [1.0])
    with pytest.raises(REFUSED, match="feature `x`: expected an index for each value"):
        _parse(SPARSE, *contexts)


def test_a_default_fills_absent_lists_and_leaves_empty_ones() -> None:
    feature = Feature("uint8", (None, 2), default=[[1, 2], [3, 4]])
    contexts: list[dict[str, Any]] = [{}, {"x": ("int64", [])}, {"x": ("int64", [5, 6])}, {}]
    default = [[1, 2], [3, 4]]
    assert _parse(feature, *contexts).to_list() == [default, [], [[5, 6]], default]


def test_a_default_of_a_large_unsigned_number_is_kept() -> None:
    found = _parse(Feature("uint64", (2,), default=[2**64 - 1, 3]), {})
    assert found.numpy().tolist() == [[2**64 - 1, 3]]


def test_a_shape_without_values_must_have_none() -> None:
    feature = Feature("int64", (2, 0))
    assert _parse(feature, {"x": ("int64", [])}).shape == (1, 2, 0)
    with pytest.raises(REFUSED, match="feature `x`: expected 0 values"):
        _parse(feature, {"x": ("int64", [1])})


@pytest.mark.parametrize("steps", [[("int64", [1])], [("int64", [1, 2]), ("int64", [])], [None]])
def test_steps_of_another_number_of_values_are_refused(steps: Any) -> None:
    schema = Schema({"x": Feature("int64", (None, 2), sequence=True)})
    payload = make_sequence_example({}, {"x": steps})
    with pytest.raises(REFUSED, match="feature `x`: expected 2 value.* in every step"):
        parse_eagerly(schema, [payload])


def test_context_and_lists_of_a_record_are_read_together() -> None:
    schema = Schema(
        {
            "words": Feature("str", (None, None), sequence=True),
            "id": Feature("int32"),
            "boxes": Feature("float64", (None, 2), sequence=True),
            "sparse": Feature("float32", (5,), encoding="sparse"),
        }
    )
    rows = [
        {
            "words": [["a"], [], ["b", "c"]],
            "id": 4,
            "boxes": [[1.0, 2.0]],
            "sparse": ([3], [0.5]),
        }
    ]
    found = parse_eagerly(schema, list(encode(rows, schema)))
    assert found["words"].to_list() == [[[b"a"], [], [b"b", b"c"]]]
    assert found["id"].numpy().tolist() == [4]
    assert found["boxes"].to_list() == [[[1.0, 2.0]]]
    assert tf.sparse.to_dense(found["sparse"]).numpy().tolist() == [[0, 0, 0, 0.5, 0]]
