"""Manifests on disk, read without trusting what is there."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from datum.errors import ManifestError, nearest
from datum.format.durable import find_unfinished
from datum.format.naming import MANIFEST_NAME
from datum.format.strict_json import MAX_BYTES

__all__ = ["read_manifest"]


def read_manifest(path: Path) -> tuple[Path, bytes]:
    """The manifest of a folder, or the file itself, and what it holds."""
    try:
        if stat.S_ISDIR(path.stat().st_mode):
            return path / MANIFEST_NAME, _read(path / MANIFEST_NAME)
        if path.suffix != ".json" and path.is_file():
            raise ManifestError(
                f"expected the folder of a dataset, or its {MANIFEST_NAME}, got a file", where=path
            )
        return path, _read(path)
    except (FileNotFoundError, NotADirectoryError):
        raise _missing(path) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL
        raise ManifestError(f"expected a manifest to read: {error}", where=path) from error


def _read(path: Path) -> bytes:
    # Not blocking: a FIFO would wait for a writer before it could be refused.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ManifestError("expected a regular file, got something else", where=path)
        data = b""
        if status.st_size <= MAX_BYTES:
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if max(status.st_size, len(data)) > MAX_BYTES:
        raise ManifestError(f"expected at most {MAX_BYTES} bytes, got more", where=path)
    return data


def _find_near(path: Path) -> Path | None:
    """What lies there by a name that is almost the same."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return None
    near = nearest(path.name, [name for name in names if name[:1] != "."])
    return path.with_name(near[0]) if near else None


def _missing(path: Path) -> ManifestError:
    folder = path.parent if path.name == MANIFEST_NAME else path
    if folder.is_dir():
        found = "expected a dataset, got a folder that was never published:"
        found += f" it has no {MANIFEST_NAME}"
        hint = "datum.format.read_batches reads TFRecord files that have no manifest"
    else:
        found = "expected a dataset, got no such folder or file"
        near = _find_near(folder)
        hint = f"did you mean {str(near)!r}?" if near else "check the path"
    for staging in find_unfinished(folder):
        hint = f"a write did not finish; the same call again continues what is in {staging}"
    return ManifestError(found, where=folder, hint=hint)
