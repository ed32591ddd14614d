"""Selection of records by number, and their payloads, read around damage."""

from __future__ import annotations

import bisect
import glob
import itertools
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datum import CorruptIndexError, CorruptRecordError, Damage
from datum.cli.arguments import open_any
from datum.errors import Message
from datum.format import Index, RecordFile, Recovery

if TYPE_CHECKING:
    from datum import Dataset, Schema

__all__ = [
    "Asked",
    "Found",
    "Place",
    "Source",
    "find_bare_files",
    "open_source",
    "parse_numbers",
    "read_records",
]

DESCRIPTIONS = ("datum.json", "shard_info.json", "dataset_info.json", "features.json")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_RANGE = re.compile(r"([+-]?[0-9]{1,18})?:([+-]?[0-9]{1,18})?")
_MOST = 10**18  # greatest number of records in a range

Numbers = Sequence[int | slice]


@dataclass(frozen=True, slots=True)
class Asked:
    """The records to show.

    Attributes:
        count: Number of records, unless numbers are given.
        numbers: Numbers and ranges of records.
        is_random: Whether to draw `count` records at random.
        seed: Seed of the random draw.
    """

    count: int = 5
    numbers: Numbers = ()
    is_random: bool = False
    seed: int | None = None

    @property
    def is_from_the_start(self) -> bool:
        """Whether they can be found without knowing the number of records."""
        return not self.is_random and not any(map(_counts_from_the_end, self.numbers))

    def first_numbers(self) -> Iterator[Sequence[int]]:
        """Yield the selected numbers in ascending runs, if none counts from the end.

        A range stays a range, because the number of records is unknown.
        """
        if not self.numbers:
            yield range(min(self.count, _MOST))
        run: list[int] = []
        for item in self.numbers:
            if run and (isinstance(item, slice) or item <= run[-1]):
                yield run
                run = []
            if isinstance(item, slice):
                yield range(item.start or 0, item.stop)
            else:
                run.append(item)
        if run:
            yield run

    def choose(self, records: int) -> list[int]:
        """Return the selected numbers out of `records`; numbers outside stay unchanged."""
        if self.is_random:
            taken = min(self.count, records)
            return sorted(random.Random(self.seed).sample(range(records), taken))
        if not self.numbers:
            return list(range(min(self.count, records)))
        found: list[int] = []
        for item in self.numbers:
            if isinstance(item, slice):
                found += range(*item.indices(records))
            else:
                found.append(item + records if -records <= item < 0 else item)
        return found


def _counts_from_the_end(item: int | slice) -> bool:
    if isinstance(item, int):
        return item < 0
    return item.stop is None or item.stop < 0 or (item.start or 0) < 0


@dataclass(frozen=True, slots=True)
class Place:
    """Position of a record: its number in its split, its file, and its number there."""

    split: str | None
    number: int
    file: Path
    record: int


@dataclass(frozen=True, slots=True)
class Source:
    """Records to select from.

    Attributes:
        name: Path given by the user.
        dataset: The dataset; None for files without a description.
        split: Selected split.
        files: Files without a description.
        is_described: Whether the dataset has a schema of its own.
    """

    name: str
    dataset: Dataset | None = None
    split: str | None = None
    files: tuple[Path, ...] = ()
    is_described: bool = False

    @property
    def schema(self) -> Schema | None:
        """Schema of the records, if known before reading."""
        return self.dataset.schema if self.dataset is not None and self.is_described else None

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """Metadata by feature."""
        return {} if self.dataset is None else self.dataset.metadata

    @property
    def records(self) -> int | None:
        """Number of records, if known."""
        if self.dataset is None or self.split is None:
            return None
        return len(self.dataset[self.split])

    def find(self, numbers: Sequence[int]) -> list[Place]:
        """Return the places of records by number."""
        if self.dataset is None or self.split is None:
            raise ValueError(Message("expected a dataset, got files whose records are not counted"))
        split = self.dataset[self.split]
        outside = [one for one in numbers if not 0 <= one < len(split)]
        if outside:
            raise IndexError(
                Message(
                    f"split {self.split!r}: expected a number within {len(split):,} records,"
                    f" got {outside[0]:,}"
                )
            )
        ends = list(itertools.accumulate((len(run) for run in split.runs), initial=0))
        places = []
        for number in numbers:
            at = bisect.bisect_right(ends, number) - 1
            run = split.runs[at]
            file = self.dataset.path / run.shard.name
            places.append(Place(self.split, number, file, run.start + number - ends[at]))
        return places


def parse_numbers(given: Iterable[str]) -> list[int | slice]:
    """Parse numbers of records: "17", "-1", "10:20", or several with commas.

    >>> parse_numbers(["3,-1", "10:20"])
    [3, -1, slice(10, 20, None)]
    """
    found: list[int | slice] = []
    for word in (word.strip() for text in given for word in text.split(",")):
        ends = _RANGE.fullmatch(word)
        if _NUMBER.fullmatch(word):
            found.append(int(word))
        elif ends:
            start, stop = (None if end is None else int(end) for end in ends.groups())
            found.append(slice(start, stop))
        else:
            raise ValueError(
                Message(f"--index: expected a number such as 17 or -1, or 10:20, got {word!r}")
            )
    return found


