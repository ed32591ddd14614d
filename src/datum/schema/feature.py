"""One feature of a record: type, shape, and how it lies on disk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from datum.errors import SchemaError, suggest
from datum.schema.casting import InexactError, as_array, is_encodable
from datum.schema.dtypes import DTYPES, EXACT_LISTS, STRINGS, TIMES

__all__ = ["Encoding", "Feature"]

Encoding = Literal["values", "raw", "sparse", "image"]
MAX_VALUES = 2**40  # far above any record, far below what overflows
_ENCODINGS = ("values", "raw", "sparse", "image")
_IMAGE_DTYPES = ("uint8", "uint16")


@dataclass(frozen=True, slots=True)
class Feature:
    """What one feature holds in every record.

    Attributes:
        dtype: one of `datum.schema.DTYPES`, or a NumPy type of such a name. Times
            ("datetime64[us]", "timedelta64[D]" ...) are stored as integers.
        shape: of the value in one record; None for a dimension whose length differs. Leading
            None dimensions come back as `Ragged`.
        encoding: "values" in the list types of tf.train.Feature; "raw" as little-endian bytes
            in one byte string, the default of types those lists cannot hold exactly; "sparse"
            as indices and values under two or more keys; "image" as the bytes of an image file,
            of dtype uint8 or uint16 and shape (height, width, channels); of four dimensions it is
            a list of images, the first being how many. A sparse feature that a record lacks is one
            without values. Where values of a ragged or sparse feature are of
            a type that lists cannot hold, they lie as raw bytes.
        sequence: whether the feature lies in the feature lists of a SequenceExample, one step
            for each item of the first dimension, which must be None.
        optional: whether records may lack it.
        default: what a record that lacks it gets; None for a `Masked` column instead.
        keys: where the feature lies in the record, if not under its own name:
            (values, row lengths of the second dimension, ...), (raw bytes, shape), or
            (indices of each dimension ..., values).

    >>> Feature("float32", (None, 4))
    Feature('float32', (None, 4))
    >>> Feature("uint8", (None, None, 3), encoding="image")
    Feature('uint8', (None, None, 3), encoding='image')
    """

    dtype: str
    shape: tuple[int | None, ...] = ()
    _: KW_ONLY
    encoding: Encoding = None  # type: ignore[assignment]  # chosen by dtype
    sequence: bool = False
    optional: bool = False
    default: Any = None
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "dtype", _checked_dtype(self.dtype))
        _set(self, "shape", _checked_shape(self.shape))
        keys: Any = self.keys
        _set(self, "keys", (keys,) if isinstance(keys, str) else tuple(keys))
        if self.encoding is None:
            _set(self, "encoding", "values" if self.dtype in EXACT_LISTS else "raw")
        problem = _find_problem(self)
        if problem:
            raise SchemaError(problem, where=f"{self!r}")
        if self.default is not None:
            _set(self, "optional", True)
            _set(self, "default", _checked_default(self))

    @property
    def ragged_rank(self) -> int:
        """How many leading dimensions differ in length between records."""
        return next((i for i, n in enumerate(self.shape) if n is not None), len(self.shape))

    @property
    def is_string(self) -> bool:
        """Whether the elements are `bytes` or `str`."""
        return self.dtype in STRINGS

    @property
    def holds_images(self) -> bool:
        """Whether a record has a list of images under it."""
        return self.encoding == "image" and len(self.shape) == 4

    @property
    def single_image(self) -> Feature:
        """The feature of each image, where it holds a list of them; else itself."""
        if not self.holds_images:
            return self
        return Feature(self.dtype, self.shape[1:], encoding="image")

    @property
    def is_raw(self) -> bool:
        """Whether its elements lie as little-endian bytes, not in a list of their type."""
        return self.encoding == "raw" or self.dtype not in EXACT_LISTS

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes; what stands at its default is left out."""
        found: dict[str, Any] = {"dtype": self.dtype, "shape": list(self.shape)}
        found["encoding"] = self.encoding
        if self.sequence:
            found["sequence"] = True
        if self.optional:
            found["optional"] = True
        if self.default is not None:
            found["default"] = _default_to_json(self.default)
        if self.keys:
            found["keys"] = list(self.keys)
        return found

    @classmethod
    def from_json(cls, found: Any) -> Feature:
        """Read what `to_json` made; anything unknown is an error."""
        types: dict[str, type] = {"dtype": str, "shape": list, "encoding": str, "keys": list}
        types |= {"sequence": bool, "optional": bool, "default": object}
        is_known = isinstance(found, Mapping) and all(
            isinstance(value, types.get(name, ())) for name, value in found.items()
        )
        if not is_known or "dtype" not in found:
            raise SchemaError(f"expected a feature as JSON, got {found!r}")
        default = found.get("default")
        if default is not None:
            default = _default_from_json(default, found["dtype"])
        return cls(**{**found, "default": default})

    def __repr__(self) -> str:
        parts = [repr(self.dtype)]
        if self.shape:
            parts.append(repr(self.shape))
        if self.encoding != ("values" if self.dtype in EXACT_LISTS else "raw"):
            parts.append(f"encoding={self.encoding!r}")
        parts += [f"{name}=True" for name in ("sequence", "optional") if getattr(self, name)]
        if self.default is not None:
            parts.append(f"default={self.default!r}")
        if self.keys:
            parts.append(f"keys={self.keys!r}")
        return f"Feature({', '.join(parts)})"


