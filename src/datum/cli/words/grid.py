"""Lines of columns that stand below each other, with as much room as there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from datum.cli.words.signs import Signs, signs_for

__all__ = ["Column", "Sized", "lay_out"]

GAP = "  "


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        title: stands above it, dim; a table whose columns have none has no heading.
        cells: texts, or styled ones.
        align: where the cells stand.
        style: of the cells that have none.
    """

    title: str
    cells: Sequence[str | Text]
    align: Literal["left", "right"] = "left"
    style: str = ""

    @property
    def width(self) -> int:
        """What it takes to show all of it."""
        return max(cell_len(self.title), *(cell_len(str(cell)) for cell in self.cells), 0)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in any cell."""
        return not any(map(str, self.cells))


def lay_out(columns: Sequence[Column], *, indent: str = "") -> list[Text]:
    """The lines of a table; none ends in blanks."""
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
    """What is drawn anew for the width and the encoding of the console that shows it."""

    make: Callable[[int, Signs], Iterable[Text]] = field(repr=False)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.make(options.max_width, signs_for(options))
