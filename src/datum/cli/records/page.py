"""Records in words and pictures: a heading, and a line for each feature."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from datum.cli.pictures.picture import Picture, choose_style, show_pictures
from datum.cli.records.cells import Cell
from datum.cli.records.other import describe_payload
from datum.cli.records.pictures import pictures_of
from datum.cli.records.reading import Found
from datum.cli.records.values import (
    UNLIMITED,
    clean,
    describe_type,
    describe_value,
    shorten,
    shorten_name,
)
from datum.cli.terminal import data, is_plain

__all__ = ["Page"]

LEAST_NAME = 16  # columns that names may take; of wide terminals a third
MOST_TYPE = 24  # columns that types may take
TYPES_FROM = 64  # columns of a terminal that has room for types, too
FILE_ROOM = 200  # columns of a line about a record that is no Example, where nothing limits it

_SPELT = str.maketrans({"…": "...", "⏎": "\\n"})


class Page:
    """Writes records to the terminal, as wide as that is; in a file nothing is cut.

    Args:
        picture: how images are shown; None as the terminal can.
        width: how wide lines may be.
    """

    def __init__(self, *, picture: str | None = None, width: int | None = None) -> None:
        self._console = _make_console(picture, width)
        self._style = choose_style(self._console, wanted=picture)
        self._is_plain = is_plain(self._console)
        is_limited = self._console.is_terminal or width is not None
        self._room = self._console.width if is_limited else UNLIMITED

    def write_features(self, found: Found, cells: Sequence[Cell], problem: str) -> None:
        """A record by its features."""
        self._write_heading(found, problem)
        longest = max(LEAST_NAME, self._room // 3)
        names = [self._spell(shorten_name(clean(cell.name), longest)) for cell in cells]
        types = [describe_type(cell) for cell in cells]
        name_wide = max(map(cell_len, names), default=0)
        has_types = self._room >= TYPES_FROM
        type_wide = min(MOST_TYPE, max(map(len, types), default=0))
        for cell, name, kind in zip(cells, names, types, strict=True):
            line = Text("  ")
            line.append(name + " " * (name_wide - cell_len(name)), style="bold")
            if has_types:
                kind = shorten(kind, type_wide)
                line.append(f"  {kind:<{type_wide}}", style="dim cyan")
            spelt = 4 if self._is_plain else 0  # dots take three columns each there
            left = max(12, self._room - line.cell_len - 2 - spelt)
            value = describe_value(cell, left, has_shape=has_types)
            line.append("  " + self._spell(value), style="dim" if cell.value is None else "")
            self._write_line(line)
        if self._style != "none":
            self._write_pictures(pictures_of(cells))
        self._console.print()

    def write_payload(self, found: Found, payload: bytes, problem: str) -> None:
        """A record that is no Example."""
        self._write_heading(found, problem)
        room = min(self._room, FILE_ROOM) if self._room == UNLIMITED else self._room
        for line in describe_payload(payload, room - 2):
            self._write_line(Text("  " + self._spell(line)))
        self._console.print()

    def write_damage(self, found: Found) -> None:
        """What is wrong with a record, in its place."""
        self._write_heading(found, found.problem)
        self._console.print()

    def _write_heading(self, found: Found, problem: str) -> None:
        place = found.place
        name, where = f"record {place.number:,}", place.file.name
        if place.split is not None:
            name = f"{place.split} {place.number:,}"
            where = f"{where}, record {place.record:,}"
        self._write_line(Text.assemble((name, "bold green"), (f"  {clean(where)}", "dim")))
        if problem:
            self._console.print(Text(f"  {clean(problem)}", style="bold red"), soft_wrap=True)

    def _spell(self, text: str) -> str:
        """A text without the signs that ASCII lacks, where there is no more than that."""
        return text.translate(_SPELT) if self._is_plain else text

    def _write_line(self, line: Text) -> None:
        crops = self._room < UNLIMITED
        self._console.print(line, no_wrap=True, overflow="ignore", crop=crops)

    def _write_pictures(self, pictures: Sequence[Picture]) -> None:
        show_pictures(self._console, pictures, self._style)
        legend = {name: colour for picture in pictures for colour, name in picture.legend}
        if not legend or self._style == "ascii":
            return
        line = Text("  ")
        for name, colour in legend.items():
            line.append("■ ", style=f"rgb({','.join(map(str, colour))})")
            line.append(f"{clean(name)}  ", style="dim")
        self._console.print(line)


def _make_console(picture: str | None, width: int | None) -> Console:
    console = data()
    if picture == "blocks" and not console.is_terminal:  # asked for, say into `less -R`
        console = Console(force_terminal=True, color_system="truecolor", width=width or 80)
    if width is not None:
        console.width = width
    return console
