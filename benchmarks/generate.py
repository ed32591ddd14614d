"""Writing of the files that are read, by TensorFlow alone so that they are foreign to Datum."""

import hashlib
import inspect
import os
import struct
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

from benchmarks import workloads
from benchmarks.workloads import Lists, Workload

LENGTH_BYTES, CHECKSUM_BYTES = 8, 4


def shard_paths(workload: Workload, cache: Path) -> list[Path]:
    """The workload's shards, written now unless `cache` has them."""
    write_shards([workload], cache)
    return _shards(workload, cache)


def write_shards(wanted: Iterable[Workload], cache: Path) -> None:
    """Writes the shards that `cache` lacks, of all workloads at once, on all cores."""
    missing = [
        (workload, shard, path)
        for workload in wanted
        for shard, path in enumerate(_shards(workload, cache))
        if not path.exists()
    ]
    if not missing:
        return
    # spawned, since TensorFlow does not survive a fork
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        for job in [pool.submit(_write_shard, *each) for each in missing]:
            job.result()


def repeated_path(workload: Workload, copies: int, cache: Path) -> Path:
    """The first shard many times over: TFRecord files end to end are a TFRecord file."""
    path = _path(workload, f"{copies}-times", cache)
    if not path.exists():
        shard = shard_paths(workload, cache)[0].read_bytes()
        with _part(path).open("wb") as file:
            for _ in range(copies):
                file.write(shard)
        _part(path).rename(path)
    return path


def first_records_path(workload: Workload, records: int, cache: Path) -> Path:
    """A file of the first `records` records, for readers too slow to read them all."""
    path = _path(workload, f"first-{records}", cache)
    if not path.exists():
        with shard_paths(workload, cache)[0].open("rb") as shard, _part(path).open("wb") as first:
            for _ in range(records):
                length = shard.read(LENGTH_BYTES)
                (payload_bytes,) = struct.unpack("<Q", length)
                first.write(length + shard.read(payload_bytes + 2 * CHECKSUM_BYTES))
        _part(path).rename(path)
    return path


def small_records_path(records: int, cache: Path) -> Path:
    """One file of Examples with a single integer each."""
    path = _home(cache) / f"small-{records}.tfrecord"
    if not path.exists():
        from benchmarks import peers_tf_writing as tf_writing

        rows = ({"id": row} for row in range(records))
        tf_writing.write(_part(path), rows, (workloads.Field("id", "int"),))
        _part(path).rename(path)
    return path


def rows_of(workload: Workload, rows: range) -> list[dict[str, object]]:
    """The rows as dicts of plain Python values: float, int, bytes, and lists of them."""
    values = {}
    for name, column in workload.columns().items():
        if isinstance(column, Lists):
            splits = column.row_splits[rows.start : rows.stop + 1].tolist()
            values[name] = [column.values[start:stop].tolist() for start, stop in pairwise(splits)]
        else:
            values[name] = column[rows.start : rows.stop].tolist()
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _write_shard(workload: Workload, shard: int, path: Path) -> None:
    from benchmarks import peers_tf_writing as tf_writing

    rows = rows_of(workload, workload.shard_rows(shard))
    tf_writing.write(_part(path), rows, workload.fields)
    _part(path).rename(path)


def _shards(workload: Workload, cache: Path) -> list[Path]:
    return [_path(workload, str(shard), cache) for shard in range(workload.shards)]


def _path(workload: Workload, part: str, cache: Path) -> Path:
    return _home(cache) / f"{workload.name}-{workload.records}-{part}.tfrecord"


def _part(path: Path) -> Path:
    return path.with_suffix(".part")


def _home(cache: Path) -> Path:
    """A folder named by the code that makes the columns, so that a change makes new files."""
    home = cache / hashlib.sha256(inspect.getsource(workloads).encode()).hexdigest()[:12]
    home.mkdir(parents=True, exist_ok=True)
    return home
