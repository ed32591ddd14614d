"""The features of a dataset's records, by name, and the dtype of their floats."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import Message, SchemaError, suggest
from datum.schema.feature import Feature, is_encodable

__all__ = [
    "EXACT",
    "ROUND",
    "FloatFacts",
    "FloatRule",
    "Floats",
    "Schema",
    "narrowed",
    "widened",
]


class Schema(Mapping[str, Feature]):
    """An immutable mapping of names to features.

    >>> schema = Schema({"label": Feature("int64"), "image": Feature("bytes")})
    >>> schema["label"]
    Feature('int64')
    >>> list(schema.select(["label"]))
    ['label']
    """

    __slots__ = ("_features", "_hash")

    def __init__(self, features: Mapping[str, Feature]) -> None:
        name: Any
        feature: Any
        for name, feature in features.items():
            if not isinstance(name, str) or not isinstance(feature, Feature):
                raise SchemaError(f"expected names and features, got {name!r}: {feature!r}")
            if not all(map(is_encodable, (name, *feature.keys))):
                raise SchemaError(f"expected names that UTF-8 can encode, got {name!r}")
        self._features = dict(features)
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(repr(self))
        return self._hash

    def __eq__(self, other: object) -> bool:
        # In the same order, which is that of the columns. As text, since NaN equals nothing.
        return isinstance(other, Schema) and repr(self) == repr(other)

    def select(self, names: Iterable[str]) -> Schema:
        """Keep the features of these names, in the order given."""
        if isinstance(names, str):
            raise TypeError(Message(f"expected names of features, got the one string {names!r}"))
        return Schema({name: self._features[self._known(name)] for name in names})

    def _known(self, name: str) -> str:
        if name not in self._features:
            hint = suggest(name, self._features, f"there are {', '.join(self)}")
            raise SchemaError(f"expected a feature of the schema, got {name!r}", hint=hint)
        return name

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        return {name: feature.to_json() for name, feature in self._features.items()}

    @classmethod
    def from_json(cls, found: Any) -> Schema:
        """Read the output of `to_json`."""
        if not isinstance(found, Mapping):
            raise SchemaError(f"expected features as JSON, got {found!r}")
        return cls({name: Feature.from_json(feature) for name, feature in found.items()})

    def __repr__(self) -> str:
        lines = "".join(f"\n    {name!r}: {feature!r}," for name, feature in self.items())
        return f"Schema({{{lines}\n}})" if lines else "Schema({})"


Floats = Literal["float32", "float64"]


@dataclass(frozen=True, slots=True)
class FloatRule:
    """How features of float64 values are stored.

    Attributes:
        floats: "float32" rounds them, like `tf.train.FloatList`; "float64" keeps every bit.
        kept: Features that stay float64 regardless of `floats`.
    """

    floats: Floats = "float32"
    kept: frozenset[str] = frozenset()

    def rounds(self, name: str) -> bool:
        """Return whether a feature of this name is stored as float32 if its values allow it."""
        return self.floats == "float32" and name not in self.kept

    def apply(self, schema: Schema) -> Schema:
        """Return the schema with float32 for each float64 that is rounded."""
        return Schema(
            {
                name: narrowed(feature) if self.rounds(name) else feature
                for name, feature in schema.items()
            }
        )


ROUND = FloatRule()
EXACT = FloatRule("float64")


@functools.lru_cache(maxsize=1024)  # called for every block
def narrowed(feature: Feature) -> Feature:
    """Return the feature with float32 for float64; other features unchanged.

    >>> narrowed(Feature("float64", (3, None)))
    Feature('float32', (None, None))
    """
    if feature.dtype != "float64":
        return feature
    if feature.encoding == "sparse":
        return replace(feature, dtype="float32")
    shape = feature.shape
    if None in shape:  # ragged dimensions come first
        last = len(shape) - shape[::-1].index(None)
        shape = (None,) * last + tuple(n or None for n in shape[last:])
    keys = feature.keys[:1] if len(feature.keys) == 1 else ()
    return replace(feature, dtype="float32", shape=shape, encoding="values", keys=keys)


@functools.lru_cache(maxsize=1024)
def widened(feature: Feature) -> Feature:
    """Return the feature with float64 for float32, in the same layout."""
    is_list = feature.encoding == "values" and (feature.ragged_rank < 2 or feature.sequence)
    return replace(feature, dtype="float64", encoding="raw" if is_list else feature.encoding)


@dataclass(frozen=True, slots=True)
class FloatFacts:
    """The effects of storing the values of one feature as float32.

    Attributes:
        is_rounded: Whether a value was changed.
        wide: The record number and value of the first that float32 cannot represent well enough:
            it overflows, or it is of 2**24 or more and changes.
    """

    is_rounded: bool = False
    wide: tuple[int, float] | None = None

    def merge(self, other: FloatFacts) -> FloatFacts:
        """Return the facts of both; of two wide values that of the lower record."""
        wides = [one.wide for one in (self, other) if one.wide is not None]
        return FloatFacts(
            self.is_rounded or other.is_rounded, min(wides, key=lambda wide: wide[0], default=None)
        )

    def at(self, numbers: Sequence[int] | NDArray[np.int64]) -> FloatFacts:
        """Return the facts with these record numbers in place of positions."""
        if self.wide is None:
            return self
        record, value = self.wide
        return FloatFacts(self.is_rounded, (int(numbers[record]), value))

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        found: dict[str, Any] = {"rounded": True} if self.is_rounded else {}
        return found if self.wide is None else found | {"wide": list(self.wide)}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> FloatFacts:
        """Read the output of `to_json`."""
        wide = found.get("wide")
        return cls(bool(found.get("rounded")), None if wide is None else (wide[0], wide[1]))
