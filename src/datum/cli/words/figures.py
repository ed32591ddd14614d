"""Numbers, shares, times and texts as short as a table needs them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from rich.cells import cell_len, chop_cells

from datum.cli.words.signs import Signs
from datum.errors import inert

__all__ = ["cut", "cut_middle", "describe_number", "describe_range", "describe_share", "one_line"]

_DIGITS = 4  # of a number: more are noise in a table
_LEAST, _MOST = 1e-3, 1e7  # beyond, numbers are written with an exponent
_UNITS = {"D": 10, "h": 13, "m": 16, "s": 19}  # how much of a date is worth showing


def describe_number(value: Any, *, dtype: str = "", digits: int = _DIGITS) -> str:
    """A number with few digits; whole ones in full; times as dates, if `dtype` says so.

    >>> describe_number(1234567), describe_number(0.123456), describe_number(123456.789)
    ('1,234,567', '0.1235', '123,457')
    >>> describe_number(0, dtype="datetime64[s]")
    '1970-01-01 00:00:00'
    """
    if value is None:
        return ""
    if "64[" in dtype:
        return _describe_time(value, dtype)
    if isinstance(value, int) or (value == round(value, 0) if _is_plain(value) else False):
        whole = int(value)
        if abs(whole) >= 10**15:
            return f"{float(whole):.{digits}g}"
        return f"{whole:,}" if abs(whole) >= 10_000 else str(whole)  # years have no commas
    if not math.isfinite(value) or not _LEAST <= abs(value) < _MOST:
        return f"{value:.{digits - 1}g}"
    if abs(value) >= 10**digits:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    return f"{value:,.{len(text.partition('.')[2])}f}"


def _is_plain(value: float) -> bool:
    return math.isfinite(value) and abs(value) < _MOST


def _describe_time(value: Any, dtype: str) -> str:
    kind, _, unit = dtype.rstrip("]").partition("64[")
    moment = np.array(int(value)).astype(dtype)
    if kind == "timedelta":
        return str(moment)
    return str(moment)[: _UNITS.get(unit, 23)].replace("T", " ")


def describe_range(lowest: Any, highest: Any, signs: Signs, *, dtype: str = "") -> str:
    """The ends of a range, or the one number that they are."""
    low, high = describe_number(lowest, dtype=dtype), describe_number(highest, dtype=dtype)
    if low == high:
        return low
    between = (
        f" {signs.to} " if low[0] == "-" or high[0] == "-" or dtype.endswith("]") else signs.to
    )
    return f"{low}{between}{high}"


def describe_share(share: float) -> str:
    """A part of a whole in percent; never 0 or 100 where it is not.

    >>> describe_share(0.5), describe_share(0.00001), describe_share(0.9999), describe_share(1)
    ('50.0 %', '<0.1 %', '>99.9 %', '100 %')
    """
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    if share < 0.0005:
        return "<0.1 %"
    if share > 0.9995:
        return ">99.9 %"
    return f"{share * 100:.1f} %"


def one_line(text: str) -> str:
    """Text of strangers on one line, without anything that steers a terminal."""
    return " ".join(map(inert, text.split()))


def cut(text: str, width: int, signs: Signs) -> str:
    """The start of a text that takes at most so many cells.

    >>> from datum.cli.words.signs import ASCII
    >>> cut("a long name", 8, ASCII)
    'a lon...'
    """
    if cell_len(text) <= width:
        return text
    room = width - cell_len(signs.dots)
    if room < 1:
        return text[:width]
    return chop_cells(text, room)[0].rstrip() + signs.dots


def cut_middle(text: str, width: int, signs: Signs) -> str:
    """The start and the end of a text: names of features often differ in their ends.

    >>> from datum.cli.words.signs import ASCII
    >>> cut_middle("image/object/class/label", 14, ASCII)
    'image/...label'
    """
    room = width - cell_len(signs.dots)
    if cell_len(text) <= width or room < 2:
        return cut(text, width, signs)
    end = chop_cells(text[::-1], room // 2)[0][::-1]
    return chop_cells(text, room - cell_len(end))[0].rstrip() + signs.dots + end.lstrip()
