"""TFRecord files as others leave them, and the records of what was opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datum._read.contents import Contents
from datum._read.shards import Shards
from datum._read.split import Split, find_ranges, runs_of
from datum.format import RecordWriter, encode


def write_file(
    path: Path, rows: Sequence[Mapping[str, Any]], schema: Any = None, **options: Any
) -> Path:
    """Write records to one file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with RecordWriter(path, **options) as writer:
        writer.write_framed(encode(rows, schema))
    return path


def write_numbers(folder: Path, *names: str, **options: Any) -> list[Path]:
    """One record in each file: x is the place of its name."""
    return [write_file(folder / name, [{"x": x}], **options) for x, name in enumerate(names)]


def split_of(contents: Contents, name: str) -> Split:
    """The records of a split, as a dataset gives them."""
    ranges = find_ranges(name, {split: info.records for split, info in contents.splits.items()})
    shards = Shards(contents.folder, contents.writer)
    return Split(name, contents.schema, shards, runs_of(ranges, contents.splits))


def numbers(contents: Contents) -> dict[str, list[int]]:
    """All x of each split."""
    return {name: [int(row["x"]) for row in split_of(contents, name)] for name in contents.splits}
