"""Which records are asked for, and in which files they lie."""

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

from datum.cli.opening import open_any

if TYPE_CHECKING:
    from datum import Dataset, Schema

__all__ = ["Asked", "Place", "Source", "find_bare_files", "open_source", "parse_numbers"]

DESCRIPTIONS = ("datum.json", "shard_info.json", "dataset_info.json", "features.json")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}")
_RANGE = re.compile(r"([+-]?[0-9]{1,18})?:([+-]?[0-9]{1,18})?")
_MOST = 10**18  # records that a range can count

Numbers = Sequence[int | slice]


@dataclass(frozen=True, slots=True)
class Asked:
    """The records that a user wants to see.

    Attributes:
        count: how many, if no numbers are given.
        numbers: which ones.
        is_random: whether to take `count` by chance.
        seed: of the chance.
    """

    count: int = 5
    numbers: Numbers = ()
    is_random: bool = False
    seed: int | None = None

    @property
    def is_from_the_start(self) -> bool:
        """Whether they can be found without knowing how many there are."""
        return not self.is_random and not any(map(_counts_from_the_end, self.numbers))

    def first_numbers(self) -> Iterator[Sequence[int]]:
        """The numbers asked for in runs that only grow, where none counts from the end.

        A range stays one: how far the records go is not known, and "all" may be any number.
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
        """The numbers asked for, of so many records; those outside are left as they are."""
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
    """Where a record lies: its number in its split, its file, and its number there."""

    split: str | None
    number: int
    file: Path
    record: int


@dataclass(frozen=True, slots=True)
class Source:
    """Records to choose from.

    Attributes:
        name: what they are called.
        dataset: the dataset that they are of; None for files that nothing describes.
        split: which part of it.
        files: those of no dataset.
        is_described: whether the schema is known from more than the records.
    """

    name: str
    dataset: Dataset | None = None
    split: str | None = None
    files: tuple[Path, ...] = ()
    is_described: bool = False

    @property
    def schema(self) -> Schema | None:
        """What each record holds, if that is known beforehand."""
        return self.dataset.schema if self.dataset is not None and self.is_described else None

    @property
    def metadata(self) -> Mapping[str, Mapping[str, Any]]:
        """What else is known of features."""
        return {} if self.dataset is None else self.dataset.metadata

    @property
    def records(self) -> int | None:
        """How many there are, if that is known."""
        if self.dataset is None or self.split is None:
            return None
        return len(self.dataset[self.split])

    def find(self, numbers: Sequence[int]) -> list[Place]:
        """The places of records of a dataset, by their numbers."""
        if self.dataset is None or self.split is None:
            raise ValueError("expected a dataset, got files whose records are not counted")
        split = self.dataset[self.split]
        outside = [one for one in numbers if not 0 <= one < len(split)]
        if outside:
            raise IndexError(
                f"split {self.split!r}: expected a number within {len(split):,} records,"
                f" got {outside[0]:,}"
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
    """Numbers of records: "17", "-1", "10:20", several of them with commas.

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
            raise ValueError(f"--index: expected a number such as 17 or -1, or 10:20, got {word!r}")
    return found


def open_source(
    path: str, *, split: str | None, asked: Asked, follow_links: bool = False
) -> Source:
    """The records at a path, without reading more of them than need be.

    Files that nothing describes are not looked through, unless their number has to be known.
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
    """The files at a path that nothing describes; none where there is a description, or doubt."""
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
    """Whether a file is named like records; by its content the library tells, when it opens it."""
    name = path.name.lower()
    is_beside = name.endswith((".index", ".idx", ".json", ".txt", ".csv", ".md"))
    return not is_beside and bool(re.search(r"tfrec|\.records?\b|\.tfr\b|-of-[0-9]+", name))


def _order(path: Path) -> tuple[bool, list[Any]]:
    """Training data first, numbers in names by their size."""
    parts = re.split(r"([0-9]+)", path.name)
    numbered = [int(part) if at % 2 else part for at, part in enumerate(parts)]
    return "train" not in path.name.lower(), numbered
