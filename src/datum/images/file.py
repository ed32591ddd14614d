"""Image files: read whole, or only as far as their header goes, and never waited for."""

from __future__ import annotations

import os
import stat

from datum.errors import inert
from datum.images.header import (
    ImageError,
    ImageFormat,
    ImageHeader,
    parse_header,
    sniff_format,
)

__all__ = ["name_file", "read_file", "read_file_header", "sniff_file"]

_START_BYTES = 64 * 2**10  # holds the header of nearly every image
_SNIFF_BYTES = 16
# A pipe would keep `open` waiting for its other end.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The content of a regular file; anything else that has a path is an ImageError."""
    return _read(path, None)[0]


def read_file_header(path: str | os.PathLike[str]) -> ImageHeader:
    """The header of an image file; whether the image is whole is not looked at."""
    try:
        start, size = _read(path, _START_BYTES)
        try:
            return parse_header(start)
        except ImageError:
            if len(start) >= size:
                raise
        return parse_header(read_file(path))
    except ImageError as error:
        raise name_file(path, error) from None


def sniff_file(path: str | os.PathLike[str]) -> ImageFormat | None:
    """The format that the first bytes of a file tell; None if it is no image, or no file."""
    try:
        return sniff_format(_read(path, _SNIFF_BYTES)[0])
    except ImageError:
        return None


def name_file(path: str | os.PathLike[str], error: ImageError) -> ImageError:
    """The same error, with the file that it is about."""
    return error if error.where.startswith(inert(path)) else ImageError(error, where=path)


def _read(path: str | os.PathLike[str], limit: int | None) -> tuple[bytes, int]:
    """At most `limit` bytes of the file, and its size."""
    try:
        file = os.open(path, _FLAGS)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ImageError(f"expected a file, got: {reason.lower()}", where=path) from None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise ImageError(f"expected a regular file, got {_kind(status.st_mode)}", where=path)
        size = status.st_size
        wanted = size if limit is None else min(size, limit)
        return _read_exactly(file, wanted, path), size
    except OSError as error:
        raise ImageError(f"expected a file that can be read, got: {error}", where=path) from None
    finally:
        os.close(file)


def _read_exactly(file: int, wanted: int, path: str | os.PathLike[str]) -> bytes:
    data = os.read(file, wanted)
    if len(data) == wanted:  # nearly always
        return data
    pieces = [data]
    while data and sum(map(len, pieces)) < wanted:
        data = os.read(file, wanted - sum(map(len, pieces)))
        pieces.append(data)
    whole = b"".join(pieces)
    if len(whole) != wanted:
        raise ImageError(
            f"expected {wanted} bytes, got {len(whole)}: the file has changed", where=path
        )
    return whole


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")
