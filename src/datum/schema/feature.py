"""One feature of a record: its dtype, shape and encoding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.errors import Message, SchemaError, suggest

__all__ = [
    "DTYPES",
    "EXACT_LISTS",
    "FLOATS_ON_WIRE",
    "INTEGERS",
    "STRINGS",
    "TIMES",
    "Encoding",
    "Feature",
    "InexactError",
    "as_array",
    "cast_exactly",
    "in_one_unit",
    "is_encodable",
    "is_wide",
    "numpy_dtype",
    "read_named_floats",
]

INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS_ON_WIRE = ("float16", "bfloat16", "float32")  # exact in a FloatList
STRINGS = ("bytes", "str")
_UNITS = ("D", "h", "m", "s", "ms", "us", "ns")  # of fixed length, unlike months and years
TIMES = tuple(f"{kind}64[{unit}]" for kind in ("datetime", "timedelta") for unit in _UNITS)
EXACT_LISTS = (*INTEGERS, *FLOATS_ON_WIRE, *STRINGS, *TIMES)  # exact in the lists of a Feature
DTYPES = (*EXACT_LISTS, "float64", "complex64", "complex128")


def numpy_dtype(dtype: str) -> np.dtype[Any]:
    """Return the NumPy type of elements, `object` for strings; bfloat16 needs ml_dtypes."""
    if dtype in STRINGS:
        return np.dtype(object)
    if dtype == "bfloat16":
        bfloat16: np.dtype[Any] = np.dtype(require("ml_dtypes", purpose="dtype bfloat16").bfloat16)
        return bfloat16
    return np.dtype(dtype)


_NAMED_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_NO_TIMES = frozenset((str, bytes, bool, int, float, complex, type(None)))
_WIDE_FROM = 2.0**24  # from here on float32 skips integers


class InexactError(Exception):
    """A value that the wanted type cannot represent."""

    def __init__(self, got: str, position: int = 0) -> None:
        super().__init__(got)
        self.position = position  # along the first axis


def as_array(value: Any, dtype: str) -> NDArray[Any]:
    """Convert `value`, a scalar, list or array, to an array of `dtype`; see `cast_exactly`.

    The texts "NaN", "Infinity" and "-Infinity" are converted to floats, since JSON has no other way
    to write them.
    """
    try:
        array = np.asarray(in_one_unit(value) if isinstance(value, list) else value)
    except ValueError:
        raise ValueError(Message("expected rows of one length, got different ones")) from None
    wanted = numpy_dtype(dtype)
    if "float" in dtype and array.dtype.kind == "U":
        array = np.asarray(read_named_floats(value))
    if array.size == 0 and not isinstance(value, np.ndarray):
        return np.empty(array.shape, wanted)  # an empty list fits any type
    is_listed = isinstance(value, (list, tuple, int))
    if is_listed and array.dtype.kind in "fcO":  # NumPy may have converted large integers to floats
        if wanted.kind in "biu":
            array = _array_of_integers(value, wanted)
        else:
            _check_integers(value)
    return cast_exactly(array, dtype)


def in_one_unit(values: list[Any]) -> list[Any]:
    """Convert the times of a list, or list of lists, to the finest unit of any of them.

    NumPy lets times overflow when it makes an array of several units; this raises InexactError.

    >>> in_one_unit([np.datetime64("2020-01-01"), np.datetime64("2020-01-01T00:00:01")])
    [np.datetime64('2020-01-01T00:00:00'), np.datetime64('2020-01-01T00:00:01')]
    """
    if _NO_TIMES.issuperset(map(type, values)):
        return values
    units = set(_time_units(values))
    if len(units) < 2 or len({unit.kind for unit in units}) > 1:
        return values
    unit = np.result_type(*units)
    return [_in_unit(value, unit, at) for at, value in enumerate(values)]


def _time_units(value: Any) -> Iterator[np.dtype[Any]]:
    if isinstance(value, (list, tuple)):
        for item in () if _NO_TIMES.issuperset(map(type, value)) else value:
            yield from _time_units(item)
    elif isinstance(value, (np.generic, np.ndarray)) and value.dtype.kind in "mM":
        yield value.dtype


def _in_unit(value: Any, unit: np.dtype[Any], position: int) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_in_unit(item, unit, position) for item in value)
    if not isinstance(value, (np.generic, np.ndarray)) or value.dtype == unit:
        return value
    moved = value.astype(unit)
    if not np.array_equal(moved.astype(value.dtype), value, equal_nan=True):
        raise InexactError(str(value), position)
    return moved


def read_named_floats(value: Any) -> Any:
    """Convert "NaN", "Infinity" and "-Infinity" in a value, or a list, to floats.

    >>> read_named_floats([1.5, "-Infinity", "other"])
    [1.5, -inf, 'other']
    """
    if isinstance(value, str):
        return _NAMED_FLOATS.get(value, value)
    is_list = isinstance(value, (list, tuple))
    return [read_named_floats(one) for one in value] if is_list else value


def is_encodable(text: str | bytes) -> bool:
    """Return whether UTF-8 can encode it: text with a lone surrogate cannot be written."""
    try:
        text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError:
        return False
    return True


def _check_integers(value: Any) -> None:
    """Raise InexactError for integers that a float would round."""
    for item in np.asarray(value, object).reshape(-1).tolist():
        if isinstance(item, int) and abs(item) > 2**53 and int(float(item)) != item:
            raise InexactError(repr(item))


def _array_of_integers(value: Any, wanted: np.dtype[Any]) -> NDArray[Any]:
    for item in np.asarray(value, object).reshape(-1).tolist():
        if not isinstance(item, int):
            raise InexactError(repr(item))
    try:
        return np.array(value, wanted)
    except OverflowError:
        raise InexactError(repr(value)) from None


def cast_exactly(array: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Convert `array` to `dtype`, contiguous and aligned; raise InexactError if a value changes.

    Floats may be rounded to a narrower float, but not to infinity. Times may change their unit.

    >>> cast_exactly(np.array([1, 2]), "uint8")
    array([1, 2], dtype=uint8)
    """
    wanted = numpy_dtype(dtype)
    if array.dtype == wanted:
        return np.require(array, requirements=["C", "A"])
    if not _is_castable(array.dtype, wanted):
        raise InexactError(f"{array.dtype.name} values")
    with np.errstate(over="ignore", invalid="ignore"):
        cast = array.astype(wanted, order="C")
        lost = _find_lost(array, cast)
    if lost.any():
        place = tuple(np.argwhere(lost)[0].tolist())
        raise InexactError(str(array[place]), place[0] if place else 0)
    return cast


