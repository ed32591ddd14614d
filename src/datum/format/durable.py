"""Atomic and durable file replacement, and cleanup after killed processes.

Everything that Datum makes under a temporary name carries a mark: a file ends in `.datum-new`, a
folder contains a file `.datum-staging`. Nothing else is ever removed. Both are locked (`flock`)
while a process makes them, and the system releases a lock with its process. So a later run can
distinguish the leftovers of a killed process from files in use.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = [
    "INNER_STAGING",
    "NEW_SUFFIX",
    "entries_of",
    "exchange",
    "find_abandoned",
    "find_unfinished",
    "hold_folder",
    "is_own_folder",
    "is_same_folder",
    "new_file",
    "remove_folder",
    "rename_new",
    "replace_file",
    "staging_beside",
    "sync_folder",
    "write_file",
]

NEW_SUFFIX = ".datum-new"  # of incomplete files
INNER_STAGING = ".datum.partial"  # the staging folder of a target that can have none beside it
_MARK = ".datum-staging"
_MARK_TEXT = b"Datum makes files in this folder, and removes it once they are whole.\n"
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)  # exFAT has no links
_swept: set[tuple[int, str]] = set()  # the folders this process has cleaned up


# Files.


def replace_file(path: Path, data: bytes, *, overwrite: bool = True) -> None:
    """Write a file durably and rename it to `path` atomically.

    Without `overwrite`, raise FileExistsError if something has that name by then.
    """
    with new_file(path, overwrite=overwrite) as file:
        file.write(data)
    sync_folder(path.parent)


@contextlib.contextmanager
def new_file(path: Path, *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Open a file that is renamed to `path` when the block ends, complete and on disk.

    Until then it has a temporary name beside `path`; it is removed if the block raises. Leftovers
    of killed processes in that folder are removed.
    """
    _sweep(path.parent)
    temporary, file = _create_locked(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a power cut must not leave the name without its content
            if overwrite:
                temporary.replace(path)
            else:
                rename_new(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def rename_new(made: Path, path: Path) -> None:
    """Rename a file or a folder; raise FileExistsError if `path` exists already."""
    if made.is_dir() and not made.is_symlink():
        if os.path.lexists(path):  # a race can only replace an empty folder
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        made.rename(path)
        return
    try:
        os.link(made, path, follow_symlinks=False)  # unlike a rename, replaces nothing
        made.unlink()
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        made.replace(path)


def _create_locked(path: Path) -> tuple[Path, BinaryIO]:
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{NEW_SUFFIX}")
        file = temporary.open("xb")
        _lock(file.fileno(), waits=True)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # removed before it was locked


def _sweep(folder: Path) -> None:
    """Remove incomplete files that no process is writing, once in a process."""
    key = os.getpid(), os.fspath(folder.absolute())
    if key in _swept:
        return
    _swept.add(key)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(NEW_SUFFIX):
                with contextlib.suppress(OSError):
                    _remove_unlocked(Path(entry.path))


def _remove_unlocked(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode) and _lock(descriptor):
            path.unlink()
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, waits: bool = False) -> bool:
    """Lock a file or folder until it is closed; return whether that succeeded."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:  # locked, or a file system without locks, where nothing is removed
        return False
    return True


def write_file(path: Path, data: bytes) -> None:
    """Write a file and its content to disk; its name is durable only after `sync_folder`."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Folders.


def hold_folder(folder: Path) -> int:
    """Create a folder of Datum's, or take over an abandoned one; closing the result releases it.

    Raises BlockingIOError if another process holds it, and FileExistsError if it is not Datum's: a
    link, a file, or a folder with content but no mark.
    """
    import fcntl

    while True:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # its holder has just removed it
        except OSError as error:
            if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
                raise FileExistsError(error.errno, "not a folder of Datum", str(folder)) from error
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_same_folder(folder, descriptor):
                _mark(folder)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _mark(folder: Path) -> None:
    if is_own_folder(folder):
        return
    if any(folder.iterdir()):
        raise FileExistsError(None, "not a folder of Datum", str(folder))
    with (folder / _MARK).open("xb") as file:
        file.write(_MARK_TEXT)


def is_own_folder(folder: Path) -> bool:
    """Return whether a folder carries Datum's mark, so that it may be removed."""
    try:
        return not folder.is_symlink() and stat.S_ISREG((folder / _MARK).lstat().st_mode)
    except OSError:
        return False


def entries_of(folder: Path) -> list[Path]:
    """Return the entries of a folder of Datum's, without its mark."""
    return sorted(entry for entry in folder.iterdir() if entry.name != _MARK)


def is_same_folder(folder: Path, descriptor: int) -> bool:
    """Return whether the folder that is held still has this name."""
    try:
        return os.path.samestat(folder.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def remove_folder(folder: Path) -> None:
    """Remove a folder of Datum's as far as possible; its mark last, so that leftovers keep it."""
    with contextlib.suppress(OSError):
        if not is_own_folder(folder):
            return
        for entry in entries_of(folder):
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if not entries_of(folder):
            (folder / _MARK).unlink()
            folder.rmdir()


@contextlib.contextmanager
def _hold_abandoned(folder: Path) -> Iterator[bool]:
    """Hold a folder that a killed process left; False if it is not Datum's, or in use."""
    try:
        status = folder.lstat()
        # One that was abandoned before it was marked is empty: nothing is lost with it.
        is_ours = is_own_folder(folder) or not any(folder.iterdir())
        is_left = status.st_uid == os.getuid() and is_ours
        descriptor = hold_folder(folder) if is_left else None
    except OSError:
        descriptor = None
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def find_abandoned(parent: Path, names: re.Pattern[str]) -> Iterator[Path]:
    """Yield Datum's folders with such names that killed processes left, each held in turn."""
    try:
        found = sorted(os.listdir(parent))  # noqa: PTH208 - only names
    except OSError:
        return
    for name in found:
        if names.fullmatch(name):
            with _hold_abandoned(parent / name) as is_left:
                if is_left:
                    yield parent / name


def exchange(first: Path, second: Path) -> bool:
    """Swap two names atomically, if the system can; return whether it did."""
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        here, exchanges = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        return bool(rename(here, os.fsencode(first), here, os.fsencode(second), exchanges) == 0)
    return False


def staging_beside(target: Path) -> Path:
    """Return the folder in which a dataset for `target` is prepared."""
    return target.with_name(f".{target.name}.partial")


def find_unfinished(target: Path) -> list[Path]:
    """Return the folders of writes to a target that did not finish, or are under way."""
    whole = target.absolute()
    return [
        place for place in (staging_beside(whole), whole / INNER_STAGING) if is_own_folder(place)
    ]
