"""What a profile holds: plain values that say what the records of a dataset are like."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datum.errors import inert
from datum.profiling.distributions import Distribution, ImageProfile, ValueCounts, plain
from datum.profiling.kinds import KINDS
from datum.schema import Feature

__all__ = [
    "Duplicates",
    "FeatureProfile",
    "PayloadProfile",
    "ProfileWarning",
    "SplitProfile",
]


@dataclass(frozen=True, slots=True)
class FeatureProfile:
    """What one feature is like.

    Attributes:
        feature: its type, shape and encoding.
        present, missing: how many records have it, and how many lack it.
        is_exact: whether these are of all records.
        numbers: of its elements, where they are numbers; of complex ones, their sizes.
        lengths: of records, where lengths differ; of sparse features, how many values each has.
        sizes: in bytes, of its strings or image files.
        empty: how many strings have no characters.
        counts: of its values, where they are few, or short.
        images: of images, also of those in features of bytes.
        filled: the share of a sparse array that has values.
        examples: some values of texts and byte strings, shortened.
        repeated: the share of records whose value is that of the record before it.
        is_label: whether it tells the class of a record, or of objects in it: its classes have
            names, or it is called a label.
    """

    feature: Feature
    present: int
    missing: int
    is_exact: bool = True
    numbers: Distribution | None = None
    lengths: Distribution | None = None
    sizes: Distribution | None = None
    empty: int = 0
    counts: ValueCounts | None = None
    images: ImageProfile | None = None
    filled: float | None = None
    examples: tuple[str | bytes, ...] = ()
    repeated: float | None = None
    is_label: bool = False

    @property
    def missing_share(self) -> float:
        """The part of the records that lack it."""
        return self.missing / max(1, self.present + self.missing)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found: dict[str, Any] = self.feature.to_json()
        found |= {"present": self.present, "missing": self.missing, "exact": self.is_exact}
        found["label"] = self.is_label
        for name in ("numbers", "lengths", "sizes", "counts", "images"):
            part = getattr(self, name)
            if part is not None:
                found["bytes" if name == "sizes" else name] = part.to_json()
        if self.sizes is not None:
            found["empty"] = self.empty
            found["examples"] = [plain(value) for value in self.examples]
        if self.filled is not None:
            found["filled"] = self.filled
        return found


@dataclass(frozen=True, slots=True)
class PayloadProfile:
    """Records of which no features are known.

    Attributes:
        sizes: of the payloads, in bytes.
        kind: what they look like: "text", "json", "protobuf", an image format, or "bytes".
        fields: of protobuf messages, what is in them: (number, type, in how many records, a value).
        first: the start of the first payload.
        seen: how many payloads were looked at.
    """

    sizes: Distribution
    kind: str
    fields: tuple[tuple[int, str, int, str], ...]
    first: bytes
    seen: int

    def to_json(self) -> dict[str, Any]:
        """Plain values; bytes are hexadecimal."""
        fields = [
            {"field": number, "type": kind, "records": records, "example": example}
            for number, kind, records, example in self.fields
        ]
        return {
            "kind": self.kind,
            "seen": self.seen,
            "bytes": self.sizes.to_json(),
            "fields": fields,
            "first": self.first.hex(),
        }


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Records whose bytes are those of another one.

    Attributes:
        split: where they are.
        other: where their twins are; the same split, or one before it.
        records: how many; within a split, without the first of each kind.
        examples: pairs of numbers: a record of `split`, and its twin in `other`.
        is_exact: whether all records of both were compared.
    """

    split: str
    other: str
    records: int
    examples: tuple[tuple[int, int], ...] = ()
    is_exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "split": self.split,
            "other": self.other,
            "records": self.records,
            "examples": [list(pair) for pair in self.examples],
            "exact": self.is_exact,
        }


@dataclass(frozen=True, slots=True)
class ProfileWarning:
    """Something that a training may suffer from.

    Attributes:
        kind: which of the kinds in `datum.profiling.kinds.KINDS`.
        text: what is so, in words.
        hint: what to do about it.
        feature: the feature it is about, if it is about one.
        split: the split it is about, if it is about one.
        figure: how much of it there is, in short, for lists of warnings of one kind.
    """

    kind: str
    text: str
    hint: str
    feature: str | None = None
    split: str | None = None
    figure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "kind": self.kind,
            "feature": self.feature,
            "split": self.split,
            "text": self.text,
            "hint": self.hint,
            "figure": self.figure,
        }

    @property
    def title(self) -> str:
        """What warnings of its kind are about."""
        return KINDS[self.kind]

    def __str__(self) -> str:
        where = ", ".join(filter(None, (self.split, self.feature)))
        return inert(f"{where}: {self.text}" if where else self.text)


@dataclass(frozen=True, slots=True)
class SplitProfile:
    """What the records of a split are like.

    Attributes:
        records, bytes, shards: how many there are.
        seen: how many records were looked at.
        features: what each feature is like.
        payloads: what the records look like, where no features are known.
    """

    records: int
    bytes: int
    shards: int
    seen: int
    features: Mapping[str, FeatureProfile]
    payloads: PayloadProfile | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        found: dict[str, Any] = {
            "records": self.records,
            "bytes": self.bytes,
            "shards": self.shards,
            "seen": self.seen,
            "features": {name: one.to_json() for name, one in self.features.items()},
        }
        if self.payloads is not None:
            found["payloads"] = self.payloads.to_json()
        return found
