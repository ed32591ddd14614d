"""Where exported files are made before anyone sees them, and how they appear: whole."""

from __future__ import annotations

import os
import re
import tempfile
import unicodedata
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from datum.errors import WriteError
from datum.format.durable import (
    exchange,
    find_abandoned,
    hold_folder,
    remove_folder,
    rename_new,
)
from datum.format.naming import MANIFEST_NAME

__all__ = ["Names", "create", "open_target", "safe_name"]

_SUFFIX = ".datum-export"  # of the folder beside the target, where files are made
_NEW, _OLD = "new", "old"  # in it: what is made, and what it replaced
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069/\\:*?\"<>|]+")
_DEVICE = re.compile(r"(con|prn|aux|nul|(com|lpt)[0-9])", re.IGNORECASE)  # no files on Windows
_MAX_NAME_BYTES = 200  # file systems take 255, and a suffix may follow

_SUFFIXES = {"parquet": (".parquet", ".pq"), "jsonl": (".jsonl", ".ndjson"), "images": ()}
# Names of files, which a folder gets only by mistake.
_OTHER_FILES = (".arrow", ".csv", ".feather", ".gz", ".json", ".tfrecord", ".tsv", ".zip", ".zst")
_ALL_FILES = (*_OTHER_FILES, *_SUFFIXES["parquet"], *_SUFFIXES["jsonl"])


