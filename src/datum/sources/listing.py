"""The files of a folder, in an order that does not depend on the file system."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from datum._identity import version_of
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

_Identity = tuple[int, int]  # of a file system, and of a folder on it


class FoundFile(NamedTuple):
    """A file, or what else has a name in a folder and is no folder.

    Attributes:
        name: its path within the folder listed, with slashes.
        size: in bytes; 0 for what cannot be looked at.
        version: a number that changes with the content, as `datum._identity` makes it.
    """

    name: str
    size: int
    version: int


def open_folder(path: str | os.PathLike[str]) -> Path:
    """The path of a folder that is there; raises SourceError for anything else."""
    folder = Path(path)
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing there"
        raise SourceError(f"expected a folder, got {got}", where=folder)
    return folder


def list_files(folder: str | os.PathLike[str]) -> list[FoundFile]:
    """All files below a folder, sorted by name; hidden ones are left out.

    Links are followed, but not round in circles, and not from link to link to link.
    """
    found = list(_walk(os.fspath(folder)))
    found.sort()
    return found


def list_folders(folder: str | os.PathLike[str]) -> list[str]:
    """The names of the folders in a folder, sorted; hidden ones are left out."""
    return sorted(entry.name for entry in _entries(os.fspath(folder)) if _is_folder(entry))


class _Folder(NamedTuple):
    """A folder that is to be listed: its name, what it lies in, and how many links led there."""

    name: str
    path: str
    above: tuple[_Identity, ...]
    links: int


def _walk(root: str) -> Iterator[FoundFile]:
    """All files; links to folders are followed last, and from behind a link only to new ones."""
    seen: set[_Identity] = set()
    folders = [_Folder("", root, (), links=0)]
    links: list[_Folder] = []
    while folders or links:
        if not folders:
            links.sort()
            folders.append(links.pop(0))
        name, path, above, led = folders.pop()
        identity = _identify(path)
        if identity in above or (led > 1 and identity in seen):
            continue
        seen.add(identity)
        for entry in _entries(path):
            inner = _Folder(name + entry.name, entry.path, (*above, identity), led)
            if not _is_folder(entry):
                yield FoundFile(inner.name, *_look_at(entry))
            elif not entry.is_symlink():
                folders.append(inner._replace(name=f"{inner.name}/"))
            else:
                links.append(inner._replace(name=f"{inner.name}/", links=led + 1))


def _identify(folder: str) -> _Identity:
    status = os.stat(folder)  # noqa: PTH116 - a str is all that is needed, a million times
    return status.st_dev, status.st_ino


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SourceError(
            f"expected a folder that can be read, got: {reason}", where=folder
        ) from None


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
    return status.st_size, version_of(status)


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
    """A text that changes when a file, its name or another value does.

    No file is opened for it: there may be millions, and to read them all takes as long as to write
    the dataset.
    """
    digest = hashlib.blake2b(repr(others).encode("utf-8", "backslashreplace"), digest_size=16)
    for name, size, version in files:
        digest.update(f"\0{name}\0{size} {version}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
