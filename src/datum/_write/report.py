"""Progress of a write, its plan, and its report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum.errors import Option, Text, count_of, format_bytes, inert
from datum.format import Compression
from datum.schema import Feature, FloatFacts, Schema
from datum.sources import Source

__all__ = [
    "FloatReport",
    "PlannedSplit",
    "Progress",
    "SplitReport",
    "WritePlan",
    "WriteReport",
    "describe_split",
    "report_floats",
    "show_progress",
]

LINE_SECONDS = 10.0  # between two lines, without a terminal


class Progress:
    """Count of records and bytes done; shows nothing."""

    def __init__(self) -> None:
        self.records = 0
        self.nbytes = 0
        self.total: int | None = None
        self.started = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        """Start a stage of `total` records; None if their number is unknown."""
        self.records, self.nbytes, self.total = 0, 0, total
        self.started = time.monotonic()
        self._name(name)

    def advance(self, records: int, nbytes: int) -> None:
        """Add finished records."""
        self.records += records
        self.nbytes += nbytes
        self._show()

    def _name(self, name: str) -> None:
        pass

    def _show(self) -> None:
        pass

    @property
    def rates(self) -> tuple[float, float]:
        """Records and bytes per second."""
        seconds = max(time.monotonic() - self.started, 1e-9)
        return self.records / seconds, self.nbytes / seconds


class _Lines(Progress):
    """Progress as an occasional line."""

    def __init__(self) -> None:
        super().__init__()
        self._stage = ""
        self._next = time.monotonic() + LINE_SECONDS

    def _name(self, name: str) -> None:
        self._stage = inert(name)

    def _show(self) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + LINE_SECONDS
        rate, bytes_rate = self.rates
        of = f" of {self.total:,}" if self.total else ""
        left = ""
        if self.total and rate:
            left = f", {(self.total - self.records) / rate:.0f} s left"
        print(  # noqa: T201 - what this class is for
            f"{self._stage}: {self.records:,}{of} records, {rate:,.0f}/s,"
            f" {format_bytes(bytes_rate)}/s{left}",
            file=sys.stderr,
        )


class _Bar(Progress):
    """Progress as a bar of rich."""

    def __init__(self, bar: Any) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task("", total=None, rates="")

    def _name(self, name: str) -> None:
        self._bar.reset(self._task, description=inert(name), total=self.total, rates="")

    def _show(self) -> None:
        rate, bytes_rate = self.rates
        rates = f"{rate:,.0f} records/s, {format_bytes(bytes_rate)}/s"
        self._bar.update(self._task, completed=self.records, rates=rates)


def _find_terminal() -> bool | None:
    """Return whether stderr is a terminal; None if there is no stderr."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return None


@contextmanager
def show_progress(wanted: bool | None) -> Iterator[Progress]:
    """Show a bar on a terminal and lines elsewhere; nothing if `wanted` is False."""
    is_terminal = _find_terminal()
    if wanted is False or is_terminal is None:
        yield Progress()
    elif not is_terminal:
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rates]}"),
            TimeRemainingColumn(),
        )
        console = Console(stderr=True)
        with RichProgress(*columns, console=console, transient=True) as bar:
            yield _Bar(bar)


_SHOWN = 3  # file names listed
_SHOWN_FEATURES = 8
_HINT = Text(" (", Option("floats", "float64"), " keeps every bit)")


@dataclass(frozen=True, slots=True)
class SplitReport:
    """Counts of one split.

    Attributes:
        records: Records written by this call.
        bytes: Total size of the shards.
        shards: Number of shards.
        rejected: Records left out because they could not be written.
    """

    records: int
    bytes: int
    shards: int
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class FloatReport:
    """Outcome of storing float64 values as float32.

    Attributes:
        rounded: Features whose values were rounded to float32.
        kept: Features that stay float64, with the split, record and value of the first value that
            float32 cannot represent.
    """

    rounded: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, int, float]] = field(default_factory=dict)

    def to_metadata(self) -> dict[str, dict[str, Any]]:
        """Return metadata by feature for the manifest."""
        found: dict[str, dict[str, Any]] = {
            name: {"rounded_from": "float64"} for name in self.rounded
        }
        for name, (split, record, value) in self.kept.items():
            found[name] = {"kept_float64": {"split": split, "record": record, "value": value}}
        return found

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Mapping[str, Any]]) -> FloatReport:
        """Restore from the values of `to_metadata`."""
        kept = {
            name: one["kept_float64"] for name, one in metadata.items() if "kept_float64" in one
        }
        return cls(
            tuple(name for name, found in metadata.items() if "rounded_from" in found),
            {name: (one["split"], one["record"], one["value"]) for name, one in kept.items()},
        )

    def lines(self, *, hint: str = "") -> list[str]:
        """Describe the outcome in lines; `hint` is appended to the line on rounding."""
        found: list[str] = []
        if self.rounded:
            found.append(Text(f"rounded to float32: {_shortened(self.rounded)}", hint))
        for name, (split, record, value) in list(self.kept.items())[:_SHOWN]:
            found.append(
                f"kept as float64: {name}, as float32 cannot hold {value!r}"
                f" (record {record} of {split!r})"
            )
        if len(self.kept) > _SHOWN:
            more = list(self.kept)[_SHOWN:]
            found.append(f"kept as float64 for the same reason: {_shortened(more)}")
        return found