@contextmanager
def open_target(
    out: Path, format: str, splits: Sequence[str], *, overwrite: bool
) -> Iterator[Path]:
    """Give a folder to make files in, by the names they shall have; in the end they are at `out`.

    WriteError if there are files of those names already, unless `overwrite` is set, and in any
    case within a dataset of Datum.
    """
    out = Path(os.path.realpath(out.expanduser()))
    is_file = out.suffix.lower() in _SUFFIXES[format]
    _check(out, format, splits, is_file=is_file, overwrite=overwrite)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _workplace(out) as place:
            folder = place / _NEW
            folder.mkdir()
            yield folder
            if is_file:
                (made,) = folder.iterdir()
                _put(made, out, place, overwrite=overwrite)
            else:
                _publish(folder, out, overwrite=overwrite)
    except WriteError:
        raise
    except OSError as error:
        raise WriteError(f"nothing was exported: {error}", where=out) from error


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A folder of our own beside `out`; those that killed exports left there are removed."""
    left = re.compile(rf"\.{re.escape(out.name)}\.[a-z0-9_]+{re.escape(_SUFFIX)}")
    for place in find_abandoned(out.parent, left):
        _restore(place, out)
        remove_folder(place)
    made = tempfile.mkdtemp(prefix=f".{out.name}.", suffix=_SUFFIX, dir=out.parent)
    place = Path(made)
    descriptor = hold_folder(place)
    try:
        yield place
    finally:
        _restore(place, out)
        remove_folder(place)
        os.close(descriptor)


def _check(
    out: Path, format: str, splits: Sequence[str], *, is_file: bool, overwrite: bool
) -> None:
    if is_file and len(splits) > 1:
        raise WriteError(
            f"expected a folder for {len(splits)} splits, got the name of a file",
            where=out,
            hint=f"give split={splits[0]!r}, or the folder {out.parent / out.stem}",
        )
    if is_file:
        taken = [out] if out.exists() else []
    elif out.exists() and not out.is_dir():
        raise WriteError("expected a folder, got a file", where=out)
    elif out.suffix.lower() in _ALL_FILES and not out.exists():
        meant = [name for name, endings in _SUFFIXES.items() if out.suffix.lower() in endings]
        other = f"format={meant[0]!r}" if meant else "for one split a name in .parquet or .jsonl"
        raise WriteError(
            f"expected a folder for {format}, got the name of another kind of file",
            where=out,
            hint=f"give the folder {out.parent / out.stem}, or {other}",
        )
    else:
        if (out / MANIFEST_NAME).exists():
            raise WriteError(
                "expected a folder for exported files, got a dataset of Datum",
                where=out,
                hint="export to a folder of its own",
            )
        taken = [path for split in splits for path in _names_of(out, split, format)]
    if is_file and out.is_dir():
        raise WriteError("expected a file, got a folder", where=out)
    if taken and not overwrite:
        raise _taken(taken[0])


def _taken(path: Path) -> WriteError:
    return WriteError(
        "expected nothing of that name, got what is there already",
        where=path,
        hint="overwrite=True replaces it",
    )


def _names_of(out: Path, split: str, format: str) -> list[Path]:
    """What is there by the names that the files of a split get."""
    if not out.is_dir():
        return []
    if format != "images":
        path = out / f"{split}.{format}"
        return [path] if path.exists() else []
    wanted = (split, f"{split}.jsonl", f"{split}.parquet", f"{split}.txt")
    return [entry for entry in sorted(out.iterdir()) if entry.name in wanted]


def _publish(made: Path, out: Path, *, overwrite: bool) -> None:
    """Move what was made to where it belongs; what it replaces goes with the rest."""
    if not out.exists():
        rename_new(made, out)
        return
    taken = [out / entry.name for entry in sorted(made.iterdir()) if (out / entry.name).exists()]
    if taken and not overwrite:  # made meanwhile, or of a name that nobody could know before
        raise _taken(taken[0])
    for entry in sorted(made.iterdir()):
        _put(entry, out / entry.name, made.parent, overwrite=overwrite)


def _put(made: Path, place: Path, workplace: Path, *, overwrite: bool) -> None:
    """Give a file or a folder its name; what had it goes to the workplace, to be removed."""
    try:
        rename_new(made, place)
        return
    except FileExistsError:
        if not overwrite:
            raise _taken(place) from None
    if not made.is_dir() and (place.is_symlink() or not place.is_dir()):
        made.replace(place)
    elif not exchange(made, place):
        old = workplace / _OLD
        old.mkdir(exist_ok=True)
        place.rename(old / place.name)
        made.rename(place)


def _restore(workplace: Path, out: Path) -> None:
    """Bring back what was to be replaced, where nothing was put in its place."""
    old = workplace / _OLD
    if old.is_dir() and not old.is_symlink() and out.is_dir():
        for entry in sorted(old.iterdir()):
            with suppress(FileExistsError):
                rename_new(entry, out / entry.name)


# Names of files.


class Names:
    """One-to-one names of files or folders.

    Two things never share a name, not even on a file system that ignores case or composes
    accents. A thing keeps the name it first got.

    >>> names = Names()
    >>> names.choose("a/b"), names.choose("a_b"), names.choose("A_B"), names.choose("a/b")
    ('a_b', 'a_b_2', 'A_B_3', 'a_b')
    """

    def __init__(self) -> None:
        self._chosen: dict[Hashable, str] = {}
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}  # the number last tried after a name

    def choose(self, wanted: str, meaning: Hashable = None) -> str:
        """Return the name of `meaning`, by default of `wanted`, as near to `wanted` as can be."""
        key = wanted if meaning is None else meaning
        if key not in self._chosen:
            plain = name = safe_name(wanted)
            while not self.take(name):
                self._last[plain] = self._last.get(plain, 1) + 1
                name = f"{plain}_{self._last[plain]}"
            self._chosen[key] = name
        return self._chosen[key]

    def take(self, name: str) -> bool:
        """Reserve a name; False if it is taken."""
        plain = _fold(name)
        is_free = plain not in self._taken
        self._taken.add(plain)
        return is_free

    def reserve(self, wanted: Mapping[Hashable, str]) -> None:
        """Choose names by what they mean, so that those that can keep their own do."""
        for meaning, name in sorted(wanted.items(), key=lambda item: item[1] != safe_name(item[1])):
            self.choose(name, meaning)


def create(path: Path) -> BinaryIO:
    """A new file to write; WriteError if there is one of its name."""
    try:
        return path.open("xb")
    except FileExistsError:
        raise WriteError(
            "expected nothing of that name, got a file that was exported before",
            where=path,
            hint="export to a file system that tells upper from lower case",
        ) from None


def safe_name(name: str) -> str:
    """A name that folders and files can have anywhere, and that does not hide them.

    >>> safe_name("a/b"), safe_name("..."), safe_name("etc."), safe_name("con")
    ('a_b', '_.._', 'etc_', '_con')
    """
    name = _UNSAFE.sub("_", name).strip(" ")
    name = name.encode(errors="replace")[:_MAX_NAME_BYTES].decode(errors="ignore")
    if name[-1:] in (" ", "."):  # which Windows and its file systems drop
        name = f"{name[:-1]}_"
    if name.startswith("."):
        name = f"_{name[1:]}"
    if _DEVICE.fullmatch(name.partition(".")[0]):
        name = f"_{name}"
    return name or "_"


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())
