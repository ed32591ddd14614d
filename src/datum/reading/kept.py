"""Files made from shards and kept for the next time: the cache directory."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from datum._identity import identify
from datum.errors import CorruptRecordError, WriteError
from datum.format import ShardInfo
from datum.format.durable import find_abandoned, hold_folder, new_file, remove_folder

__all__ = [
    "cache_folder",
    "check_unchanged",
    "keep",
    "keep_for_now",
    "name_for",
    "places",
    "process_folder",
    "tell_content",
]

_FULL = (errno.ENOSPC, errno.EDQUOT)


def cache_folder() -> Path | None:
    """Where files are kept: `$DATUM_CACHE`, `$XDG_CACHE_HOME/datum` or `~/.cache/datum`.

    None where there is no such place. The folder need not exist.
    """
    named = os.environ.get("DATUM_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        if named:
            return Path(named).expanduser()
        if not base.is_absolute():  # to be ignored then, by its specification
            base = Path("~/.cache").expanduser()
    except RuntimeError:  # of a user who has no home
        return None
    return base / "datum"


def name_for(path: Path, shard: ShardInfo) -> str:
    """What a file made from a shard is called: another name once the shard is another."""
    told = (str(path.resolve()), identify(path), shard.crc32c)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:32]


def tell_content(folder: Path, shard: ShardInfo) -> str:
    """What changes with the content of a shard: its checksum, or that of no manifest its file."""
    if shard.crc32c is not None:
        return f"{shard.crc32c:08x}"
    return identify(folder / shard.name)


def check_unchanged(path: Path, shard: ShardInfo, name: str) -> None:
    """Refuse to keep what was made from a shard that was another one when it was begun."""
    if name_for(path, shard) != name:
        raise CorruptRecordError(
            "the file was changed while it was read", where=path, hint="load the dataset again"
        )


def places(name: str) -> list[Path]:
    """Where a file of this name may be kept, the first one first."""
    folder = cache_folder()
    first = [] if folder is None else [folder]
    return [kept / name for kept in (*first, *_process_folders.values())]


def keep(name: str, write: Callable[[BinaryIO], None]) -> Path:
    """A file that `write` fills, in the cache directory, or where that cannot be written for now.

    It appears at once, when it is whole and on the disk: several processes may make it.
    """
    folder = cache_folder()
    if folder is not None:
        try:
            return _fill(folder, name, write)
        except WriteError:
            raise
        except OSError as error:
            if error.errno in _FULL:
                raise _no_room(folder, error) from error
    return keep_for_now(name, write)


def keep_for_now(name: str, write: Callable[[BinaryIO], None]) -> Path:
    """A file that `write` fills, in a folder that is removed when the process ends."""
    folder = process_folder()
    try:
        return _fill(folder, name, write)
    except WriteError:
        raise
    except OSError as error:
        raise _no_room(folder, error) from error


def _fill(folder: Path, name: str, write: Callable[[BinaryIO], None]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with new_file(folder / name) as file:
        write(file)
    return folder / name


def _no_room(folder: Path, error: OSError) -> WriteError:
    return WriteError(
        f"expected room for what is made of shards to read them at random, got {error}",
        where=folder,
        hint="set DATUM_CACHE to a folder on a disk with more room, or write the dataset without"
        " compression",
    )


# By process: a folder made before a fork is its parent's, who removes it; it can be read, though.
_process_folders: dict[int, Path] = {}
_held: list[int] = []  # by which others know that their process runs
_PROCESS_PREFIX = "datum-cache-"
_PROCESS_NAMES = re.compile(rf"{_PROCESS_PREFIX}[a-z0-9_]+")


def process_folder() -> Path:
    """A folder that is removed when the process ends; if it is killed, by the next one."""
    process = os.getpid()
    if process not in _process_folders:
        from multiprocessing.util import Finalize  # runs at the end of worker processes, too

        for left in find_abandoned(Path(tempfile.gettempdir()), _PROCESS_NAMES):
            remove_folder(left)
        folder = Path(tempfile.mkdtemp(prefix=_PROCESS_PREFIX))
        _held.append(hold_folder(folder))
        Finalize(None, remove_folder, args=(folder,), exitpriority=0)
        _process_folders[process] = folder
    return _process_folders[process]
