"""Local copies of datasets in object stores: which there are, and how they are removed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from datum._storage.location import cache_folder
from datum._storage.pieces import MAP_FOLDER, PieceMap
from datum._storage.wire import LOCK_NAME
from datum.errors import StorageError
from datum.format.durable import replace_file

__all__ = ["CACHE_NAME", "CachedDataset", "cached_datasets", "clear_cache", "note_url"]

CACHE_NAME = "remote-1"  # the number is that of the layout
_URL_FILE = "url"


@dataclass(frozen=True, slots=True)
class CachedDataset:
    """The local copy of a dataset in an object store.

    Attributes:
        url: URL of the dataset; empty if it is not known.
        bytes: Bytes that the copy takes on the disk.
        total_bytes: Bytes of the shards that have been opened so far.
        last_used: Time at which a record was last read; None if none was.
        folder: Folder of the copy.
    """

    url: str
    bytes: int
    total_bytes: int
    last_used: datetime | None
    folder: Path


def note_url(folder: Path, url: str) -> None:
    """Save the URL that a folder has copies of; it has no secrets."""
    if not (folder / _URL_FILE).is_file():
        replace_file(folder / _URL_FILE, url.encode())


def cached_datasets() -> list[CachedDataset]:
    """List the local copies of datasets in object stores, by URL."""
    base = _base()
    folders = [] if base is None or not base.is_dir() else list(base.iterdir())
    found = [_describe(folder) for folder in folders if folder.is_dir()]
    return sorted(found, key=lambda one: (one.url, one.folder))


def clear_cache(url: str | None = None) -> int:
    """Remove local copies of datasets in object stores, and return the bytes that were freed.

    Raises StorageError while a program reads such a dataset.

    Args:
        url: URL of the dataset whose copies are removed; None for all.
    """
    base = _base()
    if base is None or not base.is_dir():
        return 0
    freed = 0
    with _unused(base):
        for copy in cached_datasets():
            if url is None or copy.url == url.rstrip("/"):
                shutil.rmtree(copy.folder, ignore_errors=True)
                freed += copy.bytes
    return freed


def _base() -> Path | None:
    kept = cache_folder()
    return None if kept is None else kept / CACHE_NAME


def _describe(folder: Path) -> CachedDataset:
    try:
        url = (folder / _URL_FILE).read_text()
    except (OSError, ValueError):
        url = ""
    taken = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())
    total, last = 0, 0
    for path in folder.glob(f"**/{MAP_FOLDER}/*"):
        with suppress(OSError, ValueError):
            pieces = PieceMap(path.parent.parent / path.name)
            total += pieces.size
            last = max(last, int(pieces.stamps.max(initial=0)))
    used = datetime.fromtimestamp(last, UTC) if last else None
    return CachedDataset(url, taken, total, used, folder)


@contextmanager
def _unused(base: Path) -> Iterator[None]:
    """Hold the cache while nobody fetches into it, so that nobody begins to."""
    lock = os.open(base / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise StorageError(
            "a program is reading from an object store",
            where=base,
            hint="end it, and try again ten seconds later",
            kind="cache",
        ) from None
    finally:
        os.close(lock)
