"""Images decoded for TensorFlow: in the graph, or by the native core where they are small."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from datum._frameworks.tensorflow.options import TfOptions
from datum._load.decode import BatchImages, encoded_images
from datum.errors import DatumError, Message, SchemaError
from datum.schema import Feature, Schema
from datum.transforms.decoding import (
    CHANNELS,
    Wanted,
    decode_any,
    decode_jpeg,
    decode_simple_png,
    is_jpeg,
    is_simple_png,
)
from datum.transforms.graph import leave_as_is, takes_seed, tensorflow

__all__ = ["as_pixels", "decode_small", "decoder_for", "find_small", "for_each"]
_FORMATS = ("bmp", "gif", "jpeg", "png", "tiff", "webp")
_PLAIN_ONLY = frozenset({"bmp", "gif"})  # see `datum.images.prepare`; others may have written them
MAX_PIXEL_BYTES = 2**10  # MNIST has 784; larger ones are faster in a graph with four cores


def decoder_for(
    feature: Feature,
    *,
    name: str = "image",
    exact: bool = False,
    formats: Collection[str] = (),
    natively: bool = False,
) -> Callable[[Any], Any]:
    """Make a function that decodes the bytes of an image to the dtype and shape of a feature.

    The pixels are those of `datum.images.decode`, except that a JPEG differs slightly unless
    `exact`. For an optional feature, empty bytes become zeros, without height and width where
    these are not fixed. An image that cannot be decoded, or has another shape, is an error within
    the graph.

    Args:
        feature: The feature that the image is decoded to.
        name: Name of the feature, for errors.
        exact: Whether a JPEG is decoded as Pillow does, to the last bit.
        formats: The formats that occur, if they are known, which saves a check of each image.
        natively: Whether Datum may decode, in this process, formats that TensorFlow does not
            decode, or decodes differently. Otherwise they raise a SchemaError if they are known to
            occur, and an error within the graph if not.
    """
    if len(feature.shape) != 3 or feature.shape[-1] not in CHANNELS:
        raise SchemaError(
            "expected an image of 1, 3 or 4 channels",
            where=f"{feature!r}",
            hint='decode={"<feature>": False} returns the bytes',
        )
    lacking = sorted(_lacking_formats().intersection(formats))
    if lacking and not natively:
        raise SchemaError(
            f"expected images that TensorFlow {tensorflow().__version__} decodes,"
            f" got {' and '.join(map(str.upper, lacking))}",
            where=f"feature {name!r}",
            hint="engine='native' decodes them",
            feature=name,
        )
    wanted = Wanted(feature.shape[-1], feature.dtype, exact)
    if set(formats) == {"jpeg"} and not feature.optional:
        ensure_shape = tensorflow().ensure_shape
        return leave_as_is(lambda data: ensure_shape(decode_jpeg(data, wanted), feature.shape))
    doubtful = (_lacking_formats() | _PLAIN_ONLY).intersection(formats or _FORMATS)
    if natively and doubtful:
        return leave_as_is(lambda data: _decode_natively(data, wanted, name, feature))
    return leave_as_is(
        lambda data: decode_any(data, wanted, shape=feature.shape, may_be_empty=feature.optional)
    )


def for_each(decoder: Callable[..., Any], feature: Feature | None) -> Callable[..., Any]:
    """Make a function that decodes the images of one record from a vector of their bytes.

    The images must have one size. Without images the result has no rows, and no height and width
    where these are not known.

    Args:
        decoder: Decodes one image.
        feature: The feature of the list, for the shape of its images; None if there is none.
    """
    tf = tensorflow()

    def decode(data: Any, **seed: Any) -> Any:
        def decode_one(one: Any) -> Any:
            return decoder(one, **seed)

        if feature is None:
            traced = tf.function(decode_one).get_concrete_function(tf.TensorSpec([], tf.string))
            spec = tf.TensorSpec(traced.output_shapes, traced.output_dtypes)
        else:
            spec = tf.TensorSpec(feature.shape[1:], feature.dtype)
        blank = [n or 0 for n in spec.shape] if spec.shape.rank is not None else []
        images = tf.cond(
            tf.size(data) > 0,
            lambda: tf.map_fn(decode_one, data, fn_output_signature=spec),
            lambda: tf.zeros([0, *blank], spec.dtype),
        )
        return images if feature is None else tf.ensure_shape(images, feature.shape)

    is_seeded = takes_seed(decoder)
    if feature is not None:
        return leave_as_is(decode, takes_seed=is_seeded)
    decode.takes_seed = is_seeded  # type: ignore[attr-defined]
    return decode


def _lacking_formats() -> frozenset[str]:
    """Formats that this TensorFlow does not decode; older ones lack WebP."""
    has_webp = hasattr(tensorflow().raw_ops, "DecodeWebP")
    return frozenset({"tiff"} if has_webp else {"tiff", "webp"})


def _decode_natively(data: Any, wanted: Wanted, name: str, feature: Feature) -> Any:
    """Decode JPEG and plain PNG with TensorFlow's ops, on all cores, and the rest with Datum."""
    tf = tensorflow()

    def decode(data: bytes) -> Any:
        from datum.images import decode

        if not data and feature.optional:
            return np.zeros([n or 0 for n in feature.shape], feature.dtype)
        try:
            return decode(data, feature)
        except DatumError as error:
            # TensorFlow chooses its own error by this type, and shows the traceback.
            raise ValueError(Message(error, where=f"feature {name!r}")) from None

    def decode_rest() -> Any:
        image = tf.numpy_function(decode, [data], feature.dtype, stateful=False)
        return tf.ensure_shape(image, (None, None, wanted.channels))

    def decode_png_or_rest() -> Any:
        if wanted.channels is None:
            return decode_rest()
        is_simple = is_simple_png(data, wanted)
        return tf.cond(is_simple, lambda: decode_simple_png(data, wanted), decode_rest)

    data = tf.convert_to_tensor(data)
    image = tf.cond(is_jpeg(data), lambda: decode_jpeg(data, wanted), decode_png_or_rest)
    return tf.ensure_shape(image, feature.shape)


