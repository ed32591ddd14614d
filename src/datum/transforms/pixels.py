"""Values of pixels as models want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datum.errors import SchemaError
from datum.transforms.graph import Record, RecordFunction, leave_as_is, take, tensorflow
from datum.transforms.origins import Origin

__all__ = ["IMAGENET_MEAN", "IMAGENET_STD", "caffe", "normalize", "scale"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)  # of red, green and blue, in 0 to 1
IMAGENET_STD = (0.229, 0.224, 0.225)
_CAFFE_MEAN = (103.939, 116.779, 123.68)  # of blue, green and red, in 0 to 255


def normalize(
    name: str, mean: Sequence[float] = IMAGENET_MEAN, std: Sequence[float] = IMAGENET_STD
) -> RecordFunction:
    """A function of records that takes a mean from an image, and divides by a deviation: float32.

    Both are of values in 0 to 1: integers are divided by the largest of their type first, floats
    are taken as they are. By default they are those of ImageNet. Works on batches too.

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
    """A function of records that maps an image to `low` ... `high`: float32.

    Integers are taken as 0 to the largest of their type, floats as 0 to 1. Works on batches too.

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
    """A function of records that gives an image as the first ImageNet models want it: float32.

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
