"""Numbers counted as they come: extremes, mean, spread, and the shape of their distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.profiling.distributions import QUANTILES, Distribution, Histogram
from datum.profiling.sketch import Sketch

__all__ = ["NumberTally", "bin_edges", "tally_numbers"]

HISTOGRAM_BINS = 32  # fits a line of a terminal; a shape needs no more
MIN_INTEGER_BINS, MAX_INTEGER_BINS = 16, 40
_SHARES = np.linspace(0, 1, HISTOGRAM_BINS + 1)
PIECE_VALUES = 2**18  # what is widened to float64 at a time


@dataclass(frozen=True, slots=True)
class NumberTally:
    """What was counted of some numbers.

    Attributes:
        count: of finite numbers.
        lowest, highest: of these.
        mean: of these.
        squares: the sum of their squared distances from the mean.
        zeros: how many of them are 0.
        nan, infinite: how many more there are that are no numbers, or infinite.
        sketch: how they are distributed.
        is_integer: whether they are whole by their type.
    """

    count: float = 0
    lowest: Any = None
    highest: Any = None
    mean: float = 0.0
    squares: float = 0.0
    zeros: float = 0
    nan: float = 0
    infinite: float = 0
    sketch: Sketch = field(default_factory=Sketch)
    is_integer: bool = True

    def merge(self, other: NumberTally) -> NumberTally:
        """Of the numbers of both."""
        nan, infinite = self.nan + other.nan, self.infinite + other.infinite
        is_integer = self.is_integer and other.is_integer
        if not self.count or not other.count:
            known = self if self.count else other
            return replace(known, nan=nan, infinite=infinite, is_integer=is_integer)
        count, mean, squares = _merge_moments(
            (self.count, self.mean, self.squares), (other.count, other.mean, other.squares)
        )
        return NumberTally(
            count,
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            mean,
            squares,
            self.zeros + other.zeros,
            nan,
            infinite,
            self.sketch.merge(other.sketch),
            is_integer,
        )

    def scaled(self, factor: float) -> NumberTally:
        """The same, as if each number had been there `factor` times."""
        return replace(
            self,
            count=self.count * factor,
            squares=self.squares * factor,
            zeros=self.zeros * factor,
            nan=self.nan * factor,
            infinite=self.infinite * factor,
            sketch=self.sketch.scaled(factor),
        )

    def result(self, *, is_exact: bool) -> Distribution:
        """What it says."""
        if not self.count:
            return Distribution(0, nan=round(self.nan), infinite=round(self.infinite))
        quantiles = self.sketch.quantiles(QUANTILES).tolist()
        return Distribution(
            round(self.count),
            self.lowest,
            self.highest,
            self.mean if math.isfinite(self.mean) else None,
            math.sqrt(self.squares / self.count) if math.isfinite(self.squares) else None,
            dict(zip(QUANTILES, quantiles, strict=True)),
            round(self.zeros),
            round(self.nan),
            round(self.infinite),
            self.histogram(self.lowest, self.highest),
            is_exact,
        )

    def histogram(self, lowest: Any, highest: Any) -> Histogram | None:
        """How the numbers are distributed between two of them."""
        if not self.count:
            return None
        is_integer = self.is_integer or self._is_whole(lowest, highest)
        edges = bin_edges(lowest, highest, is_integer=is_integer)
        counts = [round(count) for count in self.sketch.histogram(edges).tolist()]
        return Histogram(tuple(edges.tolist()), tuple(counts))

    def _is_whole(self, lowest: Any, highest: Any) -> bool:
        """Whether floats are whole numbers: bins that hold unequally many would look like combs."""
        if not (float(lowest).is_integer() and float(highest).is_integer()):
            return False
        return all(bool((points == np.floor(points)).all()) for points, _ in self.sketch.parts)


def tally_numbers(values: NDArray[Any]) -> NumberTally:
    """Count the elements of an array: numbers, truth values or times (as counts of their unit)."""
    flat, nan, infinite = _finite(values.reshape(-1))
    is_integer = flat.dtype.kind in "iu"
    if not len(flat):
        return NumberTally(nan=nan, infinite=infinite, is_integer=is_integer)
    _, mean, squares = _moments(flat)
    return NumberTally(
        len(flat),
        flat.min().item(),
        flat.max().item(),
        mean,
        squares,
        len(flat) - int(np.count_nonzero(flat)),
        nan,
        infinite,
        Sketch.of(flat),
        is_integer,
    )


def _finite(flat: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """The finite numbers; how many are none, and how many infinite."""
    kind = flat.dtype.kind
    if kind == "b":
        return flat.view(np.uint8), 0, 0
    if kind in "mM":
        is_nat = np.isnat(flat)
        kept = flat[~is_nat] if is_nat.any() else flat
        return kept.astype(np.int64), int(is_nat.sum()), 0
    if kind == "c":
        flat = np.abs(flat)  # their size: complex numbers have no order
    elif kind in "iu":
        return flat, 0, 0
    if flat.dtype.itemsize < 4 or kind == "V":  # float16, and bfloat16 of ml_dtypes
        flat = flat.astype(np.float32)
    is_finite = np.isfinite(flat)
    if is_finite.all():
        return flat, 0, 0
    nan = int(np.isnan(flat).sum())
    return flat[is_finite], nan, int(len(flat) - is_finite.sum()) - nan


def _moments(flat: NDArray[Any]) -> tuple[float, float, float]:
    """Count, mean and sum of squared distances from the mean."""
    found = (0.0, 0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks for what is not finite
        for start in range(0, len(flat), PIECE_VALUES):
            piece = flat[start : start + PIECE_VALUES].astype(np.float64)
            mean = float(piece.mean())
            piece -= mean
            np.multiply(piece, piece, out=piece)  # np.dot would wake up threads of BLAS
            found = _merge_moments(found, (len(piece), mean, float(piece.sum())))
    return found


def _merge_moments(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Chan's way: exact to rounding, wherever the mean lies."""
    count = first[0] + second[0]
    if not first[0]:
        return second
    apart = second[1] - first[1]
    mean = first[1] + apart * (second[0] / count)
    # Not squared with **, which raises where floats overflow.
    squares = first[2] + second[2] + apart * apart * (first[0] * second[0] / count)
    return count, mean, squares


def bin_edges(lowest: Any, highest: Any, *, is_integer: bool) -> NDArray[np.float64]:
    """Edges of bins of equal width; those of integers hold equally many, but for the last one.

    >>> bin_edges(1, 3, is_integer=True).tolist()
    [1.0, 2.0, 3.0, 4.0]
    """
    if is_integer:
        lowest, highest = int(lowest), int(highest)
        span = highest - lowest + 1
        width = _even_width(span)
        edges = [lowest + width * at for at in range(-(-span // width))]
        return np.array([*edges, highest + 1], np.float64)
    if lowest == highest:
        return np.array([lowest, highest], np.float64)
    # Not by their difference, which may overflow.
    return np.asarray(lowest * (1 - _SHARES) + highest * _SHARES, np.float64)


def _even_width(span: int) -> int:
    """How many integers to put into a bin, so that little is missing in the last one."""
    if span <= MAX_INTEGER_BINS:
        return 1
    widths = {-(-span // bins) for bins in range(MIN_INTEGER_BINS, MAX_INTEGER_BINS + 1)}
    return min(widths, key=lambda width: (-span % width / width, width))
