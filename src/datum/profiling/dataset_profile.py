"""The profile of a dataset: what its records are like, and what of that may hurt a training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datum.errors import inert
from datum.format import Compression
from datum.format.wording import count_of, format_bytes
from datum.profiling.results import Duplicates, FeatureProfile, ProfileWarning, SplitProfile
from datum.profiling.wording import describe_feature
from datum.reading.contents import Writer
from datum.writing.report import FloatReport

__all__ = ["Profile"]


@dataclass(frozen=True, slots=True)
class Profile:
    """What `datum.profile` found; `str()` of it is a summary.

    Attributes:
        path: the folder of the dataset.
        writer: who described it: "datum", "tfds", "older datum", or nobody ("tfrecord files").
        version: of the format, if Datum wrote it.
        compression: of the shards; None too where they differ.
        splits: what the records of each split are like.
        features: what each feature is like in all these splits together. Of samples each counts
            as much as its split has records.
        duplicates: records that are there more than once.
        warnings: what a training may suffer from, the gravest first.
        seconds: how long it took to find out.
        floats: which features were rounded to float32 when they were written.
    """

    path: Path
    writer: Writer
    version: int | None
    compression: Compression | None
    splits: Mapping[str, SplitProfile]
    features: Mapping[str, FeatureProfile]
    duplicates: tuple[Duplicates, ...]
    warnings: tuple[ProfileWarning, ...]
    seconds: float
    floats: FloatReport = field(default_factory=FloatReport)

    @property
    def records(self) -> int:
        """How many records the splits have."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """How many bytes they take on disk."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def shards(self) -> int:
        """In how many files they lie."""
        return sum(split.shards for split in self.splits.values())

    @property
    def seen(self) -> int:
        """How many records were looked at."""
        return sum(split.seen for split in self.splits.values())

    @property
    def is_complete(self) -> bool:
        """Whether all records were looked at."""
        return self.seen == self.records

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `json.dumps`; numbers that are not finite stay floats."""
        return {
            "path": str(self.path),
            "writer": self.writer,
            "version": self.version,
            "compression": self.compression,
            "records": self.records,
            "bytes": self.bytes,
            "shards": self.shards,
            "seen": self.seen,
            "complete": self.is_complete,
            "seconds": self.seconds,
            "splits": {name: split.to_json() for name, split in self.splits.items()},
            "features": {name: one.to_json() for name, one in self.features.items()},
            "duplicates": [one.to_json() for one in self.duplicates],
            "warnings": [warning.to_json() for warning in self.warnings],
            "rounded": list(self.floats.rounded),
        }

    def save(self) -> Path:
        """Put the statistics into the manifest, so that later looks know them of all records.

        Nothing else is changed. WriteError if not all records and features were looked at, or if
        there is no manifest: `Dataset.save_manifest` writes one.
        """
        from datum.profiling.saving import save_statistics  # which knows profiles

        return save_statistics(self)

    def __str__(self) -> str:
        seen = "all" if self.is_complete else f"{self.seen:,} of {self.records:,}"
        lines = [f"{self.path}: {count_of(self.records, 'record')}, {seen} looked at"]
        width = max(map(len, self.splits), default=0)
        for name, split in self.splits.items():
            records, shards = count_of(split.records, "record"), count_of(split.shards, "shard")
            lines.append(f"  {name:<{width}}  {records}, {shards}, {format_bytes(split.bytes)}")
        width = max(map(len, self.features), default=0)
        lines += ["features:"] if self.features else []
        lines += [
            f"  {name:<{width}}  {describe_feature(one)}" for name, one in self.features.items()
        ]
        lines += self.floats.lines()
        lines += ["warnings:"] if self.warnings else []
        return "\n".join(map(inert, [*lines, *(f"  {one}" for one in self.warnings)]))
