"""`Ragged` and `Sparse` within functions of JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from datum.columns import Ragged, Sparse
from datum.frameworks.jax import to_bcoo, to_padded

RAGGED = Ragged(np.arange(6, dtype=np.float32), np.array([0, 2, 2, 6]))
SPARSE = Sparse(np.array([[0, 1], [2, 0]]), np.array([5, 7], np.int32), (3, 2))


def test_ragged_goes_into_and_out_of_jit():
    doubled = jax.jit(lambda ragged: jax.tree.map(lambda part: part * 2, ragged))(RAGGED)
    assert isinstance(doubled, Ragged)
    assert doubled.values.tolist() == [0, 2, 4, 6, 8, 10]
    assert doubled.row_splits.tolist() == [0, 4, 4, 12]


def test_nested_ragged_goes_through_jit():
    nested = Ragged(RAGGED, np.array([0, 1, 3]))
    total = jax.jit(lambda ragged: ragged.values.values.sum())(nested)
    assert total == 15


def test_sparse_goes_into_jit_and_its_shape_is_known_there():
    @jax.jit
    def densify(sparse):
        return jnp.zeros(sparse.dense_shape).at[tuple(sparse.indices.T)].set(sparse.values)

    assert densify(SPARSE).tolist() == SPARSE.to_dense().tolist()


def test_another_shape_of_sparse_is_another_program():
    traced = []
    function = jax.jit(lambda sparse: traced.append(sparse.dense_shape) or sparse.values.sum())
    function(SPARSE)
    function(Sparse(SPARSE.indices, SPARSE.values, (4, 2)))
    assert traced == [(3, 2), (4, 2)]


def test_messages_of_jax_name_the_parts():
    paths = [
        jax.tree_util.keystr(path)
        for path, _ in jax.tree_util.tree_leaves_with_path({"r": RAGGED, "s": SPARSE})
    ]
    assert paths == ["['r'].values", "['r'].row_splits", "['s'].indices", "['s'].values"]


def test_gradients_flow_through_the_values_of_ragged():
    gradient = jax.grad(lambda w: (to_padded(RAGGED, length=4) * w).sum())(1.0)
    assert gradient == 15


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4, 7])
def test_padding_within_jit_gives_what_ragged_itself_does(length):
    padded = jax.jit(to_padded, static_argnames="length")(RAGGED, length=length, fill=-1)
    assert padded.dtype == np.float32
    assert padded.tolist() == RAGGED.to_padded(length=length, fill=-1).tolist()


def test_rows_of_vectors_are_padded():
    ragged = Ragged(np.arange(12).reshape(6, 2), np.array([0, 2, 2, 6]))
    assert to_padded(ragged, length=3).tolist() == ragged.to_padded(length=3).tolist()


def test_no_rows_and_no_values_are_padded():
    ragged = Ragged(np.empty(0, np.float32), np.array([0, 0, 0]))
    assert to_padded(ragged, length=2, fill=9).tolist() == [[9, 9], [9, 9]]


def test_sparse_becomes_a_matrix_to_multiply_with():
    product = jax.jit(lambda sparse, x: to_bcoo(sparse) @ x)(SPARSE, jnp.array([10, 100]))
    assert product.tolist() == (SPARSE.to_dense() @ np.array([10, 100])).tolist()
