"""What a write did: counts for each split, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum.errors import inert
from datum.format.wording import count_of, format_bytes
from datum.schema import FloatFacts, Schema

__all__ = ["FloatReport", "SplitReport", "WriteReport", "report_floats"]

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
