"""Statistics of each feature: ranges, lengths and most frequent values."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from datum import _core
from datum.errors import SchemaError
from datum.format.layout import lower, stand_in
from datum.schema import Feature
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, TIMES

if TYPE_CHECKING:
    from datum.format.encode import Collection

__all__ = ["Counts", "FeatureStatistics", "Range", "Statistics", "summarize"]

MAX_SHOWN = 20  # most frequent values: enough to see, few enough for a manifest
MAX_DISTINCT = 1000  # the limit of the core
MAX_COUNTED_BYTES = 64  # longer texts are not labels: the core does not count such features


@dataclass(frozen=True, slots=True)
class Range:
    """The extremes and the sum of numbers or sizes.

    Attributes:
        count: The number of finite values.
        lowest: The smallest; None if there are none.
        highest: The largest.
        total: Their sum; exact for integers.
        nan: The number of further values that are NaN or NaT.
        infinite: The number of further values that are infinite.
    """

    count: int = 0
    lowest: float | None = None
    highest: float | None = None
    total: float = 0
    nan: int = 0
    infinite: int = 0

    @property
    def mean(self) -> float | None:
        """The sum over the count; None if it is out of the range of floats."""
        is_known = self.count > 0 and math.isfinite(self.total)
        return self.total / self.count if is_known else None

    def merge(self, other: Range) -> Range:
        """Return the range of both."""
        ends = [end for one in (self, other) if one.count for end in (one.lowest, one.highest)]
        known = [end for end in ends if end is not None]
        return Range(
            self.count + other.count,
            min(known, default=None),
            max(known, default=None),
            self.total + other.total,
            self.nan + other.nan,
            self.infinite + other.infinite,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        mean = self.mean
        found = {"count": self.count, "min": self.lowest, "max": self.highest, "mean": mean}
        is_known = mean is not None or not self.count
        is_short = -(2**63) <= self.total < 2**63  # exact in readers of JSON
        found["sum"] = (self.total if is_short else float(self.total)) if is_known else None
        return found | {key: n for key, n in (("nan", self.nan), ("inf", self.infinite)) if n}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Range:
        """Read the output of `to_json`."""
        total = math.inf if found["sum"] is None else found["sum"]
        ends = found["min"], found["max"]
        return cls(found["count"], *ends, total, found.get("nan", 0), found.get("inf", 0))


@dataclass(frozen=True, slots=True)
class Counts:
    """The frequencies of values.

    Attributes:
        values: The count of each; empty if there are too many.
        more_than: A lower limit of the distinct values, if they were not all kept.
    """

    values: Mapping[Any, int]
    more_than: int | None = None

    def merge(self, other: Counts) -> Counts:
        """Return the counts of both, as long as there are few enough."""
        limits = [one.more_than for one in (self, other) if one.more_than is not None]
        if limits:
            return Counts({}, max(*limits, len(self.values) - 1, len(other.values) - 1))
        values = dict(self.values)
        for value, count in other.values.items():
            values[value] = values.get(value, 0) + count
        return Counts(values) if len(values) <= MAX_DISTINCT else Counts({}, MAX_DISTINCT)

    def most_frequent(self, limit: int | None = MAX_SHOWN) -> list[tuple[Any, int]]:
        """Return values and their counts, the most frequent first."""
        is_bool = all(isinstance(value, bool) for value in self.values)
        plain = (
            (int(value) if isinstance(value, bool) and not is_bool else value, count)
            for value, count in self.values.items()
        )
        return sorted(plain, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def to_json(self, *, limit: int | None = MAX_SHOWN) -> dict[str, Any]:
        """Return plain values for `from_json`, with only the most frequent values."""
        if self.more_than is not None:
            return {"distinct": f"more than {self.more_than}"}
        shown = [*map(list, self.most_frequent(limit))]
        return {"distinct": len(self.values), "most_frequent": shown}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Counts:
        """Read the output of `to_json`."""
        distinct = found["distinct"]
        if isinstance(distinct, str):
            return cls({}, int(distinct.removeprefix("more than ")))
        values = dict(map(tuple, found["most_frequent"]))
        return cls(values, None if len(values) == distinct else distinct - 1)


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """Statistics of one feature.

    Attributes:
        present: The number of records that have it.
        missing: The number of records that do not.
        numbers: The range of its elements, if they are numbers or times.
        lengths: The range of items in each record, if it differs; of values for sparse features.
        bytes: The range of sizes of its strings, or files.
        counts: The counts of its values, if they are scalar integers, booleans or short texts.
    """

    present: int
    missing: int = 0
    numbers: Range | None = None
    lengths: Range | None = None
    bytes: Range | None = None
    counts: Counts | None = None

    def merge(self, other: FeatureStatistics) -> FeatureStatistics:
        """Return the statistics of both; facts that only one of them has are dropped."""
        if not self.present or not other.present:
            known = self if self.present else other
            present, missing = self.present + other.present, self.missing + other.missing
            return replace(known, present=present, missing=missing)
        return FeatureStatistics(
            self.present + other.present,
            self.missing + other.missing,
            numbers=self.numbers and other.numbers and self.numbers.merge(other.numbers),
            lengths=self.lengths and other.lengths and self.lengths.merge(other.lengths),
            bytes=self.bytes and other.bytes and self.bytes.merge(other.bytes),
            counts=self.counts and other.counts and self.counts.merge(other.counts),
        )

    def to_json(self, *, limit: int | None = MAX_SHOWN) -> dict[str, Any]:
        """Return plain values for `from_json`."""
        found: dict[str, Any] = {"present": self.present, "missing": self.missing}
        for name in ("numbers", "lengths", "bytes"):
            part = getattr(self, name)
            if part is not None:
                found[name] = part.to_json()
        return found | (self.counts.to_json(limit=limit) if self.counts is not None else {})

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> FeatureStatistics:
        """Read the output of `to_json`."""
        ranges = {
            name: Range.from_json(found[name])
            for name in ("numbers", "lengths", "bytes")
            if name in found
        }
        counts = Counts.from_json(found) if "distinct" in found else None
        return cls(found["present"], found["missing"], **ranges, counts=counts)


@dataclass(frozen=True, slots=True)
class Statistics:
    """Statistics of the features of some records.

    Merging blocks in the same order returns the same statistics to the last bit.

    >>> from datum.format import RowEncoder
    >>> block = RowEncoder().encode([{"x": 1}, {"x": 5}, {}])
    >>> block.statistics.features["x"].numbers.mean
    3.0
    """

    records: int = 0
    features: Mapping[str, FeatureStatistics] = field(default_factory=dict)

    def merge(self, other: Statistics) -> Statistics:
        """Return the statistics of both; the records of `other` come after these."""
        features = {}
        for name in [
            *self.features,
            *(name for name in other.features if name not in self.features),
        ]:
            mine = self.features.get(name) or FeatureStatistics(0, self.records)
            theirs = other.features.get(name) or FeatureStatistics(0, other.records)
            features[name] = mine.merge(theirs)
        return Statistics(self.records + other.records, features)

    def to_json(self, *, limit: int | None = MAX_SHOWN) -> dict[str, Any]:
        """Return plain values for `from_json`, with at most `limit` of the most frequent values."""
        features = {name: one.to_json(limit=limit) for name, one in self.features.items()}
        return {"records": self.records, "features": features}

    @classmethod
    def from_json(cls, found: Any) -> Statistics:
        """Read the output of `to_json`."""
        try:
            features = found["features"].items()
            return cls(
                int(found["records"]),
                {name: FeatureStatistics.from_json(feature) for name, feature in features},
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            raise SchemaError("expected statistics as JSON, got something else") from None


_NUMBERS = (*INTEGERS, *FLOATS_ON_WIRE, "float64")
_ELEMENTS = (
    {name: getattr(_core.Element, name.upper()) for name in _NUMBERS}
    | dict.fromkeys(TIMES, _core.Element.TIME)
    | dict.fromkeys(("complex64", "complex128"), _core.Element.COMPLEX)
    | {"bytes": _core.Element.BYTES, "str": _core.Element.TEXT}
)


def summarize(collection: Collection, *, uncounted: Container[str], threads: int) -> Statistics:
    """Return the statistics of each feature; skip counting the values of `uncounted` ones."""
    names: list[str] = []
    asked: list[tuple[_core.ColumnInput, _core.Element, bool]] = []
    for name in collection.schema:
        sources = collection.sources.get(name)
        if sources is None:  # no record has it
            continue
        feature = stand_in(collection.schema[name])
        is_counted = _has_counts(feature) and name not in uncounted
        names.append(name)
        asked.append((sources[0], _element_of(feature), is_counted))
        if len(sources) > 1 and lower(name, feature)[1].role == "lengths":  # the outermost rows
            names.append(name)
            asked.append((sources[1], _core.Element.INT64, False))
    found = _core.summarize(asked, collection.count, threads)
    features: dict[str, FeatureStatistics] = {}
    for name, part in zip(names, found, strict=True):
        if name in features:
            features[name] = replace(features[name], lengths=_range(part[1]))
        else:
            features[name] = _make(stand_in(collection.schema[name]), collection.count, *part)
    return Statistics(collection.count, features)


def _element_of(feature: Feature) -> _core.Element:
    is_widened = feature.dtype in FLOATS_ON_WIRE and not feature.is_raw
    return _core.Element.FLOAT32 if is_widened else _ELEMENTS[feature.dtype]


def _has_counts(feature: Feature) -> bool:
    is_countable = feature.dtype in INTEGERS or feature.dtype == "str"
    return is_countable and feature.shape == () and feature.encoding == "values"


def _make(
    feature: Feature,
    records: int,
    missing: int,
    lengths: Any,
    sizes: Any,
    numbers: Any,
    counts: Any,
) -> FeatureStatistics:
    found = None
    strings = _range(sizes)
    is_long = strings is not None and (strings.highest or 0) > MAX_COUNTED_BYTES
    if _has_counts(feature) and not is_long:
        found = Counts({}, MAX_DISTINCT) if counts is None else Counts(counts)
    present = records - missing
    return FeatureStatistics(
        present,
        missing,
        numbers=None if numbers is None else _numbers(*numbers),
        lengths=_lengths(feature, present, lengths),
        bytes=strings,
        counts=found,
    )


def _numbers(count: int, nan: int, infinite: int, lowest: Any, highest: Any, total: Any) -> Range:
    return Range(count, lowest, highest, total, nan, infinite)


def _lengths(feature: Feature, present: int, lengths: Any) -> Range | None:
    """Return the number of values of sparse features, or the length of the first dimension."""
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return None  # only the total number of items is known
    if lengths is None and feature.shape and present:
        length = feature.shape[0]
        return None if length is None else Range(present, length, length, length * present)
    return _range(lengths)


def _range(sizes: Any) -> Range | None:
    return None if sizes is None else Range(*sizes)
