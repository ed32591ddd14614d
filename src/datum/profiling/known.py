"""What a manifest knows of all records, put in the place of what a look at some of them found."""

from __future__ import annotations

from dataclasses import replace

from datum.dataset import Dataset
from datum.errors import SchemaError
from datum.format import Statistics
from datum.format.statistics import Counts, FeatureStatistics, Range
from datum.profiling.distributions import Distribution, ValueCounts
from datum.profiling.numbers import NumberTally
from datum.profiling.results import FeatureProfile
from datum.profiling.tally import FeatureTally

__all__ = ["known_statistics", "with_known"]


def known_statistics(dataset: Dataset, split: str) -> Statistics | None:
    """What was counted when a split was written; None where nobody did, or of other records."""
    if split not in dataset.splits:  # a part of one, or several
        return None
    try:
        found = Statistics.from_json(dataset.statistics.get(split))
    except SchemaError:
        return None
    return found if found.records == dataset.splits[split].records else None


def with_known(
    profile: FeatureProfile, tally: FeatureTally, known: FeatureStatistics
) -> FeatureProfile:
    """A profile with the counts, ranges and values that are known of all records."""
    return replace(
        profile,
        present=known.present,
        missing=known.missing,
        is_exact=True,
        numbers=_with_range(profile.numbers, tally.numbers, known.numbers),
        lengths=profile.lengths and _with_range(profile.lengths, tally.lengths, known.lengths),
        sizes=_with_range(profile.sizes, tally.sizes, known.bytes),
        counts=_with_counts(profile.counts, known.counts),
    )


def _with_range(
    found: Distribution | None, tally: NumberTally | None, known: Range | None
) -> Distribution | None:
    if known is None:
        return found
    histogram = None
    if tally is not None and known.count and known.lowest is not None:
        histogram = tally.histogram(known.lowest, known.highest)
    return replace(
        found or Distribution(0),
        count=known.count,
        lowest=known.lowest,
        highest=known.highest,
        mean=known.mean,
        std=found.std if found is not None and found.is_exact else None,  # none goes with `mean`
        nan=known.nan,
        infinite=known.infinite,
        histogram=histogram,
        is_exact=True,
    )


def _with_counts(found: ValueCounts | None, known: Counts | None) -> ValueCounts | None:
    """The counts of the manifest, if it holds all; else at least how many values there are."""
    if known is None or (found is not None and found.is_exact):
        return found
    names = {} if found is None else found.names
    if known.more_than is None:
        values = tuple(known.most_frequent(None))
        return ValueCounts(len(values), values, sum(known.values.values()), names)
    if found is None:
        return None
    distinct = known.more_than + 1
    if not known.values and found.is_counted:  # too many to be counted: more were seen, perhaps
        distinct = max(found.distinct, distinct)
    return replace(
        found,
        distinct=distinct,
        is_counted=bool(known.values),  # the most frequent, and how many there are
        is_complete=False,
        is_known=True,
    )
