"""What was counted put into the manifest, so that later looks know it of all records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from datum.errors import ManifestError, WriteError
from datum.format import Manifest, Statistics
from datum.format.naming import MANIFEST_NAME
from datum.format.statistics import MAX_DISTINCT, Counts, FeatureStatistics, Range
from datum.profiling.dataset_profile import Profile
from datum.profiling.distributions import Distribution, ValueCounts
from datum.profiling.results import FeatureProfile, SplitProfile

__all__ = ["save_statistics"]


def save_statistics(profile: Profile) -> Path:
    """Write the statistics of a profile into the manifest of its dataset; nothing else changes.

    WriteError if the profile is not of all records and features of its splits, or if there is no
    manifest.
    """
    path = profile.path / MANIFEST_NAME
    if profile.writer != "datum":
        raise WriteError(
            "expected a dataset with a manifest, to keep statistics in, got none",
            where=profile.path,
            hint=f"datum.load({str(profile.path)!r}).save_manifest() writes one",
        )
    manifest = Manifest.load(path)
    for name, split in profile.splits.items():
        _check(profile, name, split, manifest)
    counted = {name: _statistics(split).to_json() for name, split in profile.splits.items()}
    replace(manifest, statistics={**manifest.statistics, **counted}).save(path)
    return path


def _check(profile: Profile, name: str, split: SplitProfile, manifest: Manifest) -> None:
    info = manifest.splits.get(name)
    if info is None or info.records != split.records:
        raise ManifestError(
            f"expected a profile of whole splits, as they are now, got {name!r}",
            where=profile.path,
            hint="profile the dataset anew, without a part of a split",
        )
    missing = [feature for feature in manifest.schema if feature not in split.features]
    if split.seen != split.records or missing:
        got = f"no {missing[0]!r}" if missing else f"{split.seen:,} of {split.records:,} records"
        raise WriteError(
            f"expected a profile of all records and features, got {got}",
            where=profile.path,
            hint="profile the dataset without `sample` and `columns`",
        )


def _statistics(split: SplitProfile) -> Statistics:
    features = {name: _of_feature(one) for name, one in split.features.items()}
    return Statistics(split.records, features)


def _of_feature(one: FeatureProfile) -> FeatureStatistics:
    has_counts = not one.feature.shape and not one.feature.dtype.startswith(("float", "bfloat"))
    return FeatureStatistics(
        one.present,
        one.missing,
        numbers=None if one.feature.dtype.startswith("complex") else _range(one.numbers),
        lengths=_range(one.lengths),
        bytes=_range(one.sizes),
        counts=_counts(one.counts) if has_counts and one.counts is not None else None,
    )


def _range(found: Distribution | None) -> Range | None:
    if found is None:
        return None
    total = (found.mean or 0.0) * found.count
    is_whole = isinstance(found.lowest, int)
    return Range(
        found.count,
        found.lowest,
        found.highest,
        round(total) if is_whole else total,
        found.nan,
        found.infinite,
    )


def _counts(found: ValueCounts) -> Counts:
    if not found.is_complete or found.distinct > MAX_DISTINCT:
        return Counts({}, MAX_DISTINCT)
    return Counts(dict(found.values))
