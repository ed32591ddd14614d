"""Decoding of images of any format within a TensorFlow graph."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datum.errors import SchemaError
from datum.transforms.graph import Origin, apart, checked, fail, leave_as_is, tensorflow

__all__ = [
    "CHANNELS",
    "Wanted",
    "checked_length",
    "decode_any",
    "decode_bmp",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_other",
    "decode_png",
    "decode_simple_png",
    "decode_webp",
    "fit_channels",
    "fit_depth",
    "is_jpeg",
    "is_simple_png",
    "refuse",
    "to_grey",
]

_LUMA = (19595, 38470, 7471)  # Pillow's weights of red, green and blue, of 65536
_OPAQUE = 255
_WIDENED = 257  # the factor of colours from 8 to 16 bits, as in `datum.images`


@dataclass(frozen=True, slots=True)
class Wanted:
    """The pixels to decode an image to.

    Attributes:
        channels: 1, 3 or 4; None for those of the image.
        dtype: "uint8" or "uint16".
        exact: Whether a JPEG is decoded like Pillow, to the last bit.
    """

    channels: int | None = 3
    dtype: str = "uint8"
    exact: bool = False


def fit_channels(image: Any, got: int, wanted: Wanted) -> Any:
    """Convert an image of 8 bits and `got` channels, 3 or 4, to the channels wanted."""
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
    """Convert pixels of 8 bits to the dtype wanted.

    In 16 bits colours look the same; the values of a single channel, which may be ids, stay.
    """
    tf = tensorflow()
    if wanted.dtype == "uint8":
        return tf.cast(image, tf.uint8)
    wide = tf.cast(image, tf.int32)  # uint16 supports few operations
    if wanted.channels is None:
        wide *= tf.where(tf.shape(image)[-1] == 1, 1, _WIDENED)
    elif wanted.channels > 1:
        wide *= _WIDENED
    return tf.cast(wide, tf.uint16)


def to_grey(image: Any) -> Any:
    """Convert colours of 8 bits to grey values like Pillow."""
    tf = tensorflow()
    parts = tf.cast(image[..., :3], tf.int32) * _LUMA
    total = tf.reduce_sum(parts, axis=-1, keepdims=True) + 0x8000
    return tf.cast(tf.bitwise.right_shift(total, 16), tf.uint8)


def checked_length(data: Any, least: int) -> Any:
    """Return the bytes if there are at least `least`; raise an error within the graph if not.

    Slicing too few bytes would raise TensorFlow's own error, which contains the bytes and which
    Python then fails to show.
    """
    size = tensorflow().strings.length(data)
    return checked(
        data, size >= least, "expected an image, got only the start of one, bytes:", size
    )


def refuse(data: Any, message: str, wanted: Wanted) -> Any:
    """Return an error within the graph in place of an image."""
    tf = tensorflow()
    height = fail(f"{message}, bytes:", tf.strings.length(data))
    return tf.zeros([height, 0, wanted.channels or 1], wanted.dtype)


_GIF_HEAD_BYTES = 10
_BMP_HEAD_BYTES = 34
_WEBP_HEAD_BYTES = 25
_WEBP_FLAGS_AT = 20
_WEBP_ALPHA = 0x10  # the same bit in the flags of an extended file and in a lossless stream


def is_jpeg(data: Any) -> Any:
    """Return whether bytes are a JPEG image."""
    return tensorflow().strings.substr(data, 0, 3) == b"\xff\xd8\xff"


def decode_jpeg(data: Any, wanted: Wanted, *, window: Any = None, ratio: int = 1) -> Any:
    """Decode a JPEG image shrunk by `ratio`, or a window of that: (top, left, height, width)."""
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
    """Decode the first frame, if TensorFlow decodes it exactly: in colour, and opaque."""
    tf = tensorflow()
    if wanted.channels == 1:
        return refuse(data, "expected an image of grey values or ids, got a GIF", wanted)
    image = tf.io.decode_image(data, 3, expand_animations=False)
    head = tf.io.decode_raw(data, tf.uint16, fixed_length=_GIF_HEAD_BYTES)
    screen = tf.cast(head[:2:-1], tf.int32)  # height and width, stored in reverse
    is_right = tf.reduce_all(tf.shape(image)[:2] == screen)
    if wanted.channels != 3:
        is_right &= ~_may_be_transparent(data)
    message = "expected a GIF that is opaque and whose first frame fills it, got another of size:"
    return fit_channels(checked(image, is_right, message, screen[0], screen[1]), 3, wanted)


def _may_be_transparent(data: Any) -> Any:
    """Return whether a control block before the first frame of a GIF declares transparency.

    Other bytes may look like such a block of four bytes, but hardly ever do.
    """
    tf = tensorflow()
    frame = tf.strings.join([b"\x2c\0\0\0\0", tf.strings.substr(data, 6, 4)])
    raw = tf.io.decode_raw(tf.strings.split(data, frame, maxsplit=1)[0], tf.uint8)
    is_block = (raw[:-3] == 0x21) & (raw[1:-2] == 0xF9) & (raw[2:-1] == 4)
    first = tf.argmax(tf.cast(is_block, tf.int32))
    return tf.reduce_any(is_block) & (raw[first + 3] % 2 == 1)


def decode_webp(data: Any, wanted: Wanted) -> Any:
    """Decode the first frame.

    TensorFlow 2.21 needs the exact number of channels of the file. For an animation it accepts only
    four, and writes beyond its memory if it has to detect three by itself.
    """
    tf = tensorflow()
    head = tf.io.decode_raw(data, tf.uint8, fixed_length=_WEBP_HEAD_BYTES)
    data = checked_length(data, _WEBP_HEAD_BYTES)
    kind = tf.strings.substr(data, 12, 4)

    def decode(data: Any, channels: int) -> Any:
        return tf.io.decode_image(data, channels, expand_animations=False)

    def decode_extended() -> Any:  # possibly an animation, so it counts as transparent
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
    """Decode an uncompressed image of 24 or 32 bits, or of 8 with a palette."""
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
    with tf.control_dependencies([ids]):  # its bytes are known to exist
        stored = tf.io.decode_raw(tf.strings.substr(data, start, first - start), tf.uint8)
    colours = tf.reverse(tf.reshape(stored, [-1, 4])[:, :3], [1])
    image = tf.gather(colours, tf.cast(ids[..., 0], tf.int32))
    if wanted.channels is not None:
        return fit_channels(image, 3, wanted)
    grey = tf.range(tf.shape(colours)[0])[:, None]
    is_grey = tf.reduce_all(tf.cast(colours, tf.int32) == grey)
    return fit_depth(image[..., : tf.where(is_grey, 1, 3)], wanted)


_BITS_AT, _COLOUR_AT = 24, 25  # positions of depth and colour type
_SUM_AT, _HEADER_END = 29, 33
_GREY_WITH_ALPHA = 4
# The colour types for one channel; 1 and 5 do not exist.
_GREY, _COLOUR, _PALETTE = range(3)
_KINDS = (_GREY, _GREY, _COLOUR, _PALETTE, _GREY, _GREY, _COLOUR)
# The change of the header's checksum when the colour type turns from palette into grey: checksums
# of equal length differ by the difference of the bytes, whatever these are.
_PALETTE_TO_GREY = zlib.crc32(bytes([*bytes(13), 3, 0, 0, 0])) ^ zlib.crc32(bytes(17))
_STEPS = (1, 255, 85, 1, 17, 1, 1, 1, 1)  # between the grey values of 1, 2, 4 and 8 bits
_PNG_OPAQUE = (
    255,
    1,
    3,
    255,
    15,
    255,
)  # the alpha that TensorFlow assigns to opaque pixels of these bits


def is_simple_png(data: Any, wanted: Wanted) -> Any:
    """Return whether bytes are a PNG that `decode_simple_png` can decode: most are."""
    tf = tensorflow()
    words = tf.io.decode_raw(data, tf.int32, fixed_length=_BITS_AT + 4)
    colours = [0, _GREY_WITH_ALPHA] if wanted.channels == 1 else [0, 2, 3, _GREY_WITH_ALPHA, 6]
    is_simple = tf.reduce_any(words[_BITS_AT // 4] == [8 + 256 * colour for colour in colours])
    return (words[0] == int.from_bytes(b"\x89PNG", "little", signed=True)) & is_simple


def decode_simple_png(data: Any, wanted: Wanted) -> Any:
    """Decode a PNG image of 8 bits that TensorFlow decodes exactly."""
    tf = tensorflow()
    return fit_depth(tf.io.decode_png(data, wanted.channels), wanted)


def decode_png(data: Any, wanted: Wanted) -> Any:
    """Decode a PNG image; with one channel, a palette to its ids.

    Colours look the same in 8 and 16 bits; the values of a single channel are never scaled.
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
    return tf.cond(  # by itself, TensorFlow returns two channels for grey with transparency
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
    """Convert pixels of 16 bits to 8: colours keep the high byte; other values must fit."""
    tf = tensorflow()
    wide = tf.cast(image, tf.int32)

    def keep() -> Any:
        most = tf.reduce_max(wide)
        return checked(wide, most <= 255, "expected pixels of 8 bits, got", most)

    is_single = tf.shape(image)[-1] == 1
    return tf.cast(tf.cond(is_single, keep, lambda: tf.bitwise.right_shift(wide, 8)), tf.uint8)


def _with_right_alpha(image: Any, bits: Any) -> Any:
    """Correct the alpha of opaque pixels of few bits, which TensorFlow 2.21 sets to 1, 3 or 15."""
    tf = tensorflow()
    opaque = tf.gather(_PNG_OPAQUE, tf.minimum(bits, len(_PNG_OPAQUE) - 1))
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
    """Decode ids by changing the header to grey, since TensorFlow decodes palettes to colours.

    Grey values of fewer than 8 bits are stretched, and have to be scaled back.
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


CHANNELS = (1, 3, 4, None)
_UNKNOWN = (
    "expected a JPEG, PNG, GIF, WebP or BMP image, got a TIFF or bytes of another kind"
    " (hint: engine='native' of `to_tf` decodes TIFF)"
)


def decode_image(channels: int | None = 3, *, exact: bool = False) -> Callable[[Any], Any]:
    """Return a function that decodes the bytes of one image: height x width x channels, uint8.

    JPEG, PNG, GIF (its first frame), WebP and BMP are recognised by content. With one channel a
    palette is decoded to its ids; None means the channels of the image. No bytes are decoded to an
    image of no height and width. With `exact` a JPEG is decoded like Pillow, to the last bit;
    otherwise TensorFlow's faster method is used, whose values differ by one or two on average.

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
    """Decode one image as wanted, and check `shape` if there is one; zeros for no bytes."""
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
    """Decode an image that is not a JPEG; an error within the graph if its format is unknown."""
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
