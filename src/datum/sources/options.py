"""Options of sources: those of tables in files, and those of each split."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar

from datum._options import fields_of, is_default, refuse_unknown
from datum.errors import Option, SourceError, Text, suggest

__all__ = [
    "JOIN_HINT",
    "TableKeywords",
    "TableOptions",
    "find_splits",
    "is_split_name",
    "pick_columns",
    "read_split_options",
    "refuse_options",
    "rename_columns",
    "split_of_file",
    "splits_of_files",
]

_HEADERS = ("same", "union", "intersection")
JOIN_HINT = Text(
    Option("columns", "union"),
    " reads every column, ",
    Option("columns", "intersection"),
    " those that all files have",
)
_APPLIES = {
    "columns": "CSV, JSON, Parquet and Arrow",
    "rename": "CSV, JSON, Parquet and Arrow",
    "encoding": "CSV and JSON",
}


class TableKeywords(TypedDict, total=False):
    """The keywords of tables in files; `TableOptions` documents each of them."""

    header: bool | Literal["auto"]
    names: Sequence[str] | None
    delimiter: str | None
    skip_rows: int
    comment: str | None
    decimal: Literal[".", ","]
    columns: Sequence[str] | Literal["same", "union", "intersection"]
    rename: Mapping[str, str] | None
    null_values: Sequence[str] | None
    encoding: str | None


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of tables in files.

    Each is an option of `datum.write` and `datum.plan` if the source is a path, and of the source
    itself: `CsvTable` takes all of them; `JsonLines`, `JsonText` and `ArrowTable` take `columns`
    and `rename`, and the first two `encoding`. An option that a source does not take is an error.

    Attributes:
        header: Whether the first row has the names of the columns. By default, "auto", it does
            unless its cells look like those below it: numbers above numbers. The report says so if
            there is doubt.
        names: Names of the columns, in place of a header.
        delimiter: Character between cells. By default the one of comma, semicolon, tab and bar
            that fits.
        skip_rows: Number of lines to skip at the start of each file.
        comment: Character that starts a line to skip.
        decimal: Character before the fraction of a number. "." or ",".
        columns: Columns to read, in this order, or what to do if the headers of files differ.
            Names are those in the file, and files may have other columns. "same" refuses headers
            that differ, "union" takes every column, absent if a file lacks it, and "intersection"
            the columns that all files have.
        rename: New names of columns, by their names in the file. A schema and keys use the new
            names.
        null_values: Cells that mean that there is no value. By default an empty cell does, and in
            columns of numbers also NA, N/A, null and None.
        encoding: Encoding of the text. By default UTF-8, or what a byte order mark says, or else
            Windows-1252 or Mac Roman, whichever reads better; the report says so. Others are given
            by name, such as "utf-16" or "shift_jis".
    """

    header: bool | Literal["auto"] = "auto"
    names: Sequence[str] | None = None
    delimiter: str | None = None
    skip_rows: int = 0
    comment: str | None = None
    decimal: Literal[".", ","] = "."
    columns: Sequence[str] | Literal["same", "union", "intersection"] = "same"
    rename: Mapping[str, str] | None = None
    null_values: Sequence[str] | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, keywords: Mapping[str, Any], *, caller: str) -> Self:
        """The options of some keywords; a misspelt one raises TypeError with the nearest name.

        >>> TableOptions.of({"delimeter": ";"}, caller="CsvTable")
        Traceback (most recent call last):
        TypeError: CsvTable: got an unknown option `delimeter`
        hint: did you mean `delimiter`?
        """
        refuse_unknown(keywords, fields_of(cls), caller=caller)
        return cls(**keywords)

    def __post_init__(self) -> None:
        for name, value in self.given.items():
            problem = _find_problem(name, value)
            if problem:
                raise SourceError(Text("expected ", Option(name), f" {problem}, got {value!r}"))
        marks = [mark for mark in (self.delimiter, self.comment, self.decimal) if mark]
        if len(set(marks)) < len(marks):
            names = Option("delimiter"), ", ", Option("comment"), " and ", Option("decimal")
            got = ", ".join(map(repr, marks))
            raise SourceError(Text("expected different characters as ", *names, f", got {got}"))

    @property
    def given(self) -> dict[str, Any]:
        """The options that are not as by default."""
        found = {name: getattr(self, name) for name in fields_of(self)}
        return {name: value for name, value in found.items() if not is_default(self, name, value)}


