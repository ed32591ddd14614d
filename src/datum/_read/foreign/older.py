"""Datasets of the older library of this name: two JSON files that describe TFRecord shards.

Their types and shapes are those of the last record alone, and their numbers of records those of the
first export into a folder. So all records are read, and count more than the description.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from datum._read.contents import Contents
from datum._read.foreign.bare import ScannedFile, common_compression, merge_found, scan_files
from datum._read.foreign.record_files import check_member, expect, read_json, size_of
from datum.errors import ManifestError, SplitError
from datum.format import DiscoveredFeature, RecordFile, SplitInfo, parse
from datum.format.manifest import check_split_name
from datum.schema import Feature, Schema

__all__ = [
    "MAPPING_FILE",
    "SHARD_FILE",
    "open_older",
]

SHARD_FILE = "shard_info.json"
MAPPING_FILE = "datum_to_type_and_shape_mapping.json"
_TYPES = ("string", "int", "float")
_IMAGE_CHANNELS = {2: 1, 3: 3}  # by the rank of a string's shape
CHUNK_RECORDS = 4096
LOOKED_AT = 8  # records of a file that are tested for images


def open_older(folder: Path, schema: Schema | None) -> Contents:
    """Open the dataset that the two files in a folder describe.

    A listed shard that is missing raises ManifestError. A shard that is not listed is ignored, as
    in that library, since it is from another export.

    Args:
        folder: The folder.
        schema: Features to read; None to infer them from all records.
    """
    listed = _read_shards(folder / SHARD_FILE)
    splits = {path: split for split, paths in listed.items() for path in paths}
    files = scan_files(list(splits), discovers=schema is None)
    if schema is None:
        schema = _make_schema(files, _read_mapping(folder / MAPPING_FILE))
    shards = {file.path: file.as_shard(folder) for file in files}
    return Contents(
        folder,
        schema,
        {name: SplitInfo(tuple(shards[path] for path in paths)) for name, paths in listed.items()},
        compression=common_compression(shards.values()),
        writer="older datum",
    )


def _read_shards(path: Path) -> dict[str, list[Path]]:
    """The files of each split, all of which exist and belong to no other split."""
    splits: dict[str, list[Path]] = {}
    owners: dict[str, str] = {}
    for split, files in read_json(path).items():
        where = f"{path}: split {split!r:.100}"
        try:
            check_split_name(split)
        except SplitError as error:
            raise ManifestError(error, where=path) from None
        splits[split] = [path.with_name(check_member(name, where)) for name in _names(files, where)]
        for file in splits[split]:
            if owners.setdefault(file.name, split) != split:
                raise ManifestError(f"expected shards of its own, got {file.name!r}", where=where)
            if size_of(file) is None:
                raise ManifestError(
                    f"expected a shard {file.name!r}, got no such file",
                    where=where,
                    hint="restore it, or load a list of the files to read",
                )
    if not splits:
        raise ManifestError("expected splits, got none", where=path)
    return splits


def _names(files: Any, where: str) -> list[str]:
    names = list(expect(files, dict, where))
    for name in names:
        if "/" in name:
            raise ManifestError(f"expected the name of a file, got {name!r:.100}", where=where)
    return names


def _read_mapping(path: Path) -> dict[str, dict[str, Any]]:
    """Type, shape and density of each key."""
    mapping = read_json(path)
    for key, found in mapping.items():
        where = f"{path}: feature {key!r:.100}"
        expect(found, dict, where)
        if found.get("type") not in _TYPES:
            raise ManifestError(f"expected a type of {', '.join(_TYPES)}, got another", where=where)
        expect(found.get("dense"), bool, f"{where}: dense")
        for length in expect(found.get("shape"), list, f"{where}: shape"):
            if expect(length, int, f"{where}: shape") < -1:
                raise ManifestError(f"shape: expected lengths, got {length}", where=where)
    return mapping


def _make_schema(files: list[ScannedFile], mapping: Mapping[str, dict[str, Any]]) -> Schema:
    """The schema of the records in the order of the mapping, with its shapes if these fit."""
    found = merge_found(files)
    schema = found.schema(text=True)
    made = {}
    for key in (*(key for key in mapping if key in schema), *schema):
        feature, described = schema[key], mapping.get(key)
        if described is None or feature.sequence:
            made[key] = feature
        elif _is_image(files, key, described):
            shape = None, None, _IMAGE_CHANNELS[len(described["shape"])]
            made[key] = Feature("uint8", shape, encoding="image", optional=feature.optional)
        else:
            inner = _inner_shape(files, key, described) if f"{key}_shape" in schema else None
            made[key] = replace(feature, shape=_shape_of(described, found.context[key], inner))
    return Schema(made)


def _shape_of(
    described: Mapping[str, Any], found: DiscoveredFeature, inner: tuple[int, ...] | None
) -> tuple[int | None, ...]:
    """The described shape if all records agree with it, otherwise a flat one."""
    least, most = found.lengths or (0, 0)
    if not described["dense"] or least != most or not most:
        return (None, *(inner or ()))
    return tuple(described["shape"]) if _size(described["shape"]) == most else (most,)


def _size(shape: list[int]) -> int | None:
    """Number of values of a shape; None if a length is not known."""
    return None if -1 in shape else math.prod(shape)


def _is_image(files: list[ScannedFile], key: str, described: Mapping[str, Any]) -> bool:
    """Whether a string with the rank of an image is one, and not a path or a list of strings."""
    if described["type"] != "string" or len(described["shape"]) not in _IMAGE_CHANNELS:
        return False
    from datum.images import sniff_format  # imports Pillow, which not every dataset needs

    for values in _read_key(files, key, "bytes", LOOKED_AT):
        seen = [value for value in values if value is not None]
        if seen:
            return all(len(value) == 1 and sniff_format(value[0]) for value in seen)
    return False


def _inner_shape(
    files: list[ScannedFile], key: str, described: Mapping[str, Any]
) -> tuple[int, ...] | None:
    """The shape of the items of a sparse feature, if it is the same in all records."""
    if described["dense"] or len(described["shape"]) < 2:
        return None
    shapes = {
        tuple(shape or ())[1:]
        for values in _read_key(files, f"{key}_shape", "int64")
        for shape in values
    }
    inner = shapes.pop() if len(shapes) == 1 else ()
    is_whole = len(inner) == len(described["shape"]) - 1 and all(n > 0 for n in inner)
    return inner if is_whole else None


def _read_key(
    files: list[ScannedFile], key: str, dtype: str, limit: int | None = None
) -> Iterator[list[Any]]:
    """The values of one key in all records, or in the first `limit` records of each file."""
    schema = Schema({key: Feature(dtype, (None,), optional=True)})
    for found in files:
        with RecordFile(found.path) as file:
            for records in file.chunks(limit or CHUNK_RECORDS):
                yield parse(records, schema)[key].to_list()
                if limit is not None:
                    break
