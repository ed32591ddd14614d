"""Composable functions for a TensorFlow graph: for `map`, `batch_map`, `decode` and callbacks."""

from datum.transforms.decoding import decode_image
from datum.transforms.images import (
    BOXES,
    IMAGENET_MEAN,
    IMAGENET_STD,
    caffe,
    normalize,
    random_flip,
    resize,
    scale,
)
from datum.transforms.records import cast, compose, one_hot, select, supervised
from datum.transforms.windows import center_crop, random_crop

__all__ = [
    "BOXES",
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "caffe",
    "cast",
    "center_crop",
    "compose",
    "decode_image",
    "normalize",
    "one_hot",
    "random_crop",
    "random_flip",
    "resize",
    "scale",
    "select",
    "supervised",
]
