"""Arrays of a batch onto the devices of JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.columns import BytesColumn, Ragged, Sparse
from datum.errors import SchemaError

__all__ = ["Placer"]

jax: Any = require("jax", purpose="`to_jax`")

_NO_NUMBERS = "OSU"  # kinds of dtypes that JAX has nothing for
_TIMES = "Mm"


class Placer:
    """Makes of a batch of NumPy arrays one of `jax.Array`, all in one go.

    Texts and byte strings stay as they are. Where JAX is set to 32 bits, integers must fit into
    these; floats are rounded. Memory that suits JAX is used as it is, without a copy.

    Args:
        sharding: of all arrays with a row for each record, or by name of some of them. Where there
            are several processes, each gives its part of one array of all. What has no such rows,
            `Ragged`, `Sparse` and lists, stays with its process, on its first device.
    """

    def __init__(self, sharding: Any = None) -> None:
        self._sharding = sharding

    def __call__(self, batch: Any) -> Any:
        """The batch, a dict or what `batch_map` made of it, with its arrays on devices."""
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
                f"column {_name_of(path)}: expected an array, one row for each record, to place"
                f" with `sharding`, got a {type(column).__name__}\nhint: `pad` makes one"
            )
        return sharding


def _is_text(value: Any) -> bool:
    """Whether it is variable in length, and holds strings: it stays as it is."""
    while isinstance(value, (Ragged, Sparse)):
        value = value.values
        if isinstance(value, BytesColumn):
            return True
    return False


def _is_loose(value: Any) -> bool:
    """Whether it is no array with a row for each record."""
    return isinstance(value, (Ragged, Sparse, list))


def _is_number(value: Any) -> bool:
    # Single records have scalars.
    is_number = isinstance(value, (np.ndarray, np.generic))
    return is_number and value.dtype.kind not in _NO_NUMBERS


def _prepare(array: NDArray[Any], path: Any) -> NDArray[Any]:
    """What JAX takes: times as counts, the byte order of the machine, and nothing to be cut off."""
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
        f"column {name}: expected numbers from {bounds.min} to {bounds.max}, as JAX is set to 32"
        f" bits, got {got}\n"
        'hint: jax.config.update("jax_enable_x64", True); or leave it out with `columns`, or'
        " change it with `batch_map`",
        feature=name,
    )


def _name_of(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/") or "of the batch"


def _place(arrays: list[NDArray[Any]], targets: list[tuple[Any, Any]]) -> list[Any]:
    """All arrays on their devices; those of one process in one call, which costs half as much."""
    if all(sharding is None for _, sharding in targets):
        return list(jax.device_put(arrays))
    placed: list[Any] = list(arrays)
    here = []
    for i, (_, sharding) in enumerate(targets):
        if sharding is None:
            placed[i] = jax.device_put(arrays[i])
        elif sharding.is_fully_addressable:
            here.append(i)
        else:  # its devices belong to several processes, each of which has a part of the rows
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
    """Name the column that cannot be cut as asked; JAX tells only its shape."""
    try:
        jax.device_put(array, sharding)
    except ValueError as error:
        raise ValueError(
            f"column {_name_of(path)}: expected a shape that `sharding` can cut, got"
            f" {array.shape} for {sharding}\n"
            "hint: a `batch_size` that the devices divide, or a `sharding` for each column"
        ) from error
