import sys

import numpy as np
import pytest
import torch

from datum import BytesColumn, MissingDependencyError, Sparse

INDICES = np.array([[0, 1], [1, 2]])


def test_the_dense_array_has_the_values_at_their_indices():
    sparse = Sparse(INDICES, np.array([5, 7], np.int8), (2, 3))
    assert len(sparse) == 2
    assert sparse.to_dense().dtype == np.int8
    assert sparse.to_dense().tolist() == [[0, 5, 0], [0, 0, 7]]


def test_more_dimensions():
    dense = Sparse(np.array([[1, 0, 2]]), np.array([3.0]), (2, 2, 3)).to_dense()
    assert dense.shape == (2, 2, 3)
    assert dense[1, 0, 2] == 3
    assert dense.sum() == 3


def test_no_values_at_all():
    sparse = Sparse(np.empty((0, 2), np.int64), np.empty(0, np.float32), (2, 3))
    assert sparse.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_where_an_index_occurs_twice_the_last_value_stands():
    sparse = Sparse(np.array([[0], [0]]), np.array([1, 2]), (1,))
    assert sparse.to_dense().tolist() == [2]


@pytest.mark.parametrize(("words", "blank"), [(["a", "b"], ""), ([b"a", b"b"], b"")])
def test_strings_are_filled_up_with_empty_ones(words, blank):
    dense = Sparse(INDICES, BytesColumn.from_values(words), (2, 3)).to_dense()
    assert dense.tolist() == [[blank, words[0], blank], [blank, blank, words[1]]]


@pytest.mark.parametrize("indices", [[[0, 1]], [[0], [1]], [0, 1], [[0, 1, 2], [0, 1, 2]]])
def test_indices_must_have_a_row_for_each_value_and_a_column_for_each_dimension(indices):
    with pytest.raises(ValueError, match=r"expected `indices` of shape \(2, 2\), one row for each"):
        Sparse(np.array(indices), np.array([5.0, 7.0]), (2, 3))


def test_to_scipy_makes_the_same_matrix():
    pytest.importorskip("scipy.sparse", exc_type=ImportError)
    sparse = Sparse(INDICES, np.array([5.0, 7.0]), (2, 3))
    matrix = sparse.to_scipy()
    assert matrix.shape == (2, 3)
    assert matrix.format == "csr"
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    assert matrix.toarray().tolist() == sparse.to_dense().tolist()


def test_to_scipy_sums_what_occurs_twice():
    pytest.importorskip("scipy.sparse", exc_type=ImportError)
    sparse = Sparse(np.array([[0, 1], [0, 1]]), np.array([1, 2]), (1, 2))
    assert sparse.to_scipy().toarray().tolist() == [[0, 3]]


def test_to_scipy_needs_numbers_in_two_dimensions():
    row = Sparse(np.array([[0]]), np.array([1]), (1,))
    words = Sparse(INDICES, BytesColumn.from_values(["a", "b"]), (2, 3))
    for sparse in (row, words):
        with pytest.raises(ValueError, match="expected numbers in two dimensions, got Sparse"):
            sparse.to_scipy()


def test_to_scipy_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(MissingDependencyError, match=r"Sparse.to_scipy needs the package `scipy`"):
        Sparse(INDICES, np.array([5.0, 7.0]), (2, 3)).to_scipy()


def test_repr_shows_shape_and_number_of_values():
    assert repr(Sparse(INDICES, np.array([5.0, 7.0]), (2, 3))) == "Sparse(shape=(2, 3), values=2)"


def test_rows_can_be_taken_in_any_order():
    dense = np.array([[0, 1, 0], [2, 0, 3], [0, 0, 0], [4, 5, 6]])
    indices = np.argwhere(dense)[::-1]  # of any order themselves
    sparse = Sparse(indices, dense[tuple(indices.T)], dense.shape)
    for at in (np.array([3, 1, 1, 2]), slice(1, 3), slice(None), np.array([True, False] * 2)):
        assert sparse[at].to_dense().tolist() == dense[at].tolist()
    assert len(sparse[np.array([], np.int64)]) == 0


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_numbers_make_a_sparse_tensor(dtype):
    sparse = Sparse(INDICES, np.array([1, 1]).astype(dtype), (2, 3))
    tensor = sparse.to_torch()
    assert tensor.layout == torch.sparse_coo
    assert tensor.shape == (2, 3)
    assert tensor.to_dense().tolist() == sparse.to_dense().tolist()


def test_no_values_make_an_empty_sparse_tensor():
    tensor = Sparse(np.zeros((0, 2)), np.zeros(0, np.float32), (2, 3)).to_torch()
    assert tensor.to_dense().tolist() == [[0, 0, 0], [0, 0, 0]]


def test_an_index_outside_makes_no_tensor():
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        Sparse(np.array([[0, 3]]), np.array([1.0]), (2, 3)).to_torch()


def test_strings_make_no_tensor():
    strings = Sparse(np.array([[0]]), BytesColumn.from_values(["a"]), (2,))
    with pytest.raises(ValueError, match="expected numbers, got strings"):
        strings.to_torch()
