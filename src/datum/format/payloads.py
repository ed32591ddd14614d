"""Whatever holds payloads, as one run of records."""

from __future__ import annotations

import os
from collections.abc import Iterable

from datum.errors import Message
from datum.format.file import RecordFile
from datum.format.records import Records
from datum.format.writer import Framed

__all__ = ["Payloads", "as_records"]

Payloads = str | os.PathLike[str] | RecordFile | Records | Framed | Iterable[bytes]


def as_records(source: Payloads) -> Records:
    """The payloads in one run; copied only if they do not lie in one buffer."""
    if isinstance(source, (str, os.PathLike)):
        source = RecordFile(source)
    if isinstance(source, Records):
        return source
    if isinstance(source, Framed):
        return source.records()
    if isinstance(source, RecordFile):
        return Records.join(list(source.chunks(1 << 30)))
    if isinstance(source, (bytes, bytearray, memoryview)):
        raise TypeError(
            Message(
                "expected payloads, got the bytes of a file or of one payload",
                hint="pass RecordFile(data), or a list of payloads",
            )
        )
    return Records.of(source)
