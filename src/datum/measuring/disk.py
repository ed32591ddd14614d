"""What is paid once, before records are in memory: the disk, inflating, opening."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from datum.format import Parser, RecordFile
from datum.loading import LoadOptions
from datum.measuring.sample import Piece, Sample
from datum.reading import Split
from datum.reading.numbered import NumberedRecords

__all__ = ["inflating_s", "measure_disk", "opening_s"]

ROUNDS = 3
READ_BYTES = 2**20
MAX_BYTES = 32 * 2**20  # that the system is asked to forget: others may be using them
MIN_BYTES = 2**20  # of less, the time is that of the calls
MAX_OPENED = 16  # shards, to see how long that takes
COLD_FACTOR = 2.0  # nearer to what comes from memory, bytes were not forgotten


def measure_disk(pieces: Sequence[Piece], *, seconds: float) -> float | None:
    """Bytes a second from the disk; None where that cannot be told.

    The system is asked to forget some bytes of the files, which it does not always do: not with
    files that were just written, or lie in memory.
    """
    parts = _some(pieces)
    total = sum(end - start for _, start, end in parts)
    if total < MIN_BYTES or not hasattr(os, "posix_fadvise"):
        return None
    begun = time.perf_counter()
    cold, warm = [], []
    for _ in range(ROUNDS):
        _forget(parts)
        cold.append(_read(parts))
        warm.append(_read(parts))
        if time.perf_counter() - begun > seconds:
            break
    cold_s, warm_s = statistics.median(cold), statistics.median(warm)
    return total / cold_s if cold_s > COLD_FACTOR * warm_s else None


def _some(pieces: Sequence[Piece]) -> list[tuple[Path, int, int]]:
    parts, left = [], MAX_BYTES
    for piece in pieces:
        end = min(piece.end, piece.start + left)
        if end > piece.start:
            parts.append((piece.path, piece.start, end))
            left -= end - piece.start
    return parts


def _forget(parts: Sequence[tuple[Path, int, int]]) -> None:
    for path, start, end in parts:
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), start, end - start, os.POSIX_FADV_DONTNEED)


def _read(parts: Sequence[tuple[Path, int, int]]) -> float:
    begun = time.perf_counter()
    for path, start, end in parts:
        with path.open("rb", buffering=0) as file:
            file.seek(start)
            left = end - start
            while left > 0 and (read := len(file.read(min(READ_BYTES, left)))):
                left -= read
    return time.perf_counter() - begun


def inflating_s(sample: Sample) -> float | None:
    """Seconds a record that inflating takes; None of files that are not compressed."""
    split = sample.split
    runs = [run for run in split.runs if run.shard.compression is not None]
    if not runs:
        return None
    records = 0
    begun = time.perf_counter()
    for run in runs:
        path = split.shards.folder / run.shard.name
        done = 0
        for found in RecordFile(path, check_crc=False, use_index=False).chunks():
            done += len(found)
            if done >= run.stop:
                break
        records += done
    return (time.perf_counter() - begun) / max(1, records)


def opening_s(split: Split, options: LoadOptions) -> float:
    """Seconds that it takes to open one shard, and find its records; the best of some times."""
    runs = split.runs[:MAX_OPENED]
    parser = Parser(options.selected(split.schema))
    firsts = np.cumsum([0, *map(len, runs)])[:-1]
    found = []
    for _ in range(ROUNDS):
        records = NumberedRecords([(split.shards, run) for run in runs], parser, threads=0)
        times = []
        for _ in range(2):  # the second time they are open
            begun = time.perf_counter()
            records.read(firsts)
            times.append(time.perf_counter() - begun)
        records.close()
        found.append(max(0.0, times[0] - times[1]))
    return min(found) / max(1, len(runs))
