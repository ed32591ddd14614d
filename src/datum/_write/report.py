"""Progress of a write, its plan, and its report."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum.errors import count_of, format_bytes, inert
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

LINE_SECONDS = 10.0  # between two lines where there is no terminal


class Progress:
    """Counts records and bytes; says nothing."""

    def __init__(self) -> None:
        self.records = 0
        self.nbytes = 0
        self.total: int | None = None
        self.started = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        """Begin anew: `total` records are to come, None if nobody knows."""
        self.records, self.nbytes, self.total = 0, 0, total
        self.started = time.monotonic()
        self._name(name)

    def advance(self, records: int, nbytes: int) -> None:
        """Count some records as done."""
        self.records += records
        self.nbytes += nbytes
        self._show()

    def _name(self, name: str) -> None:
        pass

    def _show(self) -> None:
        pass

    @property
    def rates(self) -> tuple[float, float]:
        """Records and bytes a second."""
        seconds = max(time.monotonic() - self.started, 1e-9)
        return self.records / seconds, self.nbytes / seconds


class _Lines(Progress):
    """One line after each while."""

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
    """A bar of rich's."""

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
    """Whether there is a terminal to write to; None if there is nothing to write to at all."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):  # there is no stream, or it is closed
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


_SHOWN = 3  # names of files, where there may be many
_SHOWN_FEATURES = 8
_HINT = " (floats='float64' keeps every bit)"


@dataclass(frozen=True, slots=True)
class SplitReport:
    """What was written of one split.

    Attributes:
        records: how many records were written by this call.
        bytes: how many bytes their shards take.
        shards: how many shards hold them.
        rejected: how many records were left out because they could not be written.
    """

    records: int
    bytes: int
    shards: int
    rejected: int = 0


@dataclass(frozen=True, slots=True)
class FloatReport:
    """What became of float64 values that were to be stored as float32.

    Attributes:
        rounded: features whose values were rounded to float32.
        kept: features that stay float64, as float32 cannot serve a value of theirs: the split, the
            record and the value of the first.
    """

    rounded: tuple[str, ...] = ()
    kept: Mapping[str, tuple[str, int, float]] = field(default_factory=dict)

    def to_metadata(self) -> dict[str, dict[str, Any]]:
        """What a manifest says of the features."""
        found: dict[str, dict[str, Any]] = {
            name: {"rounded_from": "float64"} for name in self.rounded
        }
        for name, (split, record, value) in self.kept.items():
            found[name] = {"kept_float64": {"split": split, "record": record, "value": value}}
        return found

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Mapping[str, Any]]) -> FloatReport:
        """Read what `to_metadata` made."""
        kept = {
            name: one["kept_float64"] for name, one in metadata.items() if "kept_float64" in one
        }
        return cls(
            tuple(name for name, found in metadata.items() if "rounded_from" in found),
            {name: (one["split"], one["record"], one["value"]) for name, one in kept.items()},
        )

    def lines(self, *, hint: str = "") -> list[str]:
        """The same in words, with a hint on how nothing would be rounded."""
        found = []
        if self.rounded:
            found.append(f"rounded to float32: {_shortened(self.rounded)}{hint}")
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
    """What became of floats, by what was found in each split."""
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
    """What `datum.write` did; it shows itself as a summary.

    Attributes:
        path: the folder of the dataset.
        splits: what was written of each split.
        seconds: how long it took.
        resumed_shards: how many shards an interrupted run had finished already.
        quarantine: the file that lists rejected records with their reasons, if there is one.
        skipped: files of the source that hold no records, such as notes among images.
        notes: what was assumed of files of text; what was done to images, and what they come back
            as where they differ; which columns of text are stored as
            the images that they name.
        floats: which features were rounded to float32, and which stay float64 as that cannot be.
        warnings: what looks like a mistake in the source, such as images that no class has.
    """

    path: Path
    splits: Mapping[str, SplitReport]
    seconds: float
    resumed_shards: int = 0
    quarantine: Path | None = None
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    floats: FloatReport = FloatReport()
    warnings: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records were written."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """How many bytes the shards take."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def shards(self) -> int:
        """How many shards there are."""
        return sum(split.shards for split in self.splits.values())

    @property
    def quarantined(self) -> Mapping[str, int]:
        """How many records of each split were left out."""
        return {name: split.rejected for name, split in self.splits.items()}

    def __repr__(self) -> str:
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
            lines.append(f"  {count_of(self.resumed_shards, 'shard')} of an earlier run kept")
        if self.quarantine is not None:
            lines.append(f"  left out, with reasons: {self.quarantine}")
        if self.skipped:
            more = ", ..." if len(self.skipped) > _SHOWN else ""
            lines.append(
                f"  {count_of(len(self.skipped), 'file')} without records passed by:"
                f" {', '.join(self.skipped[:_SHOWN])}{more}"
            )
        lines += [f"  {note}" for note in (*self.notes, *self.floats.lines(hint=_HINT))]
        lines += [f"  warning: {one}" for one in self.warnings]
        return "\n".join(map(inert, lines))


