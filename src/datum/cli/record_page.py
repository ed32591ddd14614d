"""Records printed as text and images, or as JSON."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from datum import DatumError, Sparse
from datum.cli.record_images import pictures_of
from datum.cli.record_places import Asked, Found, Place, Source, read_records
from datum.cli.record_values import (
    UNLIMITED,
    Cell,
    cells_of,
    clean,
    describe_payload,
    describe_type,
    describe_value,
    fields_of,
    fields_to_json,
    read_image_header,
    shorten,
    shorten_name,
    text_of,
)
from datum.cli.running import print_message
from datum.cli.terminal import data, is_plain, print_json, talk
from datum.cli.terminal_images import Picture, choose_style, show_pictures
from datum.errors import count_of

__all__ = [
    "Options",
    "Page",
    "payload_to_json",
    "place_to_json",
    "print_records",
    "record_to_json",
]

LEAST_NAME = 16  # columns for names; a third of a wide terminal
MOST_TYPE = 24  # columns for types
TYPES_FROM = 64  # columns of a terminal with room for types
FILE_ROOM = 200  # columns for a record that is no Example, without a terminal

_SPELT = str.maketrans({"…": "...", "⏎": "\\n"})


class Page:
    """Printer of records, fitted to the terminal; in a file nothing is cut.

    Args:
        picture: Style of images; None for the best that the terminal supports.
        width: Maximum width of lines.
    """

    def __init__(self, *, picture: str | None = None, width: int | None = None) -> None:
        self._console = _make_console(picture, width)
        self._style = choose_style(self._console, wanted=picture)
        self._is_plain = is_plain(self._console)
        is_limited = self._console.is_terminal or width is not None
        self._room = self._console.width if is_limited else UNLIMITED

    def write_features(self, found: Found, cells: Sequence[Cell], problem: str) -> None:
        """Print the features of a record."""
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
            spelt = 4 if self._is_plain else 0  # in ASCII, dots take three columns
            left = max(12, self._room - line.cell_len - 2 - spelt)
            value = describe_value(cell, left, has_shape=has_types)
            line.append("  " + self._spell(value), style="dim" if cell.value is None else "")
            self._write_line(line)
        if self._style != "none":
            self._write_pictures(pictures_of(cells))
        self._console.print()

    def write_payload(self, found: Found, payload: bytes, problem: str) -> None:
        """Print a record that is no Example."""
        self._write_heading(found, problem)
        room = min(self._room, FILE_ROOM) if self._room == UNLIMITED else self._room
        for line in describe_payload(payload, room - 2):
            self._write_line(Text("  " + self._spell(line)))
        self._console.print()

    def write_damage(self, found: Found) -> None:
        """Print the problem of a damaged record."""
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
        """Replace signs that ASCII lacks, if the terminal needs it."""
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
    if picture == "blocks" and not console.is_terminal:  # requested, for example for `less -R`
        console = Console(force_terminal=True, color_system="truecolor", width=width or 80)
    if width is not None:
        console.width = width
    return console


def place_to_json(place: Place) -> dict[str, Any]:
    """Return the position of a record: its number in its split, and in its file."""
    split = {} if place.split is None else {"split": place.split}
    return {**split, "number": place.number, "file": str(place.file), "record": place.record}


def record_to_json(cells: Sequence[Cell], *, is_full: bool) -> dict[str, Any]:
    """Return the features of a record as plain values.

    Arrays become nested lists, times ISO 8601 text, durations counts of their unit, sparse values
    `indices`, `values` and `shape`, and complex numbers pairs. Byte strings and images are
    described by size and format; `is_full` adds `base64`.
    """
    return {cell.name: _to_json(cell.value, is_full) for cell in cells}


def payload_to_json(payload: bytes, *, is_full: bool) -> dict[str, Any]:
    """Return the size of a record that is no Example, with its text or message fields."""
    described: dict[str, Any] = {"bytes": len(payload)}
    text = text_of(payload)
    fields = None if text is not None else fields_of(payload)
    if text is not None:
        described["text"] = text
    elif fields is not None:
        described["fields"] = fields_to_json(fields)
    if is_full:
        described["base64"] = base64.b64encode(payload).decode()
    return described


def _to_json(value: Any, is_full: bool) -> Any:
    if isinstance(value, bytes):
        return _bytes_to_json(value, is_full)
    if isinstance(value, Sparse):
        return {
            "indices": value.indices.tolist(),
            "values": _to_json(np.asarray(value.values), is_full),
            "shape": list(value.dense_shape),
        }
    if isinstance(value, list):
        return [_to_json(item, is_full) for item in value]
    if value is None or isinstance(value, str):
        return value
    return _array_to_json(np.asarray(value), is_full)


def _array_to_json(array: Any, is_full: bool) -> Any:
    if array.dtype.kind == "M":
        return _times_to_json(np.datetime_as_string(array), np.isnat(array))
    if array.dtype.kind == "m":
        return _times_to_json(array.astype(np.int64), np.isnat(array))
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).tolist()
    if array.dtype == object:
        return [_to_json(item, is_full) for item in array.tolist()]
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return array.tolist()


def _times_to_json(values: Any, is_lacking: Any) -> Any:
    shown = np.asarray(values).astype(object)
    shown[is_lacking] = None
    return shown.tolist()


def _bytes_to_json(data: bytes, is_full: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"bytes": len(data)}
    header = read_image_header(data)
    if header is not None:
        described |= {"format": header.format, "height": header.height, "width": header.width}
        described["channels"] = header.channels
    if is_full:
        described["base64"] = base64.b64encode(data).decode()
    return described


@dataclass(frozen=True, slots=True)
class Options:
    """Options for printing records.

    Attributes:
        columns: Features to show; None for all.
        is_json: Whether to print JSON.
        is_full: Whether JSON includes the bytes of images and byte strings.
        picture: Style of images; None for the best that the terminal supports.
        width: Maximum width of lines; None for that of the terminal.
    """

    columns: Sequence[str] | None = None
    is_json: bool = False
    is_full: bool = False
    picture: str | None = None
    width: int | None = None


class _Writer(Protocol):
    """Printer of records; `problem` is empty for good ones."""

    def write_features(self, found: Found, cells: Sequence[Cell], problem: str) -> None: ...
    def write_payload(self, found: Found, payload: bytes, problem: str) -> None: ...
    def write_damage(self, found: Found) -> None: ...


def print_records(source: Source, asked: Asked, options: Options) -> bool:
    """Print the selected records; return whether all are good."""
    if source.schema is not None and options.columns is not None:
        source.schema.select(options.columns)  # raises and lists the features
    writer: _Writer = (
        _Lines(options.is_full)
        if options.is_json
        else Page(picture=options.picture, width=options.width)
    )
    shown = unsound = 0
    for found in read_records(source, asked):
        shown += 1
        unsound += not _write(writer, found, source, options.columns)
    if not shown and (source.records or not asked.count):
        print_message("warning", f"{source.name}: no records were selected")
    elif not shown:
        print_message("warning", f"{source.name}: there are no records")
    elif not options.is_json:
        _tell_rest(source, shown)
    if unsound:
        print_message(
            "warning",
            f"{count_of(unsound, 'record')} of {shown:,} cannot be read",
            hint="`datum verify` lists all damage, `datum repair` saves the good records",
        )
    return not unsound


def _write(writer: _Writer, found: Found, source: Source, columns: Sequence[str] | None) -> bool:
    """Print a record; return whether it is good."""
    if found.payload is None:
        writer.write_damage(found)
        return False
    problem = ""
    # A record that does not match the schema is shown with its own features.
    for schema in (source.schema, None) if source.schema is not None else (None,):
        try:
            cells = cells_of(found.payload, schema, columns=columns, metadata=source.metadata)
        except DatumError as error:
            if schema is not None:
                problem = error.parts.line
        else:
            writer.write_features(found, cells, problem)
            return not problem
    writer.write_payload(found, found.payload, problem)
    return not problem


def _tell_rest(source: Source, shown: int) -> None:
    """Print the number of records and the other splits."""
    if source.dataset is None or source.split is None:
        return
    splits = {part.partition("[")[0].strip() for part in source.split.split("+")}
    others = [
        f"{name} ({info.records:,})"
        for name, info in source.dataset.splits.items()
        if name not in splits and "all" not in splits
    ]
    more = f"; other splits: {', '.join(others)}" if others else ""
    described = f"{shown:,} of {count_of(source.records or 0, 'record')} of {source.split}{more}"
    talk().print(described, style="dim", markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Printer of one JSON object per line."""

    is_full: bool

    def write_features(self, found: Found, cells: Sequence[Cell], problem: str) -> None:
        self._print(found, {"features": record_to_json(cells, is_full=self.is_full)}, problem)

    def write_payload(self, found: Found, payload: bytes, problem: str) -> None:
        self._print(found, {"payload": payload_to_json(payload, is_full=self.is_full)}, problem)

    def write_damage(self, found: Found) -> None:
        self._print(found, {}, found.problem)

    def _print(self, found: Found, what: dict[str, Any], problem: str) -> None:
        error = {"error": problem} if problem else {}
        print_json([{**place_to_json(found.place), **error, **what}])
