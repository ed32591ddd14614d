"""`Ragged` and `Sparse` for JAX: pytrees of their arrays, and functions for use within `jit`."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.columns import Ragged, Sparse

__all__ = ["to_bcoo", "to_padded"]

jax: Any = require("jax", purpose="`to_jax`")
_sparse: Any = require("jax.experimental.sparse", purpose="`to_jax`")
_VALUES, _SPLITS, _INDICES = map(
    jax.tree_util.GetAttrKey, ("values", "row_splits", "indices")
)  # how messages of JAX name the parts


def _flatten_ragged(ragged: Ragged) -> tuple[Any, None]:
    return ((_VALUES, ragged.values), (_SPLITS, ragged.row_splits)), None


def _unflatten_ragged(_: None, parts: Any) -> Ragged:
    # Not through __init__: within `jit` the parts are tracers, which no check can look into.
    made = object.__new__(Ragged)
    made.values, made.row_splits = parts
    return made


def _flatten_sparse(sparse: Sparse) -> tuple[Any, tuple[int, ...]]:
    return ((_INDICES, sparse.indices), (_VALUES, sparse.values)), sparse.dense_shape


def _unflatten_sparse(dense_shape: tuple[int, ...], parts: Any) -> Sparse:
    made = object.__new__(Sparse)
    made.indices, made.values = parts
    made.dense_shape = dense_shape
    return made


jax.tree_util.register_pytree_with_keys(Ragged, _flatten_ragged, _unflatten_ragged)
jax.tree_util.register_pytree_with_keys(Sparse, _flatten_sparse, _unflatten_sparse)


def to_bcoo(sparse: Sparse) -> Any:
    """Make a `jax.experimental.sparse.BCOO` of the same arrays.

    >>> import numpy as np
    >>> sparse = Sparse(np.array([[0, 1], [1, 2]]), np.array([5, 7], np.int32), (2, 3))
    >>> to_bcoo(sparse).todense()
    Array([[0, 5, 0],
           [0, 0, 7]], dtype=int32)
    """
    return _sparse.BCOO((sparse.values, sparse.indices), shape=sparse.dense_shape)


def to_padded(ragged: Ragged, *, length: int, fill: Any = 0) -> Any:
    """Make a dense array, rows of numbers filled up or cut to `length`; also within `jit`.

    A function that is given a `Ragged` is compiled anew for each number of values, whatever it
    does with it. To compile it once, have the loader pad: `to_jax(pad=length)`. Of nested rows the
    inner ones have to be padded first.

    >>> import numpy as np
    >>> rows = Ragged(np.array([1, 2, 3], np.int32), np.array([0, 2, 2, 3]))
    >>> to_padded(rows, length=2, fill=-1)
    Array([[ 1,  2],
           [-1, -1],
           [ 3, -1]], dtype=int32)
    """
    jnp = jax.numpy
    values, splits = jnp.asarray(ragged.values), jnp.asarray(ragged.row_splits)
    if not len(values):
        return jnp.full((len(splits) - 1, length, *values.shape[1:]), fill, values.dtype)
    places = splits[:-1, None] + jnp.arange(length)
    is_there = places < splits[1:, None]
    is_there = is_there.reshape(is_there.shape + (1,) * (values.ndim - 1))
    found = values.at[places].get(mode="fill", fill_value=0)
    return jnp.where(is_there, found, jnp.asarray(fill, values.dtype))
