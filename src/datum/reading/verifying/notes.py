"""What lies beside the shards of a dataset and is no part of it: leftovers, and strays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from datum.format import Index
from datum.format.durable import NEW_SUFFIX, find_unfinished
from datum.format.index import INDEX_FOLDER
from datum.format.naming import MANIFEST_NAME, parse_shard_name
from datum.format.wording import count_of
from datum.reading.contents import Contents

__all__ = ["find_notes"]

SHOWN = 3  # names of files, where there may be many

_QUARANTINE = "quarantine.jsonl"


def find_notes(contents: Contents) -> tuple[str, ...]:
    """What is worth knowing of the folder of a dataset, but no fault of it."""
    if not contents.folder.is_dir() or contents.is_part:
        return ()
    return tuple(_of_dataset(contents) if contents.is_published else _of_files(contents))


def _of_dataset(contents: Contents) -> Iterator[str]:
    folder = contents.folder
    owned = [shard.name for split in contents.splits.values() for shard in split.shards]
    names = sorted(entry.name for entry in folder.iterdir())
    strays = [n for n in names if n.endswith(".tfrecord") and n not in set(owned)]
    if strays:
        yield (
            f"{count_of(len(strays), 'TFRecord file')} that {MANIFEST_NAME} does not name:"
            f" {_shown(strays)}"
        )
    bare = [name for name in owned if Index.find(folder / name) is None]
    bare = [name for name in bare if (folder / name).is_file()]
    if bare:
        yield (
            f"{count_of(len(bare), 'shard')} without an index, which is made when needed;"
            f" `datum index` makes it for good: {_shown(bare)}"
        )
    if _QUARANTINE in names:
        yield f"{_QUARANTINE}: {_count_lines(folder / _QUARANTINE)} left out when it was written"
    unfinished = [n for n in names if n.startswith(".") and n.endswith(NEW_SUFFIX)]
    unfinished += sorted(
        f"{INDEX_FOLDER}/{path.name}" for path in folder.glob(f"{INDEX_FOLDER}/.*{NEW_SUFFIX}")
    )
    if unfinished:
        yield f"{count_of(len(unfinished), 'file')} of an interrupted write: {_shown(unfinished)}"
    yield from _staging(folder)


def _of_files(contents: Contents) -> Iterator[str]:
    """Files that nobody describes may be a dataset of Datum that lost its manifest."""
    shards = [shard for split in contents.splits.values() for shard in split.shards]
    is_bare = contents.writer == "tfrecord files"
    has_manifest = os.path.lexists(contents.folder / MANIFEST_NAME)
    if (
        is_bare
        and not has_manifest
        and all(
            parse_shard_name(shard.name) and _has_own_index(contents.folder / shard.name)
            for shard in shards
        )
    ):
        yield (
            f"no {MANIFEST_NAME}: read as plain TFRecord files; if Datum wrote them it is lost,"
            " and `Dataset.save_manifest` makes one of what the records tell"
        )
    yield from _staging(contents.folder)


def _has_own_index(shard: Path) -> bool:
    path = Index.find(shard)
    return path is not None and Index.is_index(path)


def _staging(folder: Path) -> Iterator[str]:
    for place in find_unfinished(folder):
        yield (
            f"{place}: left by a write that did not finish, or is under way;"
            " the same write again continues it"
        )


def _count_lines(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return count_of(sum(1 for _ in file), "record")
    except OSError:
        return "records"


def _shown(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
