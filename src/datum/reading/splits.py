"""Which records an instruction such as `train[:10%]+val` asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from datum.errors import SplitError, suggest
from datum.format.naming import ALL_SPLITS

__all__ = ["Range", "find_ranges"]

_BOUND = r"\s*(-?[0-9][0-9_.]{0,17}\s*%?)?\s*"
_PART = re.compile(rf"\s*([^\s\[\]+:%]+)\s*(?:\[{_BOUND}:{_BOUND}\]\s*)?")
_ONE_RECORD = re.compile(r"\s*([^\s\[\]+:%]+)\s*\[\s*(-?[0-9]+)\s*\]\s*")
_NUMBER = re.compile(r"-?[0-9]+(_[0-9]+)*")
_PERCENT = re.compile(r"-?[0-9]+(\.[0-9]+)?%")


class Range(NamedTuple):
    """The records from `start` up to `stop` of one split."""

    split: str
    start: int
    stop: int


def find_ranges(instruction: str, records: Mapping[str, int]) -> list[Range]:
    """The ranges an instruction asks for, of splits with so many `records` each.

    Parts are joined by `+`; each is a split, or `all` for all of them one after the other, with a
    slice if wanted. Its bounds are numbers of records or percents, either of which may be negative
    and then count from the end. A percent is rounded down to whole records, a negative one is that
    from 100 %, so that `train[:90%]` and `train[-10%:]` share no record and miss none.

    >>> find_ranges("train[:10%]+val", {"train": 1000, "val": 50})
    [Range(split='train', start=0, stop=100), Range(split='val', start=0, stop=50)]
    """
    if not isinstance(instruction, str):
        raise SplitError(f"expected the name of a split, got {instruction!r}")
    ranges = [
        found
        for part in instruction.split("+")
        for found in _find_part(part, instruction, records)
        if found.start < found.stop
    ]
    if not ranges and "[" in instruction:
        raise SplitError(
            "expected a range of records, got none", where=f"split {instruction!r:.200}"
        )
    return ranges


def _find_part(part: str, instruction: str, records: Mapping[str, int]) -> Iterator[Range]:
    found = _PART.fullmatch(part)
    if found is None:
        raise SplitError(
            f"expected a name like 'train', or with a slice like 'train[:10%]', got {part!r:.200}",
            where=f"split {instruction!r:.200}",
            hint=_hint_one_record(part),
        )
    name = found[1]
    if name not in records and name != ALL_SPLITS:
        hint = suggest(name, records, f"there are {', '.join(records)}")
        raise SplitError(
            f"expected a split, got {name!r}", where=f"split {instruction!r:.200}", hint=hint
        )
    names = list(records) if name == ALL_SPLITS else [name]
    count = sum(records[name] for name in names)
    start = 0 if found[2] is None else _position(found[2], count, part)
    stop = count if found[3] is None else _position(found[3], count, part)
    if start > stop:
        raise SplitError(
            f"expected a range that ends after it starts, got {start} to {stop} of {count} records",
            where=f"split {part!r}",
        )
    return _cut(names, records, start, stop)


def _hint_one_record(part: str) -> str:
    found = _ONE_RECORD.fullmatch(part)
    return f"one record is ds[{found[1]!r}][{found[2]}]" if found else ""


def _position(bound: str, count: int, part: str) -> int:
    """The record that a bound stands for, from 0 up to `count`."""
    bound = re.sub(r"\s", "", bound)
    if _PERCENT.fullmatch(bound):
        whole, _, decimals = bound[:-1].partition(".")
        percent, unit = int(whole + decimals), int("1" + "0" * len(decimals))
        percent = percent + 100 * unit if bound.startswith("-") else percent
        position, limit = percent * count // (100 * unit), "100%"
        is_inside = 0 <= percent <= 100 * unit
    elif _NUMBER.fullmatch(bound):
        position, limit = int(bound), f"{count} records"
        position = position + count if bound.startswith("-") else position
        is_inside = 0 <= position <= count
    else:
        raise SplitError(f"expected a number or a percent, got {bound!r}", where=f"split {part!r}")
    if not is_inside:
        raise SplitError(f"expected a bound within {limit}, got {bound}", where=f"split {part!r}")
    return position


def _cut(names: list[str], records: Mapping[str, int], start: int, stop: int) -> Iterator[Range]:
    """What lies from `start` up to `stop` of some splits, one after the other."""
    first = 0
    for name in names:
        size = records[name]
        begin, end = max(start - first, 0), min(stop - first, size)
        yield Range(name, begin, max(begin, end))
        first += size
