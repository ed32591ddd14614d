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
    """A machine and the versions of its programs.

    Attributes:
        cpu: Name of the processor.
        cores: Cores available to this process.
        memory_bytes: Memory; None if unknown.
        system: Operating system.
        versions: Versions of Python and of the measured frameworks.

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
    """Describe this machine."""
    known = {"Python": platform.python_version(), **versions}
    return Machine(_cpu(), thread_count(None), _memory(), platform.system(), known)


def _cpu() -> str:
    try:
        for line in _CPU_FILE.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass  # not on this system
    return platform.processor() or platform.machine() or "unknown processor"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


Basis = Literal["measured", "expected", "at most"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Cost of one stage on a single thread.

    Attributes:
        name: "read" (bytes from mapped files), "crc" (checksums), "parse" (records into columns),
            "shuffle" (random order), "decode" (images), "callback" (the user's function) or
            "batch" (arrays into batches).
        us_per_record: Cost in microseconds per record.
        share: Share of the cost of all stages.
        records_per_s: Speed of this stage with all before it.
        mb_per_s: The same speed in megabytes of records.
        spread: Half the interquartile range of its turns, relative to the median.
    """

    name: str
    us_per_record: float
    share: float
    records_per_s: float
    mb_per_s: float
    spread: float


@dataclass(frozen=True, slots=True)
class Speed:
    """Speed of a loader with all its threads.

    Attributes:
        framework: "numpy", "torch", "jax" or "tf".
        name: Name of the loader.
        call: Code that creates it.
        records_per_s: Records per second; None if it could not be measured.
        mb_per_s: The same speed in megabytes of records.
        us_per_record: The same in microseconds per record.
        spread: Spread of its turns, as for stages; None for a single turn.
        problem: Reason why it could not be measured.
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
    """One-time costs before records are in memory; None if not applicable.

    Attributes:
        disk_mb_per_s: Disk speed for files that are not cached.
        inflate_us_per_record: Cost of inflating compressed shards.
        open_us_per_shard: Cost of opening a shard and finding its records.
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
    """A suggested change.

    Attributes:
        kind: Short name of the rule.
        text: Explanation.
        call: Code to write.
        gain: Speed-up.
        basis: Basis of `gain`: "measured", "expected" from the share of a stage, or "at most".
    """

    kind: str
    text: str
    call: str
    gain: float
    basis: Basis


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Result of `datum.measure`; its text is a summary, `to_json()` has all figures.

    Attributes:
        path: Path of the dataset.
        split: Measured split.
        records: Records of the split.
        bytes: Size of its shards on disk.
        shards: Number of shards.
        compression: Compression of the shards.
        measured_records: Records used in every pass.
        record_bytes: Uncompressed size of one record.
        options: Options of the call: batch_size, shuffle, columns, threads, workers, map, seconds.
        machine: Machine of the measurement.
        stages: Costs of the stages, in processing order.
        speeds: Speeds of the loaders, `to_numpy` first.
        paid: One-time costs.
        missing: Frameworks that are not installed.
        bottleneck: Stage that takes most of the time.
        advice: Suggested changes, the largest gain first.
        notes: Remarks on the figures.
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
        """Speed of one thread through all stages."""
        return self.stages[-1].records_per_s

    @property
    def best(self) -> Speed | None:
        """The fastest loader of Datum."""
        ours = [s for s in self.speeds if s.records_per_s and s.name.startswith("to_")]
        return max(ours, key=lambda speed: speed.records_per_s or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        """Return all figures as plain values."""
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
        speeds = [f"  {speed.name:<16}{_describe(speed)}" for speed in self.speeds]
        bottleneck = [] if self.bottleneck is None else [self.bottleneck.text]
        advice = [f"- {one.text}: {one.call} ({one.gain:.1f}x, {one.basis})" for one in self.advice]
        parts = [f"{head}, {size}", *stages, *speeds, *bottleneck, *advice, *self.notes]
        return "\n".join(map(inert, parts))


def _describe(speed: Speed) -> str:
    if speed.records_per_s is None:
        return f"not measured: {speed.problem}"
    return f"{speed.records_per_s:>31,.0f} records/s"
