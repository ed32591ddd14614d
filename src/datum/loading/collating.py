"""Values of many records into the columns of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Ragged, Sparse
from datum.loading.finishing import as_objects

__all__ = ["Stack", "collate", "empty_like", "join_strings"]

Describe = Callable[[int], str]
Stack = Callable[[Sequence[Any]], Any]


def collate(
    values: Sequence[Any],
    *,
    describe: Describe = "record {}".format,
    stack: Stack = lambda _: None,
) -> Any:
    """One column of the values of all records, or of nested dicts and tuples one for each part.

    Numbers and arrays are stacked where their shapes agree. Where only the first dimension differs
    they make a `Ragged`, otherwise a list. Texts and byte strings make an object array, `Sparse`
    and `Ragged` one of their kind. All else becomes a list. Lists count as arrays.

    Args:
        values: of at least one record.
        describe: names a record by its row, for messages.
        stack: one tensor of a framework, of values that are all its tensors of one shape; None
            for any others.

    >>> collate([{"x": 1, "y": [1]}, {"x": 2, "y": [1, 2]}])
    {'x': array([1, 2]), 'y': Ragged(int64, shape=(2, None))}
    """
    return _collate(values, describe, stack, "")


def _collate(values: Sequence[Any], describe: Describe, stack: Stack, at: str) -> Any:
    first = values[0]
    if isinstance(first, dict):
        return _collate_dicts(values, describe, stack, at)
    if isinstance(first, tuple):
        return _collate_tuples(values, describe, stack, at)
    stacked = stack(values)
    if stacked is not None:
        return stacked
    for kind, join in _JOINED.items():
        if isinstance(first, kind):
            return join(values) if _all_are(values, kind) else list(values)
    arrays = _as_arrays(values)
    return list(values) if arrays is None else _join_arrays(arrays)


def _all_are(values: Sequence[Any], kind: Any) -> bool:
    return all(isinstance(value, kind) for value in values)


def _collate_dicts(
    values: Sequence[Any], describe: Describe, stack: Stack, at: str
) -> dict[Any, Any]:
    keys = values[0].keys()
    for row, value in enumerate(values):
        if not isinstance(value, dict):
            raise _differs(describe, at, "a dict", row, type(value).__name__)
        if value.keys() != keys:
            odd = sorted(map(str, value.keys() ^ keys))
            got = ", ".join(f"{name!r} {'too' if name in value else 'missing'}" for name in odd)
            raise _differs(describe, at, "the same keys", row, got)
    return {
        key: _collate([value[key] for value in values], describe, stack, f"{at}[{key!r}]")
        for key in keys
    }


def _collate_tuples(
    values: Sequence[Any], describe: Describe, stack: Stack, at: str
) -> tuple[Any, ...]:
    first = values[0]
    for row, value in enumerate(values):
        if not isinstance(value, tuple):
            raise _differs(describe, at, "a tuple", row, type(value).__name__)
        if len(value) != len(first):
            raise _differs(describe, at, f"{len(first)} parts", row, str(len(value)))
    parts = [
        _collate([value[part] for value in values], describe, stack, f"{at}[{part}]")
        for part in range(len(first))
    ]
    return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)


def _differs(describe: Describe, at: str, expected: str, row: int, got: str) -> ValueError:
    where = f", in {at}" if at else ""
    return ValueError(
        f"{describe(row)}: expected {expected} from `map` as for {describe(0)}{where}, got {got}"
    )


def _join_ragged(values: Sequence[Any]) -> Any:
    depths = {_depth(value) for value in values}
    if len(depths) > 1:
        return list(values)
    return _join_levels(values)


def _depth(value: Any) -> tuple[int, Any]:
    levels = 0
    while isinstance(value, Ragged):
        levels, value = levels + 1, value.values
    return levels, value.is_text if isinstance(value, BytesColumn) else value.shape[1:]


def _join_levels(parts: Sequence[Any]) -> Any:
    """One more level over parts that are alike: `Ragged`, byte strings or arrays."""
    lengths = [len(part) for part in parts]
    inner: Any
    if isinstance(parts[0], Ragged):
        inner = Ragged(
            _join_levels([part.values for part in parts]).values,
            _splits(np.concatenate([part.row_lengths for part in parts])),
        )
    elif isinstance(parts[0], BytesColumn):
        return join_strings(parts, is_text=parts[0].is_text)
    else:
        inner = np.concatenate(parts)
    return Ragged(inner, _splits(lengths))


def _splits(lengths: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _join_sparse(values: Sequence[Sparse]) -> Any:
    if len({value.dense_shape for value in values}) > 1:
        return list(values)
    counts = [len(value.values) for value in values]
    rows = np.repeat(np.arange(len(values)), counts)
    places = np.concatenate([value.indices for value in values])
    items: Any = [value.values for value in values]
    joined = _join_levels(items).values
    indices = np.concatenate([rows[:, None], places], axis=1)
    return Sparse(indices, joined, (len(values), *values[0].dense_shape))


_JOINED: dict[type, Callable[[Any], Any]] = {
    str: as_objects,
    bytes: as_objects,
    Ragged: _join_ragged,
    Sparse: _join_sparse,
}


def _as_arrays(values: Sequence[Any]) -> list[NDArray[Any]] | None:
    """Each value as an array of numbers or strings; None if one is no such thing."""
    arrays: list[Any] = []
    for value in values:
        if isinstance(value, list) and not value:
            arrays.append(None)
            continue
        try:
            array = value.to_numpy() if isinstance(value, BytesColumn) else np.asarray(value)
        except Exception:  # rows of differing length, tensors of a device, whatever else
            return None
        if array.dtype.kind in "SU":
            array = np.array(value, object)
        if array.dtype == object and not _holds_strings(array):
            return None
        arrays.append(array)
    # An empty list tells no type: it is one of what the others are.
    other: Any = next((array for array in arrays if array is not None and array.ndim), np.empty(0))
    return [other[:0] if array is None else array for array in arrays]


def _holds_strings(array: NDArray[Any]) -> bool:
    return array.ndim > 0 and all(isinstance(item, (str, bytes)) for item in array.flat)


def _join_arrays(arrays: list[NDArray[Any]]) -> Any:
    first = arrays[0]
    if any((array.dtype == object) != (first.dtype == object) for array in arrays):
        return arrays
    if all(array.shape == first.shape for array in arrays):
        return np.stack(arrays)
    if all(array.ndim and array.shape[1:] == first.shape[1:] for array in arrays):
        return _join_rows(arrays)
    return arrays


def _join_rows(arrays: list[NDArray[Any]]) -> Any:
    values = np.concatenate(arrays)
    if values.dtype != object:
        return Ragged(values, _splits([len(array) for array in arrays]))
    kinds = {type(item) for item in values.flat}
    if values.ndim > 1 or len(kinds) > 1:
        return arrays
    return join_strings(arrays, is_text=kinds == {str})


def join_strings(rows: Sequence[Any], *, is_text: bool) -> Ragged:
    """The strings of each record, in rows of any length.

    >>> join_strings([["a", "b"], []], is_text=True).to_list()
    [['a', 'b'], []]
    """
    joined = BytesColumn.from_values(item for row in rows for item in row)
    values = BytesColumn(joined.buffer, joined.slices, is_text=is_text)
    return Ragged(values, _splits([len(row) for row in rows]))


def empty_like(batch: Any) -> Any:
    """A batch of no records with the columns of another."""
    if isinstance(batch, dict):
        return {name: empty_like(column) for name, column in batch.items()}
    if isinstance(batch, tuple):
        parts = [empty_like(column) for column in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return [] if isinstance(batch, list) else batch[:0]
