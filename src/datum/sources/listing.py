"""The files of a folder, in an order that does not depend on the file system."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from datum.errors import SourceError
from datum.images import sniff_file

__all__ = [
    "IMAGE_EXTENSIONS",
    "FoundFile",
    "as_text",
    "fingerprint_of",
    "list_files",
    "list_folders",
    "looks_like_image",
    "open_folder",
]

_COMMON = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")
_RARE = (".jpe", ".jfif", ".mpo", ".dib")  # JPEG and BMP by other names
IMAGE_EXTENSIONS = _COMMON + _RARE


class FoundFile(NamedTuple):
    """A file, or what else has a name in a folder and is no folder.

    Attributes:
        name: its path within the folder listed, with slashes.
        size: in bytes; 0 for what cannot be looked at.
        changed_ns: when it was last changed.
    """

    name: str
    size: int
    changed_ns: int


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a folder that is there; raises SourceError for anything else."""
    folder = Path(path)
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing there"
        raise SourceError(f"{folder}: expected a folder, got {got}")
    return folder


def list_files(folder: str | os.PathLike[str]) -> list[FoundFile]:
    """All files below a folder, sorted by name; hidden ones are left out.

    Links are followed; a folder that several names lead to is listed once.
    """
    found = list(_walk(os.fspath(folder)))
    found.sort()
    return found


def list_folders(folder: str | os.PathLike[str]) -> list[str]:
    """The names of the folders in a folder, sorted; hidden ones are left out."""
    return sorted(entry.name for entry in _entries(os.fspath(folder)) if _is_folder(entry))


def _walk(root: str) -> Iterator[FoundFile]:
    """All files; links to folders are followed last, and only to where nothing has led yet."""
    seen: set[tuple[int, int]] = set()
    folders = [(root, "")]
    links: list[tuple[str, str]] = []
    while folders or links:
        if not folders:
            links.sort()
            name, path = links.pop(0)
            folders.append((path, f"{name}/"))
        folder, prefix = folders.pop()
        status = os.stat(folder)  # noqa: PTH116 - a str is all that is needed, a million times
        identity = status.st_dev, status.st_ino
        if identity in seen:
            continue
        seen.add(identity)
        for entry in _entries(folder):
            name = prefix + entry.name
            if not _is_folder(entry):
                yield FoundFile(name, *_look_at(entry))
            elif entry.is_symlink():
                links.append((name, entry.path))
            else:
                folders.append((entry.path, f"{name}/"))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(f"{folder}: expected a folder that can be read, got: {reason}") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _look_at(entry: os.DirEntry[str]) -> tuple[int, int]:
    try:
        status = entry.stat()
    except OSError:  # a link that leads nowhere; whoever reads it says so
        return 0, 0
    return status.st_size, status.st_mtime_ns


def looks_like_image(folder: str | os.PathLike[str], name: str) -> bool:
    """Whether a file is called an image, or is one by its content."""
    if name.lower().endswith(IMAGE_EXTENSIONS):
        return True
    return sniff_file(os.path.join(folder, name)) is not None  # noqa: PTH118


def as_text(name: str) -> str:
    r"""A file's name as text that UTF-8 can hold: bytes that are none are written as \xff."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


def fingerprint_of(files: Iterable[FoundFile], *others: Any) -> str:
    """A text that changes when a file, its name or another value does."""
    digest = hashlib.blake2b(repr(others).encode("utf-8", "backslashreplace"), digest_size=16)
    for name, size, changed_ns in files:
        digest.update(f"\0{name}\0{size} {changed_ns}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
