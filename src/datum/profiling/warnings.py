"""What of a dataset may hurt a training: found in its profile, told with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datum.format.wording import count_of, format_bytes
from datum.profiling.class_warnings import find_class_warnings
from datum.profiling.dataset_profile import Profile
from datum.profiling.feature_warnings import find_feature_warnings
from datum.profiling.kinds import KINDS
from datum.profiling.reading import Failure
from datum.profiling.results import Duplicates, ProfileWarning
from datum.profiling.wording import percent

__all__ = ["find_warnings"]

MIB, GIB = 2**20, 2**30
# A file costs an opening and a round trip to its disk, whatever its size: many tiny ones are slow.
SMALL_SHARD_BYTES = 1 * MIB
MANY_SHARDS = 16
LARGE_SHARD_BYTES = 1 * GIB  # the unit of copying, of resuming, and of sharing out to readers
UNEVEN_RATIO = 4  # the largest shard to the middle one: who reads it is waited for
UNEVEN_BYTES = 16 * MIB  # below, nobody waits
UNEVEN_SHARDS = 4  # the last shard of a few is what is left over
# Within a split a few records that are equal are chance, as in tables of few digits.
DUPLICATE_SHARE = 0.01


def find_warnings(
    profile: Profile,
    *,
    shard_bytes: Mapping[str, Sequence[int]],
    failures: Mapping[str, Sequence[Failure]],
) -> tuple[ProfileWarning, ...]:
    """All that there is to warn of, the gravest first."""
    found = [
        *_find_damage(profile, failures),
        *_find_duplicates(profile),
        *_find_empty_splits(profile),
        *find_feature_warnings(profile),
        *find_class_warnings(profile),
        *(one for name, sizes in shard_bytes.items() for one in _find_odd_shards(name, sizes)),
    ]
    gravity = {kind: place for place, kind in enumerate(KINDS)}
    return tuple(sorted(found, key=lambda warning: gravity[warning.kind]))


def _find_damage(
    profile: Profile, failures: Mapping[str, Sequence[Failure]]
) -> Iterator[ProfileWarning]:
    hint = f"`datum verify {profile.path}` tells all of it, `datum repair` saves what is whole"
    for split, found in failures.items():
        for failure in found:
            text = f"{failure.shard}: {failure.text}"
            yield ProfileWarning("damage", text, hint, split=split, figure=failure.shard)


def _find_duplicates(profile: Profile) -> Iterator[ProfileWarning]:
    for one in profile.duplicates:
        seen = max(1, profile.splits[one.split].seen)
        least = "" if one.is_exact else "at least "
        is_one = one.records == 1
        what = f"{least}{count_of(one.records, 'record')} of {one.split}"
        what += f" ({percent(one.records / seen)})"
        if one.split != one.other:
            yield ProfileWarning(
                "leakage",
                f"{what} {'is' if is_one else 'are'} in {one.other} too{_example(one)}",
                "drop them from one of the two: what was trained on makes results look too good",
                split=one.split,
                figure=f"{one.records:,} in {one.other} too",
            )
        elif one.records >= DUPLICATE_SHARE * seen:
            yield ProfileWarning(
                "duplicates",
                f"{what} {'is a copy' if is_one else 'are copies'} of others{_example(one)}",
                "drop them before writing, unless they are meant to count more than once",
                split=one.split,
                figure=f"{one.records:,}",
            )


def _example(found: Duplicates) -> str:
    if not found.examples:
        return ""
    number, twin = found.examples[0]
    of_other = f" of {found.other}" if found.split != found.other else ""
    more = ", for one" if found.records > 1 else ""
    return f": record {number:,} is record {twin:,}{of_other}{more}"


def _find_empty_splits(profile: Profile) -> Iterator[ProfileWarning]:
    for name, split in profile.splits.items():
        if not split.records:
            yield ProfileWarning(
                "empty-split",
                f"{name} has no records",
                "check how the data was divided, or leave the split out",
                split=name,
            )


def _find_odd_shards(split: str, sizes: Sequence[int]) -> Iterator[ProfileWarning]:
    if not sizes:
        return
    largest, middle, mean = max(sizes), sorted(sizes)[len(sizes) // 2], sum(sizes) // len(sizes)
    if len(sizes) >= MANY_SHARDS and mean < SMALL_SHARD_BYTES:
        yield ProfileWarning(
            "small-shards",
            f"the {len(sizes):,} shards of {split} have {format_bytes(mean)} each",
            "`datum reshard` joins them; 100 MB or more a shard reads fastest",
            split=split,
            figure=format_bytes(mean),
        )
    if largest > LARGE_SHARD_BYTES:
        yield ProfileWarning(
            "large-shards",
            f"the largest shard of {split} has {format_bytes(largest)}",
            "`datum reshard` divides them; some 100 MB a shard are easier to copy and to share out",
            split=split,
            figure=format_bytes(largest),
        )
    is_uneven = largest > UNEVEN_RATIO * max(1, middle) and largest > UNEVEN_BYTES
    if len(sizes) >= UNEVEN_SHARDS and is_uneven:
        yield ProfileWarning(
            "uneven-shards",
            f"the largest shard of {split} has {format_bytes(largest)}, most have about"
            f" {format_bytes(middle)}",
            "`datum reshard` makes them even, so that no reader waits for another",
            split=split,
            figure=format_bytes(largest),
        )
