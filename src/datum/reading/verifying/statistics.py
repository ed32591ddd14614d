"""Whether the values of a split are like its manifest says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from datum.errors import DatumError, SchemaError
from datum.format import Records, Statistics
from datum.format.collect import collect
from datum.format.statistics import Counts, FeatureStatistics, Range
from datum.format.summarize import summarize
from datum.schema import Schema

__all__ = ["compare_statistics", "summarize_columns"]


def summarize_columns(
    columns: dict[str, Any], records: Records, schema: Schema
) -> Statistics | None:
    """What the values of some parsed records are like; None where that cannot be told."""
    if not len(records):
        return Statistics()
    try:
        return summarize(collect(columns, schema), uncounted=(), threads=1)
    except DatumError:  # of values that can be read, but that a writer would not have stored so
        return None


def compare_statistics(
    told: Mapping[str, Any], found: Statistics
) -> Iterator[tuple[str | None, str]]:
    """Where what a manifest tells differs from what was found: features and problems.

    Sums are left aside: those of floats depend on the order of adding.
    """
    try:
        expected = Statistics.from_json(told)
    except SchemaError:  # of another writer, in another form
        return
    if expected.records != found.records:
        yield None, _differs("records", expected.records, found.records)
    for name, feature in expected.features.items():
        other = found.features.get(name) or FeatureStatistics(0, found.records)
        for problem in _compare_feature(feature, other):
            yield name, problem


def _compare_feature(told: FeatureStatistics, found: FeatureStatistics) -> Iterator[str]:
    for what in ("present", "missing"):
        counts = getattr(told, what), getattr(found, what)
        if counts[0] != counts[1]:
            yield _differs(f"records in which it is {what}", *counts)
    for name in ("numbers", "lengths", "bytes"):
        told_range, found_range = getattr(told, name), getattr(found, name)
        if told_range is not None and found_range is not None:
            yield from _compare_range(name, told_range, found_range)
    if told.counts is not None and found.counts is not None:
        yield from _compare_counts(told.counts, found.counts)


def _compare_range(name: str, told: Range, found: Range) -> Iterator[str]:
    parts = (("count", "count"), ("lowest", "least"), ("highest", "greatest"))
    for part, word in (*parts, ("nan", "count of nan"), ("infinite", "count of infinite")):
        if getattr(told, part) != getattr(found, part):
            yield _differs(f"{word} of {name}", getattr(told, part), getattr(found, part))


def _compare_counts(told: Counts, found: Counts) -> Iterator[str]:
    if found.more_than is not None:
        return
    for value, count in told.values.items():
        if found.values.get(value, 0) != count:
            yield _differs(f"count of {value!r}", count, found.values.get(value, 0))
            return


def _differs(what: str, told: object, found: object) -> str:
    return f"expected {what} of {told}, as the manifest says, got {found}"