def report_floats(schema: Schema, splits: Mapping[str, Mapping[str, FloatFacts]]) -> FloatReport:
    """Report on floats from the facts of each split."""
    rounded: set[str] = set()
    kept: dict[str, tuple[str, int, float]] = {}
    for split, found in splits.items():
        for name, facts in found.items():
            dtype = schema[name].dtype if name in schema else None
            if dtype == "float64" and facts.wide is not None:
                kept.setdefault(name, (split, *facts.wide))
            elif dtype == "float32" and facts.is_rounded:
                rounded.add(name)
    return FloatReport(
        tuple(name for name in schema if name in rounded),
        {name: kept[name] for name in schema if name in kept},
    )


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_FEATURES:,} more" if len(names) > _SHOWN_FEATURES else ""
    return ", ".join(names[:_SHOWN_FEATURES]) + more


@dataclass(frozen=True, slots=True, repr=False)
class WriteReport:
    """Report of `datum.write`; its text is a summary.

    Attributes:
        path: Folder of the dataset, or its URL.
        splits: Counts by split.
        seconds: Duration of the call.
        resumed_shards: Shards that an interrupted run had already finished.
        quarantine: File, or URL, that lists rejected records with reasons, if any.
        skipped: Source files without records, such as notes among images.
        notes: Assumptions about text files, conversions of images, and columns of image paths that
            are stored as images.
        floats: Features rounded to float32, and features that stay float64.
        warnings: Probable mistakes in the source, such as images without a class.
    """

    path: Path | str
    splits: Mapping[str, SplitReport]
    seconds: float
    resumed_shards: int = 0
    quarantine: Path | str | None = None
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floats: FloatReport = FloatReport()
    warnings: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """Records written."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """Total size of the shards."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def shards(self) -> int:
        """Number of shards."""
        return sum(split.shards for split in self.splits.values())

    @property
    def quarantined(self) -> Mapping[str, int]:
        """Rejected records by split."""
        return {name: split.rejected for name, split in self.splits.items()}

    def __repr__(self) -> str:
        return "\n".join(map(inert, self.lines))

    @property
    def lines(self) -> list[str]:
        """The lines of the summary."""
        lines = [f"{self.path}: {count_of(self.records, 'record')} in {self.seconds:.1f} s"]
        width = max(map(len, self.splits), default=0)
        for name, split in self.splits.items():
            line = (
                f"  {name:<{width}}  {count_of(split.records, 'record')},"
                f" {count_of(split.shards, 'shard')}, {format_bytes(split.bytes)}"
            )
            if split.rejected:
                line += f"; {split.rejected:,} left out"
            lines.append(line)
        if self.resumed_shards:
            lines.append(f"  resumed {count_of(self.resumed_shards, 'shard')} of an earlier run")
        if self.quarantine is not None:
            lines.append(f"  left out, with reasons: {self.quarantine}")
        if self.skipped:
            more = ", ..." if len(self.skipped) > _SHOWN else ""
            lines.append(
                f"  skipped {count_of(len(self.skipped), 'file')} without records:"
                f" {', '.join(self.skipped[:_SHOWN])}{more}"
            )
        lines += [Text("  ", note) for note in (*self.notes, *self.floats.lines(hint=_HINT))]
        lines += [Text("  warning: ", one) for one in self.warnings]
        return lines


_SHOWN_NOTES = 5  # names of classes and files listed


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """A split before it is written.

    Attributes:
        origin: Description of its source.
        records: Number of records; None if only reading the whole source shows it.
        estimated_records: Number of records, estimated if unknown; None without an estimate.
        estimated_bytes: Estimated size of all shards before compression.
        shards: Number of shards, as reliable as the size.
    """

    origin: str
    records: int | None
    estimated_records: int | None
    estimated_bytes: int | None
    shards: int | None

    @property
    def shard_bytes(self) -> int | None:
        """Estimated size of one shard."""
        if self.estimated_bytes is None or not self.shards:
            return None
        return self.estimated_bytes // self.shards

    def to_json(self) -> dict[str, Any]:
        """Return plain values by name."""
        return {
            "origin": self.origin,
            "records": self.records,
            "estimated_records": self.estimated_records,
            "estimated_bytes": self.estimated_bytes,
            "shards": self.shards,
            "shard_bytes": self.shard_bytes,
        }


