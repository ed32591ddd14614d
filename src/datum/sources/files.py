"""Files of a source: found by path, list or pattern, in a stable order."""

from __future__ import annotations

import bz2
import contextlib
import glob
import hashlib
import lzma
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from datum._identity import identify, version_of
from datum.errors import SourceError
from datum.images import sniff_file

__all__ = [
    "IMAGE_EXTENSIONS",
    "FoundFile",
    "Paths",
    "as_text",
    "find_files",
    "find_split_files",
    "fingerprint_files",
    "fingerprint_of",
    "list_files",
    "list_folders",
    "look_at_file",
    "looks_like_image",
    "open_file",
    "open_folder",
    "origin_in",
    "unpacked_suffix",
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


def origin_in(root: str | os.PathLike[str], split: str, listed: Path | None = None) -> str:
    """Return the place of a split within a folder: its list, its table or its own folder."""
    if listed is not None:
        return str(listed)
    folder, table = Path(root, split), Path(root, f"{split}.csv")
    if table.is_file() and folder.is_dir():
        return f"{table} and {folder}"
    return str(folder if folder.is_dir() else Path(root))


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


def look_at_file(path: Path) -> FoundFile:
    """A single file as `list_files` would list it, under its whole path."""
    try:
        status = path.stat()
    except OSError:
        return FoundFile(str(path), 0, 0)
    return FoundFile(str(path), status.st_size, version_of(status))


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


Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_PACKED = (".gz", ".bz2", ".xz")
_BUFFER_BYTES = 2**20  # for what is read line by line


def find_files(paths: Paths) -> list[Path]:
    """The files that a path, a pattern (`data/*.csv`, sorted) or a list of these names.

    Raises SourceError for a path that is no regular file, such as a folder, a pipe or nothing.
    """
    if not isinstance(paths, (str, os.PathLike)):
        given: Any = paths
        if not isinstance(given, Sequence) or not given:
            raise SourceError(f"expected a path or a list of paths, got {given!r}")
        return [file for path in given for file in find_files(path)]
    text = os.fspath(paths)
    if not isinstance(text, str):
        raise SourceError(f"expected a path that is text, got {text!r}")
    if glob.has_magic(text) and not Path(text).exists():
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - of any root
        if not found:
            raise SourceError("expected files of this pattern, got none", where=text)
        return [_checked(Path(path)) for path in found]
    return [_checked(Path(text))]


def find_split_files(paths: Paths | Mapping[str, Paths], split: str) -> dict[str, list[Path]]:
    """The files of each split: those of a dict, or all as the one split named."""
    if not isinstance(paths, Mapping):
        return {split: find_files(paths)}
    if not paths:
        raise SourceError("expected the files of each split, got none")
    return {name: find_files(files) for name, files in paths.items()}


def _checked(path: Path) -> Path:
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"expected a file, got: {reason.lower()}", where=path) from None
    if not stat.S_ISREG(mode):
        got = "a folder" if stat.S_ISDIR(mode) else "something else, such as a pipe or a device"
        raise SourceError(f"expected a file, got {got}", where=path)
    return path


@contextlib.contextmanager
def open_file(path: Path) -> Iterator[Any]:
    """Open a file to read its bytes, unpacked if its name ends with .gz, .bz2 or .xz.

    Damage and other faults of the file are raised as SourceError.
    """
    try:
        with _open_packed(path) as file:
            yield file
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"expected a file that can be read, got: {reason}", where=path) from error


def _open_packed(path: Path) -> Any:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        from isal import igzip

        return igzip.open(path, "rb")
    if suffix == ".bz2":
        return bz2.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    return open(path, "rb", buffering=_BUFFER_BYTES)


def unpacked_suffix(path: Path) -> str:
    """What the name ends with, before what says how it is packed.

    >>> unpacked_suffix(Path("a.CSV.gz"))
    '.csv'
    """
    inner = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return inner.suffix.lower()


def fingerprint_files(files: Sequence[Path], *others: Any) -> str:
    """A text that changes when a file is changed or replaced, or another value is."""
    named = [(path.name, identify(path)) for path in files]
    return fingerprint_of([], named, *others)
