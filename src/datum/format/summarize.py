"""The statistics of what was collected, computed by the core."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

from datum import _core
from datum.format.collect import Collection
from datum.format.layout import lower, stand_in
from datum.format.statistics import (
    MAX_COUNTED_BYTES,
    MAX_DISTINCT,
    Counts,
    FeatureStatistics,
    Range,
    Statistics,
)
from datum.schema import Feature
from datum.schema.dtypes import FLOATS_ON_WIRE, INTEGERS, TIMES

__all__ = ["summarize"]

_NUMBERS = (*INTEGERS, *FLOATS_ON_WIRE, "float64")
_ELEMENTS = (
    {name: getattr(_core.Element, name.upper()) for name in _NUMBERS}
    | dict.fromkeys(TIMES, _core.Element.TIME)
    | dict.fromkeys(("complex64", "complex128"), _core.Element.COMPLEX)
    | {"bytes": _core.Element.BYTES, "str": _core.Element.TEXT}
)


def summarize(collection: Collection, *, uncounted: Container[str], threads: int) -> Statistics:
    """Statistics of each feature; the values of `uncounted` ones are known to be too many."""
    names: list[str] = []
    asked: list[tuple[_core.Source, _core.Element, bool]] = []
    for name in collection.schema:
        sources = collection.sources.get(name)
        if sources is None:  # no record has it
            continue
        feature = stand_in(collection.schema[name])
        is_counted = _has_counts(feature) and name not in uncounted
        names.append(name)
        asked.append((sources[0], _element_of(feature), is_counted))
        if len(sources) > 1 and lower(name, feature)[1].role == "lengths":  # its outermost rows
            names.append(name)
            asked.append((sources[1], _core.Element.INT64, False))
    found = _core.summarize(asked, collection.count, threads)
    features: dict[str, FeatureStatistics] = {}
    for name, part in zip(names, found, strict=True):
        if name in features:
            features[name] = replace(features[name], lengths=_range(part[1]))
        else:
            features[name] = _make(stand_in(collection.schema[name]), collection.count, *part)
    return Statistics(collection.count, features)


def _element_of(feature: Feature) -> _core.Element:
    is_widened = feature.dtype in FLOATS_ON_WIRE and not feature.is_raw
    return _core.Element.FLOAT32 if is_widened else _ELEMENTS[feature.dtype]


def _has_counts(feature: Feature) -> bool:
    is_countable = feature.dtype in INTEGERS or feature.dtype == "str"
    return is_countable and feature.shape == () and feature.encoding == "values"


def _make(
    feature: Feature,
    records: int,
    missing: int,
    lengths: Any,
    sizes: Any,
    numbers: Any,
    counts: Any,
) -> FeatureStatistics:
    found = None
    strings = _range(sizes)
    is_long = strings is not None and (strings.highest or 0) > MAX_COUNTED_BYTES
    if _has_counts(feature) and not is_long:
        found = Counts({}, MAX_DISTINCT) if counts is None else Counts(counts)
    present = records - missing
    return FeatureStatistics(
        present,
        missing,
        numbers=None if numbers is None else _numbers(*numbers),
        lengths=_lengths(feature, present, lengths),
        bytes=strings,
        counts=found,
    )


def _numbers(count: int, nan: int, infinite: int, lowest: Any, highest: Any, total: Any) -> Range:
    return Range(count, lowest, highest, total, nan, infinite)


def _lengths(feature: Feature, present: int, lengths: Any) -> Range | None:
    """Of sparse features the number of values, of others the length of the first dimension."""
    if feature.encoding == "raw" and None in feature.shape[1:]:
        return None  # only the number of all items is at hand
    if lengths is None and feature.shape and present:
        length = feature.shape[0]
        return None if length is None else Range(present, length, length, length * present)
    return _range(lengths)


def _range(sizes: Any) -> Range | None:
    return None if sizes is None else Range(*sizes)
