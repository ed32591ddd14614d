"""What a verification found: problems by file, record and byte, and what else is worth telling."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from datum.errors import inert
from datum.format.wording import count_of, format_bytes

__all__ = ["Problem", "VerifyReport"]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong at one place.

    Attributes:
        split: the split of the shard.
        shard: the file, as the dataset names it.
        kind: "missing file", "unreadable file", "size", "file checksum", "compression",
            "record count" or "index" of a whole file; "torn header", "torn payload",
            "length checksum", "payload checksum", "oversized record" or "compressed stream" where
            bytes are damaged; "malformed", "schema" or "image" of a record that is whole but cannot
            be used; "statistics" of a split; "more" for what is only counted.
        text: what was expected, and what was got.
        record: its number in the shard; each damaged place counts as one record.
        offset: the first byte, counted in the decompressed stream if the file is compressed.
        end: the first byte after it.
        feature: the name of the feature.

    >>> print(Problem("train", "a.tfrecord", "schema", "expected 1 values, got 2", record=7))
    a.tfrecord: record 7: schema: expected 1 values, got 2
    """

    split: str
    shard: str
    kind: str
    text: str
    record: int | None = None
    offset: int | None = None
    end: int | None = None
    feature: str | None = None

    @property
    def place(self) -> str:
        """Where in the file it is: "record 7 at byte 312, feature 'x'"; empty for all of it."""
        record = "" if self.record is None else f"record {self.record}"
        offset = "" if self.offset is None else f"at byte {self.offset}"
        feature = "" if self.feature is None else f"feature {self.feature!r}"
        where = f"{record} {offset}".strip()
        return ", ".join(part for part in (where, feature) if part)

    def __str__(self) -> str:
        parts = (self.shard, self.place, self.kind, self.text)
        return ": ".join(inert(part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What was found; `str()` of it is a summary.

    Attributes:
        path: the folder of the dataset.
        records: how many sound records were read.
        bytes: how many bytes of shards were read.
        shards: how many shards there should be.
        problems: what is wrong, in the order of the shards.
        notes: what is no fault of the dataset, but worth knowing: leftovers, strays.
        lost: how many records are not sound, as far as that can be told: where nothing says how
            many there should be, each damaged place counts as one.
        is_deep: whether images were decoded, and statistics compared.
        images: how many images were decoded.
        seconds: how long it took; two reports may differ in it and be equal.
    """

    path: Path
    records: int
    bytes: int
    shards: int
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    lost: int = 0
    is_deep: bool = False
    images: int = 0
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_json(self) -> dict[str, Any]:
        """Plain values, of the names above."""
        return {
            "path": str(self.path),
            "is_sound": self.is_sound,
            "records": self.records,
            "lost": self.lost,
            "bytes": self.bytes,
            "shards": self.shards,
            "seconds": round(self.seconds, 6),
            "is_deep": self.is_deep,
            "images": self.images,
            "problems": [asdict(problem) for problem in self.problems],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        found = count_of(len(self.problems), "problem") if self.problems else "sound"
        records, shards = count_of(self.records, "record"), count_of(self.shards, "shard")
        lost = f", {count_of(self.lost, 'record')} lost" if self.lost else ""
        first = f"{self.path}: {found}: {records}, {shards}, {format_bytes(self.bytes)} read{lost}"
        problems = [f"  {problem}" for problem in self.problems]
        return "\n".join(map(inert, [first, *problems, *(f"  note: {one}" for one in self.notes)]))
