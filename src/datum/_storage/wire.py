"""Messages between readers and the fetcher: where its socket is, how a message is framed, errors.

A message is JSON with its length before it, then bytes with theirs. Credentials are in messages
only: never in files, arguments or the environment of the fetcher.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import stat
import tempfile
from pathlib import Path
from typing import Any

from datum.errors import CorruptRecordError, DatumError, MissingDependencyError, StorageError

__all__ = [
    "LOCK_NAME",
    "encode_error",
    "find_socket",
    "raise_error",
    "receive",
    "send",
]

LOCK_NAME = "fetcher.lock"
_SOCKET_NAME = "fetcher.socket"
_MAX_SOCKET_PATH = 100  # Linux takes 107 bytes, macOS 103
_MAX_MESSAGE_BYTES = 2**30
_ERRORS = {
    kind.__name__: kind for kind in (CorruptRecordError, MissingDependencyError, StorageError)
}


def find_socket(cache: Path) -> Path:
    """Where the fetcher of a cache folder listens: in it, or if its path is too long beside others.

    Raises StorageError if somebody else made that other place.
    """
    path = cache / _SOCKET_NAME
    if len(os.fsencode(path)) <= _MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(cache)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"datum-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise StorageError(
            "expected a folder that only its owner can use, got another",
            where=folder,
            hint="set DATUM_CACHE to a folder with a shorter path",
            kind="denied",
        )
    return folder / _SOCKET_NAME


def send(connection: socket.socket, message: dict[str, Any], payload: bytes = b"") -> None:
    """Send a message."""
    text = json.dumps(message).encode()
    sizes = len(text).to_bytes(8, "little") + len(payload).to_bytes(8, "little")
    connection.sendall(sizes + text)
    if payload:
        connection.sendall(payload)


def receive(connection: socket.socket) -> tuple[dict[str, Any], bytes]:
    """Wait for a message; ConnectionError once the other side is gone."""
    sizes = _read(connection, 16)
    text, payload = (int.from_bytes(sizes[at : at + 8], "little") for at in (0, 8))
    if max(text, payload) > _MAX_MESSAGE_BYTES:
        raise ConnectionError("expected a message, got something else")
    return json.loads(_read(connection, text)), _read(connection, payload)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 2**20))
        if not part:
            raise ConnectionError("the other side is gone")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def encode_error(error: Exception) -> dict[str, Any]:
    """An error as plain values."""
    if not isinstance(error, DatumError):
        problem = f"unexpected error of the fetcher: {type(error).__name__}: {error}"
        error = StorageError(problem)
    parts = error.parts
    made: dict[str, Any] = {
        "type": type(error).__name__,
        "problem": parts.problem,
        "where": parts.where,
        "details": list(parts.details),
        "hint": list(parts.hint_lines),
    }
    if isinstance(error, StorageError):
        made["kind"] = error.kind
    return made


def raise_error(told: dict[str, Any]) -> None:
    """Raise the error that `encode_error` made plain."""
    told = dict(told)
    raise _ERRORS.get(told.pop("type"), StorageError)(told.pop("problem"), **told)
