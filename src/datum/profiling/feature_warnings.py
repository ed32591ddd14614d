"""What of single features may hurt a training: values that are missing, not finite, alike."""

from __future__ import annotations

from collections.abc import Iterator

from datum.profiling.dataset_profile import Profile
from datum.profiling.distributions import ImageProfile
from datum.profiling.results import FeatureProfile, ProfileWarning
from datum.profiling.wording import percent

__all__ = ["find_feature_warnings"]

MISSING_SHARE = 0.05  # fewer are a matter for the table of features, not for an alarm
EMPTY_SHARE = 0.01
CONSTANT_RECORDS = 20  # of fewer, equal values are no surprise
CONSTANT_SEEN = 1000  # where not all records were looked at
LARGER_RATIO = 16  # pixels of the largest image to those of the middle one
LARGER_PIXELS = 4_000_000  # 48 MB as float32: smaller ones do no harm


def find_feature_warnings(profile: Profile) -> Iterator[ProfileWarning]:
    """Warnings of each feature in all splits together."""
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
    hint = "fill them in, give the feature a default, or read with `missing=`"
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
        return  # where there is a value tells something, too
    numbers, counts = one.numbers, one.counts
    is_one_number = (
        numbers is not None
        and numbers.count > 0
        and numbers.lowest == numbers.highest
        and not (numbers.nan or numbers.infinite)
    )
    is_one_value = counts is not None and counts.is_counted and counts.distinct == 1
    if one.lengths is not None and one.lengths.lowest != one.lengths.highest:
        return  # how many there are still tells something
    if is_one_number or (is_one_value and one.sizes is not None):
        value = counts.name_of(counts.values[0][0]) if counts and counts.values else ""
        value = value or (f"{numbers.lowest:g}" if numbers is not None else "")
        shown = value if len(value) <= 24 else value[:23] + "…"
        text = f"every value is {shown}" if value else "every value is empty"
        hint = "it tells a model nothing: leave it out with `columns`"
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
            "`datum verify --deep` names them; write with on_error='quarantine' to leave them out",
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
        text = f"the largest has {pixels.highest / middle:.0f} times the pixels of the middle one"
        figure = f"{pixels.highest / 1e6:.0f} megapixels"
        yield ProfileWarning("image-size", text, hint, name, figure=figure)
