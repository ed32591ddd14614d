"""Windows of encoded images, decoded and resized together: for training, and for evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from datum.errors import SchemaError
from datum.transforms.decoding import Wanted, decode_jpeg, decode_other, is_jpeg
from datum.transforms.graph import (
    Origin,
    apart,
    check_size,
    fold_in,
    leave_as_is,
    random_seed,
    tensorflow,
)

__all__ = ["center_crop", "random_crop"]

_RATIOS = (1, 2, 4, 8)  # by which a JPEG can be shrunk while it is decoded
_ATTEMPTS = 10  # to find a window within the image, before the whole image is used
_COLOURS = Wanted(3)


def random_crop(
    height: int,
    width: int,
    *,
    area: tuple[float, float] = (0.08, 1.0),
    ratio: tuple[float, float] = (3 / 4, 4 / 3),
    flip: bool = True,
    seed: int | None = None,
) -> Callable[..., Any]:
    """Return a function for `decode=` that decodes a random window of an image, resized.

    It accepts the bytes of one image, and returns height x width x 3, uint8; zeros for no bytes.
    The area of the window, as a part of the image's, and its ratio of width to height are within
    these limits; half of the windows are mirrored if `flip`. For a JPEG only the window is
    decoded, at a half, a quarter or an eighth of its size if it is that much larger than needed;
    that also averages pixels, which resizing (bilinear) skips. The function accepts `seed=`, two
    integers that determine all random choices. For training.

    >>> import tensorflow as tf
    >>> data = tf.io.encode_jpeg(tf.zeros([60, 80, 3], tf.uint8))
    >>> random_crop(32, 32)(data).shape
    TensorShape([32, 32, 3])
    """
    check_size("random_crop", height, width)
    _check_range("random_crop", "area", area, most=1.0)
    _check_range("random_crop", "ratio", ratio, most=None)

    def choose(shape: Any, numbers: Any) -> Any:
        tf = tensorflow()
        begin, size, _ = tf.image.stateless_sample_distorted_bounding_box(
            shape,
            tf.zeros([1, 0, 4]),
            numbers,
            min_object_covered=0.0,
            aspect_ratio_range=ratio,
            area_range=area,
            max_attempts=_ATTEMPTS,
            use_image_if_no_bounding_boxes=True,
        )
        return tf.concat([begin[:2], size[:2]], axis=0)

    def crop(data: Any, seed_pair: Any) -> Any:
        tf = tensorflow()
        numbers = random_seed(seed, seed_pair)
        image = _decode_window(data, lambda shape: choose(shape, numbers), height, width)
        if not flip:
            return image
        is_flipped = tf.random.stateless_uniform([], fold_in(numbers, 1)) < 0.5
        return tf.cond(is_flipped, lambda: tf.reverse(image, [1]), lambda: image)

    return leave_as_is(
        lambda data, seed=None: crop(data, seed),
        takes_seed=True,
        origin=_origin(
            "random_crop",
            (height, width),
            f"rng.uniform({area[0]:g}, {area[1]:g}) ** 0.5",
            "rng.integers(photo.width - width + 1), rng.integers(photo.height - height + 1)",
            side="[:, :: rng.choice([-1, 1])]" if flip else "",
            draws=True,
        ),
    )


def center_crop(height: int, width: int, *, fraction: float = 0.875) -> Callable[[Any], Any]:
    """Return a function for `decode=` that decodes the centre of an image, resized.

    It accepts the bytes of one image, and returns height x width x 3, uint8. The window has the
    proportions of the result, and `fraction` of the sides of the largest such window. It is
    decoded like in `random_crop`. For evaluation.

    >>> import tensorflow as tf
    >>> data = tf.io.encode_jpeg(tf.zeros([60, 80, 3], tf.uint8))
    >>> center_crop(32, 32)(data).shape
    TensorShape([32, 32, 3])
    """
    check_size("center_crop", height, width)
    if not 0 < fraction <= 1:
        raise SchemaError(
            f"center_crop: expected a `fraction` above 0 and up to 1, got {fraction!r}"
        )

    def choose(shape: Any) -> Any:
        tf = tensorflow()
        sides = tf.cast(shape[:2], tf.float32)
        scale = tf.reduce_min(sides / [height, width]) * fraction
        size = tf.maximum(1.0, tf.round(scale * [height, width]))
        return tf.cast(tf.concat([(sides - size) // 2, size], axis=0), tf.int32)

    return leave_as_is(
        lambda data: _decode_window(data, choose, height, width),
        origin=_origin(
            "center_crop",
            (height, width),
            f"{fraction:g}",
            "(photo.width - width) // 2, (photo.height - height) // 2",
        ),
    )


def _origin(
    name: str,
    size: tuple[int, int],
    fraction: str,
    place: str,
    *,
    side: str = "",
    draws: bool = False,
) -> Origin:
    """Return the same with Pillow: a window of these proportions, of a part of the sides."""
    height, width = size
    return Origin.of_pixels(
        name,
        "photo = Image.fromarray(record[<image>].squeeze()).convert('RGB')",
        f"scale = min(photo.width / {width}, photo.height / {height}) * {fraction}",
        f"width, height = max(1, int({width} * scale)), max(1, int({height} * scale))",
        f"left, top = {place}",
        "box = (left, top, left + width, top + height)",
        f"pixels = numpy.asarray(photo.resize(({width}, {height}), box=box)){side}",
        "record = {**record, <image>: pixels}",
        call=f"{name}({height}, {width})",
        draws=draws,
    )


def _decode_window(data: Any, choose: Callable[[Any], Any], height: int, width: int) -> Any:
    """Decode the window that `choose` returns for an image's shape: (top, left, height, width)."""
    tf = tensorflow()
    data = tf.convert_to_tensor(data)

    def decode_rest() -> Any:
        image = decode_other(data, _COLOURS)
        top, left, *size = tf.unstack(choose(tf.shape(image)))
        return tf.slice(image, [top, left, 0], [*size, 3])

    def decode_rare() -> Any:
        return tf.cond(data == b"", lambda: tf.zeros([1, 1, 3], tf.uint8), decode_rest)

    def decode_common() -> Any:
        window = choose(tf.io.extract_jpeg_shape(data))
        return tf.cond(
            tf.reduce_all(window[2:] >= [2 * height, 2 * width]),
            lambda: _shrinking_decoder()(data, window, [height, width]),
            lambda: decode_jpeg(data, _COLOURS, window=window),
        )

    image = tf.cond(is_jpeg(data), decode_common, decode_rare)
    image = tf.cast(image, tf.float32)[None]  # resized faster than uint8
    resized = tf.raw_ops.ResizeBilinear(images=image, size=[height, width], half_pixel_centers=True)
    return tf.cast(tf.round(resized[0]), tf.uint8)


