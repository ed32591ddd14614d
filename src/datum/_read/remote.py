"""Datasets in object stores: a local folder of copies that are fetched as they are read."""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._storage.client import CachedObject, Hold, RemoteFolder, Request, get_object
from datum._storage.connect import StoreOptions, storage_options
from datum._storage.kept import CACHE_NAME, note_url
from datum._storage.location import Location
from datum.errors import CorruptIndexError, ManifestError, StorageError
from datum.format import Index, ShardInfo
from datum.format.durable import replace_file
from datum.format.file import FileVersion
from datum.format.manifest import MANIFEST_NAME

__all__ = [
    "PREPARERS",
    "Preparer",
    "RemoteRun",
    "fetch_index",
    "filling_version",
    "hold_shard",
    "need",
    "open_folder",
]

_FILLING = -1  # the times of a file that is filled in while it is read, to the core
_INDEX_HEADER_BYTES = 40
PREPARERS = 4  # of batches, whose pieces are fetched side by side
_SERVER = re.compile("endpoint|account_name")


def open_folder(
    url: str,
    cache: Path | None,
    *,
    storage: Mapping[str, Any] | None,
    cache_bytes: int | None,
) -> RemoteFolder:
    """The folder of a dataset of this library, its manifest fetched.

    Raises StorageError if it cannot be read, and ManifestError if there is no manifest.
    """
    location = Location.parse(url)
    if location.name == MANIFEST_NAME:
        location = Location(location.scheme, location.bucket, location.path[: -len(MANIFEST_NAME)])
    options = _checked_options(location, storage)
    if cache is None:
        raise StorageError(
            "expected a folder to keep copies of objects in, got none",
            where=location,
            hint="set DATUM_CACHE to a folder that can be written to",
            kind="cache",
        )
    cache = Path(os.path.abspath(cache / CACHE_NAME))  # noqa: PTH100 - links stay
    try:
        manifest = get_object(cache, str(location), options, MANIFEST_NAME)
    except StorageError as error:
        if error.kind != "missing":
            raise
        raise ManifestError(
            f"expected a dataset, got no object {MANIFEST_NAME} there",
            where=location,
            hint="check the URL; files that Datum did not write are read from a local folder",
        ) from None
    key = _key_of(location, options, manifest)
    path = cache / key / MANIFEST_NAME
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, manifest)
    note_url(path.parent, str(location))
    return RemoteFolder.register(str(location), key, cache, options, cache_bytes)


def _checked_options(location: Location, storage: Mapping[str, Any] | None) -> StoreOptions:
    options = storage_options(location, storage)
    try:
        json.dumps(options.revealed())
    except (TypeError, ValueError):
        raise StorageError(
            "`storage`: expected texts, numbers, lists and dicts, got other objects",
            where=location,
            hint="give a time as text, such as '30s'",
            kind="options",
        ) from None
    return options


def _key_of(location: Location, options: StoreOptions, described: bytes) -> str:
    """The name of the local folder: another one for another server, place or version."""
    server = sorted((name, str(options[name])) for name in options if _SERVER.search(name))
    digest = hashlib.sha256(json.dumps([str(location), server]).encode())
    digest.update(described)
    return digest.hexdigest()[:32]


def fetch_index(folder: RemoteFolder, shard: ShardInfo) -> Path | None:
    """The index of a shard; None if it has none. One that arrives damaged is fetched again."""
    name = Index.path_for(shard.name).as_posix()
    if (folder.folder / name).is_file():
        return folder.folder / name
    path = folder.fetch(name)
    if path is None:
        return None
    try:
        Index.load(path)
    except CorruptIndexError:
        path.unlink(missing_ok=True)
        path = folder.fetch(name)
    return path


def hold_shard(
    folder: RemoteFolder, shard: ShardInfo, *, has_index: bool, accepts_damage: bool = False
) -> Hold:
    """Have all of a shard there, and its index, for as long as the result is kept."""
    if has_index:
        fetch_index(folder, shard)
    crc32c = None if accepts_damage else shard.crc32c
    return folder.hold(shard.name, shard.bytes, crc32c)


def filling_version(path: Path) -> FileVersion:
    """What tells the copy of an object from another file, whatever is fetched of it meanwhile."""
    status = path.stat()
    return status.st_dev, status.st_ino, status.st_size, _FILLING, _FILLING, 0


class RemoteRun:
    """Where the records of a run lie in the copy of its shard.

    Args:
        cached: the copy.
        first: the first record of the run, within the shard.
        index: the index of the shard; None if only all of it tells where records are.
    """

    def __init__(self, cached: CachedObject, first: int, index: Path | None) -> None:
        self.cached = cached
        self._first = first
        self._offsets: NDArray[np.int64] | None = None
        if index is not None:
            self._offsets = np.asarray(np.memmap(index, "<i8", "r", _INDEX_HEADER_BYTES))

    def pieces_of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pieces that hold the records at some places of the run."""
        pieces = self.cached.map
        if self._offsets is None:
            return np.arange(len(pieces))
        records = places + self._first
        starts = self._offsets[records]
        nexts = np.minimum(records + 1, len(self._offsets) - 1)
        ends = np.where(records + 1 < len(self._offsets), self._offsets[nexts], pieces.size)
        # Of a damaged index the core tells; nothing is asked for outside of the object.
        starts = np.clip(starts, 0, max(0, pieces.size - 1))
        return pieces.cover(starts, np.clip(ends, starts + 1, max(1, pieces.size)))

    def is_whole(self) -> bool:
        """Whether all pieces are there, as they mostly are after the first epoch."""
        return self.cached.map.use_all()

    def lacks(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of these pieces that are not there."""
        return self.cached.map.lacks(self.pieces_of(places))


def need(requests: Sequence[Request], *, again: bool = False) -> None:
    """Wait until pieces are there, in whatever folders."""
    folders = {id(cached.folder): cached.folder for cached, _ in requests}
    for key, folder in folders.items():
        asked = [request for request in requests if id(request[0].folder) == key]
        folder.need(asked, again=again)


_Task = tuple[Future[Any], Callable[[], Any]]


class Preparer:
    """Threads that have the pieces of requests there before the core reads them.

    The end of the program does not wait for them.

    Args:
        threads: how many there are at most.
    """

    def __init__(self, threads: int) -> None:
        self._count = threads
        self._queue: SimpleQueue[_Task | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._tasks: list[Future[Any]] = []

    def submit(self, todo: Callable[[], Any]) -> Future[Any]:
        """Have a function called; its result, or what it raised, is that of the future."""
        future: Future[Any] = Future()
        self._tasks = [task for task in self._tasks if not task.done()]
        self._tasks.append(future)
        self._queue.put((future, todo))
        if len(self._threads) < self._count:
            thread = threading.Thread(
                target=_work, args=(self._queue,), name="datum-remote", daemon=True
            )
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """Leave what is queued, and end the threads once they are done with what they are at."""
        for task in self._tasks:
            task.cancel()
        for _ in self._threads:
            self._queue.put(None)
        self._threads = []


def _work(queue: SimpleQueue[_Task | None]) -> None:
    while (found := queue.get()) is not None:
        future, todo = found
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(todo())
            except BaseException as error:
                future.set_exception(error)
        del found, future, todo
