"""Identity of files, to detect changes."""

from __future__ import annotations

import hashlib
import os
import stat

__all__ = ["identify", "version_of"]

PAGE_BYTES = 4096
SAMPLED_PAGES = 32  # of a large file: its first, its last, and others evenly between


def version_of(status: os.stat_result) -> int:
    """Return a number that changes whenever the content of a file of this size does.

    It combines the inode and both times. Anyone can set the time of modification, and archives
    and copies restore it, but the system sets the time of the last change (ctime): a file that is
    rewritten or replaced gets a new one. It also changes with a file's name or permissions. Then
    the file counts as changed, and work is repeated: that is slow, and never wrong.
    """
    return hash((status.st_ino, status.st_ctime_ns, status.st_mtime_ns))


def identify(path: str | os.PathLike[str]) -> str:
    """Return a text that identifies the current content of a file.

    It covers the size, `version_of` and pages of the content: not every file system keeps its own
    ctime or assigns a new inode to a new file. A file of up to 128 KiB is read as a whole. For a
    larger one the end is among the pages; formats keep checksums (gzip), directories (zip) or
    statistics (Parquet) of everything else there.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # does not wait for a pipe
    try:
        status = os.fstat(descriptor)
        facts = (status.st_size, version_of(status))
        digest = hashlib.blake2b(repr(facts).encode(), digest_size=16)
        if stat.S_ISREG(status.st_mode):
            for offset in _sampled(status.st_size):
                digest.update(os.pread(descriptor, PAGE_BYTES, offset))
        return digest.hexdigest()
    finally:
        os.close(descriptor)


def _sampled(size: int) -> list[int]:
    """Return the offsets of the pages to read."""
    if size <= SAMPLED_PAGES * PAGE_BYTES:
        return list(range(0, size, PAGE_BYTES))
    last = size - PAGE_BYTES
    return [last * number // (SAMPLED_PAGES - 1) for number in range(SAMPLED_PAGES)]
