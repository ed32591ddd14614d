"""Encoded images into pixels within a TensorFlow graph, whatever their format."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from datum.errors import SchemaError
from datum.transforms.channels import Wanted, refuse
from datum.transforms.formats import decode_bmp, decode_gif, decode_jpeg, decode_webp, is_jpeg
from datum.transforms.graph import apart, leave_as_is, tensorflow
from datum.transforms.origins import Origin
from datum.transforms.png import decode_png, decode_simple_png, is_simple_png

__all__ = ["CHANNELS", "decode_any", "decode_image", "decode_other"]

CHANNELS = (1, 3, 4, None)
_UNKNOWN = (
    "expected a JPEG, PNG, GIF, WebP or BMP image, got a TIFF or bytes of another kind"
    " (hint: engine='native' of `to_tf` decodes TIFF)"
)


def decode_image(channels: int | None = 3, *, exact: bool = False) -> Callable[[Any], Any]:
    """A function that decodes one image, given as its bytes: height x width x channels, uint8.

    JPEG, PNG, GIF (its first frame), WebP and BMP are told by their content. With one channel a
    palette gives its ids; with None there are as many channels as the image has. No bytes give an
    image of no height and width. With `exact` a JPEG is decoded as Pillow does, to the last bit;
    else TensorFlow's faster way is taken, whose values differ by one or two on average.

    >>> import tensorflow as tf
    >>> data = tf.io.encode_png(tf.constant([[[10], [20]], [[30], [40]]], tf.uint8))
    >>> decode_image(channels=1)(data)[..., 0].numpy()
    array([[10, 20],
           [30, 40]], dtype=uint8)
    """
    if channels not in CHANNELS:
        raise SchemaError(f"decode_image: expected `channels` of 1, 3, 4 or None, got {channels!r}")
    wanted = Wanted(channels, exact=exact)
    origin = Origin.of_pixels("decode_image", call=f"decode_image({channels!r})")
    return leave_as_is(lambda data: decode_any(data, wanted), origin=origin)


def decode_any(
    data: Any, wanted: Wanted, *, shape: tuple[int | None, ...] = (), may_be_empty: bool = True
) -> Any:
    """One image as is wanted, and of `shape` if one is given; zeros for no bytes."""
    tf = tensorflow()
    data = tf.convert_to_tensor(data)
    shape = shape or (None, None, wanted.channels)

    def decode_rare() -> Any:
        if not may_be_empty:
            return decode_other(data, wanted)
        zeros = tf.zeros([n or 0 for n in shape], wanted.dtype)
        return tf.cond(data == b"", lambda: zeros, lambda: decode_other(data, wanted))

    def decode_rest() -> Any:
        if wanted.channels is None:
            return decode_rare()
        is_simple = is_simple_png(data, wanted)
        return tf.cond(is_simple, lambda: decode_simple_png(data, wanted), decode_rare)

    image = tf.cond(is_jpeg(data), lambda: decode_jpeg(data, wanted), decode_rest)
    return tf.ensure_shape(image, shape)


def decode_other(data: Any, wanted: Wanted) -> Any:
    """An image that is no JPEG; an error within the graph if its format is not known."""
    return _other_decoder(wanted)(data)


@functools.cache
def _other_decoder(wanted: Wanted) -> Callable[[Any], Any]:
    tf = tensorflow()

    def decode(data: Any) -> Any:
        start = tf.strings.substr(data, 0, 4)
        is_bmp = tf.strings.substr(start, 0, 2) == b"BM"
        is_kind = tf.concat([start == [b"\x89PNG", b"GIF8", b"RIFF"], [is_bmp, True]], axis=0)
        branches = [
            lambda: decode_png(data, wanted),
            lambda: decode_gif(data, wanted),
            lambda: decode_webp(data, wanted),
            lambda: decode_bmp(data, wanted),
            lambda: refuse(data, _UNKNOWN, wanted),
        ]
        kind = tf.argmax(tf.cast(is_kind, tf.int32), output_type=tf.int32)
        return tf.switch_case(kind, branches)

    return apart(decode, tf.TensorSpec([], tf.string))
