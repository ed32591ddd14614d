"""Datasets with features of every kind, and ways to damage what lies on the disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

import datum
from datum.format import RecordFile
from tests.unit.images.samples import encoded, pixels

KINDS = datum.Schema(
    {
        "x": datum.Feature("int64"),
        "name": datum.Feature("str"),
        "image": datum.Feature("uint8", (None, None, 3), encoding="image"),
        "mask": datum.Feature("uint8", (None, None, 1), encoding="image", optional=True),
        "score": datum.Feature("float32", optional=True),
        "words": datum.Feature("str", (None,)),
        "nested": datum.Feature("int64", (None, None)),
        "pixels": datum.Feature("uint8", (4, 4), encoding="raw"),
        "sparse": datum.Feature("float32", (10,), encoding="sparse", optional=True),
        "flag": datum.Feature("bool"),
    }
)


def row(number: int) -> dict[str, object]:
    """A record with features of every kind."""
    found: dict[str, object] = {
        "x": number,
        "name": f"name {number}",
        "image": encoded(pixels(4 + number % 3, 5), "jpeg"),
        "words": [f"w{at}" for at in range(number % 4)],
        "nested": [list(range(at)) for at in range(number % 3)],
        "pixels": np.full((4, 4), number % 256, np.uint8),
        "flag": number % 2 == 0,
    }
    if number % 3:
        found["score"] = number / 10
        found["mask"] = encoded(pixels(4, 5, 1), "png")
    if number % 5:
        found["sparse"] = ([[number % 10]], [float(number)])
    return found


def write_kinds(folder: Path, count: int = 60, **options):
    """A dataset with features of every kind."""
    return datum.write(
        [row(number) for number in range(count)],
        folder,
        schema=KINDS,
        **{"shuffle": False, "progress": False, **options},
    )


def write_numbers(folder: Path, count: int = 90, **options):
    """A dataset of numbers and texts, in three shards."""
    rows = [{"x": number, "text": f"t{number}"} for number in range(count)]
    options = {"shards": 3, "shuffle": False, "progress": False, **options}
    return datum.write(rows, folder, **options)


def payloads(folder: Path, split: str = "train") -> list[bytes]:
    """The records of a split as they lie on the disk."""
    shards = datum.load(folder).splits[split].shards
    return [payload for shard in shards for payload in RecordFile(folder / shard.name)]


def numbers(folder: Path, split: str = "train") -> list[int]:
    """What the records of a split have under the name x."""
    return [int(record["x"]) for record in datum.load(folder)[split]]


def shard_of(folder: Path, number: int = 0) -> Path:
    """The path of a shard."""
    return sorted(folder.glob("*.tfrecord"))[number]


def flip(path: Path, at: int, bits: int = 1) -> None:
    """Change bits of one byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= bits
    path.write_bytes(data)


def cut(path: Path, size: int) -> None:
    """Drop the end of a file."""
    path.write_bytes(path.read_bytes()[:size])


def content(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def copy(source: Path, target: Path) -> Path:
    """A copy of a folder, to be damaged."""
    shutil.copytree(source, target)
    return target
