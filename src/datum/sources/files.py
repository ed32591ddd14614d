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
_RARE = (".jpe", ".jfif", ".mpo", ".dib")  # rare extensions of JPEG and BMP
IMAGE_EXTENSIONS = _COMMON + _RARE

_Identity = tuple[int, int]  # device and inode of a folder


class FoundFile(NamedTuple):
    """A file, or another entry of a folder that is not a folder.

    Attributes:
        name: Its path within the folder listed, with slashes.
        size: Its size in bytes; 0 if it cannot be read.
        version: A number that changes with the content, from `datum._identity`.
    """

    name: str
    size: int
    version: int


def open_folder(path: str | os.PathLike[str]) -> Path:
    """Return the path of an existing folder; raise SourceError for anything else."""
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
    """Return all files below a folder except hidden ones, sorted by name.

    Links are followed, but not in circles, and no more than two in a row.
    """
    found = list(_walk(os.fspath(folder)))
    found.sort()
    return found


def list_folders(folder: str | os.PathLike[str]) -> list[str]:
    """Return the names of the folders in a folder, sorted; hidden ones are skipped."""
    return sorted(entry.name for entry in _entries(os.fspath(folder)) if _is_folder(entry))


class _Folder(NamedTuple):
    """A folder to list: its name and path, the folders above it, and the links followed."""

    name: str
    path: str
    above: tuple[_Identity, ...]
    links: int


def _walk(root: str) -> Iterator[FoundFile]:
    """Yield all files; follow links to folders last, and behind a link only to new folders."""
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
    status = os.stat(folder)  # noqa: PTH116 - faster than a Path, for millions of folders
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
    except OSError:  # a dangling link, reported when it is read
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
    """Return whether a file is an image by its name or its content."""
    if name.lower().endswith(IMAGE_EXTENSIONS):
        return True
    return sniff_file(os.path.join(folder, name)) is not None  # noqa: PTH118


def as_text(name: str) -> str:
    r"""Return a file name as valid UTF-8 text, with other bytes escaped as \xff."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return os.fsencode(name).decode("utf-8", "backslashreplace")
    return name


def fingerprint_of(files: Iterable[FoundFile], *others: Any) -> str:
    """Return a text that changes when a file, its name or another value does.

    No file is opened: there may be millions, and reading them takes as long as writing the
    dataset.
    """
    digest = hashlib.blake2b(repr(others).encode("utf-8", "backslashreplace"), digest_size=16)
    for name, size, version in files:
        digest.update(f"\0{name}\0{size} {version}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
_PACKED = (".gz", ".bz2", ".xz")
_BUFFER_BYTES = 2**20  # of files that are read line by line


def find_files(paths: Paths) -> list[Path]:
    """Return the files that a path, a pattern (`data/*.csv`, sorted) or a list of these names.

    Raises SourceError for a path that is not a regular file, such as a folder or a pipe.
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
        found = sorted(glob.glob(text, recursive=True))  # noqa: PTH207 - absolute or relative
        if not found:
            raise SourceError("no file matches this pattern", where=text)
        return [_checked(Path(path)) for path in found]
    return [_checked(Path(text))]


def find_split_files(paths: Paths | Mapping[str, Paths], split: str) -> dict[str, list[Path]]:
    """Return the files of each split: those of a dict, or all files as the split named."""
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
    """Open a file to read its bytes, decompressed if its name ends with .gz, .bz2 or .xz.

    Damaged or unreadable files raise SourceError.
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
    """Return the extension of a file name, before that of its compression.

    >>> unpacked_suffix(Path("a.CSV.gz"))
    '.csv'
    """
    inner = path.with_suffix("") if path.suffix.lower() in _PACKED else path
    return inner.suffix.lower()


def fingerprint_files(files: Sequence[Path], *others: Any) -> str:
    """Return a text that changes when a file is changed or replaced, or another value changes."""
    named = [(path.name, identify(path)) for path in files]
    return fingerprint_of([], named, *others)
