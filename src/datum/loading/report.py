"""What a loader has read, and what it had to leave out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from datum.errors import Damage
from datum.format.wording import count_of

__all__ = ["LoadReport"]

MAX_LISTED = 1000  # all damage is counted; of much more than this a list helps nobody


@dataclass(slots=True)
class LoadReport:
    """Counts of the current pass, or of the last one.

    Attributes:
        batches: how many were given.
        records: how many records they had.
        skipped: how many damaged records were left out.
        damage: where the first of these lie.
    """

    batches: int = 0
    records: int = 0
    skipped: int = 0
    damage: list[Damage] = field(default_factory=list)

    def add(self, records: int, damage: Iterable[Damage]) -> None:
        """Count one more batch."""
        found = list(damage)
        self.batches += 1
        self.records += records
        self.skipped += len(found)
        self.damage += found[: MAX_LISTED - len(self.damage)]

    def __str__(self) -> str:
        given = (
            f"{count_of(self.records, 'record')} in {count_of(self.batches, 'batch', 'batches')}"
        )
        lines = [f"{given}, {self.skipped:,} skipped"]
        lines += [f"  {damage}" for damage in self.damage[:5]]
        if self.skipped > 5:
            lines.append(f"  and {self.skipped - 5:,} more")
        return "\n".join(lines)