# Small images, decoded by the native core.


def find_small(
    schema: Schema, options: TfOptions, metadata: Mapping[str, Mapping[str, Any]]
) -> frozenset[str]:
    """Names of the images that the native core decodes while it reads: small PNG of one shape.

    There, graph ops cost more than pixels: images of 8 x 8 pixels come 5.7 times as fast as from
    ops on two cores, colour images of 32 x 32 twice. But one thread decodes them while the graph
    uses all cores, so only the smallest are chosen. PNG has the same pixels in every decoder.
    """
    if options.decode is False:
        return frozenset()
    asked = options.decode if isinstance(options.decode, Mapping) else {}
    return frozenset(
        name
        for name, feature in schema.items()
        if asked.get(name, True) is True
        and _is_small(feature)
        and list(metadata.get(name, {}).get("formats", ())) == ["png"]
    )


def _is_small(feature: Feature) -> bool:
    is_single = feature.encoding == "image" and not feature.holds_images
    is_plain = is_single and feature.dtype == "uint8" and not feature.optional
    if not is_plain or None in feature.shape:
        return False
    return math.prod(feature.shape) <= MAX_PIXEL_BYTES  # type: ignore[arg-type]


def as_pixels(schema: Schema, names: Collection[str]) -> Schema:
    """The schema of records in which these images are decoded.

    >>> image = Feature("uint8", (8, 8, 1), encoding="image")
    >>> as_pixels(Schema({"image": image}), ["image"])["image"]
    Feature('uint8', (8, 8, 1), encoding='raw')
    """
    decoded = {name: replace(schema[name], encoding="raw", keys=()) for name in names}
    return Schema({name: decoded.get(name, feature) for name, feature in schema.items()})


def decode_small(columns: dict[str, Any], schema: Schema, names: Collection[str]) -> dict[str, Any]:
    """Replace these images in parsed columns by their pixels."""
    for name in names:
        images = BatchImages(schema[name], encoded_images(columns[name]))
        for row in range(len(images.rows)):
            images.decode(row)
        columns[name] = images.column()
    return columns
