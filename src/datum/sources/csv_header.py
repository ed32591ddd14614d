"""Whether the first row of a CSV file has the names of its columns, or is a record already."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from datum import _core

__all__ = ["FirstRow", "judge_first_row", "number_names"]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"nan|-?inf(?:inity)?|true|false|na|n/a|#n/a|null|none", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w .,:;/()%$#?&'-]{0,60}")
_YEARS = range(1800, 2101)
_NUMBERS = ("int64", "float64", "bool")
_SEEN_LACKING = 16 | 64  # bits of the core: blank, absent


@dataclass(frozen=True, slots=True)
class FirstRow:
    """What the first row is.

    Attributes:
        is_header: whether it has names.
        is_sure: whether the rows below leave no doubt.
    """

    is_header: bool
    is_sure: bool


def judge_first_row(cells: Sequence[str], below: _core.CsvText) -> FirstRow:
    """Compare the first row with those below.

    A text above numbers is a name. Where all columns of numbers have a number in the first row, it
    is a record, unless those are years above what is none, or count from 0 or 1. Where there are
    only texts, it is a record if each of its cells comes again in its column.
    """
    if below.rows == 0:
        return FirstRow(is_header=True, is_sure=True)
    every = list(range(len(cells)))
    looks = below.look(every, ["empty"] * len(cells))
    numeric = [
        at
        for at, (seen, regular, odd, *_) in enumerate(looks)
        if _core.csv_type(seen) in _NUMBERS or regular > odd
    ]
    for at in numeric:
        is_empty = not cells[at].strip()
        if is_empty and at == 0 and not looks[at][0] & _SEEN_LACKING:
            return FirstRow(is_header=True, is_sure=True)  # as an index without a name has it
        if not is_empty and not _is_value(cells[at]):
            return FirstRow(is_header=True, is_sure=True)
    taken = {at: below.take(at, looks[at][0]) for at in every if _has_values(looks[at][0])}
    if any(cells[at].strip() for at in numeric):
        return _judge_numbers(cells, numeric, below, taken)
    return _judge_texts(cells, below, taken)


def _has_values(seen: int) -> bool:
    return _core.csv_type(seen) != "empty"


def _is_value(cell: str) -> bool:
    plain = cell.strip()
    return bool(_NUMBER.fullmatch(plain) or _WORD.fullmatch(plain))


def _judge_numbers(
    cells: Sequence[str], numeric: Sequence[int], below: _core.CsvText, taken: dict[int, Any]
) -> FirstRow:
    """All columns of numbers have a number in the first row, or nothing."""
    first = [cells[at].strip() for at in numeric]
    if not all(cell.isdecimal() for cell in first):
        return FirstRow(is_header=False, is_sure=True)
    numbers = [int(cell) for cell in first]
    second = [below.field(0, at).decode(errors="replace").strip() for at in numeric]
    is_counted = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    if is_counted and len(numbers) > 2 and not _are_counted(second):
        return FirstRow(is_header=True, is_sure=False)
    are_years = all(number in _YEARS for number in numbers) and len(set(numbers)) == len(numbers)
    is_beyond = all(_is_beyond(int(cells[at]), taken.get(at)) for at in numeric)
    has_others = len(numeric) < len(cells) and not all(
        cell.isdecimal() and int(cell) in _YEARS for cell in second
    )
    return FirstRow(is_header=are_years and (is_beyond or has_others), is_sure=False)


def _are_counted(cells: Sequence[str]) -> bool:
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = list(map(int, cells))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_beyond(number: int, column: Any) -> bool:
    """Whether a number is none that the column below has, or has between two."""
    if column is None or column[0] not in ("int64", "float64"):
        return False
    dtype, values, present = column
    floats = values.view(np.float64) if dtype == "float64" else values
    floats = floats[np.isfinite(floats) if present is None else present & np.isfinite(floats)]
    return not len(floats) or not floats.min() <= number <= floats.max()


def _judge_texts(cells: Sequence[str], below: _core.CsvText, taken: dict[int, Any]) -> FirstRow:
    """There are texts alone: a name comes once, a value of a category comes again."""
    again = [
        cell in _texts(below, at, taken.get(at)) for at, cell in enumerate(cells) if cell.strip()
    ]
    if again and all(again):
        return FirstRow(is_header=False, is_sure=False)
    are_names = all(_NAME.fullmatch(cell.strip()) for cell in cells if cell.strip())
    return FirstRow(is_header=True, is_sure=are_names and not any(again))


def _texts(below: _core.CsvText, at: int, column: Any) -> set[str]:
    if column is None or column[0] != "str":
        return set()
    rows = range(below.rows)
    return {below.field(row, at).decode(errors="replace") for row in rows}


def number_names(cells: Sequence[str]) -> list[str]:
    """The names of columns: the second `x` is `x_2`, a column without a name `column_<n>`."""
    names: dict[str, None] = {}
    given = set(cells)
    counts: dict[str, int] = {}
    for number, cell in enumerate(cells, 1):
        name = base = cell or f"column_{number}"
        while name in names or (name != cell and name in given):
            counts[base] = counts.get(base, 1) + 1
            name = f"{base}_{counts[base]}"
        names[name] = None
    return list(names)
