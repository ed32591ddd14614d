"""What of labels may hurt a training: classes that are rare, absent, unseen, or in one block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datum.profiling.dataset_profile import Profile
from datum.profiling.distributions import ValueCounts
from datum.profiling.results import FeatureProfile, ProfileWarning
from datum.profiling.wording import percent

__all__ = ["find_class_warnings"]

IMBALANCE_RATIO = 10  # most frequent to rarest: beyond it, plain training neglects the rare ones
FREQUENT_RECORDS = 50  # of the most frequent class: counts of fewer differ by chance alone
ORDER_RECORDS = 100
ORDERED_SHARE = 0.9  # of records whose label is that of the one before: blocks of one class
MIXED_SHARE = 0.6  # what chance gives: two classes of which one is frequent repeat all the time
SHOWN_NAMES = 5
_BACKGROUND = ("background", "__background__", "_background_", "bg", "none")


def find_class_warnings(profile: Profile) -> Iterator[ProfileWarning]:
    """Warnings of each feature that tells classes."""
    for name, one in profile.features.items():
        if one.counts is not None:
            yield from _find_empty_classes(name, one.counts)
        if one.counts is None or not one.is_label:
            continue
        yield from _find_imbalance(name, one.counts)
        of_splits = {
            split: part.features[name] for split, part in profile.splits.items() if part.records
        }
        yield from _find_unseen(name, of_splits)
        yield from _find_order(name, of_splits)


def _find_empty_classes(name: str, counts: ValueCounts) -> Iterator[ProfileWarning]:
    if not (counts.names and counts.is_exact and counts.is_complete):
        return
    seen = {value for value, _ in counts.values}
    empty = [
        text
        for value, text in counts.names.items()
        if value not in seen and not (value == 0 and text.lower() in _BACKGROUND)
    ]
    if empty:
        yield ProfileWarning(
            "empty-class",
            f"{_listed(empty)}: no records, of {len(counts.names):,} classes",
            "a model cannot learn them: add records, or take the names away",
            name,
            figure=_listed(empty),
        )


def _find_imbalance(name: str, counts: ValueCounts) -> Iterator[ProfileWarning]:
    (top, most), (rare, least) = counts.values[0], counts.values[-1]
    if not counts.is_complete or most < max(FREQUENT_RECORDS, IMBALANCE_RATIO * least):
        return
    about = "" if counts.is_exact else "about "
    yield ProfileWarning(
        "imbalance",
        f"{counts.name_of(top)!r} is {about}{most / max(1, least):,.0f} times as frequent as"
        f" {counts.name_of(rare)!r} ({most:,} to {least:,})",
        "weigh the loss by class, repeat rare records, or mix splits by class with `datum.mix`",
        name,
        figure=f"{most / max(1, least):,.0f} to 1",
    )


def _find_unseen(name: str, splits: Mapping[str, FeatureProfile]) -> Iterator[ProfileWarning]:
    """Labels that are in no split to train on; told only where all labels of those are known."""
    trained = [one.counts for split, one in splits.items() if "train" in split.lower()]
    if not trained or not all(one and one.is_exact and one.is_complete for one in trained):
        return
    known = {value for one in trained if one for value, _ in one.values}
    for split, one in splits.items():
        if "train" in split.lower() or one.counts is None:
            continue
        unseen = [one.counts.name_of(value) for value, _ in one.counts.values if value not in known]
        if unseen:
            yield ProfileWarning(
                "unseen-label",
                f"{_listed(unseen)} occur{'s' if len(unseen) == 1 else ''} in {split}, never in"
                " train",
                "no training can get them right: divide the data by class (`stratify=`)",
                name,
                split,
                figure=_listed(unseen),
            )


def _find_order(name: str, splits: Mapping[str, FeatureProfile]) -> Iterator[ProfileWarning]:
    for split, one in splits.items():
        counts = one.counts
        is_trained = "train" in split.lower() or len(splits) == 1
        if counts is None or one.repeated is None or not is_trained:
            continue
        total = max(1, sum(count for _, count in counts.values))
        by_chance = sum((count / total) ** 2 for _, count in counts.values)
        is_ordered = one.repeated >= ORDERED_SHARE and by_chance <= MIXED_SHARE
        if is_ordered and one.present >= ORDER_RECORDS:
            yield ProfileWarning(
                "order",
                f"{percent(one.repeated)} of {split} have the label of the record before them",
                "write with shuffle=True, or `datum reshard --shuffle`: a shuffle buffer of other"
                " readers mixes neighbours alone",
                name,
                split,
                figure=percent(one.repeated),
            )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown
