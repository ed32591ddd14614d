"""Datasets written by hand: encoded rows, framed shards, an index beside each, a manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datum import Feature, Schema, _core
from datum.format import Index, Manifest, RecordWriter, ShardInfo, SplitInfo, encode
from datum.format.manifest import shard_name

NUMBERED = Schema({"x": Feature("int64"), "text": Feature("str")})


def numbered(*numbers: int) -> list[dict[str, Any]]:
    return [{"x": x, "text": f"record {x}"} for x in numbers]


def write_dataset(
    folder: Path,
    splits: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    schema: Schema = NUMBERED,
    *,
    has_index: bool = True,
    **manifest: Any,
) -> Manifest:
    """Write the shards of each split, given as rows, and the manifest, and return it."""
    folder.mkdir(exist_ok=True)
    infos = {}
    for name, shards in splits.items():
        found = []
        for number, rows in enumerate(shards):
            path = folder / shard_name(name, number, len(shards))
            with RecordWriter(path, compression=manifest.get("compression")) as writer:
                writer.write_framed(encode(rows, schema))
            if has_index:
                writer.index.save(Index.path_for(path))
            data = path.read_bytes()
            found.append(ShardInfo(path.name, len(rows), len(data), _core.crc32c(data)))
        infos[name] = SplitInfo(tuple(found))
    made = Manifest(schema, infos, **manifest)
    made.save(folder)
    return made


def write_numbered(folder: Path, **options: Any) -> Manifest:
    """`train` of 10 records in shards of 4, 0 and 6, and `val` of 3 in one: x counts from 0."""
    train = [numbered(*range(4)), [], numbered(*range(4, 10))]
    return write_dataset(folder, {"train": train, "val": [numbered(10, 11, 12)]}, **options)
