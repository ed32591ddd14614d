"""`datum.write` of ever more rows: time that grows with their number, memory that does not."""

import contextlib
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
from benchmarks.suite import Goal, Outcome, Setting, Suite
from benchmarks.targets import Targets

GIB = 1 << 30
SAMPLE_S = 0.01
RECORD_BYTES = 63  # of one such row in a TFRecord file
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
