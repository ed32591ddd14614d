"""Images of any kind as pixels that can be seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.images import ImageError, decode_pixels, read_header
from datum.tensorboard.records import CHANNELS

__all__ = ["MAX_SIDE", "NOT_FINITE", "Pixels", "Scale", "fit_size", "read_ids"]

MAX_SIDE = 512  # pixels: as large as TensorBoard shows a picture
SMALL_SIDE = 256  # up to here small images are enlarged, by a whole number
NOT_FINITE = (255, 0, 255)  # the colour of NaN and infinity, which photos hardly have

_Range = tuple[NDArray[np.float64], NDArray[np.float64]]  # the lowest and highest of each channel
_SLACK = 0.25  # what augmentation may add to either end of 0..1
_BITS = (8, 10, 12, 14, 16)  # that cameras and scanners give

# What ImageNet models subtract, and divide by. The first is for blue, green, red.
_CAFFE_MEAN = np.array([103.939, 116.779, 123.68])
_TORCH_MEAN, _TORCH_SCALE = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


@dataclass(frozen=True, slots=True)
class Pixels:
    """An image, made no larger than it will be shown.

    Attributes:
        values: height x width x channels, uint8, or float32 for every other type.
        kind: what the values were.
        size: height and width before.
        extremes: the lowest and the highest finite value of each channel.
        faults: which pixels were not finite; None if all were.
        not_finite: how many of all values were not.
    """

    values: NDArray[Any]
    kind: Literal["byte", "integer", "float"]
    size: tuple[int, int]
    extremes: _Range
    faults: NDArray[np.bool_] | None = None
    not_finite: int = 0

    @classmethod
    def of(cls, value: Any) -> Pixels:
        """The pixels of an array of height x width (x channels), or of an encoded image."""
        array = _decode(value) if isinstance(value, bytes) else np.asarray(value)
        if array.ndim == 2:
            array = array[..., None]
        is_number = array.dtype.kind in "biuf" or array.dtype.name == "bfloat16"
        if array.ndim != 3 or array.shape[-1] not in CHANNELS or not array.size or not is_number:
            raise ImageError(
                "expected an image of height x width x 1, 3 or 4 channels,"
                f" got {array.dtype} of shape {array.shape}"
            )
        if array.dtype == np.bool_:
            array = array.astype(np.uint8) * np.uint8(255)
        return cls._shrunk(array)

    @classmethod
    def _shrunk(cls, array: NDArray[Any]) -> Pixels:
        size = array.shape[:2]
        height, width = fit_size(size, MAX_SIDE, enlarge=False)
        if array.dtype == np.uint8:
            extremes = np.zeros(array.shape[-1]), np.full(array.shape[-1], 255.0)
            return cls(_resize(array, height, width), "byte", size, extremes)
        kind: Literal["integer", "float"] = "integer" if array.dtype.kind in "iu" else "float"
        with np.errstate(over="ignore"):  # what float32 cannot hold is not finite either
            array = array.astype(np.float32)
        is_finite = np.isfinite(array)
        lost = int((~is_finite).sum())
        faults = None
        if lost:
            spots = np.where(is_finite.all(-1, keepdims=True), np.float32(0), np.float32(1))
            faults = _resize(spots, height, width)[..., 0] > 0
            array = np.where(is_finite, array, np.float32(0))
        lowest = np.min(array, axis=(0, 1), initial=np.inf, where=is_finite).astype(np.float64)
        highest = np.max(array, axis=(0, 1), initial=-np.inf, where=is_finite).astype(np.float64)
        return cls(_resize(array, height, width), kind, size, (lowest, highest), faults, lost)


@dataclass(frozen=True, slots=True)
class Scale:
    """How values become brightness, from 0 to 255.

    Attributes:
        factor, offset: `value * factor + offset`, of all channels or of each.
        is_reversed: whether channels are blue, green, red.
        is_stretched: whether to go from the lowest to the highest value of each image instead.
    """

    factor: Any = 1.0
    offset: Any = 0.0
    is_reversed: bool = False
    is_stretched: bool = False

    @classmethod
    def of(cls, pixels: Sequence[Pixels]) -> Scale:
        """One scale for all images of one kind, so that they can be compared.

        Bytes are shown as they are. Other integers fill 8, 10, 12, 14 or 16 bits. Floats are taken
        for 0..1, -1..1, for what ImageNet models are given (minus the mean of each channel over its
        deviation, or blue, green, red minus their means), or 0..255: the first that fits all. If
        none does, each image goes from black, its lowest value, to white, its highest.
        """
        if not pixels or pixels[0].kind == "byte":
            return cls()
        channels = {len(one.extremes[0]) for one in pixels}
        lowest = min(float(one.extremes[0].min()) for one in pixels)
        highest = max(float(one.extremes[1].max()) for one in pixels)
        if not np.isfinite([lowest, highest]).all():  # not one value was
            return cls()
        if pixels[0].kind == "integer":
            return _integer_scale(lowest, highest)
        if channels == {3}:
            low = np.min([one.extremes[0] for one in pixels], axis=0)
            high = np.max([one.extremes[1] for one in pixels], axis=0)
            return _float_scale(lowest, highest, (low, high))
        return _float_scale(lowest, highest, None)

    def apply(self, pixels: Pixels) -> NDArray[np.uint8]:
        """The image as bytes, height x width x 3, or 4 with transparency."""
        if pixels.kind == "byte":
            values = pixels.values
        else:
            scale = _stretch(*pixels.extremes) if self.is_stretched else self
            values = pixels.values * np.asarray(scale.factor) + np.asarray(scale.offset)
            values = values[..., ::-1] if self.is_reversed else values
            values = np.rint(np.clip(values, 0, 255)).astype(np.uint8)
        if values.shape[-1] == 1:
            values = np.repeat(values, 3, axis=-1)
        if pixels.faults is not None:
            values[pixels.faults, :3] = NOT_FINITE
            values[pixels.faults, 3:] = 255
        return values


def _integer_scale(lowest: float, highest: float) -> Scale:
    bits = next((bits for bits in _BITS if highest < 2**bits), None)
    if lowest < 0 or bits is None:
        return Scale(is_stretched=True)
    return Scale(255 / (2**bits - 1))


def _float_scale(lowest: float, highest: float, channels: _Range | None) -> Scale:
    if lowest >= -_SLACK and highest <= 1 + _SLACK:
        return Scale(255)
    if lowest >= -1 - _SLACK and highest <= 1 + _SLACK:
        return Scale(127.5, 127.5)
    if channels is not None and _fits(channels, _TORCH_MEAN, _TORCH_SCALE, 1):
        return Scale(255 * _TORCH_SCALE, 255 * _TORCH_MEAN)
    if lowest >= -1 and 16 < highest <= 256:
        return Scale()
    is_wide = highest - lowest > 64
    if channels is not None and is_wide and _fits(channels, _CAFFE_MEAN, np.ones(3), 255):
        return Scale(1.0, _CAFFE_MEAN, is_reversed=True)
    return Scale(is_stretched=True)


def _fits(channels: _Range, mean: Any, scale: Any, white: float) -> bool:
    """Whether undoing a normalisation gives values from black to white."""
    lowest, highest = (values * scale + mean for values in channels)
    return bool(lowest.min() >= -0.01 * white and highest.max() <= 1.01 * white)


def _stretch(lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Scale:
    lowest, highest = float(lows.min()), float(highs.max())
    factor = 255 / (highest - lowest) if lowest < highest < np.inf else 0.0
    return Scale(factor, -lowest * factor)


def fit_size(size: tuple[int, int], side: int, *, enlarge: bool = True) -> tuple[int, int]:
    """The height and width to show an image in, at most `side` each.

    >>> fit_size((3000, 4000), 512), fit_size((300, 400), 512), fit_size((28, 28), 512)
    ((384, 512), (300, 400), (252, 252))
    """
    longest = max(size)
    if longest > side:
        height, width = (max(1, round(length * side / longest)) for length in size)
        return height, width
    factor = max(1, min(SMALL_SIDE, side) // longest) if enlarge else 1
    return size[0] * factor, size[1] * factor


def read_ids(value: Any) -> NDArray[np.int64]:
    """The class ids of a mask, height x width; floats are rounded, what is not finite becomes 0."""
    array = decode_pixels(value, 1) if isinstance(value, bytes) else np.asarray(value)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise ImageError(
            "expected a mask of height x width x 1 class ids,"
            f" got {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "f":
        limit = 2.0**53  # where floats stop to be whole numbers
        array = np.rint(np.nan_to_num(np.clip(array.astype(np.float64), -limit, limit)))
    ids: NDArray[np.int64] = array.astype(np.int64)
    return ids


def _decode(data: bytes) -> NDArray[Any]:
    return decode_pixels(data, read_header(data).channels)


def _resize(array: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """Smaller, by a filter that stays within the range of the values."""
    if array.shape[:2] == (height, width):
        return array.copy()
    from PIL import Image

    bands = [
        Image.fromarray(np.ascontiguousarray(array[..., at])).resize((width, height), Image.HAMMING)
        for at in range(array.shape[-1])
    ]
    return np.stack([np.asarray(band) for band in bands], axis=-1)
