"""What may be asked to be done with images before they are stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from datum.errors import suggest
from datum.images.header import ImageError

__all__ = ["FORMATS", "ImageOptions"]

FORMATS = ("jpeg", "png", "webp")  # those that images can be stored in anew


def _check_range(name: str, value: Any, most: int) -> None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_integer and 1 <= value <= most):
        raise ImageError(f"expected `{name}` to be an integer of 1 to {most}, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """What to do with images before they are stored; nothing, by default.

    Attributes:
        max_side: shrink images whose longer side has more pixels than this.
        quality: encode JPEG and WebP images anew, with this quality of 1 to 100.
        format: store all images as "jpeg", "png" or "webp". What may hold ids, as masks do,
            becomes PNG whatever is asked: 16-bit grey, and lossless images of a feature with one
            channel; where no feature says so, grey ones and palettes too.
        verify: decode every image, and refuse those that cannot be.
    """

    max_side: int | None = None
    quality: int | None = None
    format: Literal["jpeg", "png", "webp"] | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        _check_range("max_side", self.max_side, 2**31 - 1)
        _check_range("quality", self.quality, 100)
        if self.format is not None and self.format not in FORMATS:
            hint = suggest(str(self.format).lower(), FORMATS)
            raise ImageError(f"expected `format` jpeg, png or webp, got {self.format!r}", hint=hint)

    @property
    def changes_bytes(self) -> bool:
        """Whether images may be stored as other bytes than they came as."""
        return (self.max_side, self.quality, self.format) != (None, None, None)
