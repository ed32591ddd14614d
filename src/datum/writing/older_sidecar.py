"""The JSON files that the older library of this name reads its records by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from datum._core import Kind
from datum.errors import SchemaError
from datum.format.layout import lower
from datum.format.manifest import SplitInfo
from datum.schema import Feature, Schema

__all__ = ["MAPPING_FILE", "SHARD_FILE", "older_files"]

SHARD_FILE = "shard_info.json"
MAPPING_FILE = "datum_to_type_and_shape_mapping.json"
_TYPES = {Kind.BYTES: "string", Kind.FLOAT: "float", Kind.INT64: "int"}


def older_files(schema: Schema, splits: Mapping[str, SplitInfo]) -> dict[str, bytes]:
    """What stands in each of the two files, by their names.

    The mapping describes every key of the records as that library parses it: "dense" keys hold
    the same number of values in every record, the others any number. A length that differs is -1.
    Sequences, which it cannot parse, raise SchemaError.

    >>> from datum.format.manifest import ShardInfo
    >>> shard = ShardInfo("train-00000-of-00001.tfrecord", records=2, bytes=99, crc32c=0)
    >>> schema = Schema({"label": Feature("int64", (2,))})
    >>> files = older_files(schema, {"train": SplitInfo((shard,))})
    >>> files["shard_info.json"]
    b'{"train": {"train-00000-of-00001.tfrecord": 2}}'
    >>> files["datum_to_type_and_shape_mapping.json"]
    b'{"label": {"type": "int", "shape": [2], "dense": true}}'
    """
    shards = {
        split: {shard.name: shard.records for shard in found.shards}
        for split, found in splits.items()
    }
    mapping = {
        key: found for name, feature in schema.items() for key, found in _describe(name, feature)
    }
    return {SHARD_FILE: json.dumps(shards).encode(), MAPPING_FILE: json.dumps(mapping).encode()}


def _describe(name: str, feature: Feature) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each key that a feature lies under: its type and shape."""
    if feature.sequence:
        raise SchemaError(
            "expected one that the older library reads, got a sequence",
            where=f"feature {name!r}",
            hint="leave 'older' out of sidecars, or drop the feature",
            feature=name,
        )
    values, *others = lower(name, feature)
    shape, is_dense = _shape_of(feature)
    yield values.key, {"type": _TYPES[values.kind], "shape": shape, "dense": is_dense}
    for column in others:
        is_shape = column.role == "shape" and not feature.optional
        length = len(feature.shape) if is_shape else -1
        yield column.key, {"type": "int", "shape": [length], "dense": is_shape}


def _shape_of(feature: Feature) -> tuple[list[int], bool]:
    """The shape of the values, and whether each record has as many."""
    if feature.holds_images:
        return [-1], False
    if feature.encoding == "image":
        # That library makes grey values of an array of rank 2, and colours of one of rank 3.
        size = [-1 if n is None else n for n in feature.shape]
        return (size[:2] if size[2] == 1 else size), not feature.optional
    if feature.encoding == "raw":
        return [], not feature.optional
    if feature.encoding == "sparse" or feature.ragged_rank > 1:
        return [-1], False
    if feature.is_string:
        is_single = feature.shape == ()
        # Of rank 2 or 3 it would take strings for images.
        return ([] if is_single else [-1]), is_single and not feature.optional
    if feature.optional or feature.ragged_rank:
        return [-1, *(n for n in feature.shape[1:] if n is not None)], False
    return [n for n in feature.shape if n is not None], True
