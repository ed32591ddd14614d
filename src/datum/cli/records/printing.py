"""Records one after the other: in words and pictures, or as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from datum import DatumError
from datum.cli.records.cells import Cell, cells_of
from datum.cli.records.json import payload_to_json, place_to_json, record_to_json
from datum.cli.records.page import Page
from datum.cli.records.places import Asked, Source
from datum.cli.records.reading import Found, read_records
from datum.cli.running import tell
from datum.cli.terminal import print_json, talk
from datum.cli.words.wording import count_of

__all__ = ["Options", "print_records"]


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
                problem = error.message.line
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
