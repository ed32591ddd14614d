"""PNG images into pixels within a TensorFlow graph: all depths, and the ids of palettes."""

from __future__ import annotations

import zlib
from typing import Any

from datum.transforms.channels import Wanted, checked_length, fit_depth, to_grey
from datum.transforms.graph import checked, tensorflow

__all__ = ["decode_png", "decode_simple_png", "is_simple_png"]

_BITS_AT, _COLOUR_AT = 24, 25  # where depth and kind of colour are told
_SUM_AT, _HEADER_END = 29, 33
_GREY_WITH_ALPHA = 4
# What kinds of colour are for one channel; there are none of 1 and 5.
_GREY, _COLOUR, _PALETTE = range(3)
_KINDS = (_GREY, _GREY, _COLOUR, _PALETTE, _GREY, _GREY, _COLOUR)
# How the checksum of the header changes if the kind of colour turns from palette into grey:
# sums of equal length differ by what differs in the bytes, whatever these are.
_PALETTE_TO_GREY = zlib.crc32(bytes([*bytes(13), 3, 0, 0, 0])) ^ zlib.crc32(bytes(17))
_STEPS = (1, 255, 85, 1, 17, 1, 1, 1, 1)  # between the grey values of 1, 2, 4 and 8 bits
_OPAQUE = (255, 1, 3, 255, 15, 255)  # the alpha that TensorFlow gives to opaque pixels of such bits


def is_simple_png(data: Any, wanted: Wanted) -> Any:
    """Whether bytes are a PNG that `decode_simple_png` can decode: most are."""
    tf = tensorflow()
    words = tf.io.decode_raw(data, tf.int32, fixed_length=_BITS_AT + 4)
    colours = [0, _GREY_WITH_ALPHA] if wanted.channels == 1 else [0, 2, 3, _GREY_WITH_ALPHA, 6]
    is_simple = tf.reduce_any(words[_BITS_AT // 4] == [8 + 256 * colour for colour in colours])
    return (words[0] == int.from_bytes(b"\x89PNG", "little", signed=True)) & is_simple


def decode_simple_png(data: Any, wanted: Wanted) -> Any:
    """A PNG image of 8 bits that TensorFlow decodes as is wanted."""
    tf = tensorflow()
    return fit_depth(tf.io.decode_png(data, wanted.channels), wanted)


def decode_png(data: Any, wanted: Wanted) -> Any:
    """A PNG image; with one channel, of a palette the ids.

    Colours of 8 bits look the same in 16, and the other way round; the values of a single channel
    are neither made smaller nor larger.
    """
    tf = tensorflow()
    head = tf.io.decode_raw(data, tf.uint8, fixed_length=_HEADER_END)
    bits, colour = tf.unstack(tf.cast(head[_BITS_AT : _COLOUR_AT + 1], tf.int32))
    if wanted.channels == 1:
        kind = tf.gather(_KINDS, tf.minimum(colour, len(_KINDS) - 1))
        branches = {
            _GREY: lambda: _decode(data, 1, bits, wanted),
            _COLOUR: lambda: tf.cast(_decode_as_grey(data, bits), wanted.dtype),
            _PALETTE: lambda: tf.cast(_decode_ids(data, head, bits), wanted.dtype),
        }
        return tf.switch_case(kind, branches)
    if wanted.channels is not None:
        return _decode(data, wanted.channels, bits, wanted)
    return tf.cond(  # by itself, TensorFlow gives two channels for grey with transparency
        colour == _GREY_WITH_ALPHA,
        lambda: _decode(data, 4, bits, wanted),
        lambda: _decode(data, 0, bits, wanted),
    )


def _decode(data: Any, channels: int, bits: Any, wanted: Wanted) -> Any:
    tf = tensorflow()

    def decode_deep() -> Any:
        image = tf.io.decode_png(data, channels, tf.uint16)
        return image if wanted.dtype == "uint16" else _narrowed(image)

    def decode_shallow() -> Any:
        image = tf.io.decode_png(data, channels)
        return fit_depth(_with_right_alpha(image, bits) if channels == 4 else image, wanted)

    return tf.cond(bits == 16, decode_deep, decode_shallow)


def _narrowed(image: Any) -> Any:
    """Pixels of 16 bits in 8: of colours the high byte; other values, if they fit."""
    tf = tensorflow()
    wide = tf.cast(image, tf.int32)

    def keep() -> Any:
        most = tf.reduce_max(wide)
        return checked(wide, most <= 255, "expected pixels of 8 bits, got", most)

    is_single = tf.shape(image)[-1] == 1
    return tf.cast(tf.cond(is_single, keep, lambda: tf.bitwise.right_shift(wide, 8)), tf.uint8)


def _with_right_alpha(image: Any, bits: Any) -> Any:
    """TensorFlow 2.21 gives opaque pixels of 1, 2 or 4 bits an alpha of 1, 3 or 15."""
    tf = tensorflow()
    opaque = tf.gather(_OPAQUE, tf.minimum(bits, len(_OPAQUE) - 1))
    alpha = tf.cast(image[..., 3:], tf.int32)
    return tf.cond(
        (opaque < 255) & tf.reduce_all(alpha == opaque),
        lambda: tf.concat([image[..., :3], tf.ones_like(image[..., 3:]) * 255], axis=-1),
        lambda: image,
    )


def _decode_as_grey(data: Any, bits: Any) -> Any:
    message = "expected grey or a palette for one channel, got colour of bits:"
    data = checked(data, bits != 16, message, bits)
    return to_grey(tensorflow().io.decode_png(data, 3))


def _decode_ids(data: Any, head: Any, bits: Any) -> Any:
    """TensorFlow only gives colours: so the header is made to say that the ids are grey values.

    Grey values of fewer than 8 bits are stretched, and must go back.
    """
    tf = tensorflow()
    letters = tf.constant([bytes([value]) for value in range(256)])
    change = list(_PALETTE_TO_GREY.to_bytes(4, "big"))
    sums = tf.bitwise.bitwise_xor(tf.cast(head[_SUM_AT:], tf.int32), change)
    data = checked_length(data, _HEADER_END)
    pieces = [
        tf.strings.substr(data, 0, _COLOUR_AT),
        b"\0",
        tf.strings.substr(data, _COLOUR_AT + 1, _SUM_AT - _COLOUR_AT - 1),
        tf.strings.reduce_join(tf.gather(letters, sums)),
        tf.strings.substr(data, _HEADER_END, tf.strings.length(data)),
    ]
    step = tf.cast(tf.gather(_STEPS, tf.minimum(bits, len(_STEPS) - 1)), tf.uint8)
    return tf.io.decode_png(tf.strings.join(pieces), 1) // step
