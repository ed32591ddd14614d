"""Results of a measurement: speeds, the bottleneck, advice, and the machine."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from datum._options import thread_count
from datum.errors import count_of, format_bytes, inert

__all__ = [
    "Advice",
    "Bottleneck",
    "Machine",
    "Measurement",
    "Paid",
    "Speed",
    "Stage",
    "find_machine",
]

_CPU_FILE = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine, and the programs on it that matter.

    Attributes:
        cpu: what the processor calls itself.
        cores: how many this process may use.
        memory_bytes: that there are; None where the system does not tell.
        system: the operating system.
        versions: of Python and of the frameworks that were measured.

    >>> str(Machine("a processor", 2, 16 * 10**9, "Linux"))
    'a processor, 2 cores, 16.0 GB of memory, Linux'
    """

    cpu: str
    cores: int
    memory_bytes: int | None
    system: str
    versions: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        memory = [f"{format_bytes(self.memory_bytes)} of memory"] if self.memory_bytes else []
        return ", ".join([self.cpu, count_of(self.cores, "core"), *memory, self.system])


def find_machine(versions: Mapping[str, str]) -> Machine:
    """This machine."""
    told = {"Python": platform.python_version(), **versions}
    return Machine(_cpu(), thread_count(None), _memory(), platform.system(), told)


def _cpu() -> str:
    try:
        for line in _CPU_FILE.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass  # there is no such file on other systems
    return platform.processor() or platform.machine() or "unknown processor"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


Basis = Literal["measured", "expected", "at most"]


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage costs a single thread.

    Attributes:
        name: "read" (bytes out of mapped files), "crc" (records checked), "parse" (columns by the
            schema), "shuffle" (records in another order), "decode" (images), "callback" (the
            function of the user) or "batch" (arrays put together).
        us_per_record: what it adds, in microseconds.
        share: the same as a part of all stages together.
        records_per_s: of it and all stages before it.
        mb_per_s: the same in bytes of records.
        spread: how far its turns lay apart: half the distance of the quartiles, as a part.
    """

    name: str
    us_per_record: float
    share: float
    records_per_s: float
    mb_per_s: float
    spread: float


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a loader gives batches, with all its threads.

    Attributes:
        framework: "numpy", "torch", "jax" or "tf".
        name: of the loader.
        call: how one gets it.
        records_per_s: None where it could not be measured.
        mb_per_s: the same in bytes of records.
        us_per_record: the same in microseconds.
        spread: how far its turns lay apart, as for stages; None where there was one alone.
        problem: why it could not be measured.
    """

    framework: str
    name: str
    call: str
    records_per_s: float | None = None
    mb_per_s: float | None = None
    us_per_record: float | None = None
    spread: float | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Paid:
    """What is paid once, before records are in memory; None where there is nothing to tell.

    Attributes:
        disk_mb_per_s: what the disk gives of files that are not in memory.
        inflate_us_per_record: to inflate compressed shards.
        open_us_per_shard: to open a shard, and find its records.
    """

    disk_mb_per_s: float | None = None
    inflate_us_per_record: float | None = None
    open_us_per_shard: float | None = None


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The stage that takes most of the time, in one sentence."""

    stage: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to change.

    Attributes:
        kind: a short name of the rule.
        text: what the figures say.
        call: what to write.
        gain: how many times as fast it would be.
        basis: where `gain` comes from: it was "measured", is "expected" from the share of a
            stage, or would be "at most" that.
    """

    kind: str
    text: str
    call: str
    gain: float
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What `datum.measure` found; `str()` of it is a summary, `to_json()` all of it.

    Attributes:
        path: the dataset.
        split: what was measured of it.
        records: how many the split has.
        bytes: how many bytes its shards have on disk.
        shards: how many there are.
        compression: of them.
        measured_records: how many of them everything was measured with, again and again.
        record_bytes: of one of these, in plain files.
        options: what was asked for: batch_size, shuffle, columns, threads, workers, map, seconds.
        machine: where.
        stages: their costs, in the order in which a record goes through them.
        speeds: of the loaders, `to_numpy` first.
        paid: what is paid once.
        missing: frameworks that are not installed.
        bottleneck: the stage that takes most of the time.
        advice: what to change, the largest gain first.
        notes: what else has to be known to read the figures.
    """

    path: str
    split: str
    records: int
    bytes: int
    shards: int
    compression: str | None
    measured_records: int
    record_bytes: float
    options: Mapping[str, Any]
    machine: Machine
    stages: tuple[Stage, ...]
    speeds: tuple[Speed, ...] = ()
    paid: Paid = field(default_factory=Paid)
    missing: tuple[str, ...] = ()
    bottleneck: Bottleneck | None = None
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def records_per_s(self) -> float:
        """What one thread does with all stages."""
        return self.stages[-1].records_per_s

    @property
    def best(self) -> Speed | None:
        """The fastest loader of Datum."""
        ours = [s for s in self.speeds if s.records_per_s and s.name.startswith("to_")]
        return max(ours, key=lambda speed: speed.records_per_s or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        """All figures as plain values."""
        return {**asdict(self), "records_per_s": self.records_per_s}

    def __str__(self) -> str:
        size = format_bytes(self.bytes) + (f", {self.compression}" if self.compression else "")
        shards = count_of(self.shards, "shard")
        head = f"{self.path}: split {self.split!r}: {count_of(self.records, 'record')}, {shards}"
        stages = [
            f"  {stage.name:<16}{stage.share:>5.0%}{stage.us_per_record:>12,.2f} us a record"
            f"{stage.records_per_s:>14,.0f} records/s so far"
            for stage in self.stages
        ]
        speeds = [f"  {speed.name:<16}{_told(speed)}" for speed in self.speeds]
        bottleneck = [] if self.bottleneck is None else [self.bottleneck.text]
        advice = [f"- {one.text}: {one.call} ({one.gain:.1f}x, {one.basis})" for one in self.advice]
        parts = [f"{head}, {size}", *stages, *speeds, *bottleneck, *advice, *self.notes]
        return "\n".join(map(inert, parts))


def _told(speed: Speed) -> str:
    if speed.records_per_s is None:
        return f"not measured: {speed.problem}"
    return f"{speed.records_per_s:>31,.0f} records/s"
