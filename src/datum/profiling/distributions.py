"""Numbers, values and images as a profile tells them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["QUANTILES", "Distribution", "Histogram", "ImageProfile", "ValueCounts", "plain"]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many values lie between neighbouring edges; there is one edge more than counts.

    Each bin holds its lower edge, the last one its upper edge too.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"edges": list(self.edges), "counts": list(self.counts)}


@dataclass(frozen=True, slots=True)
class Distribution:
    """Numbers: elements of a feature, lengths or sizes. Times are counts of their unit.

    Attributes:
        count: how many finite ones there are.
        lowest, highest, mean: of these; None if there are none.
        std: their standard deviation.
        quantiles: below which value a share of them lies, by share.
        zeros: how many are 0.
        nan: how many more are no numbers.
        infinite: how many more are infinite.
        histogram: how they are distributed.
        is_exact: whether `count`, extremes, `mean`, `nan` and `infinite` are those of all records,
            read now or known from the manifest; all else is of the records that were looked at.
    """

    count: int
    lowest: Any = None
    highest: Any = None
    mean: float | None = None
    std: float | None = None
    quantiles: Mapping[float, float] = field(default_factory=dict)
    zeros: int = 0
    nan: int = 0
    infinite: int = 0
    histogram: Histogram | None = None
    is_exact: bool = True

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "count": self.count,
            "min": self.lowest,
            "max": self.highest,
            "mean": self.mean,
            "std": self.std,
            "quantiles": {f"{share:g}": value for share, value in self.quantiles.items()},
            "zeros": self.zeros,
            "nan": self.nan,
            "inf": self.infinite,
            "exact": self.is_exact,
            "histogram": self.histogram and self.histogram.to_json(),
        }


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How often values occur.

    Attributes:
        distinct: how many values there are; about, unless `is_counted`.
        values: values and their counts, the most frequent first; not all, unless `is_complete`.
        total: how many were counted.
        names: what values are called, where they are classes; also of those that never occur.
        is_counted: whether `distinct` was counted, not estimated.
        is_complete: whether `values` are all there are.
        is_exact: whether the counts are those of all records.
        is_known: whether `distinct` is of all records, though the counts are not: it is the least
            there can be, unless `is_counted`.
    """

    distinct: int
    values: tuple[tuple[Any, int], ...]
    total: int
    names: Mapping[Any, str] = field(default_factory=dict)
    is_counted: bool = True
    is_complete: bool = True
    is_exact: bool = True
    is_known: bool = False

    def name_of(self, value: Any) -> str:
        """The name of a class, or the value itself, as text.

        >>> ValueCounts(1, ((0, 5),), 5, names={0: "cat"}).name_of(0)
        'cat'
        """
        if value in self.names:
            return self.names[value]
        if isinstance(value, bytes):
            return value.decode(errors="backslashreplace")
        return str(value)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        values = [
            {"value": plain(value), "count": count}
            | ({"name": self.names[value]} if value in self.names else {})
            for value, count in self.values
        ]
        return {
            "distinct": self.distinct,
            "distinct_exact": self.is_counted,
            "total": self.total,
            "complete": self.is_complete,
            "exact": self.is_exact,
            "values": values,
        }


@dataclass(frozen=True, slots=True)
class ImageProfile:
    """Encoded images, by their headers alone.

    Attributes:
        formats: how many there are of each format.
        channels: how many there are of each number of channels.
        width, height, pixels: of those whose header can be read.
        unreadable: how many are no images, or damaged.
    """

    formats: Mapping[str, int]
    channels: Mapping[int, int]
    width: Distribution
    height: Distribution
    pixels: Distribution
    unreadable: int = 0

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "formats": dict(self.formats),
            "channels": {str(key): count for key, count in self.channels.items()},
            "width": self.width.to_json(),
            "height": self.height.to_json(),
            "pixels": self.pixels.to_json(),
            "unreadable": self.unreadable,
        }


def plain(value: Any) -> Any:
    """As JSON holds it: bytes as text."""
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else value