def open_source(
    path: str, *, split: str | None, asked: Asked, follow_links: bool = False
) -> Source:
    """Open the records at a path without reading more of them than needed.

    Files without a description are not scanned, unless the number of records is needed.
    """
    if split is None and asked.is_from_the_start:
        files = find_bare_files(path)
        if files:
            return Source(path, files=tuple(files))
    opened = open_any(path, follow_links=follow_links)
    ds = opened.dataset
    chosen = split or _default_split(ds)
    return Source(path, ds, chosen, is_described=opened.unknown is None)


def _default_split(ds: Dataset) -> str:
    with_records = [name for name, info in ds.splits.items() if info.records]
    return "train" if "train" in with_records else (with_records or list(ds.splits))[0]


def find_bare_files(path: str) -> list[Path]:
    """Return the record files at a path without a description; empty if there is one."""
    place = Path(path).expanduser()
    if place.is_file():
        return [] if place.suffix == ".json" else [place]
    if place.is_dir():
        if any((place / name).exists() for name in DESCRIPTIONS):
            return []
        found = [one for one in place.iterdir() if one.is_file()]
    elif glob.has_magic(path):
        found = [Path(name) for name in glob.glob(str(place), recursive=True)]  # noqa: PTH207
        found = [one for one in found if one.is_file()]
    else:
        return []
    named = [one for one in found if not one.name.startswith((".", "_")) and _may_hold_records(one)]
    return sorted(named, key=_order)


def _may_hold_records(path: Path) -> bool:
    """Return whether a file is named like a record file."""
    name = path.name.lower()
    is_beside = name.endswith((".index", ".idx", ".json", ".txt", ".csv", ".md"))
    return not is_beside and bool(re.search(r"tfrec|\.records?\b|\.tfr\b|-of-[0-9]+", name))


def _order(path: Path) -> tuple[bool, list[Any]]:
    """Sort key: training data first, numbers in names by value."""
    parts = re.split(r"([0-9]+)", path.name)
    numbered = [int(part) if at % 2 else part for at, part in enumerate(parts)]
    return "train" not in path.name.lower(), numbered


NEAR_RECORDS = 10_000  # read from the start of a file; beyond, an index is built
MAX_SEARCHED_BYTES = 2**30  # searched for a good record in a file with a bad start
CHUNK_RECORDS = 256

_Payload = bytes | Damage | None  # None beyond the end of a file


@dataclass(frozen=True, slots=True)
class Found:
    """A selected record: its payload or its problem."""

    place: Place
    payload: bytes | None
    problem: str = ""

    @classmethod
    def at(cls, place: Place, payload: _Payload) -> Found:
        """Make one from the payload or damage at a place."""
        if isinstance(payload, bytes):
            return cls(place, payload)
        if payload is None:
            return cls(place, None, "expected a record, got the end of the file")
        where = f"bytes {payload.offset:,}-{payload.end:,} of the file"
        return cls(place, None, f"damaged: {payload.kind}, {where}")


def read_records(source: Source, asked: Asked) -> Iterator[Found]:
    """Yield the selected records in order; raise IndexError for a number outside.

    Only the records being read are held in memory.
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
    """Group places into runs that one pass over a file reads."""
    run: list[Place] = []
    for place in places:
        if run and (place.file != run[-1].file or place.record <= run[-1].record):
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _read_bare(source: Source, numbers: Sequence[int]) -> Iterator[Found]:
    """Read records numbered across files without a description, no further than needed.

    A range may end beyond the last record; any other number must exist.
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
            Message(
                f"{source.name}: expected a number within {first:,} records, got {numbers[0]:,}"
            )
        )


def _refusing(file: Path, scan: _Scan) -> Iterator[tuple[int, _Payload]]:
    """Yield the results of a scan; raise the error of the file if nothing in it is good."""
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
    """Payloads of records of a file, by ascending numbers."""
    try:
        if Index.find(file) is not None or numbers[-1] > NEAR_RECORDS:
            with RecordFile(file) as records:
                count = len(records) if records.compression is None else 0
            if count:
                return _read_indexed(file, numbers, count)
    except (CorruptIndexError, CorruptRecordError):
        pass  # the scan reports damage record by record
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
    """Iterator over records of a file by ascending numbers, with payload or damage.

    Attributes:
        passed: Number of records passed so far.
    """

    def __init__(self, file: Path, numbers: Sequence[int], first: int = 0) -> None:
        self.passed = 0
        self._file = file
        self._numbers = numbers
        self._first = first  # number of the file's first record
        self._at = 0

    @property
    def rest(self) -> Sequence[int]:
        """Numbers beyond the end of the file."""
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
        """Next numbers among the records passed, counted within the file."""
        while self._at < len(self._numbers):
            number = self._numbers[self._at] - self._first
            if number >= self.passed:
                return
            self._at += 1
            yield number

    def _next_size(self) -> int:
        last = self._numbers[-1] - self._first if self._numbers else 0
        return max(1, min(CHUNK_RECORDS, last + 1 - self.passed))
