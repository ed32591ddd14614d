"""What an export made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datum.errors import inert
from datum.format.wording import count_of, format_bytes

__all__ = ["ExportReport", "ExportedSplit"]


@dataclass(frozen=True, slots=True)
class ExportedSplit:
    """What was made of one split.

    Attributes:
        records: how many it has.
        bytes: how large its files are.
        files: how many there are.
    """

    records: int
    bytes: int
    files: int


@dataclass(frozen=True, slots=True, repr=False)
class ExportReport:
    """What `datum.export_to` did; it shows itself as a summary.

    Attributes:
        path: the folder, or the one file.
        format: "parquet", "jsonl" or "images".
        splits: what was made of each split.
        seconds: how long it took.
    """

    path: Path
    format: str
    splits: Mapping[str, ExportedSplit]
    seconds: float

    @property
    def records(self) -> int:
        """How many records were exported."""
        return sum(split.records for split in self.splits.values())

    @property
    def bytes(self) -> int:
        """How large all files are."""
        return sum(split.bytes for split in self.splits.values())

    @property
    def files(self) -> int:
        """How many files there are."""
        return sum(split.files for split in self.splits.values())

    def to_json(self) -> dict[str, Any]:
        """Plain values by name, for programs; sizes are in bytes."""
        return {
            "path": str(self.path),
            "format": self.format,
            "records": self.records,
            "bytes": self.bytes,
            "files": self.files,
            "seconds": round(self.seconds, 3),
            "splits": {
                name: {"records": split.records, "bytes": split.bytes, "files": split.files}
                for name, split in self.splits.items()
            },
        }

    def __repr__(self) -> str:
        records = count_of(self.records, "record")
        lines = [f"{self.path}: {records} as {self.format} in {self.seconds:.1f} s"]
        width = max(map(len, self.splits), default=0)
        lines += [
            f"  {name:<{width}}  {count_of(split.records, 'record')},"
            f" {count_of(split.files, 'file')}, {format_bytes(split.bytes)}"
            for name, split in self.splits.items()
        ]
        return "\n".join(map(inert, lines))
