"""Numbers, texts and tables as commands print them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from rich.cells import cell_len, chop_cells
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from datum import Feature
from datum.cli.terminal import Signs, signs_for
from datum.errors import inert

__all__ = [
    "Column",
    "Sized",
    "cut",
    "cut_middle",
    "describe_feature",
    "describe_number",
    "describe_range",
    "describe_share",
    "lay_out",
    "one_line",
    "spell_feature",
]

_DIGITS = 4  # of a number; more are noise in a table
_LEAST, _MOST = 1e-3, 1e7  # beyond, numbers are written with an exponent
_UNITS = {"D": 10, "h": 13, "m": 16, "s": 19}  # characters of a date to show, by unit


def describe_number(value: Any, *, dtype: str = "", digits: int = _DIGITS) -> str:
    """Format a number with few digits, integers in full, and times as dates by `dtype`.

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
        return (
            f"{whole:,}" if abs(whole) >= 10_000 else str(whole)
        )  # no commas, because it may be a year
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
    """Format a range, or the one number if both ends are equal."""
    low, high = describe_number(lowest, dtype=dtype), describe_number(highest, dtype=dtype)
    if low == high:
        return low
    between = (
        f" {signs.to} " if low[0] == "-" or high[0] == "-" or dtype.endswith("]") else signs.to
    )
    return f"{low}{between}{high}"


def describe_share(share: float) -> str:
    """Format a share in percent, with 0 and 100 only if exact.

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
    """Put untrusted text on one line, without control characters."""
    return " ".join(map(inert, text.split()))


def cut(text: str, width: int, signs: Signs) -> str:
    """Cut a text at the end to at most `width` cells.

    >>> from datum.cli.terminal import ASCII
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
    """Cut a text in the middle, because names of features often differ in their ends.

    >>> from datum.cli.terminal import ASCII
    >>> cut_middle("image/object/class/label", 14, ASCII)
    'image/...label'
    """
    room = width - cell_len(signs.dots)
    if cell_len(text) <= width or room < 2:
        return cut(text, width, signs)
    end = chop_cells(text[::-1], room // 2)[0][::-1]
    return chop_cells(text, room - cell_len(end))[0].rstrip() + signs.dots + end.lstrip()


GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        title: Heading; a table without any titles has no heading line.
        cells: Plain or styled texts.
        align: Alignment of the cells.
        style: Style of plain cells.
    """

    title: str
    cells: Sequence[str | Text]
    align: Literal["left", "right"] = "left"
    style: str = ""

    @property
    def width(self) -> int:
        """Width of the widest cell."""
        return max(cell_len(self.title), *(cell_len(str(cell)) for cell in self.cells), 0)

    @property
    def is_empty(self) -> bool:
        """Whether all cells are empty."""
        return not any(map(str, self.cells))


def lay_out(columns: Sequence[Column], *, indent: str = "") -> list[Text]:
    """Return the lines of a table, without trailing blanks."""
    titles = [Text(column.title, "dim") for column in columns]
    styles = [column.style for column in columns]
    cells = zip(*(column.cells for column in columns), strict=True)
    rows = [titles] if any(column.title for column in columns) else []
    rows += [[*map(_styled, row, styles)] for row in cells]
    widths = [column.width for column in columns]
    lines = []
    for row in rows:
        line = Text(indent, no_wrap=True).append_text(_joined(columns, widths, row))
        line.rstrip()
        lines.append(line)
    return lines


def _styled(cell: str | Text, style: str) -> Text:
    return cell.copy() if isinstance(cell, Text) else Text(cell, style)


def _joined(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Text]) -> Text:
    parts = []
    for column, width, cell in zip(columns, widths, cells, strict=True):
        blanks = Text(" " * (width - cell.cell_len))
        parts.append(blanks + cell if column.align == "right" else cell + blanks)
    return Text(GAP).join(parts)


@dataclass(frozen=True, slots=True)
class Sized:
    """Lines drawn for the width and encoding of the console that prints them."""

    make: Callable[[int, Signs], Iterable[Text]] = field(repr=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.make(options.max_width, signs_for(options))


def describe_feature(feature: Feature) -> str:
    """Describe type and shape in short; `?` is any length.

    >>> describe_feature(Feature("uint8", (None, None, 3), encoding="image"))
    'image uint8 (?, ?, 3)'
    >>> describe_feature(Feature("float32", (10,), encoding="sparse", optional=True))
    'sparse float32 (10), optional'
    """
    words: list[str] = [feature.encoding] if feature.encoding in ("image", "sparse") else []
    words.append(feature.dtype)
    if feature.shape:
        words.append(f"({', '.join('?' if n is None else str(n) for n in feature.shape)})")
    text = " ".join(words)
    if feature.sequence:
        text += ", sequence"
    if feature.default is not None:
        text += f", default {feature.default!r}"
    elif feature.optional:
        text += ", optional"
    return text


_RAW = ("float64", "complex64", "complex128")  # which no list of a record holds


def spell_feature(feature: Feature) -> str:
    """A type, shape and encoding as `--schema` takes them.

    >>> spell_feature(Feature("uint8", (None, None, 3), encoding="image"))
    'uint8[?,?,3]:image'
    """
    shape = ",".join("?" if n is None else str(n) for n in feature.shape)
    is_usual = feature.encoding == ("raw" if feature.dtype in _RAW else "values")
    return (
        feature.dtype
        + (f"[{shape}]" if feature.shape else "")
        + ("" if is_usual else f":{feature.encoding}")
        + ("?" if feature.optional else "")
    )
