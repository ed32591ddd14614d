"""Images of other formats than PNG into pixels within a TensorFlow graph."""

from __future__ import annotations

from typing import Any

from datum.transforms.channels import Wanted, checked_length, fit_channels, fit_depth, refuse
from datum.transforms.graph import checked, tensorflow

__all__ = ["decode_bmp", "decode_gif", "decode_jpeg", "decode_webp", "is_jpeg"]

_GIF_HEAD_BYTES = 10
_BMP_HEAD_BYTES = 34
_WEBP_HEAD_BYTES = 25
_WEBP_FLAGS_AT = 20
_WEBP_ALPHA = 0x10  # the same bit in the flags of an extended file and in a lossless stream


def is_jpeg(data: Any) -> Any:
    """Whether bytes are a JPEG image."""
    return tensorflow().strings.substr(data, 0, 3) == b"\xff\xd8\xff"


def decode_jpeg(data: Any, wanted: Wanted, *, window: Any = None, ratio: int = 1) -> Any:
    """A JPEG image shrunk by `ratio`, or of that a window: (top, left, height, width)."""
    tf = tensorflow()
    options = {
        "channels": {None: 0, 4: 3}.get(wanted.channels, wanted.channels),
        "dct_method": "INTEGER_ACCURATE" if wanted.exact else "",
        "ratio": ratio,
    }
    if window is None:
        image = tf.io.decode_jpeg(data, **options)
    else:
        image = tf.io.decode_and_crop_jpeg(data, window, **options)
    return fit_channels(image, 3, wanted) if wanted.channels == 4 else fit_depth(image, wanted)


def decode_gif(data: Any, wanted: Wanted) -> Any:
    """The first frame, where TensorFlow gives it as it is: in colour, and opaque."""
    tf = tensorflow()
    if wanted.channels == 1:
        return refuse(data, "expected an image of grey values or ids, got a GIF", wanted)
    image = tf.io.decode_image(data, 3, expand_animations=False)
    head = tf.io.decode_raw(data, tf.uint16, fixed_length=_GIF_HEAD_BYTES)
    screen = tf.cast(head[:2:-1], tf.int32)  # height and width, told the other way round
    is_right = tf.reduce_all(tf.shape(image)[:2] == screen)
    if wanted.channels != 3:
        is_right &= ~_may_be_transparent(data)
    message = "expected a GIF that is opaque and whose first frame fills it, got another of size:"
    return fit_channels(checked(image, is_right, message, screen[0], screen[1]), 3, wanted)


def _may_be_transparent(data: Any) -> Any:
    """Whether a control block of a GIF before its first frame, which fills the image, says so.

    Other bytes may look like such a block, but hardly ever do: it is four of them.
    """
    tf = tensorflow()
    frame = tf.strings.join([b"\x2c\0\0\0\0", tf.strings.substr(data, 6, 4)])
    raw = tf.io.decode_raw(tf.strings.split(data, frame, maxsplit=1)[0], tf.uint8)
    is_block = (raw[:-3] == 0x21) & (raw[1:-2] == 0xF9) & (raw[2:-1] == 4)
    first = tf.argmax(tf.cast(is_block, tf.int32))
    return tf.reduce_any(is_block) & (raw[first + 3] % 2 == 1)


def decode_webp(data: Any, wanted: Wanted) -> Any:
    """The first frame.

    TensorFlow 2.21 has to be told as many channels as the file has. Of an animation it takes only
    four, and writes beyond its memory if it is left to find out by itself that there are three.
    """
    tf = tensorflow()
    head = tf.io.decode_raw(data, tf.uint8, fixed_length=_WEBP_HEAD_BYTES)
    data = checked_length(data, _WEBP_HEAD_BYTES)
    kind = tf.strings.substr(data, 12, 4)

    def decode(data: Any, channels: int) -> Any:
        return tf.io.decode_image(data, channels, expand_animations=False)

    def decode_extended() -> Any:  # which may be an animation: so it is called transparent
        flags = tf.cast(head[_WEBP_FLAGS_AT], tf.int32)
        pieces = [
            tf.strings.substr(data, 0, _WEBP_FLAGS_AT),
            tf.gather([bytes([value | _WEBP_ALPHA]) for value in range(256)], flags),
            tf.strings.substr(data, _WEBP_FLAGS_AT + 1, tf.strings.length(data)),
        ]
        image = fit_channels(decode(tf.strings.join(pieces), 4), 4, wanted)
        if wanted.channels is None:
            image = image[..., : tf.where(flags & _WEBP_ALPHA != 0, 4, 3)]
        return image

    def decode_simple() -> Any:
        return tf.cond(
            (kind == b"VP8L") & (head[24] & _WEBP_ALPHA != 0),
            lambda: fit_channels(decode(data, 4), 4, wanted),
            lambda: fit_channels(decode(data, 3), 3, wanted),
        )

    return tf.cond(kind == b"VP8X", decode_extended, decode_simple)


def decode_bmp(data: Any, wanted: Wanted) -> Any:
    """An image that is not compressed, of 24 or 32 bits, or of 8 with a palette."""
    tf = tensorflow()
    head = tf.cast(tf.io.decode_raw(data, tf.uint16, fixed_length=_BMP_HEAD_BYTES), tf.int32)
    bits, compression = head[14], head[15]
    is_known = (compression == 0) & tf.reduce_any(bits == [8, 24, 32])
    message = "expected a BMP of 8, 24 or 32 bits that is not compressed, got another of bits:"
    image = tf.io.decode_bmp(checked(data, is_known, message, bits), 3)
    return tf.cond(
        bits == 8,
        lambda: _of_palette(data, head, image[..., :1], wanted),
        lambda: fit_channels(image, 3, wanted),
    )


def _of_palette(data: Any, head: Any, ids: Any, wanted: Wanted) -> Any:
    tf = tensorflow()
    if wanted.channels == 1:
        return tf.cast(ids, wanted.dtype)
    # TensorFlow has checked where the pixels start, but not where the palette does.
    first, start = head[5] + head[6] * 2**16, 14 + head[7] + head[8] * 2**16
    start = tf.clip_by_value(start, 0, first)
    with tf.control_dependencies([ids]):  # whose bytes are checked to be there
        stored = tf.io.decode_raw(tf.strings.substr(data, start, first - start), tf.uint8)
    colours = tf.reverse(tf.reshape(stored, [-1, 4])[:, :3], [1])
    image = tf.gather(colours, tf.cast(ids[..., 0], tf.int32))
    if wanted.channels is not None:
        return fit_channels(image, 3, wanted)
    grey = tf.range(tf.shape(colours)[0])[:, None]
    is_grey = tf.reduce_all(tf.cast(colours, tf.int32) == grey)
    return fit_depth(image[..., : tf.where(is_grey, 1, 3)], wanted)