_SHOWN_NOTES = 5  # names of classes and files, where there may be many


@dataclass(frozen=True, slots=True)
class PlannedSplit:
    """What is known of a split before it is written.

    Attributes:
        origin: where its records come from, in words.
        records: how many there are; None if only reading all of the source tells.
        estimated_records: the same where it is known, else a guess; None if there is none.
        estimated_bytes: about how large all shards are together, before they are compressed.
        shards: how many there will be; a guess where the bytes are one.
    """

    origin: str
    records: int | None
    estimated_records: int | None
    estimated_bytes: int | None
    shards: int | None

    @property
    def shard_bytes(self) -> int | None:
        """About how large a shard is."""
        if self.estimated_bytes is None or not self.shards:
            return None
        return self.estimated_bytes // self.shards

    def to_json(self) -> dict[str, Any]:
        """Plain values by name."""
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
    """What `datum.write` would do; it shows itself as a summary.

    Attributes:
        layout: what was found, in words: "class folders: 10 classes".
        splits: what is known of each split.
        schema: what each record will hold.
        guessed: the features of which some records alone were looked at: others may widen them.
        looked_at: how many records were.
        metadata: what else is known of features, by their names, such as `class_names`.
        compression: of the shards.
        skipped: files of the source that hold no records.
        warnings: what to look at before writing.
        source: gives a write what was found here, so that it is not looked for twice. Where
            `splits` named a source each, it has those splits.
        notes: which columns of text will be stored as the images that they name.
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
        """How many records there are; None if only reading all of the source tells."""
        return _sum([split.records for split in self.splits.values()])

    @property
    def estimated_records(self) -> int | None:
        """The same where it is known, else a guess, if there is one."""
        return _sum([split.estimated_records for split in self.splits.values()])

    @property
    def estimated_bytes(self) -> int | None:
        """About how large all shards are together, if that can be told."""
        return _sum([split.estimated_bytes for split in self.splits.values()])

    @property
    def class_names(self) -> Mapping[str, Sequence[str]]:
        """The names of classes, by feature."""
        return {
            name: found["class_names"]
            for name, found in self.metadata.items()
            if "class_names" in found
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values by name, for programs; sizes are in bytes."""
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
        lines.append(f"  features{self._told_by}:")
        lines += _aligned(
            {name: self._describe(name, feature) for name, feature in self.schema.items()}
        )
        if self.skipped:
            more = ", ..." if len(self.skipped) > _SHOWN_NOTES else ""
            lines.append(
                f"  {count_of(len(self.skipped), 'file')} without records:"
                f" {', '.join(self.skipped[:_SHOWN_NOTES])}{more}"
            )
        lines += [f"  {note}" for note in self.notes]
        lines += [f"  warning: {one}" for one in self.warnings]
        return "\n".join(map(inert, lines))

    @property
    def _told_by(self) -> str:
        if not self.guessed:
            return ""
        return f" (those marked * as {count_of(self.looked_at, 'record')} have them)"

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
    """A split in one line."""
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
