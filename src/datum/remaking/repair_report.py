"""What a repair saved, and what was lost: where, how much, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from datum.errors import Damage, inert
from datum.format.wording import count_of

__all__ = ["Loss", "RepairReport"]

SHOWN_LOSSES = 20
SCHEMA_HINT = "pass the features you know: datum.repair(path, out, schema={...})"


@dataclass(frozen=True, slots=True)
class Loss:
    """One place where records were lost.

    Attributes:
        split: whose records they were.
        damage: the file, the bytes, and what is wrong with them. Beside the kinds of damage to
            files these are "missing file", "missing end" (of a file that was cut between two
            records), "malformed" (no tf.train.Example), "schema" (not what the schema says) and
            "image" (one that cannot be decoded).
        records: how many records were lost there; None if that cannot be told.
        reason: more about it; empty where the kind says all.
    """

    split: str
    damage: Damage
    records: int | None
    reason: str = ""

    @property
    def bytes(self) -> int:
        """How many bytes were lost, of the decompressed file if it is compressed."""
        return self.damage.end - self.damage.offset

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        damage = self.damage
        return {
            "split": self.split,
            "file": damage.file,
            "offset": damage.offset,
            "bytes": self.bytes,
            "record": damage.record,
            "records": self.records,
            "kind": damage.kind,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        count = "" if self.records in (None, 1) else f" ({count_of(self.records or 0, 'record')})"
        reason = f": {self.reason}" if self.reason else ""
        return inert(f"{self.damage}{count}{reason}")


@dataclass(frozen=True, slots=True, repr=False)
class RepairReport:
    """What `datum.repair` did; `str()` of it is a summary.

    Attributes:
        path: what was repaired; it is as it was.
        out: the folder that what is whole was written to.
        form: "dataset", or "files": plain TFRecord files without a manifest, for records that are
            no Examples.
        kept: how many records of each split were saved.
        lost: how many of each split were lost; None where nothing says how many there were.
        losses: where, in the order of the files.
        notes: what else is to be known.
        seconds: how long it took.
        forgotten: what only the manifest recorded and is lost or doubtful, one line each: types,
            shapes, class names. The records keep their bytes, but may be read as other types.
    """

    path: Path
    out: Path
    form: Literal["dataset", "files"]
    kept: Mapping[str, int]
    lost: Mapping[str, int | None]
    losses: tuple[Loss, ...]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    forgotten: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many records were saved."""
        return sum(self.kept.values())

    @property
    def lost_records(self) -> int | None:
        """How many records were lost; None where that cannot be told."""
        counts = [count for count in self.lost.values() if count is not None]
        return sum(counts) if len(counts) == len(self.lost) else None

    @property
    def is_whole(self) -> bool:
        """Whether nothing was lost: neither records, nor what was known of them."""
        return not self.losses and not self.lost_records and not self.forgotten

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "path": str(self.path),
            "out": str(self.out),
            "form": self.form,
            "kept": dict(self.kept),
            "lost": dict(self.lost),
            "kinds": dict(sorted(Counter(loss.damage.kind for loss in self.losses).items())),
            "losses": [loss.to_json() for loss in self.losses],
            "forgotten": list(self.forgotten),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        lines = [f"{self.out}: {count_of(self.records, 'record')} saved{self._describe_lost()}"]
        width = max(map(len, self.kept), default=0)
        for name, kept in self.kept.items():
            lost = self.lost[name]
            told = "how many were lost is not known" if lost is None else f"{lost:,} lost"
            lines.append(f"  {name:<{width}}  {kept:,} saved, {told}")
        lines += [f"  {loss}" for loss in self.losses[:SHOWN_LOSSES]]
        if len(self.losses) > SHOWN_LOSSES:
            lines.append(f"  and {count_of(len(self.losses) - SHOWN_LOSSES, 'place')} more")
        lines += [f"  lost: {line}" for line in self.forgotten]
        if self.forgotten:
            lines.append(f"  hint: {SCHEMA_HINT}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def __repr__(self) -> str:
        return str(self)

    def _describe_lost(self) -> str:
        if self.is_whole:
            return ", nothing was lost"
        lost = self.lost_records
        if not self.losses and not lost:
            return ", no records lost, but part of the schema or metadata"
        return f", {lost:,} lost" if lost is not None else f", damage in {self._places()}"

    def _places(self) -> str:
        return count_of(len(self.losses), "place")
