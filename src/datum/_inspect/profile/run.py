"""`datum.profile`: statistics of all records of a dataset, or of an evenly spread sample."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

from datum._inspect.profile.counting import SplitTally, count_split, find_duplicates
from datum._inspect.profile.results import (
    Distribution,
    FeatureProfile,
    Profile,
    SplitProfile,
    ValueCounts,
)
from datum._inspect.profile.sketch import NumberTally
from datum._inspect.profile.tally import FeatureTally
from datum._inspect.profile.warnings import find_warnings
from datum._options import thread_count
from datum._read.split import Split
from datum._write.report import FloatReport
from datum.dataset import Dataset
from datum.errors import Message, Option, SchemaError, Text
from datum.format import Statistics
from datum.format.manifest import VERSION
from datum.format.statistics import Counts, FeatureStatistics, Range
from datum.reader import load
from datum.schema import Schema

__all__ = [
    "QUICK_BYTES",
    "QUICK_RECORDS",
    "class_names",
    "find_labels",
    "known_statistics",
    "profile",
    "with_known",
]


def known_statistics(dataset: Dataset, split: str) -> Statistics | None:
    """Statistics of a split in the manifest; None if absent or for other records."""
    if split not in dataset.splits:  # a part of a split, or several splits
        return None
    try:
        found = Statistics.from_json(dataset.statistics.get(split))
    except SchemaError:
        return None
    return found if found.records == dataset.splits[split].records else None


def with_known(
    profile: FeatureProfile, tally: FeatureTally, known: FeatureStatistics
) -> FeatureProfile:
    """Replace counts, ranges and values by those of all records from the manifest."""
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
        std=found.std
        if found is not None and found.is_exact
        else None,  # not known for all records
        nan=known.nan,
        infinite=known.infinite,
        histogram=histogram,
        is_exact=True,
    )


def _with_counts(found: ValueCounts | None, known: Counts | None) -> ValueCounts | None:
    """Counts from the manifest if complete, else a lower bound of distinct values."""
    if known is None or (found is not None and found.is_exact):
        return found
    names = {} if found is None else found.names
    if known.more_than is None:
        values = tuple(known.most_frequent(None))
        return ValueCounts(len(values), values, sum(known.values.values()), names)
    if found is None:
        return None
    distinct = known.more_than + 1
    if not known.values and found.is_counted:  # too many to count; the sample may have more
        distinct = max(found.distinct, distinct)
    return replace(
        found,
        distinct=distinct,
        is_counted=bool(known.values),  # else only a lower bound
        is_complete=False,
        is_known=True,
    )


MAX_CLASSES = 10_000  # more of them are ids
FEW_CLASSES = 20  # of a text feature that may be a label
RECORDS_A_CLASS = 2  # on average; with fewer, values are names
_LABEL = re.compile(
    r"(^|[/_.\s-])(labels?|class(es|_?ids?)?|targets?|category|categories|intent|y)$",
    re.IGNORECASE,
)


def class_names(metadata: Mapping[str, Any]) -> dict[Any, str]:
    """Class names by number, from the metadata of a feature."""
    names = metadata.get("class_names")
    return dict(enumerate(map(str, names))) if isinstance(names, (list, tuple)) else {}


def find_labels(features: Mapping[str, FeatureProfile]) -> set[str]:
    """Find the features that are the class of a record or of objects in it.

    They are recognised by class names or by their own names. Without any, the only text feature
    with few values that every record has is the label.
    """
    found = {name for name, one in features.items() if _has_classes(one) and _is_named(name, one)}
    if found:
        return found
    few = [
        name
        for name, one in features.items()
        if one.counts is not None
        and one.feature.dtype in ("str", "bool")
        and not (one.feature.shape or one.missing)
        and _has_classes(one, at_most=FEW_CLASSES)
        and all(str(value).isprintable() for value, _ in one.counts.values)
    ]
    return set(few) if len(few) == 1 else set()


def _is_named(name: str, one: FeatureProfile) -> bool:
    return bool(one.counts and one.counts.names) or bool(_LABEL.search(name))


def _has_classes(one: FeatureProfile, *, at_most: int = MAX_CLASSES) -> bool:
    counts = one.counts
    if counts is None or not counts.values or not 2 <= counts.distinct <= at_most:
        return False
    if one.feature.dtype.startswith(("float", "bfloat", "datetime", "timedelta")):
        return False
    return counts.total >= RECORDS_A_CLASS * counts.distinct


QUICK_RECORDS = 4096  # enough to show the shapes of distributions
QUICK_BYTES = 64 * 2**20  # of all splits together; quick from any disk
SMALL_RECORDS = 4 * QUICK_RECORDS  # smaller splits are read completely

Sample = int | Literal["quick"] | None


def profile(
    dataset: Dataset | str | os.PathLike[str],
    *,
    split: str | None = None,
    columns: Iterable[str] | None = None,
    sample: Sample = None,
    threads: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Profile:
    """Profile a dataset: ranges, distributions, classes, duplicates, and warnings.

    Statistics of all records are taken from the manifest if it has them. A shard that cannot be
    read is a warning, not an error. Images are not decoded; formats and sizes are in their headers.

    Args:
        dataset: A dataset or its path.
        split: Split to read, or a part such as "train[:10%]"; None for all splits.
        columns: Features to read; None for all.
        sample: Number of records to read of each split, spread evenly over it. "quick" reads about
            4,096 records, or 64 MiB of all splits together. None reads all records; only then
            are all duplicates found.
        threads: Number of threads; one per core by default.
        progress: Function called with the number of records done and the total.

    >>> import datum
    >>> report = datum.write({"x": [1, 2, 3, 3]}, "four", shuffle=False, progress=False)
    >>> found = datum.profile("four")
    >>> found.features["x"].numbers.mean, found.features["x"].counts.values
    (2.25, ((3, 2), (1, 1), (2, 1)))
    >>> found.duplicates[0].examples  # record 3 is as record 2
    ((3, 2),)
    """
    started = time.perf_counter()
    opened = dataset if isinstance(dataset, Dataset) else load(dataset)
    schema = opened.schema if columns is None else opened.schema.select(columns)
    names = list(opened.splits) if split is None else [split]
    splits = {name: opened[name] for name in names}
    looks = _Looks(opened, schema, splits, _samples(splits, sample), thread_count(threads))
    tallies = looks.count(progress)
    results = {name: looks.finish(name, tally) for name, tally in tallies.items()}
    writer = opened["all"].shards.writer
    found = Profile(
        path=opened.path,
        writer=writer,
        version=VERSION if writer == "datum" else None,
        compression=opened.compression,
        splits=results,
        features=looks.finish_all(tallies, results),
        duplicates=find_duplicates({name: tally.hashed for name, tally in tallies.items()}),
        warnings=(),
        seconds=0.0,
        floats=FloatReport.from_metadata(_known_of(opened.metadata, looks.schema)),
    )
    warnings = find_warnings(
        found,
        shard_bytes={name: _shard_bytes(part) for name, part in splits.items()},
        failures={name: tally.failures for name, tally in tallies.items()},
    )
    return replace(found, warnings=warnings, seconds=time.perf_counter() - started)


def _samples(splits: Mapping[str, Split], sample: Sample) -> dict[str, int | None]:
    """Number of records of each split to read."""
    if sample is None:
        return dict.fromkeys(splits)
    if sample == "quick":
        room = QUICK_BYTES // max(1, len(splits))
        return {name: _quick_sample(part, room) for name, part in splits.items()}
    number: Any = sample
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        expected = f" of 1 or more, 'quick' or None, got {sample!r}"
        raise ValueError(Message(Text("expected ", Option("sample"), expected)))
    return dict.fromkeys(splits, number)


def _quick_sample(split: Split, room: int) -> int:
    nbytes = _bytes_of(split)
    if len(split) <= SMALL_RECORDS and nbytes <= room:
        return SMALL_RECORDS
    size = max(1, nbytes // max(1, len(split)))
    return max(1, min(QUICK_RECORDS, room // size))


def _bytes_of(split: Split) -> int:
    """Size of the records of a split, estimated for parts of shards."""
    runs = (run for run in split.runs if run.shard.records)
    return sum(run.shard.bytes * len(run) // run.shard.records for run in runs)


def _known_of(metadata: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    return {name: metadata[name] for name in schema if name in metadata}


def _shard_bytes(split: Split) -> tuple[int, ...]:
    return tuple(run.shard.bytes for run in split.runs)


@dataclass(frozen=True, slots=True)
class _Looks:
    """Settings of a profile."""

    dataset: Dataset
    schema: Schema
    splits: Mapping[str, Split]
    samples: Mapping[str, int | None]
    threads: int

    @property
    def class_names(self) -> dict[str, dict[Any, str]]:
        metadata = self.dataset.metadata
        return {name: class_names(metadata.get(name, {})) for name in self.schema}

    def count(self, progress: Callable[[int, int], None] | None) -> dict[str, SplitTally]:
        sizes = {name: len(part) for name, part in self.splits.items()}
        total = sum(min(size, self.samples[name] or size) for name, size in sizes.items())
        classes = {name for name, names in self.class_names.items() if names}
        tallies: dict[str, SplitTally] = {}

        def advance(seen: int) -> None:
            if progress is not None:
                progress(sum(tally.seen for tally in tallies.values()) + seen, total)

        for name, part in self.splits.items():
            tallies[name] = count_split(
                part,
                self.schema,
                sample=self.samples[name],
                classes=classes,
                threads=self.threads,
                progress=advance,
            )
        return tallies

    def finish(self, name: str, tally: SplitTally) -> SplitProfile:
        part, info = self.splits[name], self.dataset.splits.get(name)
        is_all = tally.seen == len(part)
        known = known_statistics(self.dataset, name)
        return SplitProfile(
            records=len(part),
            bytes=_bytes_of(part) if info is None else info.bytes,
            shards=len(part.runs) if info is None else len(info.shards),
            seen=tally.seen,
            features=self._results(tally.features, known, is_all=is_all),
            payloads=None if tally.payloads is None else tally.payloads.result(is_exact=is_all),
        )

    def finish_all(
        self, tallies: Mapping[str, SplitTally], results: Mapping[str, SplitProfile]
    ) -> Mapping[str, FeatureProfile]:
        """Merge the splits, weighted by their records."""
        if len(results) == 1 and all(split.seen == split.records for split in results.values()):
            return next(iter(results.values())).features
        merged: dict[str, FeatureTally] = {name: FeatureTally() for name in self.schema}
        for name, tally in tallies.items():
            factor = results[name].records / max(1, tally.seen)
            for feature, one in tally.features.items():
                merged[feature] = merged[feature].merge(one if factor == 1 else one.scaled(factor))
        known = [known_statistics(self.dataset, name) for name in tallies]
        parts = [one for one in known if one is not None]
        all_known = reduce(Statistics.merge, parts) if len(parts) == len(known) and known else None
        is_all = all(split.seen == split.records for split in results.values())
        return self._results(merged, all_known, is_all=is_all)

    def _results(
        self, tallies: Mapping[str, FeatureTally], known: Statistics | None, *, is_all: bool
    ) -> dict[str, FeatureProfile]:
        found = {}
        names = self.class_names
        for name, tally in tallies.items():
            one = tally.result(self.schema[name], names[name], is_exact=is_all)
            statistics = None if known is None else known.features.get(name)
            found[name] = one if statistics is None else with_known(one, tally, statistics)
        labels = find_labels(found)
        return {name: replace(one, is_label=name in labels) for name, one in found.items()}
