"""Files of ArrayRecord, read by their own package and copied once as TFRecord."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from datum._optional import require
from datum.errors import CorruptRecordError, Message
from datum.format import Index, ShardInfo
from datum.format.wording import count_of, format_bytes
from datum.format.writer import frame
from datum.reading.kept import cache_folder, check_unchanged, keep, name_for, places

__all__ = ["copy_array_records"]

COPIED_RECORDS = 1024  # at a time: these are in memory


def copy_array_records(paths: Sequence[Path]) -> list[ShardInfo]:
    """TFRecord files with the records of these files, in the cache directory.

    They are made where they are not there yet, which a warning tells. The native core reads no
    ArrayRecord: the copies are read instead, and take as much room as the records do.
    """
    found = [_find_copy(path) for path in paths]
    lacking = [path for path, copy in zip(paths, found, strict=True) if copy is None]
    if lacking:
        files = count_of(len(lacking), "file")
        nbytes = format_bytes(sum(path.stat().st_size for path in lacking))
        warnings.warn(
            Message(
                f"{files} of ArrayRecord, {nbytes}, copied as TFRecord to"
                f" {cache_folder() or 'a temporary folder'}; DATUM_CACHE names another",
                where=lacking[0].parent,
            ),
            UserWarning,
            stacklevel=2,
        )
    copies = zip(paths, found, strict=True)
    return [_make_copy(path) if copy is None else copy for path, copy in copies]


def _name(path: Path) -> str:
    return name_for(path, _shard_of(path))


def _shard_of(path: Path) -> ShardInfo:
    return ShardInfo(path.name, 0, 0, None)


def _find_copy(path: Path) -> ShardInfo | None:
    """The copy that was made before; its index, written last, tells that it is whole."""
    name = _name(path)
    for copy, index in zip(places(f"{name}.tfrecord"), places(f"{name}.index"), strict=True):
        if copy.is_file() and index.is_file():
            found, nbytes = Index.load(index), copy.stat().st_size
            if found.stream_bytes == nbytes:
                return ShardInfo(str(copy), len(found), nbytes, None)
    return None


def _make_copy(path: Path) -> ShardInfo:
    made: list[Index] = []
    name = _name(path)

    def write(target: BinaryIO) -> None:
        offsets, position = [np.empty(0, np.int64)], 0
        for payloads in _read(path):
            framed = frame(payloads)
            target.write(framed.data)
            offsets.append(position + framed.offsets)
            position += framed.nbytes
        check_unchanged(path, _shard_of(path), name)
        made.append(Index(np.concatenate(offsets), position))

    def write_index(target: BinaryIO) -> None:
        target.write(made[-1].to_bytes())

    copy = keep(f"{name}.tfrecord", write)
    keep(f"{name}.index", write_index)
    return ShardInfo(str(copy), len(made[-1]), made[-1].stream_bytes, None)


def _read(path: Path) -> Iterator[list[bytes]]:
    """The records of a file, some at a time."""
    module = require(
        "array_record.python.array_record_module", purpose=f"{path.name}: reading ArrayRecord"
    )
    try:
        reader: Any = module.ArrayRecordReader(str(path))
        count = reader.num_records()
        for first in range(0, count, COPIED_RECORDS):
            yield reader.read(first, min(first + COPIED_RECORDS, count))
        reader.close()  # which raises what is wrong with a file that seems to be empty
    except (RuntimeError, ValueError, IndexError, OSError) as error:
        text = Message.of(error).line
        raise CorruptRecordError(
            f"expected a whole file of ArrayRecord: {text:.300}",
            where=path,
            hint="restore the file",
        ) from error
