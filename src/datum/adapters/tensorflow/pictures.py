"""Images decoded within TensorFlow's graph, as their features say."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from datum.errors import SchemaError
from datum.schema import Feature
from datum.transforms.channels import Wanted
from datum.transforms.decoding import CHANNELS, decode_any
from datum.transforms.formats import decode_jpeg
from datum.transforms.graph import leave_as_is, tensorflow

__all__ = ["decoder_for"]


def decoder_for(
    feature: Feature, *, exact: bool = False, formats: Iterable[str] = ()
) -> Callable[[Any], Any]:
    """A function that decodes one image, given as its bytes, to the dtype and shape of a feature.

    The pixels are those that `datum.images.decode` gives; only a JPEG differs slightly, unless
    `exact`. Of an optional feature, no bytes give zeros: of no height and width where these are
    not fixed. What cannot be decoded, or is of another shape, is an error within the graph.
    `formats` are those that occur, if that is known: to tell them apart takes time.
    """
    if len(feature.shape) != 3 or feature.shape[-1] not in CHANNELS:
        raise SchemaError(
            f"{feature!r}: expected an image of 1, 3 or 4 channels\n"
            'hint: decode={"<feature>": False} gives the bytes'
        )
    wanted = Wanted(feature.shape[-1], feature.dtype, exact)
    if set(formats) == {"jpeg"} and not feature.optional:
        ensure_shape = tensorflow().ensure_shape
        return leave_as_is(lambda data: ensure_shape(decode_jpeg(data, wanted), feature.shape))
    return leave_as_is(
        lambda data: decode_any(data, wanted, shape=feature.shape, may_be_empty=feature.optional)
    )
