"""How any process reads objects: by asking the fetcher, which it starts if there is none.

A process has a few connections to the fetcher of a cache folder, one for each thread that waits.
A forked child makes its own. The fetcher may be killed at any time: it is started again, and what
was asked is asked again.
"""

from __future__ import annotations

import atexit
import fcntl
import importlib.util
import json
import os
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._storage.connect import StoreOptions
from datum._storage.pieces import PieceMap
from datum._storage.wire import LOCK_NAME, find_socket, raise_error, receive, send
from datum.errors import MissingDependencyError, StorageError

__all__ = ["CachedObject", "Hold", "RemoteFolder", "Request", "get_object", "list_objects"]

_START_S = 60.0  # for the fetcher to start, on a busy machine
_TRIES = 5  # of a request whose fetcher is gone
_PARENT_S = 20.0  # for the program that has the credentials to tell them to a new fetcher
_POLL_S = 0.02
_LOG_NAME = "fetcher.log"
_START_LOCK = "start.lock"


class _Client:
    """The connections of this process to the fetcher of one cache folder."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self._idle: list[socket.socket] = []
        self.open: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def ask(self, message: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Send a request and wait for its answer; raises the error of the fetcher."""
        for _ in range(_TRIES):
            connection = self._take()
            try:
                send(connection, dict(message))
                answer, payload = receive(connection)
            except OSError:  # the fetcher was killed, or has just ended
                connection.close()
                self._drop_idle()
                continue
            except BaseException:  # an interrupt: the answer is still to come
                connection.close()
                raise
            self._idle.append(connection)
            _refuse_error(answer)
            return answer, payload
        raise StorageError(
            "expected an answer of the process that fetches objects, got none: it ends each time",
            where=self.cache,
            hint=f"what it says is in {self.cache / _LOG_NAME}",
        )

    def ask_alone(self, message: Mapping[str, Any]) -> socket.socket:
        """Send a request over a connection of its own, which is open as long as it is kept."""
        for _ in range(_TRIES):
            connection = self.connect()
            try:
                send(connection, dict(message))
                answer, _ = receive(connection)
            except OSError:
                connection.close()
                continue
            except BaseException:
                connection.close()
                raise
            if "error" in answer or answer.get("is_unknown"):
                connection.close()
                _refuse_error(answer)
                raise _UnknownMirrorError
            return connection
        raise StorageError("expected an answer of the process that fetches objects, got none")

    def _take(self) -> socket.socket:
        try:
            return self._idle.pop()
        except IndexError:
            return self.connect()

    def _drop_idle(self) -> None:
        """Close the connections that nobody uses: they are of a fetcher that has ended."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def connect(self) -> socket.socket:
        """A new connection; the fetcher is started if need be."""
        try:
            return self._connect()
        except (FileNotFoundError, ConnectionError):
            return self._start()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(os.fspath(find_socket(self.cache)))
        except BaseException:
            connection.close()
            raise
        self.open.add(connection)
        return connection

    def _start(self) -> socket.socket:
        """Start the fetcher; of many processes that want to, one does."""
        if importlib.util.find_spec("obstore") is None:
            raise MissingDependencyError(
                "object stores need the package `obstore`", hint="pip install 'datum[remote]'"
            )
        _make_folder(self.cache)
        lock = os.open(self.cache / _START_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            end, is_started = time.monotonic() + _START_S, False
            while time.monotonic() < end:
                with suppress(FileNotFoundError, ConnectionError):
                    return self._connect()
                if not is_started:
                    is_started = True
                    _spawn(self.cache)
                time.sleep(_POLL_S)
                if is_started and not _is_served(self.cache):
                    is_started = False
        finally:
            os.close(lock)
        raise StorageError(
            f"expected the process that fetches objects to start within {_START_S:.0f} s",
            where=self.cache,
            hint=f"what it says is in {self.cache / _LOG_NAME}",
        )

    def close(self) -> None:
        """Close the connections; in a forked child they are its parent's."""
        for connection in list(self.open):
            with suppress(OSError):
                connection.close()
        self._idle = []
        self.open = weakref.WeakSet()


def _refuse_error(answer: Mapping[str, Any]) -> None:
    if "error" in answer:
        raise_error(answer["error"])


def _make_folder(cache: Path) -> None:
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        (cache / _START_LOCK).touch(mode=0o600)
    except OSError as error:
        raise StorageError(
            f"expected a folder to keep copies of objects in: {error.strerror}",
            where=cache,
            hint="set DATUM_CACHE to a folder that can be written to",
            kind="cache",
        ) from error


