"""Objects in a store, by URL: read, listed, written and deleted."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from datum._optional import require
from datum._storage.connect import (
    StoreOptions,
    connect,
    credentials_hint,
    hide_secrets,
    storage_options,
)
from datum._storage.failures import diagnose
from datum._storage.location import Location, is_url, local_path
from datum.errors import StorageError, format_bytes

__all__ = [
    "Location",
    "ObjectInfo",
    "Store",
    "StoreOptions",
    "is_url",
    "local_path",
    "open_store",
    "storage_options",
]

_T = TypeVar("_T")

_MIB = 2**20
_PART_BYTES = 8 * _MIB
_MOST_PARTS = 9_000  # S3 takes 10,000
_PARTS_AT_ONCE = 8
_CHECKSUM = "datumcrc32c"  # the name of an attribute; Azure takes letters and digits alone
_TRIES = 3  # of a request whose answer is not what was asked for


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store knows of an object.

    Attributes:
        path: its path below that of the store.
        size: in bytes.
        etag: changes whenever the object does; None if the store has none.
        version: of the object, in a bucket that keeps versions.
    """

    path: str
    size: int
    etag: str | None
    version: str | None


def open_store(url: str | Location, storage: Mapping[str, Any] | None = None) -> Store:
    """Open the store of a URL; paths given to it are below the path of the URL.

    Args:
        url: of a bucket, a container, a server or a folder in one.
        storage: options of obstore: those of the store, such as `region`, `endpoint` or
            `skip_signature`, and `client_options` and `retry_config`. What is not given comes from
            the environment variables of the cloud.
    """
    location = Location.parse(url) if isinstance(url, str) else url
    return Store(location, storage_options(location, storage))