@dataclass(frozen=True, slots=True, repr=False)
class WritePlan:
    """Plan of `datum.write`; its text is a summary.

    Attributes:
        layout: Description of the source: "class folders: 10 classes".
        splits: Planned splits by name.
        schema: Schema of the records.
        guessed: Features inferred from a sample; other records may widen them.
        looked_at: Number of records in the sample.
        metadata: More about features by name, such as `class_names`.
        compression: Compression of the shards.
        skipped: Source files without records.
        warnings: Probable problems to check before writing.
        source: A source for `datum.write` that reuses what was read for the plan. It has the
            splits, where `splits` named a source for each.
        notes: Columns of image paths that will be stored as images.
    """

    layout: str
    splits: Mapping[str, PlannedSplit]
    schema: Schema
    guessed: tuple[str, ...]
    looked_at: int
    metadata: Mapping[str, Mapping[str, Any]]
    compression: Compression | None
    skipped: tuple[str, ...]
    warnings: tuple[str, ...]
    source: Source = field(compare=False)
    notes: tuple[str, ...] = ()

    @property
    def records(self) -> int | None:
        """Number of records; None if only reading the whole source shows it."""
        return _sum([split.records for split in self.splits.values()])

    @property
    def estimated_records(self) -> int | None:
        """Number of records, estimated if unknown; None without an estimate."""
        return _sum([split.estimated_records for split in self.splits.values()])

    @property
    def estimated_bytes(self) -> int | None:
        """Estimated size of all shards, if there is an estimate."""
        return _sum([split.estimated_bytes for split in self.splits.values()])

    @property
    def class_names(self) -> Mapping[str, Sequence[str]]:
        """Class names by feature."""
        return {
            name: found["class_names"]
            for name, found in self.metadata.items()
            if "class_names" in found
        }

    def to_json(self) -> dict[str, Any]:
        """Return plain values by name, for programs; sizes are in bytes."""
        return {
            "layout": self.layout,
            "records": self.records,
            "estimated_records": self.estimated_records,
            "estimated_bytes": self.estimated_bytes,
            "splits": {name: split.to_json() for name, split in self.splits.items()},
            "schema": self.schema.to_json(),
            "guessed": list(self.guessed),
            "looked_at": self.looked_at,
            "class_names": {name: list(found) for name, found in self.class_names.items()},
            "compression": self.compression,
            "skipped": list(self.skipped),
            "notes": list(self.notes),
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        compression = f", {self.compression}" if self.compression else ""
        lines = [f"{self.layout}{compression}", "  splits:"]
        lines += _aligned({name: describe_split(split) for name, split in self.splits.items()})
        lines.append(f"  features{self._basis}:")
        lines += _aligned(
            {name: self._describe(name, feature) for name, feature in self.schema.items()}
        )
        if self.skipped:
            more = ", ..." if len(self.skipped) > _SHOWN_NOTES else ""
            lines.append(
                f"  skipped {count_of(len(self.skipped), 'file')} without records:"
                f" {', '.join(self.skipped[:_SHOWN_NOTES])}{more}"
            )
        lines += [f"  {note}" for note in self.notes]
        lines += [f"  warning: {one}" for one in self.warnings]
        return "\n".join(map(inert, lines))

    @property
    def _basis(self) -> str:
        if not self.guessed:
            return ""
        return f" (* inferred from {count_of(self.looked_at, 'record')})"

    def _describe(self, name: str, feature: Feature) -> str:
        text = repr(feature).removeprefix("Feature(").removesuffix(")")
        text += " *" if name in self.guessed else ""
        classes = self.class_names.get(name)
        if classes is None:
            return text
        more = ", ..." if len(classes) > _SHOWN_NOTES else ""
        listed = ", ".join(map(str, classes[:_SHOWN_NOTES]))
        return f"{text}, {count_of(len(classes), 'class', 'classes')}: {listed}{more}"


def describe_split(split: PlannedSplit) -> str:
    """Describe a split in one line."""
    parts = []
    if split.records is not None:
        parts.append(count_of(split.records, "record"))
    elif split.estimated_records is not None:
        parts.append(f"about {count_of(split.estimated_records, 'record')}")
    else:
        parts.append("records not counted yet")
    if split.shards is not None:
        parts.append(count_of(split.shards, "shard"))
    if split.estimated_bytes is not None:
        parts.append(f"about {format_bytes(split.estimated_bytes)}")
    origin = f", from {split.origin}" if split.origin else ""
    return ", ".join(parts) + origin


def _aligned(members: Mapping[str, str]) -> list[str]:
    width = max(map(len, members), default=0)
    return [f"    {name:<{width}}  {text}" for name, text in members.items()]


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
