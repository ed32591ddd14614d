"""A feature in a line of text."""

from __future__ import annotations

from typing import Any

from datum.format.wording import count_of
from datum.profiling.distributions import Distribution, ImageProfile
from datum.profiling.results import FeatureProfile

__all__ = ["describe_feature", "percent"]

SHOWN_VALUES = 3


def percent(share: float) -> str:
    """A part of a whole.

    >>> percent(0.125), percent(0.0001)
    ('12.5 %', '<0.1 %')
    """
    return "<0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def describe_feature(profile: FeatureProfile) -> str:
    """Type, and what is known of the values."""
    feature = profile.feature
    shape = " x ".join("?" if n is None else str(n) for n in feature.shape)
    parts = [f"{feature.dtype} {shape}".rstrip()]
    if profile.missing:
        parts.append(f"{percent(profile.missing_share)} missing")
    if profile.images is not None:
        parts.append(_describe_images(profile.images))
    if profile.numbers is not None and profile.numbers.count:
        parts.append(_describe_range(profile.numbers))
    if profile.lengths is not None and profile.lengths.count:
        parts.append(f"lengths {profile.lengths.lowest:,} to {profile.lengths.highest:,}")
    if profile.sizes is not None and profile.sizes.count:
        parts.append(f"{profile.sizes.lowest:,} to {profile.sizes.highest:,} bytes")
    if profile.counts is not None and profile.counts.is_counted:
        parts.append(count_of(profile.counts.distinct, "value"))
    return ", ".join(parts)


def _describe_range(numbers: Distribution) -> str:
    mean = "" if numbers.mean is None else f", mean {numbers.mean:.6g}"
    return f"{_number(numbers.lowest)} to {_number(numbers.highest)}{mean}"


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _describe_images(images: ImageProfile) -> str:
    formats = ", ".join(images.formats) or "unreadable"
    if not images.width.count:
        return formats
    sides = (
        str(side.lowest) if side.lowest == side.highest else f"{side.lowest}-{side.highest}"
        for side in (images.width, images.height)
    )
    return f"{formats} of {' x '.join(sides)} pixels"
