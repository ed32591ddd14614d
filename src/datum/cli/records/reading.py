"""The payloads of some records, read around whatever is damaged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from datum import CorruptIndexError, CorruptRecordError, Damage
from datum.cli.opening import open_any
from datum.cli.records.places import Asked, Place, Source
from datum.format import Index, RecordFile, Recovery

__all__ = ["Found", "read_records"]

NEAR_RECORDS = 10_000  # up to here a file is read from its start on; beyond, lengths are followed
MAX_SEARCHED_BYTES = 2**30  # of a file that does not begin with a record, to find a whole one
CHUNK_RECORDS = 256

_Payload = bytes | Damage | None  # None beyond the end of a file


@dataclass(frozen=True, slots=True)
class Found:
    """A record that was asked for: what it holds, or what is wrong with it."""

    place: Place
    payload: bytes | None
    problem: str = ""

    @classmethod
    def at(cls, place: Place, payload: _Payload) -> Found:
        """What was found at a place."""
        if isinstance(payload, bytes):
            return cls(place, payload)
        if payload is None:
            return cls(place, None, "expected a record, got the end of the file")
        where = f"bytes {payload.offset:,}-{payload.end:,} of the file"
        return cls(place, None, f"damaged: {payload.kind}, {where}")


def read_records(source: Source, asked: Asked) -> Iterator[Found]:
    """The records asked for, in that order; IndexError for a number that is outside.

    No more of them are held in memory than are read at a time.
    """
    if source.dataset is None:
        for numbers in asked.first_numbers():
            yield from _read_bare(source, numbers)
        return
    places = source.find(asked.choose(source.records or 0))
    for run in _runs(places):
        payloads = _read_numbers(run[0].file, [place.record for place in run])
        yield from map(Found.at, run, payloads)


def _runs(places: Iterable[Place]) -> Iterator[list[Place]]:
    """Places in runs that can be read from one file in one go."""
    run: list[Place] = []
    for place in places:
        if run and (place.file != run[-1].file or place.record <= run[-1].record):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _read_bare(source: Source, numbers: Sequence[int]) -> Iterator[Found]:
    """Records numbered through files that nothing describes, each read no further than need be.

    A range may go on beyond the last record; any other number has to be there.
    """
    first = 0
    for file in source.files:
        scan = _Scan(file, numbers, first)
        for record, payload in _refusing(file, scan):
            if payload is not None:
                yield Found.at(Place(None, first + record, file, record), payload)
        first += scan.passed
        numbers = scan.rest
        if not numbers:
            return
    if not isinstance(numbers, range):
        raise IndexError(
            f"{source.name}: expected a number within {first:,} records, got {numbers[0]:,}"
        )


def _refusing(file: Path, scan: _Scan) -> Iterator[tuple[int, _Payload]]:
    """What a scan gives; if nothing in the file is sound, what is wrong with the file is raised."""
    held: list[tuple[int, _Payload]] = []
    is_sound = False
    for record, payload in scan:
        is_sound = is_sound or isinstance(payload, bytes)
        held.append((record, payload))
        if is_sound:
            yield from held
            held = []
    if any(isinstance(payload, Damage) for _, payload in held) and not is_sound:
        open_any(file)
    yield from held


def _read_numbers(file: Path, numbers: Sequence[int]) -> Iterator[_Payload]:
    """The payload of each record of a file; numbers only grow."""
    try:
        if Index.find(file) is not None or numbers[-1] > NEAR_RECORDS:
            with RecordFile(file) as records:
                count = len(records) if records.compression is None else 0
            if count:
                return _read_indexed(file, numbers, count)
    except (CorruptIndexError, CorruptRecordError):
        pass  # whatever hides where records start is told record by record
    return _read_on(file, numbers)


def _read_on(file: Path, numbers: Sequence[int]) -> Iterator[_Payload]:
    scan = _Scan(file, numbers)
    for _, payload in scan:
        yield payload
    yield from (None for _ in scan.rest)


def _read_indexed(file: Path, numbers: Sequence[int], count: int) -> Iterator[_Payload]:
    with RecordFile(file) as records:
        for number in numbers:
            try:
                yield records.records([number])[0] if number < count else None
            except CorruptRecordError as error:
                if error.damage is None:
                    raise
                yield error.damage


class _Scan:
    """Records of a file in order: numbers, and what is there, or what is wrong.

    Attributes:
        passed: how many records were passed, once it is through.
    """

    def __init__(self, file: Path, numbers: Sequence[int], first: int = 0) -> None:
        self.passed = 0
        self._file = file
        self._numbers = numbers
        self._first = first  # the number of the first record of the file
        self._at = 0

    @property
    def rest(self) -> Sequence[int]:
        """The numbers that are beyond the end of the file."""
        return self._numbers[self._at :]

    def __iter__(self) -> Iterator[tuple[int, _Payload]]:
        is_small = self._file.stat().st_size <= MAX_SEARCHED_BYTES
        recovery: Recovery = "skip" if is_small else "tail"
        with RecordFile(self._file, recovery=recovery, use_index=False) as records:
            for chunk in records.runs(self._next_size):
                lost = {damage.record: damage for damage in records.damage}
                here = {number: at for at, number in enumerate(chunk.numbers.tolist())}
                self.passed = int(chunk.numbers[-1]) + 1
                for number in self._take_passed():
                    yield number, chunk[here[number]] if number in here else lost.get(number)
                if self._at == len(self._numbers):
                    return
            lost = {damage.record: damage for damage in records.damage}
            self.passed = max(self.passed, max(lost, default=-1) + 1)
        for number in self._take_passed():
            yield number, lost.get(number)

    def _take_passed(self) -> Iterator[int]:
        """The next numbers within the records that were passed, as the file counts them."""
        while self._at < len(self._numbers):
            number = self._numbers[self._at] - self._first
            if number >= self.passed:
                return
            self._at += 1
            yield number

    def _next_size(self) -> int:
        last = self._numbers[-1] - self._first if self._numbers else 0
        return max(1, min(CHUNK_RECORDS, last + 1 - self.passed))
