"""Encoded images counted by what their first bytes say: format, size, channels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import BytesColumn
from datum.images import ImageError, ImageHeader, sniff_format
from datum.images.header import parse_header
from datum.profiling.distributions import ImageProfile
from datum.profiling.numbers import NumberTally, tally_numbers

__all__ = ["ImageTally", "holds_images", "tally_images"]

HEADER_BYTES = 4096  # holds most headers; where it does not, the whole image is looked at
SNIFFED_BYTES = 16


@dataclass(frozen=True, slots=True)
class ImageTally:
    """What was counted of some images."""

    formats: Counter[str] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    width: NumberTally = field(default_factory=NumberTally)
    height: NumberTally = field(default_factory=NumberTally)
    pixels: NumberTally = field(default_factory=NumberTally)
    unreadable: float = 0

    def merge(self, other: ImageTally) -> ImageTally:
        """Of both."""
        return ImageTally(
            self.formats + other.formats,
            self.channels + other.channels,
            self.width.merge(other.width),
            self.height.merge(other.height),
            self.pixels.merge(other.pixels),
            self.unreadable + other.unreadable,
        )

    def scaled(self, factor: float) -> ImageTally:
        """The same, as if each image had been there `factor` times."""
        return replace(
            self,
            formats=_scaled(self.formats, factor),
            channels=_scaled(self.channels, factor),
            width=self.width.scaled(factor),
            height=self.height.scaled(factor),
            pixels=self.pixels.scaled(factor),
            unreadable=self.unreadable * factor,
        )

    def result(self, *, is_exact: bool) -> ImageProfile:
        """What it says."""
        return ImageProfile(
            {name: round(count) for name, count in self.formats.most_common()},
            {number: round(count) for number, count in self.channels.most_common()},
            self.width.result(is_exact=is_exact),
            self.height.result(is_exact=is_exact),
            self.pixels.result(is_exact=is_exact),
            round(self.unreadable),
        )


def _scaled(counts: Counter[Any], factor: float) -> Counter[Any]:
    scaled: Counter[Any] = Counter()
    for key, count in counts.items():
        scaled[key] = count * factor  # type: ignore[assignment]  # rounded in the end
    return scaled


def holds_images(strings: BytesColumn) -> bool:
    """Whether the first of some byte strings that has any bytes starts as an image does."""
    filled = np.flatnonzero(strings.slices[:, 1])
    starts = _starts(strings, filled[:1], SNIFFED_BYTES)
    return any(sniff_format(start) is not None for start in starts)


def tally_images(strings: BytesColumn) -> ImageTally:
    """Count byte strings, each of them an image, or to be one."""
    everything = np.arange(len(strings.slices))
    found: list[ImageHeader] = []
    for number, start in enumerate(_starts(strings, everything, HEADER_BYTES)):
        header = _read_header(strings, number, start)
        if header is not None:
            found.append(header)
    return ImageTally(
        Counter(header.format for header in found),
        Counter(header.channels for header in found),
        _tally(header.width for header in found),
        _tally(header.height for header in found),
        _tally(header.width * header.height for header in found),
        len(everything) - len(found),
    )


def _read_header(strings: BytesColumn, number: int, start: bytes) -> ImageHeader | None:
    try:
        return parse_header(start)
    except ImageError:
        pass
    if len(start) == strings.slices[number, 1]:
        return None
    try:
        return parse_header(_starts(strings, np.array([number]), None)[0])
    except ImageError:
        return None


def _starts(strings: BytesColumn, numbers: NDArray[np.int64], limit: int | None) -> list[bytes]:
    slices = strings.slices[numbers]
    if limit is not None:
        slices[:, 1] = np.minimum(slices[:, 1], limit)
    found: list[bytes] = BytesColumn(strings.buffer, slices).to_list()
    return found


def _tally(numbers: Iterable[int]) -> NumberTally:
    return tally_numbers(np.fromiter(numbers, np.int64))
