"""What single values say of their feature, and what several of them have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.columns import Sparse
from datum.errors import SchemaError
from datum.schema.casting import is_wide
from datum.schema.dtypes import DTYPES, EXACT_LISTS, FLOATS_ON_WIRE
from datum.schema.feature import Feature
from datum.schema.plain import is_picture, plain_value
from datum.schema.promotion import common_dtype, without_held

__all__ = ["MAX_LISTED_VALUES", "ValueGuess", "guess_array", "guess_value"]

# Above this an array of integers is stored as raw bytes, which take less room and time to parse.
MAX_LISTED_VALUES = 256
_FLAGS = ("is_large", "is_uneven", "has_negative", "has_unsigned", "is_wide")

_Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class ValueGuess:
    """What the values of one feature have in common so far.

    Attributes:
        dtypes: what they are of, without types that another one holds; none if only empty lists
            were seen.
        shape: theirs, None where they differ.
        kind: "dense", "sparse", or "image" for pictures.
        is_large: whether one is an array of more than `MAX_LISTED_VALUES` items.
        is_uneven: whether one has rows that differ in length.
        has_negative: whether one is, or has, a negative integer.
        has_unsigned: whether one is of uint64, which no negative integer can join.
        is_wide: whether one is a number that float32 cannot serve: it overflows, or is of 2**24 or
            more and changes. Of columns this is found out when they are stored.
    """

    dtypes: tuple[str, ...]
    shape: _Shape = ()
    kind: Literal["dense", "sparse", "image"] = "dense"
    is_large: bool = False
    is_uneven: bool = False
    has_negative: bool = False
    has_unsigned: bool = False
    is_wide: bool = False

    @property
    def dtype(self) -> str:
        """The type that holds all values; float32, as good as any, if there are none."""
        return (common_dtype(self.dtypes) if self.dtypes else None) or "float32"

    def merge(self, other: ValueGuess) -> ValueGuess:
        """What holds both: int and float give float, 3 and 5 items give None."""
        if self == other:
            return self
        if self.kind != other.kind:
            return self._merge_picture(other)
        if self.kind == "sparse" and self.shape != other.shape:
            raise SchemaError(f"expected {self}, got {other}")
        dtypes = without_held((*self.dtypes, *other.dtypes))
        has_negative = self.has_negative or other.has_negative
        has_unsigned = self.has_unsigned or other.has_unsigned
        if dtypes and common_dtype(dtypes) is None:
            raise SchemaError(f"expected {self.dtype}, got {other.dtype}")
        if has_negative and has_unsigned:  # no type holds both
            raise SchemaError("expected integers from 0 on, as one is of uint64, got a negative")
        return ValueGuess(
            dtypes,
            self._merge_shapes(other),
            self.kind,
            is_large=self.is_large or other.is_large,
            is_uneven=self.is_uneven or other.is_uneven,
            has_negative=has_negative,
            has_unsigned=has_unsigned,
            is_wide=self.is_wide or other.is_wide,
        )

    def _merge_picture(self, other: ValueGuess) -> ValueGuess:
        """Pictures may also come as the bytes of their files, which tell no shape."""
        picture, file = (self, other) if self.kind == "image" else (other, self)
        is_list = len(picture.shape) == 4
        is_empty = is_list and not file.dtypes and len(file.shape) == 1
        is_file = file.dtypes == ("bytes",) and len(file.shape) == is_list
        if picture.kind != "image" or file.kind != "dense" or not (is_file or is_empty):
            raise SchemaError(f"expected {self}, got {other}")
        counts = (picture.shape[0] if picture.shape[:1] == file.shape else None,) * is_list
        return replace(picture, shape=(*counts, None, None, None))

    def _merge_shapes(self, other: ValueGuess) -> _Shape:
        short, long = sorted((self, other), key=lambda guess: len(guess.shape))
        rank = len(short.shape)
        if rank < len(long.shape) and short.dtypes:  # else an empty list, which says no more
            raise SchemaError(f"expected {self}, got {other}")
        pairs = zip(short.shape, long.shape, strict=False)
        return tuple(a if a == b else None for a, b in pairs) + long.shape[rank:]

    def __str__(self) -> str:
        kind = "" if self.kind == "dense" else f"{self.kind} "
        return f"{kind}{self.dtype} of shape {self.shape}"

    def to_feature(self, *, optional: bool = False, rounds: bool = False) -> Feature:
        """The feature that holds all values; float64 may be rounded if float32 can serve it."""
        encoding: Any = self.kind
        shape = self.shape
        dtype = self.dtype
        if dtype == "float64" and rounds and not self.is_wide:
            dtype = "float32"
        if self.kind == "dense":
            is_raw = self.is_large and dtype not in FLOATS_ON_WIRE
            is_raw = is_raw or dtype not in EXACT_LISTS
            encoding = "raw" if is_raw and not self.is_uneven else "values"
            if not self.dtypes:
                shape = (None,) * len(shape)
            if None in shape and 0 in shape:  # rows of no values need their lengths told
                shape = tuple(n or None for n in shape)
            if encoding == "values" and None in shape:  # its ragged dimensions come first
                last = len(shape) - shape[::-1].index(None)
                shape = (None,) * last + shape[last:]
        return Feature(dtype, shape, encoding=encoding, optional=optional)

    def absorbs(self, dtype: str) -> bool:
        """Whether values of `dtype`, none of them negative, leave the guess as it is."""
        one = ValueGuess((dtype,), self.shape, self.kind, has_unsigned=dtype == "uint64")
        try:
            return self.merge(one) == self
        except SchemaError:
            return False

    def to_json(self) -> dict[str, Any]:
        """Plain values that `from_json` takes."""
        found: dict[str, Any] = {"dtypes": list(self.dtypes), "shape": list(self.shape)}
        found["kind"] = self.kind
        return found | {flag: True for flag in _FLAGS if getattr(self, flag)}

    @classmethod
    def from_json(cls, found: Any) -> ValueGuess:
        """Read what `to_json` made."""
        if not isinstance(found, Mapping) or not {"dtypes", "shape"} <= set(found):
            raise SchemaError(f"expected a guess as JSON, got {found!r}")
        flags = {flag: bool(found.get(flag)) for flag in _FLAGS}
        dtypes, shape = tuple(found["dtypes"]), tuple(found["shape"])
        return cls(dtypes, shape, found.get("kind", "dense"), **flags)


def guess_value(value: Any) -> ValueGuess:
    """What one value says; see `datum.schema.infer_feature`."""
    value = plain_value(value)
    if is_picture(value):
        is_deep = str(getattr(value, "mode", "")).startswith("I")
        return ValueGuess(("uint16" if is_deep else "uint8",), (None, None, None), "image")
    if isinstance(value, str):
        return ValueGuess(("str",))
    if isinstance(value, bytes):
        return ValueGuess(("bytes",))
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return replace(guess_array(array), is_wide=is_wide(array))
    if isinstance(value, (bool, int, float, complex)):
        return _guess_number(value)
    if isinstance(value, (list, tuple)):
        return _guess_list(value)
    if isinstance(value, Sparse):
        found = guess_value(value.values)
        return replace(found, shape=tuple(value.dense_shape), kind="sparse", is_large=False)
    raise SchemaError("expected a value, got None")


def _guess_number(value: complex) -> ValueGuess:
    if isinstance(value, bool):
        return ValueGuess(("bool",))
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            raise SchemaError(f"expected an integer of 64 bits, got {value}")
        if value < 2**63:
            return ValueGuess(("int64",), has_negative=value < 0, is_wide=is_wide(value))
        return ValueGuess(("uint64",), has_unsigned=True, is_wide=is_wide(value))
    if isinstance(value, float):
        return ValueGuess(("float64",), is_wide=is_wide(value))
    return ValueGuess(("complex128",))


def _guess_list(value: list[Any] | tuple[Any, ...]) -> ValueGuess:
    if not value:
        return ValueGuess((), (0,))
    types = set(map(type, value))
    if types == {float}:
        return ValueGuess(("float64",), (len(value),), is_wide=any(map(is_wide, value)))
    if types == {int}:  # the extremes say all, but for what float32 makes of those between
        item = _guess_number(min(value)).merge(_guess_number(max(value)))
        return replace(item, shape=(len(value),), is_wide=any(map(is_wide, value)))
    item = _guess_item(value[0])
    for other in value[1:]:
        item = item.merge(_guess_item(other))
    return replace(item, shape=(len(value), *item.shape), is_uneven=None in item.shape)


def _guess_item(value: Any) -> ValueGuess:
    item = guess_value(value)
    if item.kind != "dense" and (item.kind, len(item.shape)) != ("image", 3):
        raise SchemaError(f"expected lists of numbers, strings or arrays, got {item.kind} values")
    return item


def guess_array(array: NDArray[Any]) -> ValueGuess:
    """What an array of numbers, strings or times says, even if it holds none."""
    if array.dtype.kind in "SU":
        return ValueGuess(("str" if array.dtype.kind == "U" else "bytes",), array.shape)
    name = array.dtype.name
    if name not in DTYPES:
        hint = "use days, or a shorter unit" if array.dtype.kind in "mM" else ""
        raise SchemaError(f"expected an array of numbers, strings or times, got {name}", hint=hint)
    return ValueGuess(
        (name,),
        array.shape,
        is_large=array.size > MAX_LISTED_VALUES,
        has_negative=array.dtype.kind == "i" and bool((array < 0).any()),
        has_unsigned=name == "uint64",
    )