def _set(feature: Feature, name: str, value: Any) -> None:
    object.__setattr__(feature, name, value)


def _checked_dtype(dtype: Any) -> str:
    if isinstance(dtype, type) and issubclass(dtype, (str, bytes)):
        return "str" if issubclass(dtype, str) else "bytes"
    if not isinstance(dtype, str) and dtype is not None:
        try:
            dtype = np.dtype(dtype).name
        except TypeError:
            dtype = repr(dtype)
    if dtype in DTYPES:
        return str(dtype)
    hint = suggest(dtype, DTYPES)
    known = ", ".join(name for name in DTYPES if name not in TIMES)
    raise SchemaError(
        f"expected a dtype of {known}, datetime64[us], timedelta64[us], got {dtype!r}", hint=hint
    )


def _checked_shape(shape: Any) -> tuple[int | None, ...]:
    try:
        dims = tuple(None if n is None else n.__index__() for n in shape)
    except (AttributeError, TypeError):
        hint = f"({shape},)" if isinstance(shape, int) else ""
        raise SchemaError(
            f"expected a shape of integers and None, got {shape!r}", hint=hint
        ) from None
    if any(n is not None and n < 0 for n in dims):
        raise SchemaError(f"expected a shape without negative numbers, got {shape!r}")
    return dims


def _checked_default(feature: Feature) -> Any:
    """The default as plain values (nested tuples), exactly of the feature's dtype and shape."""
    if feature.is_string:
        if not isinstance(feature.default, str if feature.dtype == "str" else bytes):
            raise SchemaError(f"expected a default that is {feature.dtype}", where=f"{feature!r}")
        if not is_encodable(feature.default):
            raise SchemaError("expected a default that UTF-8 can hold", where=f"{feature!r}")
        return feature.default
    try:
        array = as_array(feature.default, feature.dtype)
        if array.size == 0 and (0 in feature.shape or None in feature.shape):
            array = array.reshape([n or 0 for n in feature.shape])
        if None not in feature.shape:
            array = np.broadcast_to(array, feature.shape)  # type: ignore[arg-type]
    except (InexactError, TypeError, ValueError):
        raise SchemaError(
            "expected a default of this dtype and shape", where=f"{feature!r}"
        ) from None
    fits = array.ndim == len(feature.shape) and array.shape[1:] == feature.shape[1:]
    if not fits:
        raise SchemaError(f"expected a default of shape {feature.shape}", where=f"{feature!r}")
    if feature.dtype == "bfloat16":
        array = array.astype(np.float32)
    return _to_tuples(array.tolist())


