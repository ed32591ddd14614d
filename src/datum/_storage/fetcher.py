"""The process that talks to object stores for all others of a machine.

`python -m datum._storage.fetcher FOLDER` serves the cache in a folder. Readers start it, and it
ends some seconds after the last of them is gone. Programs that train fork and spawn processes, and
obstore does not survive a fork: so none of them uses it. And whatever several of them need is
fetched once.

One thread serves one connection, one request at a time. All requests may be repeated. What a
connection holds is released when it is closed, however its process ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from datum._storage.cache import Cache, Copy, Mirror, Wanted
from datum._storage.connect import StoreOptions
from datum._storage.location import Location
from datum._storage.store import Store
from datum._storage.wire import LOCK_NAME, encode_error, find_socket, receive, send
from datum.errors import StorageError
from datum.format.durable import replace_file

__all__ = ["main"]

IDLE_S = 10.0  # after the last connection
_TICK_S = 0.5
_BACKLOG = 512
_CLOUDS = ("AWS_", "AZURE_", "GOOGLE_")


class _Server:
    """Answers the requests of all connections."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cache = Cache(folder)
        self._mirrors: dict[str, Mirror] = {}
        self._stores: dict[str, Store] = {}
        self._fetching: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()
        self._connections = 0
        self._left_at = time.monotonic()  # when the last connection was closed

    @property
    def is_idle(self) -> bool:
        """Whether the last connection was closed some time ago."""
        with self._lock:
            return not self._connections and time.monotonic() - self._left_at > IDLE_S

    def start(self, connection: socket.socket) -> None:
        """Serve a connection in a thread of its own."""
        with self._lock:
            self._connections += 1
        threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        """Answer one connection until it is closed."""
        held: list[Copy] = []
        owner = object()
        try:
            with connection:
                while True:
                    message, _ = receive(connection)
                    try:
                        answer, payload = self._answer(message, held, owner)
                    except Exception as error:
                        answer, payload = {"error": encode_error(error)}, b""
                    send(connection, answer, payload)
        except OSError:
            pass  # the reader is gone
        finally:
            for copy in held:
                self._cache.release(copy)
            self._cache.plan(owner, {})
            with self._lock:
                self._connections -= 1
                self._left_at = time.monotonic()

    def _answer(
        self, message: dict[str, Any], held: list[Copy], owner: object
    ) -> tuple[dict[str, Any], bytes]:
        asked = message["ask"]
        if asked == "status":
            return self._status(), b""
        if asked == "get":
            data, info = self._store(message).get_with_info(message["name"])
            return {"etag": info.etag}, data
        if asked == "list":
            found = [
                [one.path, one.size, one.etag] for one in self._store(message).list(message["name"])
            ]
            return {}, json.dumps(found).encode()
        if asked == "register":
            return self._register(message), b""
        mirror = self._mirrors.get(message["mirror"])
        if mirror is None:
            return {"is_unknown": True}, b""
        if asked == "fetch":
            return {"is_there": self._fetch(mirror, message["name"])}, b""
        if asked == "plan":
            ranks = {mirror.folder / name: rank for rank, name in enumerate(message["names"])}
            self._cache.plan(owner, ranks)
            return {}, b""
        wanted = [
            Wanted(self._cache.open(mirror, name, size, crc), np.array(pieces, np.int64))
            for name, size, crc, pieces in message["files"]
        ]
        if asked == "hold":
            self._cache.hold(wanted[0].copy)
            held.append(wanted[0].copy)
            return {}, b""
        todo: Callable[..., None] = {
            "need": self._cache.need,
            "announce": self._cache.announce,
            "refetch": self._cache.refetch,
        }[asked]
        todo(wanted)
        return {}, b""

    def _status(self) -> dict[str, Any]:
        cache = self._cache
        return {
            "cache_bytes": cache.limit,
            "used": cache.used,
            "downloaded": cache.downloaded,
            "process": os.getpid(),
        }

    def _store(self, message: dict[str, Any]) -> Store:
        """The store of a URL and options, opened once."""
        key = json.dumps([message["url"], message["options"]], sort_keys=True)
        with self._lock:
            if key not in self._stores:
                location = Location.parse(message["url"])
                self._stores[key] = Store(location, StoreOptions(message["options"]))
            return self._stores[key]

    def _register(self, message: dict[str, Any]) -> dict[str, Any]:
        store, key = self._store(message), message["mirror"]
        with self._lock:
            mirror = self._mirrors.setdefault(key, Mirror(self._folder / key, store))
            mirror.store = store
            if message["cache_bytes"] is not None:
                self._cache.limit = message["cache_bytes"]
        return self._status()

    def _fetch(self, mirror: Mirror, name: str) -> bool:
        """Have a small file there as a whole; False if there is no such object."""
        path = mirror.folder / name
        with self._lock:
            turn = self._fetching.setdefault(path, threading.Lock())
        with turn:  # of several who ask for it one fetches it
            if path.is_file():
                return True
            try:
                data = mirror.store.get(name)
            except StorageError as error:
                if error.kind == "missing":
                    return False
                raise
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        return True


def main(folder: Path) -> None:
    """Serve the cache in a folder, unless another process does."""
    lock = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    path = find_socket(folder)
    path.unlink(missing_ok=True)  # of one that was killed
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    os.umask(0o177)
    listener.bind(os.fspath(path))
    os.umask(0o077)
    server = _Server(folder)
    listener.listen(_BACKLOG)
    listener.settimeout(_TICK_S)
    while True:
        with suppress(TimeoutError):
            connection, _ = listener.accept()
            connection.settimeout(None)
            server.start(connection)
            continue
        if server.is_idle or not _is_at(folder / LOCK_NAME, lock):
            break
    path.unlink(missing_ok=True)
    os._exit(0)  # downloads for nobody are not waited for


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the lock still has its name: whoever removes the cache ends the fetcher."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _forget_clouds() -> None:
    """Drop what the environment says of clouds: every program tells its own options."""
    for name in list(os.environ):
        if name.startswith(_CLOUDS):
            del os.environ[name]


def _detach() -> None:
    """Leave the process that started this one, which waits for no more than that."""
    if os.fork():
        os._exit(0)
    os.setsid()


if __name__ == "__main__":
    _detach()
    _forget_clouds()
    main(Path(sys.argv[1]))
