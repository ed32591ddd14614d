"""Size, orientation and values of pixels, with their masks and boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from datum.errors import SchemaError
from datum.transforms.graph import (
    Origin,
    Record,
    RecordFunction,
    check_size,
    leave_as_is,
    listed,
    random_seed,
    take,
    tensorflow,
    update,
)

__all__ = [
    "BOXES",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "caffe",
    "normalize",
    "random_flip",
    "resize",
    "scale",
]

BOXES = ("xmin", "xmax", "ymin", "ymax")  # the usual names, in this order
_METHODS = ("area", "bicubic", "bilinear", "lanczos3", "lanczos5", "nearest")


def resize(
    name: str,
    height: int,
    width: int,
    *,
    method: str = "bilinear",
    antialias: bool = False,
    keep_ratio: bool = False,
    masks: str | Sequence[str] = (),
    boxes: Sequence[str] = (),
) -> RecordFunction:
    """Return a function of records that resizes an image, and its masks without mixing ids.

    Integers are rounded, and keep their dtype. `antialias` averages all pixels when an image
    shrinks, like Pillow, and is several times slower. With `keep_ratio` the image is fitted, and
    the rest of the height or width is filled with zeros, on both sides; `boxes`, the names of
    xmin, xmax, ymin and ymax in 0 to 1, are moved along. Works on batches of one size too.

    >>> import tensorflow as tf
    >>> record = {"image": tf.ones([40, 80, 3], tf.uint8), "mask": tf.ones([40, 80, 1], tf.int32)}
    >>> record = resize("image", 32, 32, keep_ratio=True, masks="mask")(record)
    >>> record["image"].shape, int(tf.reduce_sum(record["mask"]))
    (TensorShape([32, 32, 3]), 512)
    """
    if method not in _METHODS:
        raise SchemaError(f"resize: expected a method of {', '.join(_METHODS)}, got {method!r}")
    check_size("resize", height, width)
    box_names = _checked_boxes("resize", boxes)

    def apply(record: Record) -> Record:
        changed = dict(record)
        image = take(record, name, "resize")
        fitted = _fit(image, height, width) if keep_ratio else None
        changed[name] = _resized(image, (height, width), fitted, method, antialias)
        for mask in listed(masks):
            found = take(record, mask, "resize")
            changed[mask] = _resized(found, (height, width), fitted, "nearest", False)
        if fitted is not None and box_names:
            changed |= _moved_boxes(record, box_names, fitted, (height, width))
        return changed

    code = _resizing_code(name, (height, width), keep_ratio, listed(masks), box_names)
    imports = ("import numpy", "from PIL import Image, ImageOps")
    return leave_as_is(apply, origin=Origin("resize", code=code, imports=imports, is_single=True))


def _resizing_code(
    name: str,
    size: tuple[int, int],
    keep_ratio: bool,
    masks: Sequence[str],
    boxes: Sequence[str],
) -> tuple[str, ...]:
    """Return the same with Pillow."""
    height, width = size

    def resized(key: str, method: str) -> str:
        photo = f"Image.fromarray(record[{key!r}].squeeze())"
        how = f"({width}, {height}), Image.Resampling.{method}"
        made = f"ImageOps.pad({photo}, {how})" if keep_ratio else f"{photo}.resize({how})"
        return f"numpy.asarray({made}).reshape({height}, {width}, -1)"

    values = {name: resized(name, "BILINEAR")} | {key: resized(key, "NEAREST") for key in masks}
    if not keep_ratio or not boxes:
        return (update(values),)
    for number, key in enumerate(boxes):
        part = "across" if number < 2 else "down"
        values[key] = f"record[{key!r}] * {part} + (1 - {part}) / 2"
    return (
        f"height, width = record[{name!r}].shape[:2]",
        f"scale = min({height} / height, {width} / width)",
        f"down, across = scale * height / {height}, scale * width / {width}",
        update(values),
    )


def _fit(image: Any, height: int, width: int) -> Any:
    """Return height and width of the image once it fits."""
    tf = tensorflow()
    sides = tf.cast(tf.shape(image)[-3:-1], tf.float64)
    scale = tf.reduce_min(tf.constant([height, width], tf.float64) / sides)
    return tf.cast(tf.maximum(tf.round(sides * scale), 1.0), tf.int32)


def _resized(image: Any, size: tuple[int, int], fitted: Any, method: str, antialias: bool) -> Any:
    tf = tensorflow()
    made = tf.image.resize(
        image, size if fitted is None else fitted, method=method, antialias=antialias
    )
    if image.dtype.is_integer and made.dtype != image.dtype:
        made = tf.saturate_cast(tf.round(made), image.dtype)
    else:
        made = tf.cast(made, image.dtype)
    if fitted is not None:
        top, left = tf.unstack((size - fitted) // 2)
        made = tf.image.pad_to_bounding_box(made, top, left, *size)
    made.set_shape([*image.shape[:-3], *size, image.shape[-1]])
    return made


def _moved_boxes(
    record: Record, names: Sequence[str], fitted: Any, size: tuple[int, int]
) -> Record:
    tf = tensorflow()
    first = (size - fitted) // 2
    start, part = (tf.cast(n, tf.float64) / size for n in (first, fitted))
    moved = {}
    for number, name in enumerate(names):
        side = 1 if number < 2 else 0  # xmin and xmax, then ymin and ymax
        values = take(record, name, "resize")
        move = [tf.cast(n[side], values.dtype) for n in (part, start)]
        moved[name] = values * move[0] + move[1]
    return moved


def random_flip(
    name: str,
    *,
    masks: str | Sequence[str] = (),
    boxes: Sequence[str] = (),
    seed: int | None = None,
) -> Callable[..., Record]:
    """Return a function of records that mirrors half of the images, left to right.

    `masks`, and `boxes` (the names of xmin, xmax, ymin and ymax in 0 to 1: see `BOXES`), are
    mirrored with their image. Works on batches too, with a random choice for each image. The
    function accepts `seed=`, two integers that determine the choice.

    >>> import tensorflow as tf
    >>> record = {"image": tf.constant([[[1], [2]]]), "xmin": tf.constant([0.0])}
    >>> record |= {
    ...     "xmax": tf.constant([0.25]),
    ...     "ymin": tf.constant([0.0]),
    ...     "ymax": tf.constant([1.0]),
    ... }
    >>> flipped = random_flip("image", boxes=BOXES)(record, seed=[2, 2])
    >>> flipped["image"].numpy().ravel(), flipped["xmin"].numpy(), flipped["xmax"].numpy()
    (array([2, 1], dtype=int32), array([0.75], dtype=float32), array([1.], dtype=float32))
    """
    box_names = _checked_boxes("random_flip", boxes)

    def apply(record: Record, seed_pair: Any) -> Record:
        tf = tensorflow()
        image = take(record, name, "random_flip")
        is_batch = image.shape.rank == 4
        count = tf.shape(image)[:1] if is_batch else []
        is_flipped = tf.random.stateless_uniform(count, random_seed(seed, seed_pair)) < 0.5
        changed = dict(record)
        for key in (name, *listed(masks)):
            changed[key] = _flipped(take(record, key, "random_flip"), is_flipped)
        if box_names:
            low, high = (take(record, key, "random_flip") for key in box_names[:2])
            changed[box_names[0]] = _chosen(is_flipped, 1 - high, low)
            changed[box_names[1]] = _chosen(is_flipped, 1 - low, high)
        return changed

    values = {key: f"record[{key!r}][:, ::-1]" for key in (name, *listed(masks))}
    if box_names:
        low, high = box_names[:2]
        values |= {low: f"1 - record[{high!r}]", high: f"1 - record[{low!r}]"}
    code = ("if rng.random() < 0.5:", f"    {update(values)}")
    return leave_as_is(
        lambda record, seed=None: apply(record, seed),
        takes_seed=True,
        origin=Origin("random_flip", code=code, draws=True, is_single=True),
    )


def _flipped(image: Any, is_flipped: Any) -> Any:
    tf = tensorflow()
    if image.shape.rank == 4:
        return tf.where(is_flipped[:, None, None, None], tf.reverse(image, [2]), image)
    return tf.cond(is_flipped, lambda: tf.reverse(image, [1]), lambda: image)


def _chosen(is_flipped: Any, flipped: Any, kept: Any) -> Any:
    """Return one of two columns of boxes: dense or ragged, of a record or a batch."""
    tf = tensorflow()
    if isinstance(kept, tf.RaggedTensor):
        rows = tf.gather(is_flipped, kept.value_rowids())
        return kept.with_values(tf.where(rows, flipped.values, kept.values))
    return tf.where(is_flipped[:, None] if is_flipped.shape.rank else is_flipped, flipped, kept)


def _checked_boxes(where: str, boxes: Sequence[str]) -> tuple[str, ...]:
    names = () if isinstance(boxes, str) else tuple(boxes)
    if len(names) != 4 and (names or isinstance(boxes, str)):
        raise SchemaError(
            f"expected `boxes` as the names of xmin, xmax, ymin and ymax, got {boxes!r}",
            where=where,
            hint=f"boxes={BOXES!r}",
        )
    return names


IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of red, green and blue, in 0 to 1
IMAGENET_STD = (0.229, 0.224, 0.225)
_CAFFE_MEAN = (103.939, 116.779, 123.68)  # of blue, green and red, in 0 to 255


def normalize(
    name: str, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
) -> RecordFunction:
    """Return a function of records that subtracts a mean and divides by a deviation: float32.

    Both refer to values in 0 to 1: integers are divided by the largest of their type first, floats
    are used unchanged. The default is that of ImageNet. Works on batches too.

    >>> import tensorflow as tf
    >>> record = {"image": tf.constant([[[0, 0, 255]]], tf.uint8)}
    >>> normalize("image", mean=[0.5] * 3, std=[0.5] * 3)(record)["image"].numpy()
    array([[[-1., -1.,  1.]]], dtype=float32)
    """
    if len(mean) != len(std) or not all(value > 0 for value in std):
        raise SchemaError(
            "normalize: expected as many of `mean` as of `std`, and those of `std` above 0,"
            f" got {mean!r} and {std!r}"
        )

    def apply(record: Record) -> Record:
        tf = tensorflow()
        image = take(record, name, "normalize")
        # One multiplication and one addition for each value, instead of three steps.
        factor = 1 / (_largest(image) * tf.constant(std, tf.float64))
        offset = tf.constant([-m / s for m, s in zip(mean, std, strict=True)], tf.float32)
        return {**record, name: tf.cast(image, tf.float32) * tf.cast(factor, tf.float32) + offset}

    means, deviations = (tuple(map(float, values)) for values in (mean, std))
    value = f"(record[{name!r}] / 255.0 - {means!r}) / {deviations!r}"
    return leave_as_is(apply, origin=_origin("normalize", name, value))


def scale(name: str, low: float = 0.0, high: float = 1.0) -> RecordFunction:
    """Return a function of records that maps an image to `low` ... `high`: float32.

    Integers range from 0 to the largest of their type, floats from 0 to 1. Works on batches too.

    >>> import tensorflow as tf
    >>> record = {"image": tf.constant([[[0, 0, 255]]], tf.uint8)}
    >>> scale("image", -1, 1)(record)["image"].numpy()
    array([[[-1., -1.,  1.]]], dtype=float32)
    """
    if not low < high:
        raise SchemaError(f"scale: expected `low` below `high`, got {low!r} and {high!r}")

    def apply(record: Record) -> Record:
        tf = tensorflow()
        image = take(record, name, "scale")
        factor = (high - low) / _largest(image)
        return {**record, name: tf.cast(image, tf.float32) * factor + low}

    value = f"record[{name!r}] / 255.0 * {float(high - low)!r} + {float(low)!r}"
    return leave_as_is(apply, origin=_origin("scale", name, value))


def caffe(name: str) -> RecordFunction:
    """Return a function of records that prepares an image for the first ImageNet models: float32.

    Red, green and blue become blue, green and red, less their means over ImageNet. Values are
    those of 8 bits, 0 to 255, also in floats. Works on batches too.

    >>> import tensorflow as tf
    >>> record = {"image": tf.constant([[[255, 0, 0]]], tf.uint8)}
    >>> caffe("image")(record)["image"].numpy()
    array([[[-103.939, -116.779,  131.32 ]]], dtype=float32)
    """

    def apply(record: Record) -> Record:
        tf = tensorflow()
        image = take(record, name, "caffe")
        if image.shape[-1] != 3:
            raise SchemaError(
                f"caffe: expected {name!r} with 3 channels, got shape {tuple(image.shape)}",
                feature=name,
            )
        factor = 255 / _largest(image) if image.dtype.is_integer else 1.0
        pixels = tf.cast(image[..., ::-1], tf.float32)
        if factor != 1.0:
            pixels *= factor
        return {**record, name: pixels - _CAFFE_MEAN}

    value = f"record[{name!r}][..., ::-1] - {_CAFFE_MEAN!r}"
    return leave_as_is(apply, origin=_origin("caffe", name, value))


def _origin(factory: str, name: str, value: str) -> Origin:
    return Origin.of_update(factory, name, f"({value}).astype('float32')")


def _largest(image: Any) -> float:
    return float(image.dtype.max) if image.dtype.is_integer else 1.0
