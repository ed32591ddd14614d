"""Records printed in words and images, or as JSON."""

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
from datum.cli.running import tell
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


def place_to_json(place: Place) -> dict[str, Any]:
    """Where a record lies: its split and number there, its file and number there."""
    split = {} if place.split is None else {"split": place.split}
    return {**split, "number": place.number, "file": str(place.file), "record": place.record}


def record_to_json(cells: Sequence[Cell], *, is_full: bool) -> dict[str, Any]:
    """The features of a record.

    Arrays are nested lists, times texts of ISO 8601 (spans counts of their unit), sparse values
    `indices`, `values` and `shape`, complex numbers pairs. Of byte strings and images only the
    size and what they are is told, unless `is_full`, which adds `base64`.
    """
    return {cell.name: _to_json(cell.value, is_full) for cell in cells}


def payload_to_json(payload: bytes, *, is_full: bool) -> dict[str, Any]:
    """A record that is no Example: its size, and its text, or the fields of its message."""
    told: dict[str, Any] = {"bytes": len(payload)}
    text = text_of(payload)
    fields = None if text is not None else fields_of(payload)
    if text is not None:
        told["text"] = text
    elif fields is not None:
        told["fields"] = fields_to_json(fields)
    if is_full:
        told["base64"] = base64.b64encode(payload).decode()
    return told


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
    told: dict[str, Any] = {"bytes": len(data)}
    header = read_image_header(data)
    if header is not None:
        told |= {"format": header.format, "height": header.height, "width": header.width}
        told["channels"] = header.channels
    if is_full:
        told["base64"] = base64.b64encode(data).decode()
    return told


@dataclass(frozen=True, slots=True)
class Options:
    """How records are shown.

    Attributes:
        columns: which features; None for all.
        is_json: whether for programs.
        is_full: whether byte strings and images are given whole to these.
        picture: how images are shown; None as the terminal can.
        width: how wide lines may be; None as the terminal is.
    """

    columns: Sequence[str] | None = None
    is_json: bool = False
    is_full: bool = False
    picture: str | None = None
    width: int | None = None


class _Writer(Protocol):
    """Writes records; `problem` is what is wrong with one, if anything is."""

    def write_features(self, found: Found, cells: Sequence[Cell], problem: str) -> None: ...
    def write_payload(self, found: Found, payload: bytes, problem: str) -> None: ...
    def write_damage(self, found: Found) -> None: ...


def print_records(source: Source, asked: Asked, options: Options) -> bool:
    """Print the records asked for; whether all of them were sound."""
    if source.schema is not None and options.columns is not None:
        source.schema.select(options.columns)  # which tells what there is
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
        tell("warning", f"{source.name}: no records were asked for")
    elif not shown:
        tell("warning", f"{source.name}: there are no records")
    elif not options.is_json:
        _tell_rest(source, shown)
    if unsound:
        tell(
            "warning",
            f"{count_of(unsound, 'record')} of {shown:,} cannot be read",
            hint="`datum verify` lists all damage, `datum repair` saves what is sound",
        )
    return not unsound


def _write(writer: _Writer, found: Found, source: Source, columns: Sequence[str] | None) -> bool:
    """Write a record; whether it is sound."""
    if found.payload is None:
        writer.write_damage(found)
        return False
    problem = ""
    # A record that does not fit the schema is shown by what is found in it.
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
    """Say how many more there are."""
    if source.dataset is None or source.split is None:
        return
    splits = {part.partition("[")[0].strip() for part in source.split.split("+")}
    others = [
        f"{name} ({info.records:,})"
        for name, info in source.dataset.splits.items()
        if name not in splits and "all" not in splits
    ]
    more = f"; other splits: {', '.join(others)}" if others else ""
    told = f"{shown:,} of {count_of(source.records or 0, 'record')} of {source.split}{more}"
    talk().print(told, style="dim", markup=False, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _Lines:
    """Writes a JSON object a line."""

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
