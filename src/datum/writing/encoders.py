"""Encoders of features: made, fitted over a split, and applied to blocks of records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked, Sparse
from datum.errors import SchemaError, SourceError, suggest
from datum.schema.plain import plain_row
from datum.sources.source import Block, Columns, IndexedPart, Part, Reject, Rows
from datum.sources.take import take_rows
from datum.writing.feature_encoder import FeatureEncoder
from datum.writing.stored import columns_of

__all__ = ["FeatureEncoder", "apply_encoders", "fit_encoders", "make_encoders"]

FIT_RECORDS = 4096  # read at once to learn from
_FIT_SPLIT = "train"


def make_encoders(mapping: Mapping[str, Any]) -> dict[str, FeatureEncoder]:
    """Check the encoders of features; SchemaError names what is supported."""
    if not isinstance(mapping, Mapping):
        raise SchemaError(f"expected encoders by the names of features, got {mapping!r}")
    return {name: FeatureEncoder(name, estimator) for name, estimator in mapping.items()}


def fit_encoders(
    encoders: Mapping[str, FeatureEncoder],
    parts: Mapping[str, Part],
    *,
    keep: Callable[[Block], NDArray[np.bool_]] | None = None,
) -> None:
    """Fit those that are not, over the records of the split `train`, or else of the first.

    `keep` tells which records of a block to learn from. The part is read once for each encoder;
    one that can be read only once raises SourceError.
    """
    unfitted = [encoder for encoder in encoders.values() if not encoder.is_fitted]
    if not unfitted or not parts:
        return
    split = _FIT_SPLIT if _FIT_SPLIT in parts else next(iter(parts))
    part = parts[split]
    if not getattr(part, "is_repeatable", True):
        names = ", ".join(encoder.name for encoder in unfitted)
        raise SourceError(
            f"expected records that can be read twice, as the encoders of {names}"
            " learn from them first, got an iterator",
            where=f"split {split!r}",
            hint="pass a function that returns the iterator, or encoders that are fitted",
        )
    for encoder in unfitted:
        seen: set[str] = set()
        encoder.fit(_check_found(_values(part, encoder.name, keep, seen), encoder.name, seen))


def _values(
    part: Part, name: str, keep: Callable[[Block], NDArray[np.bool_]] | None, seen: set[str]
) -> Iterator[Any]:
    """The values of one feature; the names of all features go to `seen`."""
    for block in _blocks(part):
        values = _take_values(block, name)
        if not seen:
            seen.update(block.data[0] if isinstance(block.data, list) and block.data else ())
            seen.update(block.data if isinstance(block.data, dict) else ())
        kept = np.ones(len(block), np.bool_) if keep is None else keep(block)
        yield from (value for value, is_kept in zip(values, kept, strict=True) if is_kept)


def _check_found(values: Iterator[Any], name: str, seen: set[str]) -> Iterator[Any]:
    """The values that are there; SchemaError if none is."""
    is_found = False
    for value in values:
        if value is not None:
            is_found = True
            yield value
    if not is_found:
        raise SchemaError(
            f"encoder of {name!r}: expected a feature that records have, got none of that name",
            hint=suggest(name, seen, f"there are {', '.join(sorted(seen)) or 'no records'}"),
            feature=name,
        )


def _blocks(part: Part) -> Iterator[Block]:
    if not isinstance(part, IndexedPart):
        blocks = part.blocks()
    else:
        starts = range(0, len(part), FIT_RECORDS)
        ranges = (np.arange(first, min(first + FIT_RECORDS, len(part))) for first in starts)
        blocks = map(part.read, ranges)
    return (replace(block, data=columns_of(block.data)) for block in blocks)


def _take_values(block: Block, name: str) -> list[Any]:
    """The value of each record as Python has it, None where there is none."""
    if isinstance(block.data, list):
        return [row.get(name) for row in _flattened(block.data, [name])]
    column = columns_of(block.data).get(name)
    if column is None:
        return [None] * len(block)
    if isinstance(column, list):
        return column
    values: list[Any] = column.to_list() if hasattr(column, "to_list") else column.tolist()
    return values


def _flattened(rows: Rows, names: Iterable[str]) -> Rows:
    """The rows, with names such as "a/b" for what dicts in them hold, if one is asked for."""
    return [plain_row(row) for row in rows] if any("/" in name for name in names) else rows


def apply_encoders(block: Block, encoders: Mapping[str, FeatureEncoder]) -> Block:
    """The block with the values of features encoded; what is absent stays so.

    Records that an encoder refuses, such as those of an unknown label, become rejects.
    """
    data: Any = block.data
    faults: dict[int, str] = {}
    made: dict[str, tuple[Sparse | NDArray[Any], NDArray[np.intp]]] = {}
    for name, encoder in encoders.items():
        values = _take_values(block, name)
        present = [at for at, value in enumerate(values) if value is not None]
        if not present and name not in data:  # a column of blanks is replaced all the same
            continue
        column, kept, found = encoder.transform_each([values[at] for at in present])
        made[name] = column, np.array([present[at] for at in kept], np.intp)
        for at, fault in found.items():
            faults.setdefault(present[at], f"feature {name!r}: {fault}")
    if isinstance(data, list):
        rows = _flattened(data, made)
        block = replace(block, data=_replace_in_rows(rows, made))
    else:
        block = replace(block, data=_replace_in_columns(data, made, list(faults)))
    return _reject(block, faults) if faults else block


def _replace_in_rows(given: Rows, made: Mapping[str, Any]) -> Rows:
    rows = [dict(row) for row in given]
    for name, (column, places) in made.items():
        for at, value in zip(places.tolist(), _split_rows(column), strict=True):
            rows[at][name] = value
    return rows


def _split_rows(column: Sparse | NDArray[Any]) -> Iterable[Any]:
    if not isinstance(column, Sparse):
        return column.tolist() if column.ndim == 1 else column
    bounds = np.searchsorted(column.indices[:, 0], np.arange(len(column) + 1)).tolist()
    shape = column.dense_shape[1:]
    return (
        Sparse(column.indices[first:last, 1:], column.values[first:last], shape)
        for first, last in itertools.pairwise(bounds)
    )


def _replace_in_columns(given: Columns, made: Mapping[str, Any], refused: list[int]) -> Columns:
    columns = dict(given)
    for name, (column, places) in made.items():
        present = np.zeros(len(given[name]), np.bool_)
        present[places] = True
        present[refused] = True  # they are blank now, and taken out next
        whole = _spread(column, places, len(present))
        columns[name] = whole if present.all() else Masked(whole, present)
    return columns


def _spread(column: Any, places: NDArray[np.intp], count: int) -> Any:
    """A column of `count` rows, blank but at these places."""
    if isinstance(column, Sparse):
        indices = column.indices.copy()
        indices[:, 0] = places[indices[:, 0]]
        return Sparse(indices, column.values, (count, *column.dense_shape[1:]))
    whole = np.zeros((count, *column.shape[1:]), column.dtype)
    whole[places] = column
    return whole


def _reject(block: Block, faults: Mapping[int, str]) -> Block:
    """The block without records that have a fault."""
    keys = block.keys
    rejects = [
        Reject(
            int(block.numbers[at]),
            None if keys is None else keys[at],
            "" if block.locate is None else block.locate(at),
            fault,
        )
        for at, fault in faults.items()
    ]
    kept = np.delete(np.arange(len(block)), list(faults))
    kept_keys = None if keys is None else [keys[at] for at in kept.tolist()]
    data: Any = block.data
    if isinstance(data, list):
        data = [data[at] for at in kept.tolist()]
    else:
        data = {name: take_rows(column, kept) for name, column in data.items()}
    listed = sorted([*block.rejects, *rejects], key=lambda reject: reject.record)
    return Block(data, block.numbers[kept], kept_keys, listed)
