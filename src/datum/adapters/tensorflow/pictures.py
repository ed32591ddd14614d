"""Images decoded within TensorFlow's graph, as their features say."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from datum.errors import DatumError, SchemaError
from datum.schema import Feature
from datum.transforms.channels import Wanted
from datum.transforms.decoding import CHANNELS, decode_any
from datum.transforms.formats import decode_jpeg, is_jpeg
from datum.transforms.graph import leave_as_is, tensorflow
from datum.transforms.png import decode_simple_png, is_simple_png

__all__ = ["decoder_for", "for_each"]

_FORMATS = ("bmp", "gif", "jpeg", "png", "tiff", "webp")
_PLAIN_ONLY = frozenset({"bmp", "gif"})  # see `datum.images.portable`; others may have written them


def decoder_for(
    feature: Feature,
    *,
    name: str = "image",
    exact: bool = False,
    formats: Collection[str] = (),
    natively: bool = False,
) -> Callable[[Any], Any]:
    """A function that decodes one image, given as its bytes, to the dtype and shape of a feature.

    The pixels are those that `datum.images.decode` gives; only a JPEG differs slightly, unless
    `exact`. Of an optional feature, no bytes give zeros: of no height and width where these are
    not fixed. What cannot be decoded, or is of another shape, is an error within the graph.

    Args:
        feature: what the image is decoded to.
        name: of the feature, for errors.
        exact: whether a JPEG is decoded as Pillow does, to the last bit.
        formats: those that occur, if that is known: to tell them apart takes time.
        natively: whether formats that TensorFlow does not decode, or not in the same way, may be
            decoded by Datum, in this process. Without it they are a SchemaError if they are known
            to occur, and else an error within the graph.
    """
    if len(feature.shape) != 3 or feature.shape[-1] not in CHANNELS:
        raise SchemaError(
            f"{feature!r}: expected an image of 1, 3 or 4 channels\n"
            'hint: decode={"<feature>": False} gives the bytes'
        )
    lacking = sorted(_lacking_formats().intersection(formats))
    if lacking and not natively:
        raise SchemaError(
            f"feature {name!r}: expected images that TensorFlow {tensorflow().__version__} decodes,"
            f" got {' and '.join(map(str.upper, lacking))}\n"
            "hint: engine='native' decodes them",
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
    """A function that decodes the images of one record, given as a vector of their bytes.

    They must be of one size, which the feature of the list tells, if there is one. No images give
    a tensor of none, of no height and width where these are not known.
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

    is_seeded = bool(getattr(decoder, "takes_seed", False))
    if feature is not None:
        return leave_as_is(decode, takes_seed=is_seeded)
    decode.takes_seed = is_seeded  # type: ignore[attr-defined]
    return decode


def _lacking_formats() -> frozenset[str]:
    """What TensorFlow has no decoder for; that of WebP came late."""
    has_webp = hasattr(tensorflow().raw_ops, "DecodeWebP")
    return frozenset({"tiff"} if has_webp else {"tiff", "webp"})


def _decode_natively(data: Any, wanted: Wanted, name: str, feature: Feature) -> Any:
    """JPEG and plain PNG by TensorFlow's operations, on all cores; all else by Datum's decoders."""
    tf = tensorflow()

    def decode(data: bytes) -> Any:
        from datum.images import decode

        if not data and feature.optional:
            return np.zeros([n or 0 for n in feature.shape], feature.dtype)
        try:
            return decode(data, feature)
        except DatumError as error:
            # TensorFlow tells the kind of an error by its type, and shows where it came from.
            raise ValueError(f"feature {name!r}: {error}") from None

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
