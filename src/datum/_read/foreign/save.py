"""A manifest for records that others wrote, so that they open at once from then on."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from datum._read.contents import Contents
from datum._read.shards import Shards, tail_checksum
from datum._read.verify import checksum_file
from datum.errors import CorruptRecordError, WriteError
from datum.format import Manifest, ShardInfo, SplitInfo
from datum.format.naming import MANIFEST_NAME
from datum.format.threads import thread_count
from datum.format.wording import count_of

__all__ = [
    "save_manifest",
]

CHUNK_RECORDS = 4096


def save_manifest(contents: Contents, *, threads: int | None = None) -> Path:
    """Write `datum.json` beside the files of a dataset, and return its path.

    Every shard is read through: its records are counted and checked, and the checksum of the file
    is taken. WriteError, before anything is read, if there is a manifest already, if files lie in
    several folders, or if they are compressed in different ways; CorruptRecordError if a shard is
    not what it should be.
    """
    path = contents.folder / MANIFEST_NAME
    shards = [shard for split in contents.splits.values() for shard in split.shards]
    _check_place(path, shards)
    _describe(contents, {shard: replace(shard, crc32c=0) for shard in shards})  # or it cannot be
    opener = Shards(contents.folder, contents.writer)
    with ThreadPoolExecutor(thread_count(threads), "datum-save") as pool:
        checked = list(pool.map(lambda shard: _check_shard(opener, shard), shards))
    manifest = _describe(contents, dict(zip(shards, checked, strict=True)))
    manifest.save(path, overwrite=False)  # nor one that was made meanwhile
    return path


def _check_place(path: Path, shards: list[ShardInfo]) -> None:
    if path.exists():
        raise WriteError(
            "expected a dataset without a manifest, got one that has it",
            where=path,
            hint="delete it, if another is wanted",
        )
    strays = [shard.name for shard in shards if Path(shard.name).name != shard.name]
    if strays:
        raise WriteError(
            f"expected all files in the folder of the manifest, got {strays[0]!r}",
            where=path,
            hint="move them into one folder, or write them with datum.write",
        )
    ways = sorted({str(shard.compression) for shard in shards if shard.bytes})
    if len(ways) > 1:
        raise WriteError(
            f"expected files that are compressed in one way, got {' and '.join(ways)}",
            where=path,
            hint="save a manifest for those of one kind, or write them with datum.write",
        )


def _describe(contents: Contents, shards: Mapping[ShardInfo, ShardInfo]) -> Manifest:
    splits = {
        name: SplitInfo(tuple(shards[shard] for shard in split.shards))
        for name, split in contents.splits.items()
    }
    return Manifest(
        contents.schema, splits, contents.metadata, contents.statistics, contents.compression
    )


def _check_shard(opener: Shards, shard: ShardInfo) -> ShardInfo:
    """A shard with its checksum, after all its records have been read."""
    with opener.open(shard) as file:
        records = sum(map(len, file.chunks(CHUNK_RECORDS)))
        if records != shard.records:
            raise CorruptRecordError(
                f"expected {count_of(shard.records, 'record')}, {opener.known_from}, got {records}",
                where=file.name,
            )
        nbytes, crc = checksum_file(file)
        tail = tail_checksum(file)
    if nbytes != shard.bytes:
        raise CorruptRecordError(f"expected {shard.bytes} bytes, got {nbytes}", where=file.name)
    return replace(shard, crc32c=crc, tail_crc32c=tail)
