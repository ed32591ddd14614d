"""Files that hold records: found by path, list or pattern, and opened whether compressed or not."""

from __future__ import annotations

import bz2
import contextlib
import glob
import lzma
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from datum._identity import identify
from datum.errors import SourceError
from datum.sources.listing import fingerprint_of

__all__ = [
    "Paths",
    "find_files",
    "find_split_files",
    "fingerprint_files",
    "open_file",
    "unpacked_suffix",
]

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
