"""Values counted as they come: how often each occurs, and about how many there are."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.profiling.distributions import ValueCounts

__all__ = ["ValueTally", "tally_strings", "tally_values"]

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
