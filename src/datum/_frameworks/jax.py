"""Loader of `jax.Array` batches, and `Ragged` and `Sparse` as pytrees that pass through `jit`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._load.loader import Loader
from datum._load.options import MASK, LoadOptions, present_name
from datum._load.padding import mask_owners
from datum._load.stream import Ordered, Place
from datum._optional import require
from datum._options import check_known
from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import Message, SchemaError
from datum.schema import Schema

__all__ = ["JaxLoader", "Placer", "make_loader", "to_bcoo", "to_padded"]

jax: Any = require("jax", purpose="`to_jax`")
_sparse: Any = require("jax.experimental.sparse", purpose="`to_jax`")

_NO_NUMBERS = "OSU"  # kinds of dtypes that JAX lacks
_TIMES = "Mm"


def make_loader(ordered: Ordered, options: LoadOptions, *, sharding: Any = None) -> JaxLoader:
    """Make the loader that `to_jax` returns: batches as dicts of `jax.Array`.

    Args:
        ordered: The records and their order.
        options: The options of `to_jax`.
        sharding: A `jax.sharding.Sharding` or a device for all arrays with a row for each record,
            or a dict of them by the names of columns.
    """
    return JaxLoader(ordered, options, sharding=sharding)


def find_host() -> tuple[int, int]:
    """The index of this process of JAX, and the number of processes."""
    return jax.process_index(), jax.process_count()


class JaxLoader(Loader):
    """Batches of records, made ahead by threads: dicts of `jax.Array`."""

    def __init__(self, ordered: Ordered, options: LoadOptions, *, sharding: Any = None) -> None:
        sharding = _as_shardings(sharding)
        super().__init__(ordered, options, convert=Placer(sharding), find_host=find_host)
        if isinstance(sharding, Mapping) and options.map is None and options.batch_map is None:
            check_known("sharding", sharding, _columns_of(self.schema, options))
        self.sharding = sharding

    def with_records(self, ordered: Ordered) -> JaxLoader:
        """Make a loader of other records with the same options."""
        return JaxLoader(ordered, self.options, sharding=self.sharding)

    def __iter__(self) -> Iterator[Any]:
        self._refuse_short_batches()
        return super().__iter__()

    def _refuse_short_batches(self) -> None:
        """Raise ValueError at the start if the last batch of an epoch cannot be sharded."""
        shardings = self.sharding if isinstance(self.sharding, Mapping) else {"": self.sharding}
        is_cut = any(one is not None and not one.is_fully_replicated for one in shardings.values())
        stream = self._stream()
        size, short = stream.global_batch, sum(stream.last_batches(Place()))
        if is_cut and short < size:
            raise ValueError(
                Message(
                    f"expected full batches of {size} records on all hosts, to divide by"
                    f" `sharding`, got {short} records at the end of an epoch",
                    hint="remainder='pad', 'wrap' or 'drop'",
                )
            )


def _columns_of(schema: Schema, options: LoadOptions) -> list[str]:
    beside = [present_name(name, feature) for name, feature in schema.items()]
    masks = mask_owners(options.pad, schema)
    return [*schema, *(name for name in beside if name is not None), *masks, MASK]


def _as_shardings(sharding: Any) -> Any:
    if sharding is None:
        return None
    if isinstance(sharding, Mapping):
        return {name: _as_sharding(one) for name, one in sharding.items()}
    return _as_sharding(sharding)


def _as_sharding(sharding: Any) -> Any:
    if isinstance(sharding, jax.sharding.Sharding):
        return sharding
    if isinstance(sharding, jax.Device):
        return jax.sharding.SingleDeviceSharding(sharding)
    raise TypeError(
        "expected `sharding` to be a jax.sharding.Sharding, a device, or a dict of them by name,"
        f" got {sharding!r}"
    )


# Arrays on devices.


class Placer:
    """Converts a batch of NumPy arrays to `jax.Array`, all at once.

    Text and bytes stay as they are. Where JAX is set to 32 bits, integers must fit into them, and
    floats are rounded. Memory that suits JAX is used without a copy.

    Args:
        sharding: Sharding of all arrays with a row for each record, or a dict of them by name. With
            several processes, each contributes its part of one global array. Columns without such
            rows, that is `Ragged`, `Sparse` and lists, stay on the first device of their process.
    """

    def __init__(self, sharding: Any = None) -> None:
        self._sharding = sharding

    def __call__(self, batch: Any) -> Any:
        """Return the batch, a dict or the result of `batch_map`, with its arrays on devices."""
        leaves, tree = jax.tree.flatten(batch, is_leaf=_is_text)
        columns = jax.tree_util.tree_flatten_with_path(batch, is_leaf=_is_loose)[0]
        targets = [
            (path, self._sharding_of(path, column))
            for path, column in columns
            for _ in jax.tree.leaves(column, is_leaf=_is_text)
        ]
        at = [i for i, leaf in enumerate(leaves) if _is_number(leaf)]
        arrays = [_prepare(np.asarray(leaves[i]), targets[i][0]) for i in at]
        placed = _place(arrays, [targets[i] for i in at])
        for i, array in zip(at, placed, strict=True):
            leaves[i] = array
        made = tree.unflatten(leaves)
        return {name: made[name] for name in batch} if type(batch) is dict else made

    def _sharding_of(self, path: Any, column: Any) -> Any:
        sharding = self._sharding
        if not isinstance(sharding, Mapping):
            return None if _is_loose(column) else sharding
        sharding = sharding.get(getattr(path[0], "key", None)) if path else None
        if sharding is not None and _is_loose(column):
            raise ValueError(
                Message(
                    f"column {_name_of(path)}: expected an array, one row for each record, to place"
                    f" with `sharding`, got a {type(column).__name__}",
                    hint="use `pad`, which makes an array",
                )
            )
        return sharding


def _is_text(value: Any) -> bool:
    """Whether a value holds strings of variable number, which stay as they are."""
    while isinstance(value, (Ragged, Sparse)):
        value = value.values
        if isinstance(value, BytesColumn):
            return True
    return False


def _is_loose(value: Any) -> bool:
    """Whether a value is not an array with a row for each record."""
    return isinstance(value, (Ragged, Sparse, list))


def _is_number(value: Any) -> bool:
    # Single records have scalars.
    is_number = isinstance(value, (np.ndarray, np.generic))
    return is_number and value.dtype.kind not in _NO_NUMBERS


def _prepare(array: NDArray[Any], path: Any) -> NDArray[Any]:
    """The array as JAX takes it: times as counts, native byte order, numbers within range."""
    if array.dtype.kind in _TIMES:
        array = array.view(np.int64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "iu" and array.dtype.itemsize == 8 and array.size:
        _check_range(array, path)
    return array


def _check_range(array: NDArray[Any], path: Any) -> None:
    kept = jax.dtypes.canonicalize_dtype(array.dtype)
    if kept == array.dtype:
        return
    least, most = array.min(), array.max()
    bounds = np.iinfo(kept)
    if bounds.min <= least and most <= bounds.max:
        return
    got = most if most > bounds.max else least
    name = _name_of(path)
    raise SchemaError(
        f"expected numbers from {bounds.min} to {bounds.max}, as JAX is set to 32 bits, got {got}",
        where=f"column {name}",
        hint='jax.config.update("jax_enable_x64", True); or exclude it with `columns`, or'
        " change it with `batch_map`",
        feature=name,
    )


def _name_of(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/") or "of the batch"


def _place(arrays: list[NDArray[Any]], targets: list[tuple[Any, Any]]) -> list[Any]:
    """Put all arrays on their devices; those of one process in one call, at half the cost."""
    if all(sharding is None for _, sharding in targets):
        return list(jax.device_put(arrays))
    placed: list[Any] = list(arrays)
    here = []
    for i, (_, sharding) in enumerate(targets):
        if sharding is None:
            placed[i] = jax.device_put(arrays[i])
        elif sharding.is_fully_addressable:
            here.append(i)
        else:  # the devices belong to several processes, and each has a part of the rows
            placed[i] = jax.make_array_from_process_local_data(sharding, arrays[i])
    chosen = [arrays[i] for i in here]
    try:
        put = jax.device_put(chosen, [targets[i][1] for i in here])
    except ValueError:
        for i in here:
            _refuse_misfit(arrays[i], *targets[i])
        raise
    for i, array in zip(here, put, strict=True):
        placed[i] = array
    return placed


def _refuse_misfit(array: NDArray[Any], path: Any, sharding: Any) -> None:
    """Raise ValueError that names the column which cannot be sharded; JAX names only its shape."""
    try:
        jax.device_put(array, sharding)
    except ValueError as error:
        raise ValueError(
            Message(
                f"column {_name_of(path)}: expected a shape that `sharding` can divide, got"
                f" {array.shape} for {sharding}",
                hint="choose a `batch_size` that the number of devices divides, or a `sharding`"
                " for each column",
            )
        ) from error


# `Ragged` and `Sparse` within `jit`.


_VALUES, _SPLITS, _INDICES = map(
    jax.tree_util.GetAttrKey, ("values", "row_splits", "indices")
)  # names of the parts in messages of JAX


def _flatten_ragged(ragged: Ragged) -> tuple[Any, None]:
    return ((_VALUES, ragged.values), (_SPLITS, ragged.row_splits)), None


def _unflatten_ragged(_: None, parts: Any) -> Ragged:
    # Not through __init__: within `jit` the parts are tracers, which cannot be checked.
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
    """Make a dense array, with rows padded or cut to `length`; also within `jit`.

    JAX compiles a function of a `Ragged` again for each number of values. To compile it once, let
    the loader pad: `to_jax(pad=length)`. Nested rows must be padded from the innermost out.

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