def _find_problem(name: str, value: Any) -> str | None:
    if name == "header":
        return None if isinstance(value, bool) else 'to be True, False or "auto"'
    if name in ("delimiter", "comment"):
        is_mark = isinstance(value, str) and len(value) == 1 and value.isascii()
        return None if is_mark and value not in '"\r\n\0' else "to be one character of ASCII"
    if name == "decimal":
        return None if value == "," else 'to be "." or ","'
    if name == "skip_rows":
        is_count = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return None if is_count else "to be a number of lines"
    if name == "encoding":
        return None if isinstance(value, str) else "to be the name of an encoding"
    if name == "rename":
        is_names = isinstance(value, Mapping) and _are_texts([*value, *value.values()])
        return None if is_names else "to be a dict of names"
    if name == "columns" and isinstance(value, str):
        if value in _HEADERS:
            return None
        return 'to be a list of names, or "same", "union" or "intersection"'
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and _are_texts(value)
    if name in ("columns", "names") and is_list and (not value or len(set(value)) < len(value)):
        return "to be a list of different names"
    return None if is_list else "to be a list of texts"


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def refuse_options(options: Mapping[str, Any], got: str, accepted: Sequence[str] = ()) -> None:
    """Raise SourceError for the first option that is not accepted; `got` describes the source.

    >>> refuse_options({"delimiter": ";"}, "photos is a folder of images")
    Traceback (most recent call last):
    datum.errors.SourceError: `delimiter` applies to CSV files; photos is a folder of images
    """
    for name in options:
        if name not in accepted:
            kinds = _APPLIES.get(name, "CSV")
            raise SourceError(Text(Option(name), f" applies to {kinds} files; {got}"))


def rename_columns(names: Sequence[str], rename: Mapping[str, str], *, where: str) -> list[str]:
    """Return the names with some renamed; no two may become the same."""
    renamed = [rename.get(name, name) for name in names]
    if len(set(renamed)) < len(renamed):
        twice = next(name for name, count in Counter(renamed).items() if count > 1)
        problem = Text(
            "expected ", Option("rename"), f" to use different names, got {twice!r} twice"
        )
        raise SourceError(problem, where=where)
    return renamed


def pick_columns(
    names: Sequence[str], wanted: Sequence[str], *, where: str, option: str = ""
) -> list[str]:
    """Return the wanted columns; raise SourceError with the nearest name if one is missing."""
    for name in wanted:
        if name not in names:
            hint = suggest(name, names, f"there are {', '.join(names)}")
            told = (Option(option), ": ") if option else ()
            problem = Text(*told, f"expected a column {name!r}")
            raise SourceError(problem, where=where, hint=hint)
    return list(wanted)


_NAMES = "train|training|trainval|val|valid|validation|dev|test|testing|eval|evaluation"
_NAME = re.compile(rf"(?:{_NAMES})[-_]?\d*", re.IGNORECASE)
_FILE = re.compile(rf"((?:{_NAMES})\d*)(?:[-_. ].*)?", re.IGNORECASE)
_FEATURE_FIRST = re.compile(rf"(?P<feature>.+)_(?P<split>{_NAMES})", re.IGNORECASE)
_SPLIT_FIRST = re.compile(rf"(?P<split>{_NAMES})_(?P<feature>.+)", re.IGNORECASE)
_NUMBERED = re.compile(r"(\w+)-\d+-of-\d+\.\w+")

_Options = TypeVar("_Options")


def is_split_name(name: str) -> bool:
    """Return whether a folder or file of this name contains a split, by convention.

    >>> is_split_name("val2017"), is_split_name("cat")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None


def split_of_file(name: str) -> str | None:
    """Return the split in a file name, in lower case; None if there is none.

    >>> split_of_file("train-00000-of-00002.parquet"), split_of_file("trains.csv")
    ('train', None)
    """
    found = _FILE.fullmatch(name)
    return None if found is None else found[1].lower()


def splits_of_files(files: Sequence[Path]) -> list[str | None]:
    """Return the split in the name of each file.

    If all are numbered (`unsupervised-00000-of-00001.parquet`) and one has the usual name of a
    split, the words before the numbers are splits, too.

    >>> splits_of_files([Path("train-0-of-1.csv"), Path("extra-0-of-1.csv")])
    ['train', 'extra']
    """
    names = [split_of_file(file.name) for file in files]
    numbered = [_NUMBERED.fullmatch(file.name) for file in files]
    if not any(names) or not all(numbered):
        return names
    return [name or (match and match[1]) for name, match in zip(names, numbered, strict=True)]


def find_splits(names: Iterable[str]) -> dict[str, dict[str, str]]:
    """Group names such as `x_train` and `test_labels` by split and feature; empty if one is not.

    >>> find_splits(["x_train", "x_test"])
    {'train': {'x': 'x_train'}, 'test': {'x': 'x_test'}}
    """
    found: dict[str, dict[str, str]] = {}
    for name in names:
        match = _FEATURE_FIRST.fullmatch(name) or _SPLIT_FIRST.fullmatch(name)
        if match is None:
            return {}
        found.setdefault(match["split"].lower(), {})[match["feature"]] = name
    return found if len(found) > 1 else {}


def read_split_options(kind: type[_Options], splits: Mapping[str, Any]) -> dict[str, _Options]:
    """Return the options of each split as `kind`, which has the defaults."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    found: dict[str, _Options] = {}
    for split, options in splits.items():
        if isinstance(options, kind):
            found[split] = options
            continue
        if not isinstance(options, Mapping):
            raise SourceError(
                f"expected a dict of {', '.join(names)}, got {options!r}", where=f"split {split!r}"
            )
        for name in options:
            if name not in names:
                hint = suggest(name, names, f"there are {', '.join(names)}")
                raise SourceError(f"unknown option {name!r}", where=f"split {split!r}", hint=hint)
        found[split] = kind(**options)
    return found
