"""The features of a dataset's records, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from datum.errors import SchemaError, suggest
from datum.schema.casting import is_encodable
from datum.schema.feature import Feature

__all__ = ["Schema"]


class Schema(Mapping[str, Feature]):
    """A mapping of names to features, that cannot be changed.

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
                raise SchemaError(f"expected names that UTF-8 can hold, got {name!r}")
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
        # In the same order too: it is that of the columns. As text, since NaN equals nothing.
        return isinstance(other, Schema) and repr(self) == repr(other)

    def select(self, names: Iterable[str]) -> Schema:
        """Keep the features of these names, in the order given."""
        if isinstance(names, str):
            raise TypeError(f"expected names of features, got the one string {names!r}")
        return Schema({name: self._features[self._known(name)] for name in names})

    def _known(self, name: str) -> str:
        if name not in self._features:
            hint = suggest(name, self._features, f"there are {', '.join(self)}")
            raise SchemaError(f"expected a feature of the schema, got {name!r}", hint=hint)
        return name

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes."""
        return {name: feature.to_json() for name, feature in self._features.items()}

    @classmethod
    def from_json(cls, found: Any) -> Schema:
        """Read what `to_json` made."""
        if not isinstance(found, Mapping):
            raise SchemaError(f"expected features as JSON, got {found!r}")
        return cls({name: Feature.from_json(feature) for name, feature in found.items()})

    def __repr__(self) -> str:
        lines = "".join(f"\n    {name!r}: {feature!r}," for name, feature in self.items())
        return f"Schema({{{lines}\n}})" if lines else "Schema({})"
