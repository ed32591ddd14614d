"""The shard files of a dataset: opened when needed, a few at a time, held against the manifest."""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path

from datum.errors import CorruptIndexError, CorruptRecordError, ManifestError
from datum.format import Compression, Manifest, RecordFile, ShardInfo
from datum.format.naming import MANIFEST_NAME

__all__ = ["Shards"]

# Far below the 256 files that some systems let a process open, with room for others.
MAX_OPEN_SHARDS = 32


class Shards:
    """Opens the shards of one folder; the last ones used stay open. Safe to use from threads."""

    def __init__(self, folder: Path, compression: Compression | None) -> None:
        self.folder = folder
        self.compression = compression
        self._open: OrderedDict[str, RecordFile] = OrderedDict()
        self._lock = threading.Lock()
        self._manifest: tuple[int, ...] | None = None  # what tells one manifest from another

    def __reduce__(self) -> tuple[type[Shards], tuple[Path, Compression | None]]:
        return Shards, (self.folder, self.compression)  # files stay with their process

    def open(self, shard: ShardInfo) -> RecordFile:
        """The file of a shard, just opened, to be read in order."""
        path = self.folder / shard.name
        try:
            file = RecordFile(path)
            size = path.stat().st_size
            self._check_current(shard)  # after: a dataset is replaced in one step
        except FileNotFoundError:
            self._check_current(shard)
            raise ManifestError(
                f"{path}: expected a shard, as the manifest says, got no such file\n"
                "hint: restore it from where the dataset was copied from"
            ) from None
        if size != shard.bytes:
            raise CorruptRecordError(
                f"{path}: expected {shard.bytes} bytes, as the manifest says, got {size}\n"
                "hint: the file was cut or changed; restore it"
            )
        if file.compression != self.compression:
            raise CorruptRecordError(
                f"{path}: expected compression {self.compression}, as the manifest says,"
                f" got {file.compression}"
            )
        return file

    def _check_current(self, shard: ShardInfo) -> None:
        """Refuse a shard of a dataset that was put in the place of the one that was loaded."""
        path = self.folder / MANIFEST_NAME
        try:
            status = path.stat()
            found = status.st_ino, status.st_mtime_ns, status.st_size
            if found == self._manifest:
                return
            splits = list(Manifest.load(path).splits.values())
        except FileNotFoundError:  # it was there once
            splits = []
        known = {(one.name, one.bytes, one.crc32c) for split in splits for one in split.shards}
        if (shard.name, shard.bytes, shard.crc32c) not in known:
            raise ManifestError(
                f"{self.folder}: the dataset was replaced since it was loaded\nhint: load it again"
            )
        self._manifest = found

    def open_indexed(self, shard: ShardInfo) -> RecordFile:
        """The file of a shard, to be read at random."""
        if self.compression is not None:
            raise ValueError(
                f"{self.folder}: expected shards that are not compressed, to read records by their"
                f" numbers, got {self.compression}\n"
                "hint: iterate over the split, or write the dataset without compression"
            )
        with self._lock:
            file = self._open.get(shard.name)
            if file is not None:
                self._open.move_to_end(shard.name)
                return file
        file = self.open(shard)
        if len(file) != shard.records:
            raise CorruptIndexError(
                f"{file.name}: expected {shard.records} records, as the manifest says,"
                f" got an index of {len(file)}\nhint: delete the index, or restore the shard"
            )
        with self._lock:
            self._open[shard.name] = file
            while len(self._open) > MAX_OPEN_SHARDS:
                self._open.popitem(last=False)
        return file
