"""What is found of one shard, while it is being read."""

from __future__ import annotations

from datum.errors import Damage
from datum.format.wording import count_of
from datum.reading.verifying.report import Problem

__all__ = ["MAX_LISTED", "Findings"]

MAX_LISTED = 100  # problems of records of one shard; what comes after is counted

_EXPLAINED = {
    "torn header": "expected a record, got {size} at the end",
    "torn payload": "expected a whole record, got the end after {size} of it",
    "length checksum": "expected a length that fits its CRC, got another; {size} lost",
    "payload checksum": "expected a payload that fits its CRC, got another; {size} lost",
    "oversized record": "expected a record that memory is risked for, got a larger one",
    "compressed stream": "expected a whole compressed stream, got damage, or its end",
}


class Findings:
    """The problems of one shard, in the order they are told in; of many alike, the first."""

    def __init__(self, split: str, shard: str) -> None:
        self.split = split
        self.shard = shard
        self.damaged = 0  # places where bytes are not what they should be
        self.lost = 0  # those of them that cost a record: not, say, a stream cut after the last one
        self._of_file: list[Problem] = []
        self._of_records: list[Problem] = []
        self._hidden = 0

    def tell(self, kind: str, text: str) -> None:
        """Note what is wrong with the file as a whole."""
        self._of_file.append(Problem(self.split, self.shard, kind, text))

    def tell_damage(self, damage: Damage) -> None:
        """Note that bytes are damaged."""
        self.damaged += 1
        self.lost += damage.end > damage.offset
        size = count_of(damage.end - damage.offset, "byte")
        text = _EXPLAINED.get(damage.kind, "expected a sound record, got damage").format(size=size)
        place = (damage.record, damage.offset, damage.end)
        self._add(Problem(self.split, self.shard, damage.kind, text, *place))

    def tell_record(
        self, kind: str, text: str, place: tuple[int, int | None], *, feature: str | None = None
    ) -> None:
        """Note that a record that is whole cannot be used; `place` is its number and offset."""
        record, offset = place
        self._add(Problem(self.split, self.shard, kind, text, record, offset, feature=feature))

    def _add(self, problem: Problem) -> None:
        if len(self._of_records) < MAX_LISTED:
            self._of_records.append(problem)
        else:
            self._hidden += 1

    @property
    def problems(self) -> list[Problem]:
        """All of them: those of the file, then those of records by their number."""
        found = self._of_file + sorted(self._of_records, key=lambda one: one.record or 0)
        if self._hidden:
            text = f"{count_of(self._hidden, 'more problem')} of records"
            found.append(Problem(self.split, self.shard, "more", text))
        return found