class Store:
    """The objects at a URL. Any thread may use it, but only in the process that opened it."""

    def __init__(self, location: Location, options: StoreOptions) -> None:
        self.location = location
        self.options = options
        _check_process(location)
        self._obstore = require("obstore", purpose=f"{location.scheme}://")
        self._errors = self._obstore.exceptions
        self._store = connect(location, options)

    def __repr__(self) -> str:
        return f"Store({str(self.location)!r}, {self.options!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.location, self.options)

    # Reading.

    def get(self, path: str) -> bytes:
        """All of an object."""
        return self._read(path, {})[0]

    def get_with_info(self, path: str) -> tuple[bytes, ObjectInfo]:
        """All of an object, and which version of it that is."""
        return self._read(path, {})

    def get_range(self, path: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        """`length` bytes from `start`, or as many as the object has there.

        With `etag`, StorageError of the kind "changed" if the object has another by now.
        """
        if length == 0:
            return b""
        options: dict[str, Any] = {"range": (start, start + length)}
        if etag is not None:
            options["if_match"] = etag
        return self._read(path, options)[0]

    def _read(self, path: str, options: dict[str, Any]) -> tuple[bytes, ObjectInfo]:
        """Read an object or a range; an answer that is not whole is asked for again."""

        def read() -> tuple[bytes, int, ObjectInfo]:
            found = self._obstore.get(self._store, path, options=options or None)
            first, last = found.range
            return bytes(found.bytes()), last - first, _info(found.meta)

        for _ in range(_TRIES):
            data, expected, info = self._do(path, read)
            if "range" in options:
                first, last = options["range"]
                expected = min(last, info.size) - first
            if len(data) == expected:
                return data, info
        raise StorageError(
            f"expected {format_bytes(expected)} ({expected:,} bytes), got {len(data):,} and the end"
            " of the answer",
            where=self.location / path,
            hint="the server or a proxy before it cuts answers off; try again, or elsewhere",
            kind="short",
        )

    def head(self, path: str) -> ObjectInfo:
        """The size and the version of an object."""
        return self._do(path, lambda: _info(self._obstore.head(self._store, path)))

    def exists(self, path: str) -> bool:
        """Whether there is an object of this path."""
        try:
            self.head(path)
        except StorageError as error:
            if error.kind == "missing":
                return False
            raise
        return True

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """The objects below a path, page by page as they are asked for, in the store's order."""
        self._refuse_http("lists its files")
        pages = self._do(
            prefix, lambda: self._obstore.list(self._store, prefix or None, chunk_size=1000)
        )
        while True:
            page = self._do(prefix, lambda: next(pages, None))
            if page is None:
                return
            yield from map(_info, page)

    # Writing.

    def put(
        self, path: str, data: bytes, *, if_absent: bool = False, if_match: ObjectInfo | None = None
    ) -> ObjectInfo:
        """Write an object in one step.

        Args:
            path: of the object.
            data: its content.
            if_absent: whether to write only if there is no object: StorageError of the kind
                "exists" if there is.
            if_match: write only if the object is this version: StorageError of the kind
                "changed" if it is not.
        """
        self._refuse_http("takes files")
        mode: Any = "create" if if_absent else "overwrite"
        if if_match is not None:
            version = {"e_tag": if_match.etag, "version": if_match.version}
            mode = {name: value for name, value in version.items() if value is not None}

        def write() -> Any:
            return self._obstore.put(self._store, path, data, mode=mode, use_multipart=False)

        try:
            done = self._do(path, write)
        except StorageError:
            # An answer may be lost on its way though the object was written, and a request that
            # is sent again then finds the object of the first.
            is_conditional = if_absent or if_match is not None
            info = self._find_same(path, data) if is_conditional else None
            if info is None:
                raise
            return info
        return ObjectInfo(path, len(data), done["e_tag"], done["version"])

    def _find_same(self, path: str, data: bytes) -> ObjectInfo | None:
        with contextlib.suppress(StorageError):
            found, info = self.get_with_info(path)
            if found == data:
                return info
        return None

    def put_file(self, path: str, local: Path, *, crc32c: int | None = None) -> ObjectInfo:
        """Write an object from a file, large ones in parts at once; nothing shows before the end.

        Every part is sent with its checksum where the store takes one (S3). The size that the
        store reports is compared with that of the file. `crc32c`, that of the file, is kept with
        the object: see `has_checksum`.
        """
        self._refuse_http("takes files")
        size = local.stat().st_size
        part = max(_PART_BYTES, -(-size // _MOST_PARTS))
        attributes = None if crc32c is None else {_CHECKSUM: f"{crc32c:08x}"}

        def write() -> Any:
            return self._obstore.put(
                self._store,
                path,
                local,
                attributes=attributes,
                chunk_size=part,
                max_concurrency=_PARTS_AT_ONCE,
            )

        done = self._do(path, write)
        stored = self.head(path).size
        if stored != size:
            raise StorageError(
                f"expected {size:,} bytes after the upload, got {stored:,}",
                where=self.location / path,
                hint="upload it again; another writer may use the same path",
                kind="changed",
            )
        return ObjectInfo(path, size, done["e_tag"], done["version"])

    def has_checksum(self, path: str, size: int, crc32c: int) -> bool:
        """Whether there is an object that `put_file` made of a file of this size and checksum."""

        def look() -> Any:
            found = self._obstore.get(self._store, path, options={"head": True})
            return found.meta["size"], found.attributes.get(_CHECKSUM)

        try:
            return bool(self._do(path, look) == (size, f"{crc32c:08x}"))
        except StorageError as error:
            if error.kind == "missing":
                return False
            raise

    def delete(self, path: str) -> None:
        """Remove an object; nothing happens if there is none."""
        try:
            self._do(path, lambda: self._obstore.delete(self._store, path))
        except StorageError as error:
            if error.kind != "missing":
                raise

    def _refuse_http(self, ability: str) -> None:
        if self.location.store == "http":
            raise StorageError(
                f"expected a store that {ability}, got an HTTP server, which is only read",
                where=self.location,
                hint="use s3://, gs:// or az://",
                kind="unsupported",
            )

    # Errors.

    def _do(self, path: str, call: Callable[[], _T]) -> _T:
        """Call obstore; every error of it becomes one of ours, without secrets."""
        _check_process(self.location)
        problem: StorageError | None = None
        try:
            return call()
        except (self._errors.BaseError, OSError, ValueError) as error:
            problem = self._explain(path, error)
        # Not `from` its cause, whose text has the URL of the request and so, of some, a token.
        raise problem

    def _explain(self, path: str, error: Exception) -> StorageError:
        found = diagnose(error, credentials=credentials_hint(self.location))
        problem = hide_secrets(found.problem, self.options)
        return StorageError(problem, where=self.location / path, hint=found.hint, kind=found.kind)


def _info(meta: Mapping[str, Any]) -> ObjectInfo:
    return ObjectInfo(meta["path"], meta["size"], meta["e_tag"], meta["version"])


# Processes. The threads of obstore do not live on in the child of a fork, where it would wait for
# them for ever.

_user: int | None = None  # the process that has used obstore first, in this line of forks


def _check_process(location: Location) -> None:
    global _user
    if _user is None:
        _user = os.getpid()
    if os.getpid() != _user:
        raise StorageError(
            "object stores cannot be used in a process that was forked from one that has used them",
            where=location,
            hint='start processes with multiprocessing.get_context("spawn")',
            kind="forked",
        )
