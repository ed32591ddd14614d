"""The shape of a distribution in bounded memory: quantiles and histograms of any number of values.

Sorted samples stand for the values, each sample for as many as its weight says. Up to
`MAX_POINTS` values are all kept, so that small datasets are described exactly; of more, each part
is thinned to points of equal weight, which keeps the rank of every quantile to about 0.1 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Sketch"]

MAX_POINTS = 2**16  # half a MiB, for as long as a feature is looked at
MAX_PIECES = 64
PART_POINTS = 512  # of a part that was thinned: ranks within it are off by less than 0.1 %
_SEED = 0  # what is drawn of a large array: the same each time

_Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sketch:
    """Numbers by samples of them: parts of sorted points, each with the weight of its points.

    >>> sketch = Sketch.of(np.array([4.0, 1.0, 3.0, 2.0])).merge(Sketch.of(np.array([5.0])))
    >>> sketch.quantiles([0.5]).tolist()
    [3.0]
    """

    parts: tuple[tuple[_Points, float], ...] = ()

    @classmethod
    def of(cls, values: NDArray[Any]) -> Sketch:
        """Of finite numbers in one dimension; of very many, of some drawn evenly."""
        if not len(values):
            return cls()
        drawn = values
        if len(values) > MAX_POINTS:
            # Not every n-th: of arrays that could be the pixels of one column.
            places = np.random.default_rng(_SEED).integers(0, len(values), MAX_POINTS)
            drawn = values[places]
        points = np.sort(drawn).astype(np.float64)
        return cls(((points, len(values) / len(points)),))

    def merge(self, other: Sketch) -> Sketch:
        """Of the values of both."""
        parts = self.parts + other.parts
        if sum(len(points) for points, _ in parts) > MAX_POINTS:
            parts = tuple(_thinned(*part) for part in parts)
        if len(parts) > MAX_PIECES:
            parts = (_joined(parts),)
        return Sketch(parts)

    def scaled(self, factor: float) -> Sketch:
        """The same, as if each value had been there `factor` times."""
        return Sketch(tuple((points, weight * factor) for points, weight in self.parts))

    def quantiles(self, shares: Sequence[float]) -> NDArray[np.float64]:
        """Below which values these shares lie, as NumPy counts them; NaN of no values."""
        if not self.parts:
            return np.full(len(shares), np.nan)
        values, weights = self.by_value()
        middles = np.cumsum(weights) - weights / 2
        # From the middle of the first value to that of the last.
        wanted = middles[0] + np.array(shares) * (middles[-1] - middles[0])
        return np.asarray(np.interp(wanted, middles, values), np.float64)

    def histogram(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """How many values lie between neighbouring edges, the last bin with both of its own."""
        counts = np.zeros(len(edges) - 1)
        for points, weight in self.parts:
            places = np.searchsorted(points, edges)
            places[-1] = np.searchsorted(points, edges[-1], "right")
            counts += np.diff(places) * weight
        return counts

    def by_value(self) -> tuple[_Points, _Points]:
        """All points in order, and the weight of each."""
        if len(self.parts) == 1:
            points, weight = self.parts[0]
            return points, np.full(len(points), weight)
        values = np.concatenate([points for points, _ in self.parts])
        weights = np.concatenate([np.full(len(points), weight) for points, weight in self.parts])
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]


def _thinned(points: _Points, weight: float) -> tuple[_Points, float]:
    """Every n-th point of a part that was not thinned before."""
    if len(points) <= PART_POINTS or len(points) == MAX_POINTS // 2:
        return points, weight
    places = ((np.arange(PART_POINTS) + 0.5) * (len(points) / PART_POINTS)).astype(np.int64)
    return points[places], weight * len(points) / PART_POINTS


def _joined(parts: tuple[tuple[_Points, float], ...]) -> tuple[_Points, float]:
    """All parts as one, of points of equal weight."""
    values, weights = Sketch(parts).by_value()
    ends = np.cumsum(weights)
    count = min(MAX_POINTS // 2, len(values))
    wanted = (np.arange(count) + 0.5) * (ends[-1] / count)
    places = np.minimum(np.searchsorted(ends, wanted), len(values) - 1)
    return values[places], float(ends[-1] / count)
