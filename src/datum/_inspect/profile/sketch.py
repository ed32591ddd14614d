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

MAX_POINTS = 2**16  # half a MiB per feature
MAX_PIECES = 64
PART_POINTS = 512  # of a thinned part, whose ranks are off by less than 0.1 %
_SEED = 0  # makes draws from large arrays repeatable

_Points = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A mergeable sketch of numbers: parts of sorted points, each with a weight per point.

    >>> sketch = Sketch.of(np.array([4.0, 1.0, 3.0, 2.0])).merge(Sketch.of(np.array([5.0])))
    >>> sketch.quantiles([0.5]).tolist()
    [3.0]
    """

    parts: tuple[tuple[_Points, float], ...] = ()

    @classmethod
    def of(cls, values: NDArray[Any]) -> Sketch:
        """Sketch finite numbers; of very many, a random sample."""
        if not len(values):
            return cls()
        drawn = values
        if len(values) > MAX_POINTS:
            # Not every n-th value, which could be one column of pixels.
            places = np.random.default_rng(_SEED).integers(0, len(values), MAX_POINTS)
            drawn = values[places]
        points = np.sort(drawn).astype(np.float64)
        return cls(((points, len(values) / len(points)),))

    def merge(self, other: Sketch) -> Sketch:
        """Return the sum of both."""
        parts = self.parts + other.parts
        if sum(len(points) for points, _ in parts) > MAX_POINTS:
            parts = tuple(_thinned(*part) for part in parts)
        if len(parts) > MAX_PIECES:
            parts = (_joined(parts),)
        return Sketch(parts)

    def scaled(self, factor: float) -> Sketch:
        """Return a copy that counts each value `factor` times."""
        return Sketch(tuple((points, weight * factor) for points, weight in self.parts))

    def quantiles(self, shares: Sequence[float]) -> NDArray[np.float64]:
        """Return quantiles by NumPy's linear method; NaN without values."""
        if not self.parts:
            return np.full(len(shares), np.nan)
        values, weights = self.by_value()
        middles = np.cumsum(weights) - weights / 2
        # From the middle of the first weight to that of the last.
        wanted = middles[0] + np.array(shares) * (middles[-1] - middles[0])
        return np.asarray(np.interp(wanted, middles, values), np.float64)

    def histogram(self, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count values between neighbouring edges; the last bin includes its upper edge."""
        counts = np.zeros(len(edges) - 1)
        for points, weight in self.parts:
            places = np.searchsorted(points, edges)
            places[-1] = np.searchsorted(points, edges[-1], "right")
            counts += np.diff(places) * weight
        return counts

    def by_value(self) -> tuple[_Points, _Points]:
        """Return all points in order, with their weights."""
        if len(self.parts) == 1:
            points, weight = self.parts[0]
            return points, np.full(len(points), weight)
        values = np.concatenate([points for points, _ in self.parts])
        weights = np.concatenate([np.full(len(points), weight) for points, weight in self.parts])
        order = np.argsort(values, kind="stable")
        return values[order], weights[order]


def _thinned(points: _Points, weight: float) -> tuple[_Points, float]:
    """Keep every n-th point of a part that was not thinned before."""
    if len(points) <= PART_POINTS or len(points) == MAX_POINTS // 2:
        return points, weight
    places = ((np.arange(PART_POINTS) + 0.5) * (len(points) / PART_POINTS)).astype(np.int64)
    return points[places], weight * len(points) / PART_POINTS


def _joined(parts: tuple[tuple[_Points, float], ...]) -> tuple[_Points, float]:
    """Join all parts into one with equal weights."""
    values, weights = Sketch(parts).by_value()
    ends = np.cumsum(weights)
    count = min(MAX_POINTS // 2, len(values))
    wanted = (np.arange(count) + 0.5) * (ends[-1] / count)
    places = np.minimum(np.searchsorted(ends, wanted), len(values) - 1)
    return values[places], float(ends[-1] / count)


HISTOGRAM_BINS = 32  # fits a line of a terminal; a shape needs no more
MIN_INTEGER_BINS, MAX_INTEGER_BINS = 16, 40
_SHARES = np.linspace(0, 1, HISTOGRAM_BINS + 1)
PIECE_VALUES = 2**18  # converted to float64 at a time


@dataclass(frozen=True, slots=True)
class NumberTally:
    """Counts of some numbers.

    Attributes:
        count: Number of finite numbers.
        lowest, highest: Extremes of the finite numbers.
        mean: Mean of the finite numbers.
        squares: Sum of squared distances from the mean.
        zeros: Number of zeros.
        nan, infinite: Number of NaN and infinite values, not in `count`.
        sketch: Distribution of the numbers.
        is_integer: Whether their type is an integer.
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
        """Return the sum of both."""
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
        """Return a copy that counts each number `factor` times."""
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
        """Return the result."""
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
        """Return the histogram between two numbers."""
        if not self.count:
            return None
        is_integer = self.is_integer or self._is_whole(lowest, highest)
        edges = bin_edges(lowest, highest, is_integer=is_integer)
        counts = [round(count) for count in self.sketch.histogram(edges).tolist()]
        return Histogram(tuple(edges.tolist()), tuple(counts))

    def _is_whole(self, lowest: Any, highest: Any) -> bool:
        """Return whether all floats are whole, so that bins should hold equally many."""
        if not (float(lowest).is_integer() and float(highest).is_integer()):
            return False
        return all(bool((points == np.floor(points)).all()) for points, _ in self.sketch.parts)


def tally_numbers(values: NDArray[Any]) -> NumberTally:
    """Count the elements of an array: numbers, booleans, or times in their unit."""
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
    """Return the finite numbers, and the number of NaN and of infinite ones."""
    kind = flat.dtype.kind
    if kind == "b":
        return flat.view(np.uint8), 0, 0
    if kind in "mM":
        is_nat = np.isnat(flat)
        kept = flat[~is_nat] if is_nat.any() else flat
        return kept.astype(np.int64), int(is_nat.sum()), 0
    if kind == "c":
        flat = np.abs(flat)  # magnitudes, because complex numbers have no order
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
    with np.errstate(over="ignore", invalid="ignore"):  # the caller handles non-finite results
        for start in range(0, len(flat), PIECE_VALUES):
            piece = flat[start : start + PIECE_VALUES].astype(np.float64)
            mean = float(piece.mean())
            piece -= mean
            np.multiply(piece, piece, out=piece)  # np.dot would start BLAS threads
            found = _merge_moments(found, (len(piece), mean, float(piece.sum())))
    return found


def _merge_moments(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Merge moments by Chan's method, which is stable for any mean."""
    count = first[0] + second[0]
    if not first[0]:
        return second
    apart = second[1] - first[1]
    mean = first[1] + apart * (second[0] / count)
    # Not with **, which raises on overflow.
    squares = first[2] + second[2] + apart * apart * (first[0] * second[0] / count)
    return count, mean, squares


def bin_edges(lowest: Any, highest: Any, *, is_integer: bool) -> NDArray[np.float64]:
    """Return edges of bins of equal width; integer bins hold equally many but for the last.

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
    # Not from the difference, which may overflow.
    return np.asarray(lowest * (1 - _SHARES) + highest * _SHARES, np.float64)


def _even_width(span: int) -> int:
    """Number of integers per bin that leaves the last bin fullest."""
    if span <= MAX_INTEGER_BINS:
        return 1
    widths = {-(-span // bins) for bins in range(MIN_INTEGER_BINS, MAX_INTEGER_BINS + 1)}
    return min(widths, key=lambda width: (-span % width / width, width))


MAX_COUNTED = 2**14  # distinct values counted; datasets have fewer classes
MAX_LISTED = 1000  # values in a result
MAX_COUNTED_FLOATS = 256  # more distinct floats are measurements, not classes
LEAST_HASHES = 1024  # kept to estimate distinct values to about 3 %
MAX_COUNTED_BYTES = 4096  # longer strings are not counted as values

_Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class ValueTally:
    """Counts of some values.

    Attributes:
        counts: Counts by value; with too many values, those of the frequent ones, each too low by
            at most `error` (Misra-Gries).
        total: Number of values counted.
        error: Number of times all counts were lowered to drop rare values.
        is_abandoned: Whether counting stopped because no value occurred twice.
        hashes: Lowest hashes of all values, to estimate the distinct ones.
        pairs, repeats: Number of neighbouring pairs, and of equal ones among them.
    """

    counts: Mapping[Any, float] = field(default_factory=dict)
    total: float = 0
    error: int = 0
    is_abandoned: bool = False
    hashes: _Hashes = field(default_factory=lambda: np.empty(0, np.uint64))
    pairs: int = 0
    repeats: int = 0

    def merge(self, other: ValueTally) -> ValueTally:
        """Return the sum of both."""
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
        """Return a copy that counts each value `factor` times."""
        counts = {value: count * factor for value, count in self.counts.items()}
        return replace(self, counts=counts, total=self.total * factor)

    @property
    def repeated(self) -> float | None:
        """Share of values equal to the one before."""
        return self.repeats / self.pairs if self.pairs else None

    def result(self, names: Mapping[Any, str], *, is_exact: bool) -> ValueCounts:
        """Return the result."""
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
        """Estimate distinct values from the lowest hashes."""
        if len(self.hashes) < LEAST_HASHES:
            return len(self.hashes)
        return round((LEAST_HASHES - 1) * 2.0**64 / float(self.hashes[-1]))


def tally_values(values: NDArray[Any], *, is_scalar: bool) -> ValueTally | None:
    """Count numbers or booleans without NaN; None for too many distinct floats.

    Equal neighbours are counted only with `is_scalar`, one value per record.
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
    """Hash numbers with SplitMix64."""
    wide = values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
    bits = wide.view(np.uint64)
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