@functools.cache
def _shrinking_decoder() -> Callable[..., Any]:
    """Return a decoder of JPEG windows that shrinks them as far as they stay larger than needed."""
    tf = tensorflow()

    def decode(data: Any, window: Any, size: Any) -> Any:
        def decode_at(ratio: int) -> Any:
            ends = window[:2], window[:2] + window[2:]
            begin, end = ((at + ratio // 2) // ratio for at in ends)
            shrunk = tf.concat([begin, end - begin], axis=0)
            return decode_jpeg(data, _COLOURS, window=shrunk, ratio=ratio)

        surplus = tf.reduce_min(window[2:] // size)
        choice = tf.reduce_sum(tf.cast(surplus >= _RATIOS, tf.int32)) - 1
        return tf.switch_case(choice, [functools.partial(decode_at, ratio) for ratio in _RATIOS])

    numbers = (tf.TensorSpec([count], tf.int32) for count in (4, 2))
    return apart(decode, tf.TensorSpec([], tf.string), *numbers)


def _check_range(where: str, name: str, limits: Any, *, most: float | None) -> None:
    try:
        low, high = limits
        is_right = 0 < low <= high and (most is None or high <= most)
    except (TypeError, ValueError):
        is_right = False
    if not is_right:
        limit = f" and up to {most:g}" if most is not None else ""
        raise SchemaError(
            f"expected `{name}` as two limits above 0{limit}, got {limits!r}", where=where
        )
