"""What a write would do, as it is told before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from datum.errors import inert
from datum.format import Compression
from datum.format.wording import count_of, format_bytes
from datum.schema import Feature, Schema
from datum.sources import Source

__all__ = ["PlannedSplit", "WritePlan"]

_SHOWN = 5  # names of classes and files, where there may be many


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
            more = ", ..." if len(self.skipped) > _SHOWN else ""
            lines.append(
                f"  {count_of(len(self.skipped), 'file')} without records:"
                f" {', '.join(self.skipped[:_SHOWN])}{more}"
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
        more = ", ..." if len(classes) > _SHOWN else ""
        listed = ", ".join(map(str, classes[:_SHOWN]))
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
