"""Floats of a batch in the dtype that a model wants: what `cast` may say, and how it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datum.errors import Message
from datum.schema import Feature, Schema
from datum.schema.dtypes import INTEGERS

__all__ = ["Cast", "check_cast", "find_casts"]

FLOATS = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*INTEGERS, *FLOATS)

Cast = Any  # a dtype, a mapping of features to dtypes, or None


def check_cast(cast: Cast) -> None:
    """Refuse what names no floating-point type."""
    for dtype in cast.values() if isinstance(cast, Mapping) else [cast]:
        if cast is not None:
            _name_of(dtype)


def _name_of(dtype: Any) -> str:
    """The name of a type: of a text, or of a type of NumPy, PyTorch, JAX or TensorFlow."""
    name = dtype
    if not isinstance(dtype, str):
        told = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
        name = told.removeprefix("torch.")
    if name not in FLOATS:
        raise ValueError(
            Message(
                f"expected `cast` to a floating-point type, {', '.join(FLOATS)}, got {dtype!r}",
                hint="`map` can make anything else of a record",
            )
        )
    return str(name)


def find_casts(cast: Cast, schema: Schema, decode: Any) -> dict[str, str]:
    """The type that each feature is cast to: those that `cast` names, or all that are floats.

    `decode` is the option of that name: the pixels of images can be cast, their bytes cannot.
    """
    if cast is None:
        return {}
    if not isinstance(cast, Mapping):
        return {
            name: _name_of(cast)
            for name, feature in schema.items()
            if feature.dtype in FLOATS and feature.dtype != _name_of(cast)
        }
    casts = {name: _name_of(dtype) for name, dtype in cast.items() if name in schema}
    for name in casts:
        if not _is_number(schema[name], name, decode):
            raise ValueError(
                f"expected `cast` of numbers or decoded images, got {name!r}: {schema[name]!r}"
            )
    return casts


def _is_number(feature: Feature, name: str, decode: Any) -> bool:
    """Whether the values of a feature come as real numbers."""
    is_image = feature.encoding == "image"
    how = decode.get(name, is_image) if isinstance(decode, Mapping) else decode and is_image
    if is_image or feature.is_string:
        return how is True
    return feature.dtype in _NUMBERS
