"""Records of any kind, written as plain TFRecord files without a manifest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from datum.format import Framed, RecordWriter
from datum.format.durable import sync_folder
from datum.reading.stored_stream import frames_of
from datum.remaking.salvaging import Salvaged
from datum.writing.staging import open_staging

__all__ = ["write_files"]


def write_files(found: Sequence[Salvaged], target: Path, *, overwrite: bool) -> None:
    """Write what is whole of each file to one of the same name, compressed as it was.

    They appear at once, when all are on the disk. Files of which nothing is whole are left out.
    """
    with open_staging(target) as staging:
        staging.begin(None)
        for one, name in zip(found, _names_of(found), strict=True):
            if not len(one):
                continue
            path = staging.data / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file, RecordWriter(file, compression=one.compression) as writer:
                for records in one.runs():
                    writer.write_framed(Framed(*frames_of(records)))
                writer.close()
                file.flush()
                os.fsync(file.fileno())
        for folder in [path for path in staging.data.rglob("*") if path.is_dir()]:
            sync_folder(folder)
        staging.publish(overwrite=overwrite)


def _names_of(found: Sequence[Salvaged]) -> list[str]:
    """Each file's path within the dataset; of those that lay elsewhere the name, told apart."""
    names: list[str] = []
    for number, one in enumerate(found):
        given = PurePosixPath(one.file.name)
        is_inside = not given.is_absolute() and ".." not in given.parts
        name = given.as_posix() if is_inside else given.name
        names.append(name if name not in names else f"{number}-{given.name}")
    return names
