import datetime as dt

import numpy as np
import pytest

from datum import BytesColumn, Feature, Masked, Ragged, SchemaError, Sparse
from datum.format.column_input import gather, stack_values


def test_values_are_stacked():
    column, present = gather("x", Feature("float64", (2,)), [[1, 2], np.array([3.5, 4])])
    assert column.tolist() == [[1, 2], [3.5, 4]]
    assert present.tolist() == [True, True]


def test_what_is_none_is_not_present():
    column, present = gather("x", Feature("float64"), [None, 1.5, None])
    assert present.tolist() == [False, True, False]
    assert len(column) == 3
    assert column[1] == 1.5


def test_no_values_make_an_empty_column_of_the_shape():
    column, present = gather("x", Feature("float64", (2, 3)), [])
    assert column.shape == (0, 2, 3)
    assert present.shape == (0,)


def test_strings_are_joined():
    column, _ = gather("x", Feature("str", (2,), sequence=False), [["a", "b"], ("c", "d")])
    assert isinstance(column, BytesColumn)
    assert column.to_list() == [["a", "b"], ["c", "d"]]


def test_rows_of_differing_length_become_ragged():
    column, present = gather("x", Feature("int64", (None, None)), [[[1], [2, 3]], [], None])
    assert isinstance(column, Ragged)
    assert column.to_list() == [[[1], [2, 3]], [], []]
    assert present.tolist() == [True, True, False]


def test_raw_tensors_of_differing_shape_stay_apart():
    column, _ = gather("x", Feature("float64", (None, None)), [np.ones((1, 2)), [[1.0]], None])
    assert [np.shape(item) for item in column[:2]] == [(1, 2), (1, 1)]
    assert column[2] is None


@pytest.mark.parametrize(
    "row",
    [
        ([3, 1], [7.0, 5.0]),
        (np.array([3, 1]), np.array([7.0, 5.0], np.float32)),
        ([[3], [1]], [7.0, 5.0]),
        Sparse(np.array([[3], [1]]), np.array([7.0, 5.0]), (4,)),
    ],
    ids=["lists", "arrays", "columns", "Sparse"],
)
def test_sparse_rows_in_every_form(row):
    column, _ = gather("x", Feature("float32", (4,), encoding="sparse"), [row, ([], []), None])
    assert isinstance(column, Sparse)
    assert column.dense_shape == (3, 4)
    assert column.to_dense().tolist() == [[0, 5, 0, 7], [0] * 4, [0] * 4]


def test_sparse_rows_of_two_dimensions():
    feature = Feature("str", (2, 3), encoding="sparse")
    column, _ = gather("x", feature, [([[0, 1], [1, 2]], ["a", "b"]), ([], [])])
    assert column.indices.tolist() == [[0, 0, 1], [0, 1, 2]]
    assert column.values.to_list() == ["a", "b"]


@pytest.mark.parametrize("make", ["csr_array", "coo_array", "csc_matrix"])
def test_sparse_rows_of_scipy(make):
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    row = getattr(sparse, make)(np.array([[0, 5, 0, 7]], np.float32))
    column, _ = gather("x", Feature("float32", (4,), encoding="sparse"), [row, row])
    assert column.to_dense().tolist() == [[0, 5, 0, 7], [0, 5, 0, 7]]


def test_sparse_matrices_of_scipy_are_features_of_two_dimensions():
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    matrix = sparse.csr_array(np.array([[0, 5], [7, 0]], np.float32))
    column, _ = gather("x", Feature("float32", (2, 2), encoding="sparse"), [matrix])
    assert column.to_dense().tolist() == [[[0, 5], [7, 0]]]


@pytest.mark.parametrize("shape", [(2, 4), (1, 3), (1, 5)])
def test_sparse_rows_of_scipy_of_another_shape_are_refused(shape):
    sparse = pytest.importorskip("scipy.sparse", exc_type=ImportError)
    row = sparse.csr_array(np.eye(*shape, dtype=np.float32))
    with pytest.raises(SchemaError, match="record 1, feature 'x': expected "):
        gather("x", Feature("float32", (4,), encoding="sparse"), [([], []), row])


@pytest.mark.parametrize(
    ("feature", "value"),
    [
        (Feature("float64", (2,)), [1.0]),
        (Feature("float64", (2,)), [[1.0], [2.0, 3.0]]),
        (Feature("float64"), [1.0]),
        (Feature("int64", (None, None)), 3),
        (Feature("int64", (None, None)), [1]),
        (Feature("int64", (None,), sequence=True), "ab"),
        (Feature("str", (None, None)), [[b"bytes"]]),
        (Feature("bytes", (None, None)), [["text"]]),
        (Feature("str", (None, None)), [[3]]),
        (Feature("str", (None,), sequence=True), ["\ud800"]),
        (Feature("str", (None, None, 2)), [[["a"]]]),
        (Feature("float32", (4,), encoding="sparse"), ([1, 2], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), [0, 1, 0, 0]),
        (Feature("float32", (4,), encoding="sparse"), ([1.5], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), ([2**70], [1.0])),
        (Feature("float32", (4,), encoding="sparse"), (["a"], [1.0])),
    ],
    ids=repr,
)
def test_a_value_that_does_not_fit_is_named_with_its_record(feature, value):
    sound = None
    with pytest.raises(SchemaError, match="^record 2, feature 'x': "):
        gather("x", feature, [sound, sound, value, sound])


@pytest.mark.parametrize(
    "values",
    [
        [1j, 2 + 1j],
        [np.float16(1), np.float16(2)],
        [np.zeros((2, 3)), np.ones((2, 3))],
        [np.datetime64(1, "s"), np.datetime64("NaT", "s")],
        [dt.datetime(2020, 1, 1), dt.datetime(2021, 1, 1)],
    ],
    ids=str,
)
def test_values_that_are_alike_make_one_array(values):
    stacked = stack_values(values)
    assert isinstance(stacked, np.ndarray)
    assert stacked.tobytes() == np.array(values, stacked.dtype).tobytes()
    masked = stack_values([None, *values])
    assert isinstance(masked, Masked)
    assert masked.present.tolist() == [False, True, True]
    assert masked.values[1:].tobytes() == stacked.tobytes()


@pytest.mark.parametrize(
    "values",
    [
        [],
        [None],
        [1, 2],
        [np.int8(1), np.int16(1)],
        [np.zeros(2), np.zeros(3)],
        [np.zeros(2), np.zeros(2, np.float32)],
        [np.array(["a"]), np.array(["b"])],
        [np.datetime64(1, "s"), np.datetime64(1, "ms")],
        ["a", "b"],
    ],
    ids=str,
)
def test_other_values_do_not(values):
    assert stack_values(values) is None
