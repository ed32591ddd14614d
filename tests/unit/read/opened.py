"""Written datasets opened to be read by number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datum import Schema
from datum._read.numbered import NumberedRecords
from datum._read.shards import ShardRange, Shards
from datum.format import Manifest, Parser
from tests.unit.read.written import NUMBERED, numbered, write_dataset

Parts = list[tuple[Shards, ShardRange]]

ALL = list(range(20))


def write_parts(folder: Path) -> Parts:
    """20 records in shards of 7, 1 and 12: x counts from 0."""
    rows = [numbered(*range(7)), numbered(7), numbered(*range(8, 20))]
    return parts_of(folder, write_dataset(folder, {"train": rows}))


def write_four(folder: Path) -> Parts:
    """Four records in one shard: x counts from 0."""
    return parts_of(folder, write_dataset(folder, {"train": [numbered(*range(4))]}))


def parts_of(folder: Path, manifest: Manifest) -> Parts:
    shards = Shards(folder)
    infos = manifest.splits["train"].shards
    return [(shards, ShardRange(shard, 0, shard.records)) for shard in infos if shard.records]


def shard_path(parts: Parts, run: int = 0) -> Path:
    return parts[run][0].folder / parts[run][1].shard.name


def opened(
    parts: Parts, threads: int = 2, on_error: Any = "raise", schema: Schema = NUMBERED
) -> NumberedRecords:
    return NumberedRecords(parts, Parser(schema), threads=threads, on_error=on_error)


def flip(path: Path, at: int) -> None:
    """Change one byte of a file."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x5A
    path.write_bytes(data)
