"""A source whose blocks are changed on their way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.schema import Feature, Schema
from datum.sources.source import Block, IndexedPart, Part, Source

__all__ = ["map_source"]

Change = Callable[[Block], Block]


def map_source(
    source: Source, change: Change, *, name: str, features: Mapping[str, Feature] | None = None
) -> Source:
    """Pass every block through `change`, which keeps the numbers and order of records.

    `name` tells the change from others, for fingerprints; `features` are what it makes of those of
    the same names, where a schema is known.
    """
    return _MappedSource(source, change, name, features or {})


@dataclass(frozen=True, slots=True)
class _MappedSource:
    source: Source
    change: Change
    name: str
    features: Mapping[str, Feature]

    def parts(self) -> Mapping[str, Part]:
        """The parts of the source, changed."""
        return {split: self._map(part) for split, part in self.source.parts().items()}

    def _map(self, part: Part) -> Part:
        if isinstance(part, IndexedPart):
            return _MappedIndex(part, self.change, self.name, self.features)
        return _MappedStream(part, self.change, self.name, self.features)


class _Mapped:
    """What a changed part has of the one it is made of."""

    def __init__(
        self, part: Part, change: Change, name: str, features: Mapping[str, Feature]
    ) -> None:
        self.part: Any = part
        self.change = change
        self.metadata: Mapping[str, Mapping[str, Any]] = part.metadata
        self.schema: Schema | None = None
        if part.schema is not None:
            self.schema = Schema({n: features.get(n, found) for n, found in part.schema.items()})
        given = part.fingerprint
        self.fingerprint = None if given is None else f"{given}, {name}"


class _MappedIndex(_Mapped):
    """Records in any order, changed when they are read."""

    def __init__(
        self, part: IndexedPart, change: Change, name: str, features: Mapping[str, Feature]
    ) -> None:
        super().__init__(part, change, name, features)
        self.keys = part.keys
        self.stored_bytes = part.stored_bytes
        self.is_slow_python = part.is_slow_python

    def __len__(self) -> int:
        return len(self.part)

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers."""
        return self.change(self.part.read(numbers))


class _MappedStream(_Mapped):
    """Records one after the other, changed as they come."""

    def __init__(
        self, part: Part, change: Change, name: str, features: Mapping[str, Feature]
    ) -> None:
        super().__init__(part, change, name, features)
        self.is_repeatable = bool(getattr(part, "is_repeatable", True))

    def blocks(self) -> Iterator[Block]:
        """All records in order."""
        return map(self.change, self.part.blocks())
