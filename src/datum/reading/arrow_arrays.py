"""Columns as Arrow arrays of the types that hold them exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.schema import Feature

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["to_arrow", "type_of"]

_COARSE = {"D": 86_400, "h": 3_600, "m": 60}  # seconds in units that Arrow has not


def type_of(feature: Feature) -> pa.DataType:
    """The type of a feature's column."""
    import pyarrow as pa

    if feature.encoding == "image":
        feature = Feature("bytes", feature.shape[:-3])
    item = _item_type(feature.dtype)
    if feature.encoding == "sparse":
        place = pa.int64() if len(feature.shape) == 1 else pa.list_(pa.int64(), len(feature.shape))
        return pa.struct([("indices", pa.list_(place)), ("values", pa.list_(item))])
    for length in reversed(feature.shape):
        item = pa.list_(item) if length is None else pa.list_(item, length)
    return item


def _item_type(dtype: str) -> pa.DataType:
    import pyarrow as pa

    if dtype in ("str", "bytes"):
        return pa.string() if dtype == "str" else pa.binary()
    if dtype == "bfloat16":
        return pa.float32()
    if dtype.startswith("complex"):
        part = pa.float32() if dtype == "complex64" else pa.float64()
        return pa.struct([("real", part), ("imag", part)])
    if "64[" in dtype:
        unit = dtype[dtype.index("[") + 1 : -1]
        if dtype == "datetime64[D]":
            return pa.date32()
        unit = "s" if unit in _COARSE else unit
        return pa.timestamp(unit) if dtype.startswith("datetime") else pa.duration(unit)
    return pa.from_numpy_dtype(np.dtype(dtype))


def to_arrow(column: Any, feature: Feature) -> pa.Array:
    """A column, as `datum.format.parse` makes it, in Arrow's memory; what is absent is null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, Masked):
        values = to_arrow(column.values, feature)
        present = pa.array(column.present)
        return pc.if_else(present, values, pa.scalar(None, values.type))
    if isinstance(column, Sparse):
        return _sparse(column, feature)
    if isinstance(column, np.ndarray) and column.dtype == object:
        return _tensors(column, feature)
    return _nested(column, type_of(feature))


def _nested(column: Any, kind: Any) -> Any:
    """Lists around items, as the column has them."""
    import pyarrow as pa

    if isinstance(column, Ragged):
        items = _nested(column.values, kind.value_type)
        return pa.ListArray.from_arrays(pa.array(column.row_splits, pa.int32()), items, type=kind)
    if isinstance(column, BytesColumn):
        inner = _innermost(kind)
        flat = pa.array(column.to_numpy().reshape(-1).tolist(), inner)
        return _wrap(flat, column.shape, inner)
    array: NDArray[Any] = column
    flat = _items(np.ascontiguousarray(array).reshape(-1), _innermost(kind))
    return _wrap(flat, array.shape, _innermost(kind))


def _innermost(kind: Any) -> Any:
    import pyarrow as pa

    while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return kind


def _wrap(flat: Any, shape: Sequence[int], inner: Any) -> Any:
    """Lists of one size around items, for each dimension but the first."""
    import pyarrow as pa

    if math.prod(shape[1:]) == 0:  # no items: nothing tells how many lists there are
        kind = inner
        for length in reversed(shape[1:]):
            kind = pa.list_(kind, length)
        return pa.array(np.empty(shape, object).tolist(), kind)
    for length in reversed(shape[1:]):
        flat = pa.FixedSizeListArray.from_arrays(flat, length)
    return flat


def _items(flat: NDArray[Any], kind: Any) -> Any:
    import pyarrow as pa

    if flat.dtype.kind == "c":
        parts = [pa.array(np.ascontiguousarray(part)) for part in (flat.real, flat.imag)]
        return pa.StructArray.from_arrays(parts, ["real", "imag"])
    if flat.dtype.kind in "mM":
        return _times(flat, kind)
    if flat.dtype.name == "bfloat16":
        flat = flat.astype(np.float32)
    return pa.array(flat, kind)


def _times(flat: NDArray[Any], kind: Any) -> Any:
    """Counts of the unit; a moment that is none is null."""
    import pyarrow as pa

    unit = np.datetime_data(flat.dtype)[0]
    counts = flat.view(np.int64)
    if pa.types.is_date32(kind):
        return pa.array(counts, pa.int32(), mask=np.isnat(flat)).cast(kind)
    if unit in _COARSE:
        counts = np.where(np.isnat(flat), 0, counts) * _COARSE[unit]
    return pa.array(counts, pa.int64(), mask=np.isnat(flat)).cast(kind)


def _sparse(column: Sparse, feature: Feature) -> Any:
    import pyarrow as pa

    kind = type_of(feature)
    ends = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1))
    offsets = pa.array(ends, pa.int32())
    places = column.indices[:, 1:]
    places = places.reshape(-1) if places.shape[1] == 1 else places
    indices = pa.ListArray.from_arrays(offsets, _nested(places, kind.field(0).type.value_type))
    values = pa.ListArray.from_arrays(
        offsets, _nested(column.values, kind.field(1).type.value_type)
    )
    return pa.StructArray.from_arrays(
        [indices.cast(kind.field(0).type), values.cast(kind.field(1).type)],
        fields=list(kind),
    )


def _tensors(column: NDArray[Any], feature: Feature) -> Any:
    """Arrays of differing shapes: each as lists of lists."""
    import pyarrow as pa

    kind = type_of(feature)
    pieces = []
    for tensor in column.tolist():
        if tensor is None:
            pieces.append(pa.nulls(1, kind))
            continue
        items = _items(np.ascontiguousarray(tensor).reshape(-1), _innermost(kind))
        pieces.append(_as_lists(items, tensor.shape, kind))
    return pa.concat_arrays(pieces) if pieces else pa.array([], kind)


def _as_lists(items: Any, shape: Sequence[int], kind: Any) -> Any:
    """One value of nested lists, of the lengths that its shape tells."""
    import pyarrow as pa

    kinds = [kind]
    while len(kinds) < len(shape):
        kinds.append(kinds[-1].value_type)
    for at in reversed(range(len(shape))):
        count, length = math.prod(shape[:at]), shape[at]
        if pa.types.is_fixed_size_list(kinds[at]):
            items = pa.FixedSizeListArray.from_arrays(items, type=kinds[at])
        else:
            offsets = pa.array(np.arange(count + 1) * length, pa.int32())
            items = pa.ListArray.from_arrays(offsets, items, type=kinds[at])
    return items
