"""Reading each workload into batches: Datum beside tf.data, TFDS's way and `tfrecord`."""

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import bandwidth, equality, generate
from benchmarks.measure import Contender
from benchmarks.reader import (
    BATCHED_INSIDE,
    HAND_WRITTEN,
    LEFT_IN_COLUMN,
    ONE_BY_ONE,
    ONE_THREAD,
    SHUFFLED,
    TFRECORD,
    TWO_THREADS,
    Reader,
)
from benchmarks.suite import Goal, Outcome, Setting, Suite, faster
from benchmarks.workloads import Workload, all_workloads

# loaded only when needed: measuring the memory of one must not load the others
MODULES = {
    HAND_WRITTEN: "benchmarks.peers_tf",
    SHUFFLED: "benchmarks.peers_tf",
    BATCHED_INSIDE: "benchmarks.peers_tf",
    ONE_BY_ONE: "benchmarks.peers_tf",
    TFRECORD: "benchmarks.peers_tfrecord",
    ONE_THREAD: "benchmarks.datum_side",
    TWO_THREADS: "benchmarks.datum_side",
    LEFT_IN_COLUMN: "benchmarks.datum_side",
}
SLOW = (ONE_BY_ONE, TFRECORD)  # timed on a workload's first records only, if it says so
NEAR_BANDWIDTH = 0.5  # reading also takes a checksum, which a plain copy does not


def tabular(setting: Setting) -> Suite:
    """Scalars, a vector, text and a ragged list."""
    goals = (
        faster(TWO_THREADS, HAND_WRITTEN, times=10),
        faster(TWO_THREADS, ONE_BY_ONE, times=100),
        faster(TWO_THREADS, TFRECORD, times=100),
        faster(ONE_THREAD, HAND_WRITTEN, times=4),
    )
    return _suite("tabular", setting, goals)


def wide(setting: Setting) -> Suite:
    """Two hundred float features."""
    return _suite("wide", setting, (faster(TWO_THREADS, HAND_WRITTEN, times=5),))


def tokens(setting: Setting) -> Suite:
    """One ragged list of 512 to 2048 integers."""
    return _suite("tokens", setting, (faster(TWO_THREADS, HAND_WRITTEN, times=5),))


def images(setting: Setting) -> Suite:
    """Payloads of 100 KB and a label, beside what memory itself can do."""

    def share(outcome: Outcome) -> float:
        copy = outcome.timings[bandwidth.COPY].bytes_per_s
        return outcome.timings[TWO_THREADS].bytes_per_s / copy

    goals = (
        faster(TWO_THREADS, HAND_WRITTEN, times=2),
        Goal(f"{TWO_THREADS}, against {bandwidth.COPY}", NEAR_BANDWIDTH, "x", share),
    )
    return _suite("images", setting, goals, extra=bandwidth.contenders(setting))


def _suite(
    name: str,
    setting: Setting,
    goals: tuple[Goal, ...],
    *,
    extra: tuple[Contender, ...] = (),
) -> Suite:
    workload = all_workloads(quick=setting.quick)[name]
    names = [each for each in MODULES if each != LEFT_IN_COLUMN or name == "images"]
    megabytes = _bytes(generate.shard_paths(workload, setting.cache)) / 1e6
    return Suite(
        name=name,
        title=f"read {name}: {workload.records:,} records, {megabytes:.0f} MB, "
        f"{workload.shards} shards, batches of {workload.batch_records}",
        contenders=(*(_contender(each, workload, setting) for each in names), *extra),
        references=(HAND_WRITTEN, SHUFFLED),
        goals=goals,
        check=partial(_check, names, workload, setting),
        is_in_bytes=name == "images",
    )


def _contender(name: str, workload: Workload, setting: Setting) -> Contender:
    paths, rows = _files(name, workload, setting)
    return Contender(
        name,
        prepare=lambda: reader(name).passes(workload, paths),
        records=len(rows),
        data_bytes=_bytes(paths),
        note=f"first {len(rows):,} records" if len(rows) < workload.records else "",
    )


def _check(names: list[str], workload: Workload, setting: Setting) -> None:
    for name in names:
        paths, rows = _files(name, workload, setting)
        batches = reader(name).read(workload, paths)
        equality.check_reading(name, batches, workload, rows)


def reader(name: str) -> Reader[Any]:
    """The reader of that name, its module loaded now."""
    found: Reader[Any] = import_module(MODULES[name]).READERS[name]
    return found


def _files(name: str, workload: Workload, setting: Setting) -> tuple[list[Path], range]:
    sample = workload.sample_records if name in SLOW else None
    if sample is not None:
        return [generate.first_records_path(workload, sample, setting.cache)], range(sample)
    return generate.shard_paths(workload, setting.cache), range(workload.records)


def _bytes(paths: list[Path]) -> int:
    return sum(path.stat().st_size for path in paths)
