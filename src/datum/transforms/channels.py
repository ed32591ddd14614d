"""Pixels in a TensorFlow graph: their channels, and why an image is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datum.transforms.graph import checked, fail, tensorflow

__all__ = ["Wanted", "checked_length", "fit_channels", "fit_depth", "refuse", "to_grey"]

_LUMA = (19595, 38470, 7471)  # what Pillow takes of red, green and blue, of 65536
_OPAQUE = 255
_WIDENED = 257  # what colours of 8 bits are multiplied by for 16, as `datum.images` does


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an image is to be decoded to.

    Attributes:
        channels: 1, 3 or 4; None for as many as the image has.
        dtype: "uint8" or "uint16".
        exact: whether a JPEG is decoded as Pillow does, to the last bit.
    """

    channels: int | None = 3
    dtype: str = "uint8"
    exact: bool = False


def fit_channels(image: Any, got: int, wanted: Wanted) -> Any:
    """An image of `got` channels, 3 or 4, with those that are wanted; of 8 bits."""
    tf = tensorflow()
    image = tf.ensure_shape(image, (None, None, got))
    if wanted.channels == 1:
        image = to_grey(image)
    elif wanted.channels == 3:
        image = image[..., :3]
    elif wanted.channels == 4 and got == 3:
        alpha = tf.ones_like(image[..., :1]) * _OPAQUE
        image = tf.concat([image, alpha], axis=-1)
    return fit_depth(image, wanted)


def fit_depth(image: Any, wanted: Wanted) -> Any:
    """Pixels of 8 bits as the type that is wanted.

    In 16 bits colours look the same; the values of a single channel, which may be ids, stay.
    """
    tf = tensorflow()
    if wanted.dtype == "uint8":
        return tf.cast(image, tf.uint8)
    wide = tf.cast(image, tf.int32)  # uint16 has few operations
    if wanted.channels is None:
        wide *= tf.where(tf.shape(image)[-1] == 1, 1, _WIDENED)
    elif wanted.channels > 1:
        wide *= _WIDENED
    return tf.cast(wide, tf.uint16)


def to_grey(image: Any) -> Any:
    """Colours, of 8 bits, to the grey values that Pillow gives."""
    tf = tensorflow()
    parts = tf.cast(image[..., :3], tf.int32) * _LUMA
    total = tf.reduce_sum(parts, axis=-1, keepdims=True) + 0x8000
    return tf.cast(tf.bitwise.right_shift(total, 16), tf.uint8)


def checked_length(data: Any, least: int) -> Any:
    """Bytes that are no fewer than `least`; an error within the graph if they are.

    If parts of too few bytes are taken, TensorFlow's own error holds the bytes, which Python then
    fails to show.
    """
    size = tensorflow().strings.length(data)
    return checked(
        data, size >= least, "expected an image, got only the start of one, bytes:", size
    )


def refuse(data: Any, message: str, wanted: Wanted) -> Any:
    """An error within the graph, in the place of an image."""
    tf = tensorflow()
    height = fail(f"{message}, bytes:", tf.strings.length(data))
    return tf.zeros([height, 0, wanted.channels or 1], wanted.dtype)
