"""Hypothesis strategies for schemas, rows that fit them, and messages of others."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from datum import Feature, Schema
from datum.schema.feature import FLOATS_ON_WIRE, INTEGERS, STRINGS

LISTED = (*INTEGERS, *FLOATS_ON_WIRE, *STRINGS)
NUMBERS = (*INTEGERS, *FLOATS_ON_WIRE, "float64", "complex64", "complex128")

NAMES = ["a", "b", "image/encoded", "a\0b", "ключ", "\U0001f600", "x" * 130]
KEYS = st.sampled_from([*NAMES, ""])
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
INT64S = st.one_of(
    st.sampled_from([0, 1, -1, 127, 128, 2**31, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
FLOAT32S = st.one_of(
    st.floats(width=32),
    st.sampled_from([-0.0, math.inf, -math.inf, math.nan, 2.0**-149, 3.4028234663852886e38]),
)


def examples(count: int) -> settings:
    """Settings for a property to be tried `count` times where the profile tries its default 50."""
    return settings(max_examples=max(1, count * settings.default.max_examples // 50))


def numpy_type(dtype: str) -> np.dtype[Any]:
    """The NumPy type of a feature of numbers."""
    return np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


@st.composite
def arrays(draw: st.DrawFn, dtype: str, shape: tuple[int, ...]) -> Any:
    """An array of any bits; of strings, nested lists."""
    count = math.prod(shape)
    if dtype in STRINGS:
        items = TEXTS if dtype == "str" else st.binary(max_size=6)
        flat = draw(st.lists(items, min_size=count, max_size=count))
        return nest(flat, shape)
    if dtype == "bool":
        bits = draw(st.lists(st.booleans(), min_size=count, max_size=count))
        return np.array(bits, np.bool_).reshape(shape)
    kind = numpy_type(dtype)
    size = kind.itemsize
    edges = st.sampled_from([bytes(size), b"\xff" * size, b"\xff" * (size - 1) + b"\x7f"])
    last_bit = st.just(bytes(size - 1) + b"\x80")
    item = st.one_of(edges, last_bit, st.binary(min_size=size, max_size=size))
    raw = b"".join(draw(st.lists(item, min_size=count, max_size=count)))
    return np.frombuffer(raw, kind).reshape(shape)


def nest(flat: list[Any], shape: tuple[int, ...]) -> Any:
    """A flat list as nested lists of a shape; the only item for shape ()."""
    if not shape:
        return flat[0]
    width = math.prod(shape[1:])
    return [nest(flat[i * width : (i + 1) * width], shape[1:]) for i in range(shape[0])]


_DIMS = st.integers(1, 3)
_FIXED = st.lists(_DIMS, max_size=2).map(tuple)


@st.composite
def features(draw: st.DrawFn, *, allow_zero: bool = True) -> Feature:
    """A feature of any encoding; `allow_zero` for shapes that hold nothing."""
    form = draw(st.sampled_from(["fixed", "ragged", "raw", "ragged raw", "sparse", "sequence"]))
    optional = draw(st.booleans())
    dtype = draw(st.sampled_from(LISTED if form in ("fixed", "ragged", "sparse") else NUMBERS))
    inner = draw(_FIXED)
    if form in ("fixed", "raw"):
        if allow_zero and draw(st.integers(0, 9)) == 0:
            inner = (*inner, 0)
        encoding = "values" if form == "fixed" else "raw"
        return Feature(dtype, inner, encoding=encoding, optional=optional)
    if form == "ragged":
        return Feature(dtype, (None,) * draw(_DIMS) + inner, optional=optional)
    if form == "ragged raw":
        shape = draw(st.sampled_from([(None, *inner), (None, None), (2, None), (None, 2, None)]))
        return Feature(dtype, shape, encoding="raw", optional=optional)
    if form == "sparse":
        return Feature(dtype, inner or (3,), encoding="sparse")
    if draw(st.booleans()):
        return Feature(dtype, (None, *inner), encoding="raw", sequence=True, optional=optional)
    dtype = draw(st.sampled_from(LISTED))
    shape = (None,) * draw(st.integers(1, 2)) + inner
    return Feature(dtype, shape, sequence=True, optional=optional)


@st.composite
def values(draw: st.DrawFn, feature: Feature) -> Any:
    """What one record may hold, as rows hold it; None for absent."""
    if feature.optional and draw(st.integers(0, 3)) == 0:
        return None
    if feature.encoding == "sparse":
        return draw(_sparse_values(feature))
    if feature.encoding == "raw" and not feature.sequence:
        shape = tuple(draw(st.integers(0, 3)) if n is None else n for n in feature.shape)
        return draw(arrays(feature.dtype, shape))
    return draw(_ragged_values(feature.dtype, feature.shape))


@st.composite
def _ragged_values(draw: st.DrawFn, dtype: str, shape: tuple[int | None, ...]) -> Any:
    if shape[:1] != (None,):
        return draw(arrays(dtype, shape))
    count = draw(st.integers(0, 3))
    if shape[1:2] == (None,):
        return [draw(_ragged_values(dtype, shape[1:])) for _ in range(count)]
    return draw(arrays(dtype, (count, *shape[1:])))


@st.composite
def _sparse_values(draw: st.DrawFn, feature: Feature) -> Any:
    """(indices, values): unsorted, perhaps with the same place twice."""
    place = st.tuples(*(st.integers(0, n - 1) for n in feature.shape))
    places = draw(st.lists(place, max_size=4))
    found = draw(arrays(feature.dtype, (len(places),)))
    return np.array(places, np.int64).reshape(-1, len(feature.shape)), found


@st.composite
def tables(
    draw: st.DrawFn, *, keys: st.SearchStrategy[str] = KEYS, **options: Any
) -> tuple[Schema, list[dict[str, Any]]]:
    """A schema of up to four features, and up to five rows that fit it."""
    names = draw(st.lists(keys, max_size=4, unique=True))
    schema = Schema({name: draw(features(**options)) for name in names})
    count = draw(st.integers(0, 5))
    rows = [{name: draw(values(schema[name])) for name in schema} for _ in range(count)]
    return schema, rows


# What others may put under one key: (kind, values), or None for a Feature with no kind set.
LISTS = {
    "bytes": st.lists(st.binary(max_size=5), max_size=4),
    "float": st.lists(FLOAT32S, max_size=4),
    "int64": st.lists(INT64S, max_size=4),
}


@st.composite
def stored_values(draw: st.DrawFn, kind: str) -> tuple[str, list[Any]] | None:
    """Most often a list of `kind`; now and then another kind, or none."""
    choice = draw(st.integers(0, 19))
    if choice == 19:
        return None
    if choice == 18:
        kind = draw(st.sampled_from(list(LISTS)))
    return kind, draw(LISTS[kind])


@st.composite
def message_maps(draw: st.DrawFn) -> list[dict[str, Any]]:
    """For each of some records, what lies under each key."""
    kinds = draw(st.dictionaries(KEYS, st.sampled_from(list(LISTS)), max_size=4))
    count = draw(st.integers(0, 5))
    return [
        {key: draw(stored_values(kind)) for key, kind in kinds.items() if draw(st.integers(0, 4))}
        for _ in range(count)
    ]


@st.composite
def message_lists(draw: st.DrawFn) -> list[dict[str, Any]]:
    """For each of some records, the steps that lie under each key."""
    kinds = draw(st.dictionaries(KEYS, st.sampled_from(list(LISTS)), max_size=3))
    count = draw(st.integers(0, 4))
    return [
        {
            key: draw(st.lists(stored_values(kind), max_size=3))
            for key, kind in kinds.items()
            if draw(st.integers(0, 4))
        }
        for _ in range(count)
    ]