def _spawn(cache: Path) -> None:
    """Start the fetcher, apart from this process: no signal for this one reaches it."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with open(cache / _LOG_NAME, "wb", opener=_open_private) as log:
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "datum._storage.fetcher", os.fspath(cache)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=cache,
            env=environment,
            start_new_session=True,
        )
    started.wait()  # it goes on in a child of its own


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _is_served(cache: Path) -> bool:
    """Whether a fetcher is there, though it may not listen yet."""
    lock = os.open(cache / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


_clients: dict[Path, _Client] = {}
_clients_lock = threading.Lock()


def _client_of(cache: Path) -> _Client:
    with _clients_lock:
        if cache not in _clients:
            _clients[cache] = _Client(cache)
        return _clients[cache]


def _forget_all() -> None:
    global _clients_lock
    _clients_lock = threading.Lock()
    for client in _clients.values():
        client.close()
    _clients.clear()


os.register_at_fork(after_in_child=_forget_all)
atexit.register(_forget_all)


# Objects that are no part of a dataset yet.


def get_object(cache: Path, url: str, options: StoreOptions, name: str) -> bytes:
    """All of an object; StorageError of the kind "missing" if there is none."""
    message = {"ask": "get", "url": url, "options": options.revealed(), "name": name}
    return _client_of(cache).ask(message)[1]


def list_objects(cache: Path, url: str, options: StoreOptions) -> list[tuple[str, int, str | None]]:
    """Path below the URL, size and entity tag of every object there."""
    message = {"ask": "list", "url": url, "options": options.revealed(), "name": ""}
    found = json.loads(_client_of(cache).ask(message)[1])
    return [(path, size, etag) for path, size, etag in found]


# Datasets.


class _UnknownMirrorError(Exception):
    """The fetcher is new, and was not told of the folder yet."""


# What this process knows of folders that it has opened, by cache and key: never in a pickle.
_registered: dict[tuple[Path, str], dict[str, Any]] = {}
_keepers: dict[Path, threading.Thread] = {}


class RemoteFolder:
    """A folder of objects of one version, and the local folder where their copies are.

    It may be sent to other processes: without credentials, which the fetcher has by then. Should
    the fetcher be killed, the process that has them tells them again.

    Attributes:
        url: of the folder, without secrets.
        key: the name of the local folder; another one for each version of the dataset.
        cache: the folder of the cache.
    """

    def __init__(self, url: str, key: str, cache: Path, *, has_options: bool = False) -> None:
        self.url = url
        self.key = key
        self.cache = cache
        self._has_options = has_options

    @classmethod
    def register(
        cls, url: str, key: str, cache: Path, options: StoreOptions, cache_bytes: int | None
    ) -> RemoteFolder:
        """Tell the fetcher of a folder, and how to read it."""
        told = {
            "ask": "register",
            "mirror": key,
            "url": url,
            "options": options.revealed(),
            "cache_bytes": cache_bytes,
        }
        _registered[cache, key] = told
        _client_of(cache).ask(told)
        return cls(url, key, cache, has_options=bool(options))

    def __reduce__(self) -> tuple[Any, ...]:
        if self._has_options and (self.cache, self.key) in _registered:
            _keep_told(self.cache)
        return _restore, (self.url, self.key, self.cache, self._has_options)

    def __repr__(self) -> str:
        return f"RemoteFolder({self.url!r})"

    @property
    def folder(self) -> Path:
        """Where the copies are."""
        return self.cache / self.key

    def status(self) -> dict[str, Any]:
        """Bytes that the cache may take, takes, and has fetched: `cache_bytes`, `used`..."""
        return _client_of(self.cache).ask({"ask": "status"})[0]

    def fetch(self, name: str) -> Path | None:
        """A small object as a whole; None if there is none."""
        path = self.folder / name
        if path.is_file() or self._ask({"ask": "fetch", "name": name}).get("is_there"):
            return path
        return None

    def open(self, name: str, size: int, crc32c: int | None) -> CachedObject:
        """The copy of an object, of which nothing needs to be there yet."""
        path = self.folder / name
        with suppress(OSError, ValueError):
            pieces = PieceMap(path)
            if pieces.size == size and path.stat().st_size == size:
                return CachedObject(self, name, crc32c, pieces)
        self._ask({"ask": "need", "files": [[name, size, crc32c, []]]})
        return CachedObject(self, name, crc32c, PieceMap(path))

    def need(self, requests: Sequence[Request], *, again: bool = False) -> None:
        """Wait until pieces are there; `again` fetches them although they are."""
        asked = [request for request in requests if len(request[1])]
        if asked:
            self._ask({"ask": "refetch" if again else "need", "files": _plain(asked)})

    def announce(self, requests: Sequence[Request]) -> None:
        """Have pieces fetched that will be needed soon; does not wait for them."""
        if requests:
            self._ask({"ask": "announce", "files": _plain(requests)})

    def plan(self, names: Sequence[str]) -> Hold:
        """Tell in which order objects will be needed, for as long as the result is kept."""
        return Hold(self._ask_alone({"ask": "plan", "names": list(names)}))

    def hold(self, name: str, size: int, crc32c: int | None) -> Hold:
        """Wait until all of an object is there; it stays for as long as the result is kept.

        Without a checksum it is taken as it comes.
        """
        return Hold(self._ask_alone({"ask": "hold", "files": [[name, size, crc32c, []]]}))

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        client = _client_of(self.cache)
        message["mirror"] = self.key
        end = time.monotonic() + _PARENT_S
        while True:
            answer, _ = client.ask(message)
            if not answer.get("is_unknown"):
                return answer
            self._introduce(client, end)

    def _ask_alone(self, message: dict[str, Any]) -> socket.socket:
        client = _client_of(self.cache)
        message["mirror"] = self.key
        end = time.monotonic() + _PARENT_S
        while True:
            try:
                return client.ask_alone(message)
            except _UnknownMirrorError:
                self._introduce(client, end)

    def _introduce(self, client: _Client, end: float) -> None:
        """Tell a new fetcher of the folder, or wait until the one who can has."""
        told = _registered.get((self.cache, self.key))
        if told is None and self._has_options:
            if time.monotonic() < end:
                time.sleep(_POLL_S)
                return
            raise StorageError(
                "expected the program that loaded the dataset to run still, got a fetcher without"
                " its `storage` options, which are sent to no other process",
                where=self.url,
                hint="datum.load(url, storage=...) in this process",
                kind="credentials",
            )
        plain = {"ask": "register", "mirror": self.key, "url": self.url, "options": {}}
        client.ask(told or {**plain, "cache_bytes": None})


def _restore(url: str, key: str, cache: Path, has_options: bool) -> RemoteFolder:
    return RemoteFolder(url, key, cache, has_options=has_options)


def _keep_told(cache: Path) -> None:
    """Tell every fetcher of this cache to come what this process knows, as long as it runs."""
    keeper = _keepers.get(cache)
    if keeper is None or not keeper.is_alive():
        _keepers[cache] = threading.Thread(
            target=_tell_again, args=(cache,), name="datum-credentials", daemon=True
        )
        _keepers[cache].start()


def _tell_again(cache: Path) -> None:
    while True:
        with suppress(OSError, StorageError):
            connection = _client_of(cache).connect()
            with connection:
                for (place, _), told in list(_registered.items()):
                    if place == cache:
                        send(connection, told)
                        receive(connection)
                connection.recv(1)  # nothing comes, until the fetcher is gone
        time.sleep(_POLL_S)


class Hold:
    """What stays as it is until this is closed, or gone: the other end of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._close = weakref.finalize(self, connection.close)

    def close(self) -> None:
        """Let go."""
        self._close()


class CachedObject:
    """The copy of an object, as a reader sees it.

    Attributes:
        name: of the object, within its folder.
        map: the pieces that are there.
    """

    __slots__ = ("_crc32c", "_folder", "map", "name")

    def __init__(
        self, folder: RemoteFolder, name: str, crc32c: int | None, pieces: PieceMap
    ) -> None:
        self._folder = folder
        self.name = name
        self._crc32c = crc32c
        self.map = pieces

    @property
    def folder(self) -> RemoteFolder:
        """The folder of the object."""
        return self._folder

    def describe(self, pieces: NDArray[np.int64]) -> list[Any]:
        """Some pieces of it as the fetcher is asked for them."""
        return [self.name, self.map.size, self._crc32c, pieces.tolist()]


Request = tuple[CachedObject, NDArray[np.int64]]


def _plain(requests: Sequence[Request]) -> list[list[Any]]:
    return [cached.describe(pieces) for cached, pieces in requests]
