"""Files that are on the disk, whole, or not there at all."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["NEW_SUFFIX", "replace_file", "sync_folder", "write_file"]

NEW_SUFFIX = ".new"  # of files that are not whole yet


def replace_file(path: Path, data: bytes) -> None:
    """Write a file beside, put it on the disk, and rename it to `path`."""
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{NEW_SUFFIX}")
    try:
        write_file(temporary, data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def write_file(path: Path, data: bytes) -> None:
    """Write a file and put its content on the disk; its name is not safe before `sync_folder`."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