def is_wide(value: float | NDArray[Any]) -> bool:
    """Return whether a number, or one of an array, overflows float32, or changes from 2**24 on.

    >>> is_wide(0.1), is_wide(2.0**24), is_wide(2**24 + 1), is_wide(1e300), is_wide(float("inf"))
    (False, False, True, True, False)
    """
    if not isinstance(value, np.ndarray):
        if not abs(value) >= _WIDE_FROM:  # true for NaN
            return False
        value = np.array(value)
    if value.dtype.kind not in "fiu" or value.dtype.itemsize < 4:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = value.astype(np.float32)
        if value.dtype.kind != "f":
            return bool(_find_lost(value, narrow).any())
        return bool(((np.abs(value) >= _WIDE_FROM) & (narrow != value)).any())


def _is_castable(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    if wanted.kind in "mM":
        return given.kind == wanted.kind
    ranks = {"b": 0, "u": 0, "i": 0, "f": 1, "c": 2}
    if "bfloat16" in (given.name, wanted.name):
        ranks["V"] = 1  # NumPy's kind for types of other packages
    return given.kind in ranks and wanted.kind in ranks and ranks[given.kind] <= ranks[wanted.kind]


def _find_lost(array: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where `cast` does not equal `array`."""
    if array.dtype.kind in "mM":
        is_kept = (cast.astype(array.dtype) == array) | (np.isnat(array) & np.isnat(cast))
        return np.asarray(~is_kept)
    if array.dtype.kind not in "biu":
        return np.asarray(np.isfinite(array) & ~np.isfinite(cast))
    if cast.dtype.kind in "biu":
        # Compared as integers of one type: NumPy compares int64 with uint64 as floats.
        is_sign_lost = array.dtype.kind != "b" and cast.dtype.kind != "b"
        changed = cast.astype(array.dtype) != array
        return np.asarray(changed | ((array < 0) != (cast < 0))) if is_sign_lost else changed
    # Converted back to integers within their range.
    real = cast.real.astype(np.float64) if cast.dtype.kind != "f" else cast.astype(np.float64)
    bits = 64 if array.dtype.kind == "u" else 63
    is_inside = (real >= -(2.0**63)) & (real < 2.0**bits)
    back = np.where(is_inside, real, 0).astype(array.dtype)
    return np.asarray(~is_inside | (back != array))


Encoding = Literal["values", "raw", "sparse", "image"]
MAX_VALUES = 2**40  # far above any record, far below an overflow
_ENCODINGS = ("values", "raw", "sparse", "image")
_IMAGE_DTYPES = ("uint8", "uint16")


@dataclass(frozen=True, slots=True)
class Feature:
    """The type of one feature of the records.

    Attributes:
        dtype: One of `datum.schema.DTYPES`, or a NumPy type of such a name. Times
            ("datetime64[us]", "timedelta64[D]" ...) are stored as integers.
        shape: The shape of the value in one record; None for a dimension whose length differs.
            Leading None dimensions are read as `Ragged`.
        encoding: "values" in the list types of tf.train.Feature; "raw" as little-endian bytes in
            one byte string, the default for types that those lists cannot represent exactly;
            "sparse" as indices and values under two or more keys; "image" as the bytes of an image
            file, of dtype uint8 or uint16 and shape (height, width, channels); with a fourth
            dimension in front, a list of images. A record that lacks a sparse feature has no values
            in it. Values of ragged and sparse features that lists cannot represent are stored as
            raw bytes.
        sequence: Whether the feature is in the feature lists of a SequenceExample, one step for
            each item of the first dimension, which must be None.
        optional: Whether records may lack it.
        default: The value for records that lack it; None for a `Masked` column instead.
        keys: The keys of the feature in the record, if not its own name: (values, row lengths of
            the second dimension, ...), (raw bytes, shape), or (indices of each dimension ...,
            values).

    >>> Feature("float32", (None, 4))
    Feature('float32', (None, 4))
    >>> Feature("uint8", (None, None, 3), encoding="image")
    Feature('uint8', (None, None, 3), encoding='image')
    """

    dtype: str
    shape: tuple[int | None, ...] = ()
    _: KW_ONLY
    encoding: Encoding = None  # type: ignore[assignment]  # depends on the dtype
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
        """The number of leading dimensions that differ in length between records."""
        return next((i for i, n in enumerate(self.shape) if n is not None), len(self.shape))

    @property
    def is_string(self) -> bool:
        """Whether the elements are `bytes` or `str`."""
        return self.dtype in STRINGS

    @property
    def holds_images(self) -> bool:
        """Whether each record has a list of images."""
        return self.encoding == "image" and len(self.shape) == 4

    @property
    def single_image(self) -> Feature:
        """The feature of each image in a list of images; itself if it is not a list."""
        if not self.holds_images:
            return self
        return Feature(self.dtype, self.shape[1:], encoding="image")

    @property
    def is_raw(self) -> bool:
        """Whether its elements are stored as little-endian bytes, not in a list of their type."""
        return self.encoding == "raw" or self.dtype not in EXACT_LISTS

    def to_json(self) -> dict[str, Any]:
        """Return plain values for `from_json`, without those at their default."""
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
        """Read the output of `to_json`; anything unknown is an error."""
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
    """Return the default as plain values (nested tuples) of the feature's dtype and shape."""
    if feature.is_string:
        if not isinstance(feature.default, str if feature.dtype == "str" else bytes):
            raise SchemaError(f"expected a default that is {feature.dtype}", where=f"{feature!r}")
        if not is_encodable(feature.default):
            raise SchemaError("expected a default that UTF-8 can encode", where=f"{feature!r}")
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
    return math.nan if value != value else value  # one NaN object, so that features compare equal


def _default_to_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_default_to_json(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("latin-1")
    is_finite = not isinstance(value, float) or np.isfinite(value)
    return value if is_finite else repr(value)  # JSON has no NaN and infinity


def _default_from_json(value: Any, dtype: str) -> Any:
    if isinstance(value, list):
        return [_default_from_json(item, dtype) for item in value]
    if isinstance(value, str) and dtype == "bytes":
        return value.encode("latin-1")
    if value in ("nan", "inf", "-inf") and dtype != "str":
        return float(value)
    return value


def _find_problem(feature: Feature) -> str | None:
    """Return how the attributes of a feature contradict each other; None if they do not."""
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
        return f"an image has dtype {' or '.join(_IMAGE_DTYPES)}"
    if len(feature.shape) not in (3, 4) or 0 in feature.shape:
        return (
            "an image has the shape (height, width, channels), and a list of images one dimension"
            " more in front; use None for sizes that differ"
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
        return "only the first dimension of a feature with a default may be None"
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
