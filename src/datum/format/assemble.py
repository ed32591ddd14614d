"""The columns of a feature from what was parsed of its keys."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.format.layout import StoredColumn, stand_in
from datum.format.records import Located
from datum.schema import Feature, InexactError, cast_exactly, numpy_dtype
from datum.schema.dtypes import TIMES

__all__ = ["RowError", "Stored", "assemble"]

# Of one stored column: values, row splits, inner row splits, which rows have it.
Stored = tuple[
    NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None, NDArray[np.bool_] | None
]


def assemble(
    feature: Feature, stored: tuple[StoredColumn, ...], parts: list[Stored], records: Located
) -> Any:
    """The column of a feature; raises RowError if its stored columns do not fit each other."""
    feature = stand_in(feature)
    try:
        if feature.encoding == "sparse":
            sparse, present = _assemble_sparse(feature, parts, records), parts[0][3]
            return Masked(sparse, present) if feature.optional and present is not None else sparse
        if len(stored) > 1:
            join = _assemble_shaped if stored[1].role == "shape" else _assemble_nested
            column = join(feature, parts, records)
        else:
            column = _assemble_single(feature, parts[0], records)
    except _ItemError as error:
        row = error.position // max(1, stored[0].unit)
        splits = parts[0][1]
        if splits is not None:
            row = int(np.searchsorted(splits, row, "right")) - 1
        raise RowError(row, f"expected {feature.dtype}, got {error}") from None
    present = parts[0][3]
    if present is None or (feature.default is not None and not feature.is_string):
        return column
    if feature.default is not None:
        return _fill_strings(feature, column, present)
    return Masked(column, present)


class RowError(Exception):
    """Stored columns of one feature that do not fit each other in one record."""

    def __init__(self, row: int, message: str) -> None:
        super().__init__(message)
        self.row = row


def _fill_strings(feature: Feature, column: BytesColumn, present: NDArray[np.bool_]) -> Any:
    if present.all():
        return column
    values = zip(column.to_list(), present, strict=True)
    return BytesColumn.from_values(value if there else feature.default for value, there in values)


def _values(feature: Feature, stored: NDArray[Any], records: Located) -> Any:
    """The cells of a stored column as items of the feature's dtype and inner shape."""
    inner: Any = feature.shape[feature.ragged_rank :]
    shape = (-1 if feature.ragged_rank else len(records), *inner)
    if feature.is_string:
        if shape[0] < 0:
            shape = (len(stored) // 2 // math.prod(inner), *inner)
        is_text = feature.dtype == "str"
        return BytesColumn(records.buffer, stored, is_text=is_text, shape=shape)
    if feature.is_raw:
        if feature.dtype == "bool" and stored.max(initial=0) > 1:
            raise _ItemError(int(np.argmax(stored > 1)), f"byte {stored.max()}")
        stored = stored.view(numpy_dtype(feature.dtype))
    elif feature.dtype in TIMES:
        stored = stored.view(feature.dtype)
    elif feature.dtype == "bfloat16" and not (stored.view(np.uint32) & 0xFFFF).any():
        # Bits, not numbers: a cast would change the payload of a NaN.
        upper = (stored.view(np.uint32) >> 16).astype(np.uint16)
        stored = upper.view(numpy_dtype("bfloat16"))
    elif feature.dtype in ("float16", "bfloat16"):
        try:
            stored = cast_exactly(stored, feature.dtype)
        except InexactError as error:
            raise _ItemError(error.position, str(error)) from None
    return stored.reshape(shape) if inner else stored


class _ItemError(Exception):
    """An item of a stored column that its dtype cannot hold."""

    def __init__(self, position: int, got: str) -> None:
        super().__init__(got)
        self.position = position


def _assemble_single(feature: Feature, stored: Stored, records: Located) -> Any:
    values, splits, inner_splits, _ = stored
    column = _values(feature, values, records)
    if splits is None:
        return column
    if inner_splits is not None:
        column = Ragged(column, inner_splits)
    return Ragged(column, splits)


def _assemble_nested(feature: Feature, parts: list[Stored], records: Located) -> Any:
    """Values, and the row lengths of each inner dimension from the outermost in."""
    column = _values(feature, parts[0][0], records)
    below = parts[0][1]  # for each record, where its part of the level below ends
    assert below is not None
    for lengths, splits, _, _ in reversed(parts[1:]):
        assert splits is not None
        wrong = np.flatnonzero((lengths < 0) | (lengths > below[-1]))
        if len(wrong):
            row = int(np.searchsorted(splits, wrong[0], "right")) - 1
            raise RowError(row, f"expected row lengths of what is there, got {lengths[wrong[0]]}")
        inner = np.concatenate([[0], np.cumsum(lengths)])
        wrong = np.flatnonzero(inner[splits] != below)
        if len(wrong):
            row = int(wrong[0]) - 1
            total, count = inner[splits[row + 1]] - inner[splits[row]], below[row + 1] - below[row]
            raise RowError(row, f"expected row lengths that sum to {count}, got {total}")
        column = Ragged(column, inner)
        below = splits
    return Ragged(column, below)


def _assemble_shaped(feature: Feature, parts: list[Stored], records: Located) -> Any:
    """Raw tensors whose shape lies beside them: an object array of arrays."""
    values = _values(replace(feature, shape=(None,), keys=()), parts[0][0], records)
    splits, shapes, shape_splits = parts[0][1], parts[1][0], parts[1][1]
    present = parts[0][3]
    assert splits is not None
    assert shape_splits is not None
    tensors = np.empty(len(records), object)
    for row in range(len(records)):
        if present is not None and not present[row]:
            continue
        shape = tuple(shapes[shape_splits[row] : shape_splits[row + 1]].tolist())
        flat = values[splits[row] : splits[row + 1]]
        fits = len(shape) == len(feature.shape) and all(
            want in (None, got) and 0 <= got < 2**31
            for want, got in zip(feature.shape, shape, strict=True)
        )
        if not fits or math.prod(shape) != len(flat):
            raise RowError(row, f"expected {feature.shape} of {len(flat)} items, got {shape}")
        tensors[row] = flat.reshape(shape)
    return tensors


def _assemble_sparse(feature: Feature, parts: list[Stored], records: Located) -> Any:
    splits, index_parts = parts[0][1], parts[1:]
    assert splits is not None
    encoding: Any = "raw" if feature.is_raw else "values"
    flat = replace(feature, encoding=encoding, shape=(None,), keys=())
    values = _values(flat, parts[0][0], records)
    for _, index_splits, _, _ in index_parts:
        assert index_splits is not None
        wrong = np.flatnonzero(index_splits != splits)
        if len(wrong):
            row = int(wrong[0]) - 1
            counts = np.diff(splits)[row], np.diff(index_splits)[row]
            raise RowError(row, f"expected {counts[0]} indices, one a value, got {counts[1]}")
    rows = np.repeat(np.arange(len(records)), np.diff(splits))
    indices = np.stack([rows, *(part[0] for part in index_parts)], axis=1)
    places = indices[:, 1:]
    outside = np.flatnonzero(((places < 0) | (places >= np.array(feature.shape))).any(axis=1))
    if len(outside):
        at = tuple(places[outside[0]].tolist())
        raise RowError(int(rows[outside[0]]), f"expected indices within {feature.shape}, got {at}")
    order = np.lexsort(indices.T[::-1])
    if (order[1:] < order[:-1]).any():  # stored out of order
        indices, values = indices[order], values[order]
    return Sparse(indices, values, (len(records), *feature.shape))  # type: ignore[arg-type]
