"""The table of docs/concepts/format.md, written down once more: value in, lists of a record out."""

from __future__ import annotations

from typing import Any

import numpy as np

from datum import Feature
from tests.contract.oracle import Message, Value, float_bits
from tests.contract.strategies import nest, numpy_type


def stored_message(schema: dict[str, Feature], row: dict[str, Any]) -> Message:
    """The message that holds a row."""
    message = Message()
    for name, feature in schema.items():
        value = row.get(name)
        if value is None:
            continue
        if feature.sequence:
            message.lists[name] = [_stored_step(feature, step) for step in value]
        else:
            message.context.update(_stored_values(name, feature, value))
    return message


def _stored_values(name: str, feature: Feature, value: Any) -> dict[str, Value]:
    if feature.encoding == "sparse":
        return _stored_sparse(name, feature, *value)
    if feature.encoding == "raw":
        array = np.asarray(value, numpy_type(feature.dtype))
        stored: dict[str, Value] = {name: ("bytes", [array.tobytes()])}
        if None in feature.shape[1:]:
            stored[f"{name}_shape"] = ("int64", list(array.shape))
        return stored
    stored = {name: listed(feature.dtype, value)}
    level = value
    for depth in range(1, feature.ragged_rank):
        stored[f"{name}_lengths_{depth}"] = ("int64", [len(item) for item in level])
        level = [inner for item in level for inner in item]
    return stored


def _stored_step(feature: Feature, step: Any) -> Value:
    if feature.encoding == "raw":
        return "bytes", [np.asarray(step, numpy_type(feature.dtype)).tobytes()]
    return listed(feature.dtype, step)


def _stored_sparse(name: str, feature: Feature, places: Any, found: Any) -> dict[str, Value]:
    order = sorted(range(len(places)), key=lambda i: tuple(places[i]))
    rank = len(feature.shape)
    keys = [f"{name}_index"] if rank == 1 else [f"{name}_index_{dim}" for dim in range(rank)]
    stored: dict[str, Value] = {
        key: ("int64", [int(places[i][dim]) for i in order]) for dim, key in enumerate(keys)
    }
    stored[f"{name}_value"] = listed(feature.dtype, [found[i] for i in order])
    return stored


def listed(dtype: str, value: Any) -> Value:
    """The list type and the values in it, in row-major order."""
    flat = _flat(value)
    if dtype == "bytes":
        return "bytes", flat
    if dtype == "str":
        return "bytes", [text.encode() for text in flat]
    if dtype in ("float16", "bfloat16", "float32"):
        return "float", [bits for part in flat for bits in float_bits(np.float32(part))]
    return "int64", [_two_s_complement(int(number)) for part in flat for number in part]


def as_stored(dtype: str, value: Any) -> Any:
    """A value in its own shape, with each item as it is stored."""
    if isinstance(value, np.ndarray):
        return nest(listed(dtype, value)[1], value.shape)
    if isinstance(value, list):
        return [as_stored(dtype, item) for item in value]
    return listed(dtype, value)[1][0]


def _flat(value: Any) -> list[Any]:
    """The strings in order; of numbers, arrays in order."""
    if isinstance(value, list):
        return [inner for item in value for inner in _flat(item)]
    return [value.reshape(-1)] if isinstance(value, (np.ndarray, np.generic)) else [value]


def _two_s_complement(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number
