"""What a write did: counts for each split, and how long it took."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from datum.format.wording import count_of, format_bytes

__all__ = ["SplitReport", "WriteReport"]

_SHOWN = 3  # names of files, where there may be many


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
        notes: what was done to images, and what they come back as where they differ.
    """

    path: Path
    splits: Mapping[str, SplitReport]
    seconds: float
    resumed_shards: int = 0
    quarantine: Path | None = None
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
        lines += [f"  {note}" for note in self.notes]
        return "\n".join(lines)
