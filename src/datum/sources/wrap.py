"""Sources wrapped around sources: limited, mapped, or made sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked, Sparse
from datum.errors import SchemaError, SourceError, SplitError, suggest
from datum.schema import Feature, InexactError, Schema, SchemaGuess, as_array
from datum.sources.protocol import (
    Block,
    Columns,
    IndexedPart,
    Part,
    Rows,
    SerializedRecords,
    Source,
    StreamedPart,
    WrappedPart,
    part_info,
    take_rows,
)

__all__ = [
    "limit_source",
    "map_source",
    "sparse_source",
]


def limit_source(source: Source, counts: Mapping[str, int]) -> Source:
    """Stop each split after `counts[split]` records; splits not named stay whole.

    Records that cannot be read count too. A split with fewer records raises SourceError, a split
    that the source lacks SplitError, both when the parts are made (or read, if the length is
    unknown before).
    """
    for split, count in counts.items():
        given: Any = count
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise SplitError(
                f"expected a number of records, got {count!r}", where=f"split {split!r}"
            )
    return _LimitedSource(source, dict(counts))


@dataclass(frozen=True, slots=True)
class _LimitedSource:
    source: Source
    counts: Mapping[str, int]

    def parts(self) -> Mapping[str, Part]:
        """Return the parts of the source, shortened."""
        parts = dict(self.source.parts())
        for split, count in self.counts.items():
            if split not in parts:
                raise _unknown(split, parts)
            parts[split] = _limit_part(split, parts[split], count)
        return parts


def _unknown(split: str, parts: Mapping[str, Part]) -> SplitError:
    hint = suggest(split, parts, f"there are {', '.join(parts) or 'none'}")
    return SplitError(f"expected a split of the source, got {split!r}", hint=hint)


def _too_few(split: str, expected: int, got: int) -> SourceError:
    return SourceError(
        f"expected {expected:,} records, got {got:,}",
        where=f"split {split!r}",
        hint=f"pass {got:,}, or omit the number to write all of them",
    )


def _limit_part(split: str, part: Part, count: int) -> Part:
    if not isinstance(part, IndexedPart):
        return _LimitedStream(split, part, count)
    if len(part) < count:
        raise _too_few(split, count, len(part))
    return _LimitedIndex(part, count)


class _LimitedIndex(WrappedPart):
    """The first records of a part that can be read in any order."""

    def __init__(self, part: IndexedPart, count: int) -> None:
        super().__init__(part)
        self._count = count
        self.fingerprint = _limited_fingerprint(part, count)
        self.rejects = [reject for reject in self.rejects if reject.record < count]
        self.keys = None if part.keys is None else part.keys[:count]
        nbytes = part.stored_bytes
        self.stored_bytes = None if nbytes is None else nbytes * count // max(len(part), 1)

    def __len__(self) -> int:
        return self._count

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers."""
        block: Block = self.part.read(numbers)
        return block


def _limited_fingerprint(part: Part, count: int) -> str | None:
    return None if part.fingerprint is None else f"{part.fingerprint}, the first {count}"


class _LimitedStream(WrappedPart):
    """The first records of a stream."""

    def __init__(self, split: str, part: StreamedPart, count: int) -> None:
        super().__init__(part)
        self.split = split
        self.count = count
        self.fingerprint = _limited_fingerprint(part, count)
        self.rejects = [reject for reject in self.rejects if reject.record < count]

    def blocks(self) -> Iterator[Block]:
        """Yield blocks, the last one cut; raise SourceError if they end too soon."""
        seen = 0
        for block in self.part.blocks() if self.count else ():
            cut = _cut(block, self.count)
            seen += len(cut) + len(cut.rejects)
            yield cut
            if seen >= self.count:
                return
        if seen < self.count:
            raise _too_few(self.split, self.count, seen)


def _cut(block: Block, count: int) -> Block:
    """Return the records of a block with numbers below `count`; numbers are ascending."""
    left = int(np.searchsorted(block.numbers, count))
    rejects = [reject for reject in block.rejects if reject.record < count]
    if left == len(block):
        return replace(block, rejects=rejects)
    data: Any = block.data
    if isinstance(data, list):
        data = data[:left]
    elif isinstance(data, SerializedRecords):
        data = data.take(np.arange(left))
    else:
        first = np.arange(left)
        data = {name: take_rows(column, first, slice(left)) for name, column in data.items()}
    keys = None if block.keys is None else block.keys[:left]
    return Block(data, block.numbers[:left], keys, rejects, block.locate)


Change = Callable[[Block], Block]


def map_source(
    source: Source, change: Change, *, name: str, features: Mapping[str, Feature] | None = None
) -> Source:
    """Pass every block through `change`, which keeps the numbers and order of records.

    `name` identifies the change in fingerprints; `features` replace those of the same names, if
    the schema is known.
    """
    return _MappedSource(source, change, name, features or {})


@dataclass(frozen=True, slots=True)
class _MappedSource:
    source: Source
    change: Change
    name: str
    features: Mapping[str, Feature]

    def parts(self) -> Mapping[str, Part]:
        """Return the parts of the source, changed."""
        return {split: self._map(part) for split, part in self.source.parts().items()}

    def _map(self, part: Part) -> Part:
        if isinstance(part, IndexedPart):
            return _MappedIndex(part, self.change, self.name, self.features)
        return _MappedStream(part, self.change, self.name, self.features)


class _Mapped(WrappedPart):
    def __init__(
        self, part: Part, change: Change, name: str, features: Mapping[str, Feature]
    ) -> None:
        super().__init__(part)
        self.change = change
        if part.schema is not None:
            self.schema = Schema({n: features.get(n, found) for n, found in part.schema.items()})
        if part.fingerprint is not None:
            self.fingerprint = f"{part.fingerprint}, {name}"


class _MappedIndex(_Mapped):
    """Records in any order, changed when they are read."""

    def __len__(self) -> int:
        return len(self.part)

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """Return the records of these numbers."""
        return self.change(self.part.read(numbers))


class _MappedStream(_Mapped):
    """A stream of records, changed as they are read."""

    def blocks(self) -> Iterator[Block]:
        """Yield all records in order."""
        return map(self.change, self.part.blocks())


_SCAN_RECORDS = 4096  # read at a time to infer types and shapes


def sparse_source(source: Source, names: Sequence[str]) -> tuple[Source, dict[str, Feature]]:
    """Return the source with these features made sparse, and the sparse features.

    All records are read first, unless the source knows its schema. A feature whose length differs
    between records stays as it is, and so do texts: they are stored as lists.
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
    """Return the features of these names, in all splits, and the names of all features."""
    guess = SchemaGuess()
    seen: set[str] = set()
    for split, part in source.parts().items():
        if part.schema is not None:
            seen.update(part.schema)
            named = part.schema.select([name for name in names if name in part.schema])
            guess = guess.merge(SchemaGuess.from_schema(named, records=2))  # any number above 1
            continue
        if not part_info(part).is_repeatable:
            raise SourceError(
                "expected records that can be read twice, as shapes are inferred"
                " first, got an iterator",
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
    if isinstance(block.data, SerializedRecords):
        raise SourceError(
            "expected rows or columns to make features sparse, got serialized records"
        )
    return block.data


@dataclass(frozen=True, slots=True)
class _Sparsify:
    """Makes features of blocks sparse; picklable."""

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
        return value  # reported by the writer
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
    """Return where an array is not zero; a negative zero counts, as it would be lost."""
    is_set = array != 0
    if array.dtype.kind == "f":
        is_set |= np.signbit(array)
    return np.argwhere(is_set)
