"""Option `missing`: values, masks or dropped records for features that a record lacks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._options import check_known, thread_count
from datum._read.numbered import NumberedRecords
from datum._read.shards import ShardRange, Shards
from datum.columns import Masked
from datum.errors import Message, SchemaError
from datum.format import Parser
from datum.schema import Feature, Schema

__all__ = [
    "Missing",
    "check_missing",
    "fill_missing",
    "find_lacking",
    "present_name",
    "required_features",
]

Missing = str | Mapping[str, Any] | None

RULES = ("mask", "error", "drop")
SCANNED_RECORDS = 1 << 16  # read together in a search for records that lack a feature
_FLOATS = ("float16", "bfloat16", "float32", "float64")


def present_name(name: str, feature: Feature) -> str | None:
    """The name of the column that marks the records with an optional feature, or None.

    >>> present_name("age", Feature("int64", optional=True))
    'age_present'
    """
    has_blanks = feature.optional and feature.default is None
    return f"{name}_present" if has_blanks else None


def check_missing(missing: Missing) -> None:
    """Raise ValueError unless `missing` is a rule or a dict by feature."""
    if missing is None or isinstance(missing, Mapping) or missing in RULES:
        return
    raise ValueError(
        Message(
            "expected `missing` to be 'mask', 'error', 'drop' or a dict by feature, got"
            f" {missing!r}",
            hint="missing={'age': -1} fills in a value, missing={'age': 'drop'} drops records",
        )
    )


def fill_missing(schema: Schema, missing: Missing) -> Schema:
    """The schema to parse with, in which each optional feature has a default or a mask.

    Features with the rule "error" or "drop" become required. Without a rule, floats of a fixed
    shape get NaN, and everything else gets a mask.

    >>> schema = Schema({"age": Feature("float32", optional=True)})
    >>> fill_missing(schema, None)["age"].default
    nan
    >>> fill_missing(schema, {"age": "error"})["age"].optional
    False
    """
    if isinstance(missing, Mapping):
        check_known("missing", missing, schema)
    return Schema({name: _fill(name, schema[name], _rule_of(name, missing)) for name in schema})


def _rule_of(name: str, missing: Missing) -> Any:
    return missing.get(name) if isinstance(missing, Mapping) else missing


def _fill(name: str, feature: Feature, rule: Any) -> Feature:
    if not feature.optional:
        return feature
    if rule is None:
        is_plain = present_name(name, feature) and feature.dtype in _FLOATS
        return replace(feature, default=math.nan) if is_plain and _has_shape(feature) else feature
    if feature.encoding == "sparse":
        if rule in ("mask", "drop"):
            return feature
        raise ValueError(
            Message(
                f"expected `missing` of {name!r}, which is sparse, to be 'mask' or 'drop', got"
                f" {rule!r}"
            )
        )
    if isinstance(rule, str) and rule in RULES:
        return replace(feature, default=None, optional=rule == "mask")
    try:
        return replace(feature, default=rule)
    except SchemaError as error:
        raise ValueError(
            Message(
                f"expected `missing` of {name!r} to be 'mask', 'error', 'drop' or a value that"
                f" {feature!r} can have, got {rule!r}",
                hint=f"missing={{{name!r}: 'mask'}}",
            )
        ) from error


def _has_shape(feature: Feature) -> bool:
    is_list = feature.sequence or feature.encoding == "sparse"
    return None not in feature.shape and not is_list


def required_features(schema: Schema, missing: Missing) -> list[str]:
    """The features whose absence drops a record, by the rule "drop".

    >>> required_features(Schema({"x": Feature("int64", optional=True)}), "drop")
    ['x']
    """
    return [
        name
        for name, feature in schema.items()
        if feature.optional and _rule_of(name, missing) == "drop"
    ]


def find_lacking(
    parts: Sequence[tuple[Shards, ShardRange]], schema: Schema, names: Iterable[str]
) -> NDArray[np.int64]:
    """The numbers of the records that lack one of these features, in ascending order.

    Every record is read once. Damaged records are not listed.
    """
    wanted = Schema({name: replace(schema[name], default=None) for name in names})
    threads = thread_count(None)
    source = NumberedRecords(parts, Parser(wanted), threads=threads, on_error="skip")
    starts = range(0, len(source), SCANNED_RECORDS)
    numbers = [np.arange(s, min(s + SCANNED_RECORDS, len(source))) for s in starts]
    found = [np.empty(0, np.int64)]
    tickets: list[int] = []
    try:
        for at, here in enumerate(numbers):
            while len(tickets) < min(len(numbers), at + threads + 1):
                tickets.append(source.submit(numbers[len(tickets)]))
            result = source.take(tickets[at])
            rows = here if result.rows is None else here[result.rows]
            is_whole = np.ones(len(rows), np.bool_)
            for column in result.columns.values():
                if isinstance(column, Masked):
                    is_whole &= column.present
            found.append(rows[~is_whole])
    finally:
        source.close()
    return np.concatenate(found)
