"""What the native collector of rows is told of each feature."""

from __future__ import annotations

import functools

from datum import _core
from datum.format.layout import lower, stand_in
from datum.schema import Feature, ValueGuess
from datum.schema.dtypes import INTEGERS, STRINGS
from datum.schema.guess import MAX_LISTED_VALUES

__all__ = ["is_collectable", "row_feature", "skipped_feature"]

_NUMBERS = {
    name: getattr(_core.Element, name.upper()) for name in (*INTEGERS, "float32", "float64")
}
_ELEMENTS = _NUMBERS | {"bytes": _core.Element.BYTES, "str": _core.Element.TEXT}
# What values may be of, beside what columns hold.
_GIVEN = _ELEMENTS | {"float16": _core.Element.FLOAT16}
_FILE = 1 << _core.Element.FILE.value
_ANY_SIZE = 2**63 - 1


def is_collectable(feature: Feature) -> bool:
    """Whether the native collector takes values of `feature`; others are gathered in Python."""
    feature = stand_in(feature)
    has_shape = feature.encoding == "raw" and None in feature.shape[1:]
    is_listed = feature.encoding != "sparse" and not feature.sequence and not has_shape
    return feature.dtype in _ELEMENTS and is_listed


def row_feature(
    name: str, feature: Feature, guess: ValueGuess | None = None, *, is_watched: bool = False
) -> _core.RowFeature:
    """A feature that takes whatever fits it or, if it was guessed, only what leaves it as it is.

    Of a feature that is watched, values that float32 cannot serve are told; they are collected as
    float64, though float32 is stored.
    """
    feature = stand_in(feature)
    stored, *lengths = lower(name, feature)
    accepts, most = _accept_castable(feature.dtype), _ANY_SIZE
    dtype = feature.dtype
    if guess is not None:
        accepts = _accept_absorbed(guess) if guess.kind == "dense" else accepts
        is_listed = feature.encoding == "values" and feature.dtype in INTEGERS
        most = MAX_LISTED_VALUES if is_listed and not guess.is_large else _ANY_SIZE
        is_rounded = guess.dtype == "float64" and dtype == "float32"
    else:
        is_rounded = is_watched and dtype == "float32"
    return _core.RowFeature(
        name,
        [column.key.encode() for column in (stored, *lengths)],
        stored.kind,
        stored.cell,
        _ELEMENTS["float64" if is_rounded else dtype],
        accepts,
        feature.optional,
        [-1 if n is None else n for n in feature.shape],
        most,
        is_watched and dtype not in STRINGS,
    )


def skipped_feature(name: str) -> _core.RowFeature:
    """A feature that rows may have, and that is not collected."""
    kind, cell = _core.Kind.INT64, _core.Cell.INT64
    return _core.RowFeature(name, [], kind, cell, None, 0, False, [], 0, False)


def _mask(dtypes: list[str]) -> int:
    return sum(1 << _GIVEN[dtype].value for dtype in dtypes)


@functools.cache
def _accept_castable(dtype: str) -> int:
    """Integers go into floats, too; whether each value fits is looked at one by one."""
    if dtype in STRINGS:
        return _mask([dtype]) | (_FILE if dtype == "bytes" else 0)
    integers = [name for name in _GIVEN if name in INTEGERS]
    floats = [name for name in _GIVEN if name.startswith("float")]
    return _mask(integers + floats * dtype.startswith("float"))


@functools.lru_cache(maxsize=1024)
def _accept_absorbed(guess: ValueGuess) -> int:
    return _mask([dtype for dtype in _GIVEN if guess.absorbs(dtype)])