def _to_tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_to_tuples, value))
    return math.nan if value != value else value  # always the same NaN: features compare equal


def _default_to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_default_to_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    is_finite = not isinstance(value, float) or np.isfinite(value)
    return value if is_finite else repr(value)  # JSON has no "nan" and "inf"


def _default_from_json(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_default_from_json(item, dtype) for item in value]
    if isinstance(value, str) and dtype == "bytes":
        return value.encode("latin-1")
    if value in ("nan", "inf", "-inf") and dtype != "str":
        return float(value)
    return value


def _find_problem(feature: Feature) -> str | None:
    """What the attributes of a feature say against each other, if anything."""
    encoding = feature.encoding
    if encoding not in _ENCODINGS:
        return f"expected an encoding of {', '.join(_ENCODINGS)}, got {encoding!r}"
    if math.prod(n for n in feature.shape if n) > MAX_VALUES:
        return f"expected a shape of at most {MAX_VALUES} values"
    finds = (
        _find_image_problem if encoding == "image" else _find_list_problem,
        _find_sequence_problem,
        _find_default_problem,
        _find_keys_problem,
    )
    return next((problem for find in finds if (problem := find(feature))), None)


def _find_image_problem(feature: Feature) -> str | None:
    if feature.dtype not in _IMAGE_DTYPES:
        return f"an image is of {' or '.join(_IMAGE_DTYPES)}"
    if len(feature.shape) not in (3, 4) or 0 in feature.shape:
        return (
            "an image has the shape (height, width, channels), and a list of images one dimension"
            " more before that; None where that differs"
        )
    return None


def _find_list_problem(feature: Feature) -> str | None:
    encoding = feature.encoding
    is_nested = encoding == "values" and feature.ragged_rank > 1 and not feature.sequence
    if feature.dtype not in EXACT_LISTS and not (encoding in ("raw", "sparse") or is_nested):
        return f"{feature.dtype} has no exact list type; use encoding='raw'"
    if encoding == "raw" and feature.is_string:
        return "strings are stored as values, not raw"
    if encoding == "sparse" and (not feature.shape or None in feature.shape):
        return "a sparse feature needs the length of every dimension"
    if encoding == "values" and None in feature.shape[feature.ragged_rank :]:
        return "only leading dimensions of stored values may be None"
    if feature.shape[:1] == (None,) and 0 in feature.shape:
        return "a ragged feature cannot have rows of no values"
    return None


def _find_sequence_problem(feature: Feature) -> str | None:
    if not feature.sequence:
        return None
    if feature.encoding in ("sparse", "image"):
        return f"a sequence cannot be {feature.encoding}"
    if feature.shape[:1] != (None,):
        return "a sequence needs None, its steps, as first dimension"
    most = 1 if feature.encoding == "raw" else 2
    if None in feature.shape[most:]:
        return f"a sequence of {feature.encoding} can have {most} None dimension(s)"
    return None


def _find_default_problem(feature: Feature) -> str | None:
    if feature.default is None:
        return None
    has_none = feature.encoding in ("sparse", "image") or feature.dtype in TIMES
    if feature.sequence or has_none or feature.dtype.startswith("complex"):
        return "sequences, images, times, sparse and complex features cannot have a default"
    if feature.is_string and feature.shape:
        return "strings can have a default only in shape ()"
    if None in feature.shape[1:]:
        return "only the first dimension may be None where there is a default"
    return None


def _find_keys_problem(feature: Feature) -> str | None:
    if not feature.keys:
        return None
    if feature.encoding == "sparse":
        wanted = len(feature.shape) + 1
    elif feature.encoding == "image":
        wanted = 1
    elif feature.encoding == "raw":
        wanted = 2 if None in feature.shape[1:] else 1
    else:
        wanted = 1 if feature.sequence else max(1, feature.ragged_rank)
    if len(feature.keys) != wanted or not all(isinstance(key, str) for key in feature.keys):
        return f"expected {wanted} keys, got {feature.keys!r}"
    return None
