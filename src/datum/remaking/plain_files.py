"""Records of any kind, written as plain TFRecord files without a manifest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from datum.format import Framed, RecordWriter
from datum.format.durable import sync_folder
from datum.reading.stored_stream import frames_of
from datum.remaking.exporting_target import Names
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
            with path.open("xb") as file, RecordWriter(file, compression=one.compression) as writer:
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
    given = [PurePosixPath(one.file.name) for one in found]
    inside = [not path.is_absolute() and ".." not in path.parts for path in given]
    taken = Names()
    for path, is_inside in zip(given, inside, strict=True):
        if is_inside:
            taken.take(path.as_posix())
    names: list[str] = []
    for number, path in enumerate(given):
        name = path.as_posix() if inside[number] else path.name
        while not inside[number] and not taken.take(name):
            name = f"{number}-{name}"
        names.append(name)
    return names
