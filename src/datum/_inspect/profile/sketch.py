"""Numbers and values counted in bounded memory: extremes, quantiles, frequencies."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._inspect.profile.results import QUANTILES, Distribution, Histogram, ValueCounts

__all__ = [
    "NumberTally",
    "Sketch",
    "ValueTally",
    "bin_edges",
    "tally_numbers",
    "tally_strings",
    "tally_values",
]

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


MAX_COUNTED = 2**14  # distinct values of which counts are kept: more classes than datasets have
MAX_LISTED = 1000  # values in a result
MAX_COUNTED_FLOATS = 256  # floats that are this many are measured, not chosen
LEAST_HASHES = 1024  # kept to estimate how many values there are: to about 3 %
MAX_COUNTED_BYTES = 4096  # longer strings are no values to count

_Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ValueTally:
    """What was counted of some values.

    Attributes:
        counts: of each value; where there were too many, of the frequent ones, each too low by at
            most `error` (the way of Misra and Gries).
        total: how many values were counted.
        error: how often all counts were lowered to drop rare values.
        is_abandoned: whether counting was given up, for no value occurred twice.
        hashes: the lowest hashes of all values, which tell how many distinct ones there are.
        pairs, repeats: how many values had one before them, and how many were equal to it.
    """

    counts: Mapping[Any, float] = field(default_factory=dict)
    total: float = 0
    error: int = 0
    is_abandoned: bool = False
    hashes: _Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    pairs: int = 0
    repeats: int = 0

    def merge(self, other: ValueTally) -> ValueTally:
        """Of the values of both."""
        counts = dict(self.counts)
        error, is_abandoned = self.error + other.error, self.is_abandoned or other.is_abandoned
        if not is_abandoned:
            for value, count in other.counts.items():
                counts[value] = counts.get(value, 0) + count
        if len(counts) > MAX_COUNTED:
            counts = {value: count - 1 for value, count in counts.items() if count > 1}
            error += 1
            is_abandoned = not counts
        return ValueTally(
            {} if is_abandoned else counts,
            self.total + other.total,
            error,
            is_abandoned,
            np.union1d(self.hashes, other.hashes)[:LEAST_HASHES],
            self.pairs + other.pairs,
            self.repeats + other.repeats,
        )

    def scaled(self, factor: float) -> ValueTally:
        """The same, as if each value had been there `factor` times."""
        counts = {value: count * factor for value, count in self.counts.items()}
        return replace(self, counts=counts, total=self.total * factor)

    @property
    def repeated(self) -> float | None:
        """The share of values that are equal to the one before them."""
        return self.repeats / self.pairs if self.pairs else None

    def result(self, names: Mapping[Any, str], *, is_exact: bool) -> ValueCounts:
        """What it says."""
        is_counted = not self.error and not self.is_abandoned
        frequent = sorted(self.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        listed = [(value, count) for value, count in frequent[:MAX_LISTED] if count > self.error]
        return ValueCounts(
            len(self.counts) if is_counted else max(self._estimate(), len(self.counts)),
            tuple((value, round(count)) for value, count in listed),
            round(self.total),
            names,
            is_counted=is_counted,
            is_complete=is_counted and len(listed) == len(self.counts),
            is_exact=is_exact and is_counted,
        )

    def _estimate(self) -> int:
        """How many distinct values there are, from how low the lowest hashes are."""
        if len(self.hashes) < LEAST_HASHES:
            return len(self.hashes)
        return round((LEAST_HASHES - 1) * 2.0**64 / float(self.hashes[-1]))


def tally_values(values: NDArray[Any], *, is_scalar: bool) -> ValueTally | None:
    """Count numbers or truth values but NaN, in one dimension; None of floats that are too many.

    Only where each record has one does it tell how often neighbours are equal.
    """
    if values.dtype.kind == "f" and len(np.unique(values[:1024])) > MAX_COUNTED_FLOATS:
        return None
    pairs = max(0, len(values) - 1) if is_scalar else 0
    repeats = int(np.count_nonzero(values[1:] == values[:-1])) if pairs else 0
    if values.dtype.kind == "f":
        values = values[~np.isnan(values)]
    found, counts = np.unique(values, return_counts=True)
    hashes = np.sort(_mix(found))[:LEAST_HASHES]
    is_abandoned = len(found) > MAX_COUNTED
    known = {} if is_abandoned else dict(zip(found.tolist(), counts.tolist(), strict=True))
    return ValueTally(known, len(values), 0, is_abandoned, hashes, pairs, repeats)


def tally_strings(strings: Sequence[Any], *, is_scalar: bool) -> ValueTally:
    """Count texts or byte strings."""
    pairs = max(0, len(strings) - 1) if is_scalar else 0
    repeats = sum(map(operator.eq, strings[1:], strings)) if pairs else 0
    found: Counter[Any] = Counter(strings)
    texts = [one if isinstance(one, str) else one.decode("latin-1") for one in found]
    hashes = np.sort(_core.hash_keys(texts))[:LEAST_HASHES]
    tally = ValueTally(found, len(strings), 0, False, hashes, pairs, repeats)
    return tally if len(found) <= MAX_COUNTED else ValueTally().merge(tally)


def _mix(values: NDArray[Any]) -> _Hashes:
    """A hash of each number, as splitmix64 makes them."""
    wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    bits = wide.view(np.uint64)
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
