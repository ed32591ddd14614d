"""Properties of a dataset that may hurt training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datum._inspect.profile.counting import Failure
from datum._inspect.profile.results import (
    KINDS,
    Duplicates,
    FeatureProfile,
    ImageProfile,
    Profile,
    ProfileWarning,
    ValueCounts,
    percent,
)
from datum.errors import Call, Text, count_of, format_bytes, shell_word

__all__ = [
    "find_class_warnings",
    "find_feature_warnings",
    "find_warnings",
]

IMBALANCE_RATIO = 10  # most frequent to rarest; beyond it, training neglects rare classes
FREQUENT_RECORDS = 50  # of the most frequent class; smaller counts differ by chance
ORDER_RECORDS = 100
ORDERED_SHARE = 0.9  # of records with the label of the one before: blocks of one class
MIXED_SHARE = 0.6  # expected by chance, above which classes with one frequent label repeat
SHOWN_NAMES = 5
_BACKGROUND = ("background", "__background__", "_background_", "bg", "none")


def find_class_warnings(profile: Profile) -> Iterator[ProfileWarning]:
    """Yield warnings about label features."""
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
            "a model cannot learn them: add records, or remove the names",
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
    """Warn of labels missing from all training splits, if all labels there are known."""
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
                Text(
                    "a model cannot learn them: ",
                    Call(
                        "datum.reshard(path, out, splits={'train': 0.9, 'val': 0.1},"
                        f" stratify={name!r})",
                        shell="datum reshard PATH OUT --splits train=0.9,val=0.1 --stratify"
                        f" {shell_word(name)}",
                    ),
                    " divides each class",
                ),
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
                Text(
                    Call(
                        "datum.reshard(path, out, shuffle=True)",
                        shell="datum reshard PATH OUT --shuffle",
                    ),
                    " mixes them: a shuffle buffer of other readers mixes neighbours alone",
                ),
                name,
                split,
                figure=percent(one.repeated),
            )


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return f"{shown} and {more:,} more" if more > 0 else shown


MISSING_SHARE = 0.05  # smaller shares appear only in the table of features
EMPTY_SHARE = 0.01
CONSTANT_RECORDS = 20  # in fewer records, equal values are no surprise
CONSTANT_SEEN = 1000  # if not all records were read
LARGER_RATIO = 16  # pixels of the largest to the median image
LARGER_PIXELS = 4_000_000  # 48 MB as float32; smaller images are harmless


def find_feature_warnings(profile: Profile) -> Iterator[ProfileWarning]:
    """Yield warnings about features over all splits."""
    for name, one in profile.features.items():
        yield from _find_missing(name, one)
        yield from _find_not_finite(name, one)
        yield from _find_constant(name, one, profile)
        yield from _find_empty_texts(name, one)
        if one.images is not None:
            yield from _find_odd_images(name, one.images)


def _find_missing(name: str, one: FeatureProfile) -> Iterator[ProfileWarning]:
    share = one.missing_share
    if share < MISSING_SHARE:
        return
    text = f"{percent(share)} of the records lack it" if one.present else "no record has it"
    hint = "fill them in, set a default for the feature, or read with `missing=`"
    yield ProfileWarning("missing", text, hint, name, figure=f"{percent(share)}")


def _find_not_finite(name: str, one: FeatureProfile) -> Iterator[ProfileWarning]:
    numbers = one.numbers
    if numbers is None or not (numbers.nan or numbers.infinite):
        return
    counts = (("NaN", numbers.nan), ("infinite", numbers.infinite))
    found = " and ".join(f"{count:,} {what}" for what, count in counts if count)
    total = numbers.count + numbers.nan + numbers.infinite
    yield ProfileWarning(
        "not-finite",
        f"{found} of {total:,} values",
        "one of them is enough to make a loss NaN: replace them, or leave them out",
        name,
        figure=found,
    )


def _find_constant(name: str, one: FeatureProfile, profile: Profile) -> Iterator[ProfileWarning]:
    total = one.present + one.missing
    parts = (one.numbers, one.counts)
    is_exact = any(part is not None and part.is_exact for part in parts)
    is_known = is_exact or profile.seen >= CONSTANT_SEEN
    is_other = one.missing or one.images is not None or one.filled is not None
    if total < CONSTANT_RECORDS or not is_known or is_other:
        return  # presence is information too
    numbers, counts = one.numbers, one.counts
    is_one_number = (
        numbers is not None
        and numbers.count > 0
        and numbers.lowest == numbers.highest
        and not (numbers.nan or numbers.infinite)
    )
    is_one_value = counts is not None and counts.is_counted and counts.distinct == 1
    if one.lengths is not None and one.lengths.lowest != one.lengths.highest:
        return  # length is information too
    if is_one_number or (is_one_value and one.sizes is not None):
        value = counts.name_of(counts.values[0][0]) if counts and counts.values else ""
        value = value or (f"{numbers.lowest:g}" if numbers is not None else "")
        shown = value if len(value) <= 24 else value[:23] + "…"
        text = f"every value is {shown}" if value else "every value is empty"
        hint = "a model learns nothing from it: leave it out with `columns`"
        yield ProfileWarning("constant", text, hint, name, figure=shown)


def _find_empty_texts(name: str, one: FeatureProfile) -> Iterator[ProfileWarning]:
    if one.sizes is None or one.images is not None or not one.empty:
        return
    share = one.empty / max(1, one.sizes.count)
    if share < EMPTY_SHARE or (one.counts is not None and one.counts.distinct == 1):
        return
    hint = "leave these records out, or write None, so that they count as missing"
    text = f"{percent(share)} of the texts are empty"
    yield ProfileWarning("empty-text", text, hint, name, figure=f"{percent(share)}")


def _find_odd_images(name: str, images: ImageProfile) -> Iterator[ProfileWarning]:
    if images.unreadable:
        total = images.unreadable + images.width.count
        yield ProfileWarning(
            "unreadable-images",
            f"{images.unreadable:,} of {total:,} images have no header that can be read",
            Text(
                Call("datum.verify(path, deep=True)", shell="datum verify PATH --deep"),
                " names them, ",
                Call("datum.repair(path, out, deep=True)", shell="datum repair PATH OUT --deep"),
                " leaves them out",
            ),
            name,
            figure=f"{images.unreadable:,}",
        )
    pixels = images.pixels
    if not pixels.count:
        return
    hint = "look at them with `datum head`; resize or leave them out before writing"
    if min(images.width.lowest, images.height.lowest) == 1:
        text = f"the smallest is {images.width.lowest} x {images.height.lowest} pixels"
        yield ProfileWarning("image-size", text, hint, name, figure="1 pixel wide or high")
    middle = pixels.quantiles[0.5]
    if pixels.highest >= LARGER_PIXELS and pixels.highest >= LARGER_RATIO * middle:
        text = f"the largest has {pixels.highest / middle:.0f} times the pixels of the median image"
        figure = f"{pixels.highest / 1e6:.0f} megapixels"
        yield ProfileWarning("image-size", text, hint, name, figure=figure)


MIB, GIB = 2**20, 2**30
# Opening a file has a fixed cost, so many tiny shards are slow.
SMALL_SHARD_BYTES = 1 * MIB
MANY_SHARDS = 16
LARGE_SHARD_BYTES = 1 * GIB  # the unit of copying, resuming and distributing
UNEVEN_RATIO = 4  # largest to median shard; all wait for the reader of the largest
UNEVEN_BYTES = 16 * MIB  # smaller shards are read quickly
UNEVEN_SHARDS = 4  # with fewer shards, the last may be a remainder
# A few equal records within a split are chance, as in tables with few digits.
DUPLICATE_SHARE = 0.01


def find_warnings(
    profile: Profile,
    *,
    shard_bytes: Mapping[str, Sequence[int]],
    failures: Mapping[str, Sequence[Failure]],
) -> tuple[ProfileWarning, ...]:
    """Return all warnings, the most serious first."""
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
    hint = f"`datum verify {profile.path}` lists all damage, `datum repair` saves the good records"
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
                "drop them from one split: results on training records look too good",
                split=one.split,
                figure=f"{one.records:,} in {one.other} too",
            )
        elif one.records >= DUPLICATE_SHARE * seen:
            yield ProfileWarning(
                "duplicates",
                f"{what} {'is a copy' if is_one else 'are copies'} of others{_example(one)}",
                "drop them before writing, unless they should count more than once",
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
            "`datum reshard` joins them; shards of 100 MB or more read fastest",
            split=split,
            figure=format_bytes(mean),
        )
    if largest > LARGE_SHARD_BYTES:
        yield ProfileWarning(
            "large-shards",
            f"the largest shard of {split} has {format_bytes(largest)}",
            "`datum reshard` divides them; shards of some 100 MB are easier to copy and distribute",
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
