"""The records of a dataset as a source: copied as they lie in its shards, never parsed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from datum.format import Index
from datum.reading.batches import Run
from datum.reading.kept import tell_content
from datum.reading.local import find_local
from datum.reading.shards import Shards
from datum.reading.stored_records import PlacedRun, Places, StoredRecords
from datum.reading.stored_stream import StoredStream, read_run
from datum.schema import Schema

__all__ = ["lasting_metadata", "stored_part"]

_IMAGE_FACTS = ("formats", "dtypes", "height", "width", "channels", "converted")


def stored_part(
    shards: Shards,
    runs: Sequence[Run],
    schema: Schema,
    metadata: Mapping[str, Mapping[str, Any]],
    statistics: Mapping[str, Any] | None = None,
) -> StoredRecords | StoredStream:
    """The records of some runs as a part: in any order, or where shards are compressed as a stream.

    `statistics` are those of all records of the runs, as a manifest has them, if it has.
    """
    fingerprint = _fingerprint(shards, runs, schema)
    metadata = lasting_metadata(metadata)
    if any(run.shard.compression is not None or run.shard.name in shards.left_out for run in runs):
        stream = lambda: (records for run in runs for records in read_run(shards, run))  # noqa: E731
        return StoredStream(stream, schema, metadata, fingerprint, statistics=statistics)
    finders = {run.shard.name: _PlaceFinder(shards, run) for run in runs}
    placed = [PlacedRun(finders[run.shard.name], run.start, run.stop) for run in runs]
    return StoredRecords(placed, schema, metadata, fingerprint, statistics=statistics)


class _PlaceFinder:
    """Finds the places of a shard when they are first asked for."""

    def __init__(self, shards: Shards, run: Run) -> None:
        self._shards = shards
        self._shard = run.shard
        self._found: Places | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Places:
        with self._lock:
            if self._found is None:
                local = find_local(self._shards, self._shard)
                assert local.index is not None  # only where damage is skipped
                index = Index.load(local.index)
                bounds = np.append(index.offsets, index.stream_bytes)
                self._found = Places(local.path, bounds[:-1], bounds[1:], local.version)
            return self._found


def _fingerprint(shards: Shards, runs: Sequence[Run], schema: Schema) -> str:
    told: list[Any] = [repr(schema)]
    for run in runs:
        shard = run.shard
        content = tell_content(shards.folder, shard)
        told.append((shard.name, shard.records, shard.bytes, content))
        told.append((run.start, run.stop))
    return hashlib.blake2b(repr(told).encode(), digest_size=16).hexdigest()


def lasting_metadata(
    metadata: Mapping[str, Mapping[str, Any]],
) -> dict[str, Mapping[str, Any]]:
    """What is known of features, without counts of images: those are of all records."""
    kept: dict[str, Mapping[str, Any]] = {}
    for name, found in metadata.items():
        facts = _IMAGE_FACTS if "formats" in found and "dtypes" in found else ()
        rest = {what: value for what, value in found.items() if what not in facts}
        if rest or not found:
            kept[name] = rest
    return kept
