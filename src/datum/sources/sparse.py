"""Dense vectors that are to be stored by their values that are not zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked, Sparse
from datum.errors import SchemaError, SourceError, suggest
from datum.schema import Feature, InexactError, Schema, SchemaGuess, as_array
from datum.sources.mapped import map_source
from datum.sources.source import Block, Columns, IndexedPart, Part, Rows, Source, Stored

__all__ = ["sparse_source"]

_SCAN_RECORDS = 4096  # looked at together to learn types and shapes


def sparse_source(source: Source, names: Sequence[str]) -> tuple[Source, dict[str, Feature]]:
    """The source with these features sparse, and what they are then.

    All records are looked at first, unless the source knows its schema. A feature whose length
    differs between records stays as it is, and so do texts: a list of their own length is stored.
    """
    found, seen = _find_features(source, names)
    sparse = {}
    for name in names:
        if name not in found:
            hint = suggest(name, seen, f"there are {', '.join(sorted(seen))}")
            raise SchemaError(f"expected a feature to store sparse, got {name!r}", hint=hint)
        feature = found[name]
        if not feature.shape or feature.encoding == "image":
            raise SchemaError(
                f"expected lists or arrays to store sparse, got {feature!r}",
                where=f"feature {name!r}",
                feature=name,
            )
        if None not in feature.shape and not feature.is_string:
            sparse[name] = replace(feature, encoding="sparse", default=None, keys=())
    if not sparse:
        return source, {}
    change = _Sparsify(tuple(sparse.items()))
    return map_source(source, change, name=f"sparse {sorted(sparse)}", features=sparse), sparse


def _find_features(source: Source, names: Sequence[str]) -> tuple[Schema, set[str]]:
    """The features of these names, in all splits, and the names of all features."""
    guess = SchemaGuess()
    seen: set[str] = set()
    for split, part in source.parts().items():
        if part.schema is not None:
            seen.update(part.schema)
            named = part.schema.select([name for name in names if name in part.schema])
            guess = guess.merge(SchemaGuess.from_schema(named, records=2))  # more than one
            continue
        if not getattr(part, "is_repeatable", True):
            raise SourceError(
                "expected records that can be read twice, as shapes are looked"
                " for first, got an iterator",
                where=f"split {split!r}",
                hint="pass a function that returns the iterator",
            )
        for block in _blocks(part):
            _look(block, names, guess, seen)
    return guess.to_schema(), seen


def _blocks(part: Part) -> Iterator[Block]:
    if not isinstance(part, IndexedPart):
        yield from part.blocks()
        return
    for first in range(0, len(part), _SCAN_RECORDS):
        yield part.read(np.arange(first, min(first + _SCAN_RECORDS, len(part))))


def _look(block: Block, names: Sequence[str], guess: SchemaGuess, seen: set[str]) -> None:
    data = _values_of(block)
    if isinstance(data, list):
        guess.add_rows({name: row.get(name) for name in names} for row in data)
        seen.update(name for row in data for name in row)
    else:
        guess.add_columns({name: data[name] for name in names if name in data})
        seen.update(data)


def _values_of(block: Block) -> Rows | Columns:
    if isinstance(block.data, Stored):
        raise SourceError(
            "expected rows or columns to make features sparse of, got records that are stored"
        )
    return block.data


@dataclass(frozen=True, slots=True)
class _Sparsify:
    """Changes blocks; it can be sent to other processes."""

    features: tuple[tuple[str, Feature], ...]

    def __call__(self, block: Block) -> Block:
        given = _values_of(block)
        data: Any
        if isinstance(given, list):
            data = [self._change_row(row) for row in given]
        else:
            data = dict(given)
            for name, feature in self.features:
                if name in data:
                    data[name] = _sparse_column(data[name], feature)
        return replace(block, data=data)

    def _change_row(self, row: dict[str, Any]) -> dict[str, Any]:
        changed = {
            name: _sparse_of(row[name], feature)
            for name, feature in self.features
            if row.get(name) is not None
        }
        return {**row, **changed}


def _sparse_of(value: Any, feature: Feature) -> Any:
    if isinstance(value, Sparse) or hasattr(value, "tocoo"):
        return value
    try:
        array = as_array(value, feature.dtype)
    except (InexactError, OverflowError, TypeError, ValueError):
        return value  # the writer says what is wrong with it
    places = _places(array)
    return Sparse(places, array[tuple(places.T)], array.shape)


def _sparse_column(column: Any, feature: Feature) -> Any:
    if isinstance(column, Masked):
        return Masked(_sparse_column(column.values, feature), column.present)
    if not isinstance(column, np.ndarray) or column.dtype.kind not in "biufc":
        values = column if isinstance(column, list) else list(column)
        return [None if value is None else _sparse_of(value, feature) for value in values]
    places = _places(column)
    return Sparse(places, column[tuple(places.T)], column.shape)


def _places(array: NDArray[Any]) -> NDArray[np.int64]:
    """Where an array is not zero; a negative zero counts, as it would come back positive."""
    is_set = array != 0
    if array.dtype.kind == "f":
        is_set |= np.signbit(array)
    return np.argwhere(is_set)
