"""`datum.write` of ever more rows, and of many shards: time and memory as they grow."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Outcome, Setting, Suite, faster
from benchmarks.targets import Targets

GIB = 1 << 30
SAMPLE_S = 0.01
RECORD_BYTES = 63  # of one such row in a TFRecord file
SHARD_RECORDS = 4
IN_TURN = "files alone, one sync after the other"
SLOPE = (0.95, 1.05)  # of time over rows, both as logarithms


def write_scale(setting: Setting) -> Suite:
    """Small dicts from a generator, shuffled, from few to a hundred times as many."""
    counts = (10_000, 30_000, 100_000) if setting.quick else (100_000, 1_000_000, 10_000_000)
    targets = Targets(setting.cache)
    peaks: dict[int, int] = {}
    slope = (lambda _: None) if setting.quick else partial(_slope, counts)  # few rows start slowly

    def contender(count: int) -> Contender:
        def prepare() -> Callable[[], int]:
            return lambda: _write(count, targets.new())

        return Contender(_name(count), prepare, count, count * RECORD_BYTES)

    def check() -> None:
        for count in counts:
            folder = targets.new()
            peaks[count] = _peak_bytes(count, folder)
            _check(_name(count), folder, count)
            targets.clear()

    return Suite(
        name="write_scale",
        title=f"datum.write: small dicts from a generator, shuffled, up to {counts[-1]:,}",
        contenders=tuple(map(contender, counts)),
        references=(_name(counts[0]),),
        goals=(
            Goal(
                f"peak memory of a process that writes {counts[-1]:,}, and of those it starts",
                1.0,
                "GiB",
                lambda _: peaks[counts[-1]] / GIB if peaks else None,
                is_ceiling=True,
            ),
            Goal("slope of time over rows, at least", SLOPE[0], "", slope),
            Goal("the same, at most", SLOPE[1], "", slope, is_ceiling=True),
        ),
        check=check,
        has_memory=False,  # measured by itself, with the processes that a write starts
        max_rounds=3,
    )


def write_shards(setting: Setting) -> Suite:
    """Many small shards, where waiting for the disk is most of the work; fsync is the real one."""
    shards = 128 if setting.quick else 1024
    targets = Targets(setting.cache)
    ours, one, in_turn = f"datum.write, {shards:,} shards", "datum.write, 1 shard", IN_TURN
    columns = {"x": np.arange(shards * SHARD_RECORDS)}
    nbytes = len(columns["x"]) * 2 * RECORD_BYTES

    def write(count: int) -> int:
        import datum

        return datum.write(columns, targets.new(), shards=count, progress=False).records

    def contender(name: str, work: Callable[[], int]) -> Contender:
        return Contender(name, lambda: work, len(columns["x"]), nbytes)

    def check() -> None:
        import datum

        folder = targets.new()
        datum.write(columns, folder, shards=shards, progress=False)
        found = datum.load(folder)
        if len(found.splits["train"].shards) != shards or not found.verify().is_sound:
            raise OutputDiffersError(f"{ours}: not as many sound shards")

    return Suite(
        name="write_shards",
        title=f"datum.write: {len(columns['x']):,} numbers in {shards:,} shards",
        contenders=(
            contender(in_turn, lambda: _sync_in_turn(targets.new(), shards)),
            contender(ours, lambda: write(shards)),
            contender(one, lambda: write(1)),
        ),
        references=(in_turn,),
        goals=() if setting.quick else (faster(ours, in_turn, times=5.0),),
        check=check,
        has_memory=False,
        max_rounds=3,
    )


def _sync_in_turn(folder: Path, shards: int) -> int:
    """The files alone, each made safe before the next: a shard, its index, a note that it is done.

    That is how each of them would be on the disk at any moment, by the simplest means.
    """
    for number in range(shards):
        for kind in ("shard", "index", "note"):
            path = folder / f"{kind}-{number}"
            with path.with_suffix(".new").open("wb") as file:
                file.write(bytes(SHARD_RECORDS * RECORD_BYTES))
                file.flush()
                os.fsync(file.fileno())
            path.with_suffix(".new").rename(path)
            descriptor = os.open(folder, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    return shards * SHARD_RECORDS


def _name(count: int) -> str:
    return f"datum.write, {count:,} rows"


def _rows(count: int) -> Iterator[dict[str, object]]:
    return ({"x": i, "y": i * 0.5, "label": i % 10} for i in range(count))


def _write(count: int, folder: Path) -> int:
    import datum

    return datum.write(_rows(count), folder, progress=False).records


def _slope(counts: tuple[int, ...], outcome: Outcome) -> float:
    """Of the straight line through the logarithms that fits best: 1 is linear."""
    seconds = [outcome.timings[_name(count)].best_s for count in counts]
    return float(np.polyfit(np.log(counts), np.log(seconds), 1)[0])


def _peak_bytes(count: int, folder: Path) -> int:
    """Writes in a process of its own, and watches it and those that it starts."""
    import psutil

    command = [sys.executable, "-m", "benchmarks.write_scale", str(count), str(folder)]
    with subprocess.Popen(command) as child:
        tree = psutil.Process(child.pid)
        peak = 0
        while child.poll() is None:
            peak = max(peak, _resident_bytes(tree))
            time.sleep(SAMPLE_S)
    if child.returncode:
        raise OutputDiffersError(f"{_name(count)}: ended with {child.returncode}")
    return peak


def _resident_bytes(tree: Any) -> int:
    import psutil

    total = 0
    for process in (tree, *tree.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just ended
            total += process.memory_info().rss
    return total


def _check(name: str, folder: Path, count: int) -> None:
    """Raises unless every row is there once, in another order than it came in."""
    import datum

    batches = datum.load(folder)["train"].batches(65_536)
    x, y, label = (
        np.concatenate(column)
        for column in zip(*((each["x"], each["y"], each["label"]) for each in batches), strict=True)
    )
    is_same = np.array_equal(y, x * 0.5) and np.array_equal(label, x % 10)
    if not is_same or not np.array_equal(np.sort(x), np.arange(count)):
        raise OutputDiffersError(f"{name}: the records are not the rows")
    if np.array_equal(x, np.arange(count)):
        raise OutputDiffersError(f"{name}: the rows are in order")


if __name__ == "__main__":
    _write(int(sys.argv[1]), Path(sys.argv[2]))
