"""Columns of a batch, made of parsed columns or of the values of single records."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._load.functions import like_tuple
from datum._load.options import present_name
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import SchemaError
from datum.schema import Feature, Schema, numpy_dtype

__all__ = [
    "Finisher",
    "Stack",
    "as_objects",
    "cast_column",
    "collate",
    "empty_like",
    "join_strings",
    "stack_or_list",
]

Step = tuple[str, Callable[[Any], Any] | None, str | None]


class Finisher:
    """Makes the columns of a batch from parsed columns.

    Arrays, `Ragged` and `Sparse` stay as they are. Strings become object arrays. An optional
    feature has two columns: its values, and a mask of the records that have one. Tensors whose
    shapes may differ stay in an object array until `settle`, so that rows can be selected before.

    Args:
        schema: Schema of the columns.
        encoded: Features that are decoded as images later, and left out here.
        casts: Type that each feature is cast to, for those that are cast.

    Attributes:
        names: Names of all columns of a batch, in order.
        casts: Type that each feature is cast to.
        loose: Features whose rows may differ in shape, with the value of an absent row.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        encoded: Mapping[str, Feature],
        casts: Mapping[str, str] | None = None,
    ) -> None:
        self.casts = casts or {}
        self._steps: list[Step] = []
        self._encoded = [(name, present_name(name, schema[name])) for name in encoded]
        self.loose: dict[str, NDArray[Any]] = {}
        self._lists = {name for name, one in encoded.items() if one.holds_images}
        self.names: list[str] = []
        for name, feature in schema.items():
            present = present_name(name, feature)
            if present is not None and present in schema:
                raise SchemaError(
                    f"expected no feature {present!r} beside the optional {name!r}, since a column"
                    " of that name marks the records that have it",
                    hint="exclude one of them with `columns`",
                    feature=present,
                )
            self.names += [name] if present is None else [name, present]
            if name in encoded or _is_shaped(feature):
                found = encoded.get(name, feature)
                zero = self.cast(name, np.zeros((), numpy_dtype(found.dtype)))
                # A single zero of any shape, which is copied only if it is needed.
                self.loose[name] = np.broadcast_to(zero, [n or 0 for n in found.shape])
            if name not in encoded:
                make = functools.partial(self.cast, name) if name in self.casts else None
                self._steps.append((name, make or _maker_of(feature), present))

    def cast(self, name: str, column: Any) -> Any:
        """The column of a feature in the type that it is cast to."""
        return cast_column(column, self.casts[name]) if name in self.casts else column

    def finish(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The columns of a batch, except for images that are still encoded."""
        batch: dict[str, Any] = {}
        for name, make, present in self._steps:
            column = columns[name]
            if present is not None:
                column, batch[present] = _unmask(column)
            batch[name] = column if make is None else make(column)
        for name, present in self._encoded:
            if present is not None:
                batch[present] = _unmask(columns[name])[1]
        return batch

    def settle(self, batch: dict[str, Any]) -> dict[str, Any]:
        """All columns in order; those of loose rows become one array or a list."""
        return {
            name: self.settle_rows(name, batch[name]) if name in self.loose else batch[name]
            for name in self.names
        }

    def settle_rows(self, name: str, rows: Any) -> Any:
        """A column of loose rows as one array, a `Ragged` or a list."""
        if name in self._lists:
            return _join_lists(rows, self.loose[name])
        return stack_or_list(rows, self.loose[name])


def cast_column(column: Any, dtype: str) -> Any:
    """Cast the elements of a column, or of an object array of rows, to another type.

    >>> cast_column(np.array([1, 2]), "float32")
    array([1., 2.], dtype=float32)
    """
    if isinstance(column, Ragged):
        return Ragged(cast_column(column.values, dtype), column.row_splits)
    if isinstance(column, Sparse):
        return Sparse(column.indices, cast_column(column.values, dtype), column.dense_shape)
    if column.dtype == object:
        return as_objects([None if row is None else cast_column(row, dtype) for row in column])
    with np.errstate(over="ignore"):  # to infinity, as in every framework
        return column.astype(numpy_dtype(dtype), copy=False)


def _maker_of(feature: Feature) -> Callable[[Any], Any] | None:
    is_text = feature.is_string and not feature.ragged_rank and feature.encoding != "sparse"
    is_image = feature.encoding == "image" and not (feature.holds_images and feature.ragged_rank)
    return BytesColumn.to_numpy if is_text or is_image else None


def _is_shaped(feature: Feature) -> bool:
    """Whether each row is stored with its own shape."""
    return feature.encoding == "raw" and None in feature.shape[1:]


def _unmask(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    if isinstance(column, Masked):
        return column.values, column.present
    return column, np.ones(len(column), np.bool_)


def as_objects(values: Sequence[Any]) -> NDArray[np.object_]:
    """An object array of these values; NumPy itself would unpack arrays."""
    array = np.empty(len(values), object)
    for at, value in enumerate(values):
        array[at] = value
    return array


def _join_lists(rows: Any, blank: NDArray[Any]) -> Any:
    """Join the images of records, an array or a list each, to a `Ragged` if all have one size.

    Lists of a fixed length, which `blank` has too, become one array. Images of several sizes stay
    in a list.
    """
    if rows.dtype != object:
        return rows
    if len(blank):
        are_arrays = all(row is None or isinstance(row, np.ndarray) for row in rows)
        return stack_or_list(rows, blank) if are_arrays else list(rows)
    found = [blank if row is None else row for row in rows]
    full = [row for row in found if len(row)]
    are_alike = all(
        isinstance(row, np.ndarray) and row.shape[1:] == full[0].shape[1:] for row in full
    )
    if not are_alike:
        return found
    lengths = [len(row) for row in found]
    return Ragged(np.concatenate(full or [blank]), np.cumsum([0, *lengths]))


def stack_or_list(rows: Any, blank: NDArray[Any]) -> Any:
    """One array if all rows have the same shape, otherwise a list of arrays.

    Rows that are None become zeros of the common shape, or else `blank`. An array that is not an
    object array stays as it is.

    >>> rows = as_objects([np.ones(2), None])
    >>> stack_or_list(rows, np.zeros(0))
    array([[1., 1.],
           [0., 0.]])
    """
    if rows.dtype != object:
        return rows
    there = [row for row in rows if row is not None]
    is_alike = all(row.shape == there[0].shape for row in there)
    if there and is_alike:
        blank = np.zeros_like(there[0])
    found = [blank.copy() if row is None else row for row in rows]
    if not found:
        return np.zeros((0, *blank.shape), blank.dtype)
    return np.stack(found) if is_alike else found


Describe = Callable[[int], str]
Stack = Callable[[Sequence[Any]], Any]


def collate(
    values: Sequence[Any],
    *,
    describe: Describe = "record {}".format,
    stack: Stack = lambda _: None,
) -> Any:
    """Collate the values of all records to one column, or to dicts and tuples of columns.

    Numbers and arrays are stacked if their shapes agree. If only the first dimension differs they
    become a `Ragged`, otherwise a list. Texts and byte strings become an object array, `Sparse` and
    `Ragged` one of their kind. Everything else becomes a list. Lists count as arrays.

    Args:
        values: Values of at least one record.
        describe: Describes the record of a row, for messages.
        stack: Makes one tensor of values that are tensors of one shape; returns None for others.

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
            got = ", ".join(f"{name!r} {'extra' if name in value else 'missing'}" for name in odd)
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
    return like_tuple(first, parts)


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
    """A `Ragged` with one more level, of parts of one kind: `Ragged`, byte strings or arrays."""
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
    """Each value as an array of numbers or strings; None if a value cannot become one."""
    arrays: list[Any] = []
    for value in values:
        if isinstance(value, list) and not value:
            arrays.append(None)
            continue
        try:
            array = value.to_numpy() if isinstance(value, BytesColumn) else np.asarray(value)
        except Exception:  # rows of several lengths, tensors on a device, and so on
            return None
        if array.dtype.kind in "SU":
            array = np.array(value, object)
        if array.dtype == object and not _holds_strings(array):
            return None
        arrays.append(array)
    # An empty list has no type of its own: it takes that of the others.
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
    """Join the strings of all records to a `Ragged`.

    >>> join_strings([["a", "b"], []], is_text=True).to_list()
    [['a', 'b'], []]
    """
    joined = BytesColumn.from_values(item for row in rows for item in row)
    values = BytesColumn(joined.buffer, joined.slices, is_text=is_text)
    return Ragged(values, _splits([len(row) for row in rows]))


def empty_like(batch: Any) -> Any:
    """A batch without records that has the columns of another one."""
    if isinstance(batch, dict):
        return {name: empty_like(column) for name, column in batch.items()}
    if isinstance(batch, tuple):
        return like_tuple(batch, [empty_like(column) for column in batch])
    return [] if isinstance(batch, list) else batch[:0]
