"""The text of a CSV file: its encoding, delimiter, header and rows."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import Option, SourceError, Text
from datum.sources.files import open_file, unpacked_suffix
from datum.sources.options import TableOptions, rename_columns
from datum.sources.protocol import Reject
from datum.sources.text_encoding import TextReader, check_encoding, other_encoding

__all__ = [
    "MAX_ROW_BYTES",
    "CsvFile",
    "CsvPiece",
    "CsvSettings",
    "OtherEncodingError",
]

_NUMBER = re.compile(r"[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"nan|-?inf(?:inity)?|true|false|na|n/a|#n/a|null|none", re.IGNORECASE)
_NAME = re.compile(r"[^\W\d][\w .,:;/()%$#?&'-]{0,60}")
_YEARS = range(1800, 2101)
_NUMBERS = ("int64", "float64", "bool")
_SEEN_LACKING = 16 | 64  # bits of the core: blank, absent


@dataclass(frozen=True, slots=True)
class _FirstRow:
    """The result of looking for a header.

    Attributes:
        is_header: Whether the first row contains names.
        is_sure: Whether the rows below leave no doubt.
    """

    is_header: bool
    is_sure: bool


def _judge_first_row(cells: Sequence[str], below: _core.CsvText) -> _FirstRow:
    """Compare the first row with those below.

    A text above numbers is a name. If all columns of numbers have a number in the first row, it
    is a record, unless those numbers are years outside the range below, or count from 0 or 1. If
    there are only texts, it is a record if each of its cells occurs again in its column.
    """
    if below.rows == 0:
        return _FirstRow(is_header=True, is_sure=True)
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
            return _FirstRow(is_header=True, is_sure=True)  # an index column without a name
        if not is_empty and not _is_value(cells[at]):
            return _FirstRow(is_header=True, is_sure=True)
    columns = {at: below.take(at, looks[at][0]) for at in every if _has_values(looks[at][0])}
    if any(cells[at].strip() for at in numeric):
        return _judge_numbers(cells, numeric, below, columns)
    return _judge_texts(cells, below, columns)


def _has_values(seen: int) -> bool:
    return _core.csv_type(seen) != "empty"


def _is_value(cell: str) -> bool:
    plain = cell.strip()
    return bool(_NUMBER.fullmatch(plain) or _WORD.fullmatch(plain))


def _judge_numbers(
    cells: Sequence[str], numeric: Sequence[int], below: _core.CsvText, columns: dict[int, Any]
) -> _FirstRow:
    """Judge a first row that has a number, or nothing, in all columns of numbers."""
    first = [cells[at].strip() for at in numeric]
    if not all(cell.isdecimal() for cell in first):
        return _FirstRow(is_header=False, is_sure=True)
    numbers = [int(cell) for cell in first]
    second = [below.field(0, at).decode(errors="replace").strip() for at in numeric]
    is_counted = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    if is_counted and len(numbers) > 2 and not _are_counted(second):
        return _FirstRow(is_header=True, is_sure=False)
    are_years = all(number in _YEARS for number in numbers) and len(set(numbers)) == len(numbers)
    is_beyond = all(_is_beyond(int(cells[at]), columns.get(at)) for at in numeric)
    has_others = len(numeric) < len(cells) and not all(
        cell.isdecimal() and int(cell) in _YEARS for cell in second
    )
    return _FirstRow(is_header=are_years and (is_beyond or has_others), is_sure=False)


def _are_counted(cells: Sequence[str]) -> bool:
    if not all(cell.isdecimal() for cell in cells):
        return False
    numbers = list(map(int, cells))
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _is_beyond(number: int, column: Any) -> bool:
    """Return whether a number is outside the range of the column below."""
    if column is None or column[0] not in ("int64", "float64"):
        return False
    dtype, values, present = column
    floats = values.view(np.float64) if dtype == "float64" else values
    floats = floats[np.isfinite(floats) if present is None else present & np.isfinite(floats)]
    return not len(floats) or not floats.min() <= number <= floats.max()


def _judge_texts(cells: Sequence[str], below: _core.CsvText, columns: dict[int, Any]) -> _FirstRow:
    """Judge by texts alone: a name occurs once, a value of a category again and again."""
    again = [
        cell in _texts(below, at, columns.get(at)) for at, cell in enumerate(cells) if cell.strip()
    ]
    if again and all(again):
        return _FirstRow(is_header=False, is_sure=False)
    are_names = all(_NAME.fullmatch(cell.strip()) for cell in cells if cell.strip())
    return _FirstRow(is_header=True, is_sure=are_names and not any(again))


def _texts(below: _core.CsvText, at: int, column: Any) -> set[str]:
    if column is None or column[0] != "str":
        return set()
    rows = range(below.rows)
    return {below.field(row, at).decode(errors="replace") for row in rows}


def _number_names(cells: Sequence[str]) -> list[str]:
    """Name columns: the second `x` becomes `x_2`, a column without a name `column_<n>`."""
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


MAX_ROW_BYTES = 64 * 2**20  # far above any sensible row, far below the memory of a computer
_DELIMITERS = ",;\t|"
_SAMPLE_BYTES = 64 * 2**10  # to detect the delimiter and the header
_PEEK_BYTES = 2**20
_BLANKS = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none")
_GUESSED = {"cp1252": "Windows-1252", "mac_roman": "Mac Roman", "latin-1": "Latin-1"}
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """How files are read.

    Attributes:
        delimiter: The character between cells; None to detect it.
        encoding: The encoding of the text; None to detect it.
        absent: Words that mean no value, in any column.
        blank: Words that mean no value in columns of numbers and booleans.
        header: Whether the first row contains names; None to detect it.
        names: The names of the columns; None to use the header.
        skip_rows: The number of lines before the table.
        comment: The character that starts a comment line; NUL if there are no comments.
        decimal: The decimal separator of numbers.
        rename: Pairs of a name in the file and its new name.
    """

    delimiter: str | None = None
    encoding: str | None = None
    absent: tuple[str, ...] = ("",)
    blank: tuple[str, ...] = ()
    header: bool | None = None
    names: tuple[str, ...] | None = None
    skip_rows: int = 0
    comment: str = "\0"
    decimal: str = "."
    rename: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, options: TableOptions) -> CsvSettings:
        """Return the settings for the options of a table."""
        null_values, names, encoding = options.null_values, options.names, options.encoding
        return cls(
            options.delimiter,
            None if encoding is None else check_encoding(encoding),
            ("",) if null_values is None else tuple(null_values),
            _BLANKS if null_values is None else ("",),
            None if options.header == "auto" else options.header,
            None if names is None else tuple(names),
            options.skip_rows,
            options.comment or "\0",
            options.decimal,
            tuple((options.rename or {}).items()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CsvPiece:
    """Some rows of a file.

    Attributes:
        text: Their bytes, which columns of text point into.
        rows: The rows as split by the core.
        rejects: Rows that cannot be read, numbered within the piece.
        line: The number of the first line.
    """

    text: NDArray[np.uint8]
    rows: _core.CsvText
    rejects: list[Reject]
    line: int

    @property
    def records(self) -> int:
        """The number of rows, including those that cannot be read."""
        return self.rows.rows + len(self.rejects)

    @property
    def lines(self) -> int:
        """The number of lines of its rows, including the header."""
        return _core.count_lines(self.text, 0, self.rows.end)

    def lines_of(self, rows: Sequence[int]) -> list[int]:
        """Return the lines on which readable rows start; `rows` must be in ascending order."""
        lines = []
        line, at = self.line, 0
        for row in rows:
            offset = self.rows.offset(row, 0)
            line += _core.count_lines(self.text, at, offset)
            lines.append(line)
            at = offset
        return lines


class OtherEncodingError(Exception):
    """The encoding was guessed wrong: the file has to be read again."""


@dataclass(slots=True, eq=False)
class CsvFile:
    """One file, and its properties once it was read.

    Attributes:
        path: The path of the file.
        settings: How it is read.
        encoding: The encoding of its text; empty until it is known.
        delimiter: The character between its cells.
        header: A name for each column; repeated and missing names are numbered.
        has_header: Whether its first row contains the names.
        crc: The checksum of its bytes.
        notes: Assumptions that may be wrong.
    """

    path: Path
    settings: CsvSettings
    encoding: str = ""
    delimiter: str = ""
    header: list[str] = field(default_factory=list)
    has_header: bool = True
    crc: int = 0
    notes: list[str] = field(default_factory=list)
    _is_settled: bool = False  # whether the encoding is certain

    def pieces(self, piece_bytes: int) -> Iterator[CsvPiece]:
        """Yield all rows, in pieces of about `piece_bytes` bytes.

        Raises OtherEncodingError, at most twice, while the encoding is being detected.
        """
        reader = TextReader(self.path, self.encoding or self.settings.encoding)
        left = np.empty(0, np.uint8)
        line, skipped = 1, self.settings.skip_rows
        self.header = []
        self.notes = []
        with open_file(self.path) as file:
            try:
                for text, is_last in reader.runs(file, piece_bytes):
                    self.encoding = reader.encoding or ""
                    if len(left):
                        text = np.concatenate([left, text])
                    if line <= skipped:
                        start, lines = _find_line(text, skipped + 1 - line)
                        text, line = text[start:], line + lines
                        if line <= skipped:
                            left = text.copy()
                            text = text[:0]
                            if not is_last:
                                continue
                    piece = self._split(text, line, is_last=is_last)
                    left = text[piece.rows.end :].copy()
                    if not is_last:
                        line += _core.count_lines(text, 0, piece.rows.end)
                        self._check_left(left, line)
                    yield piece
            except UnicodeDecodeError as error:
                self.encoding = reader.encoding or ""
                raise self._wrong_encoding(error) from None
        self.crc = reader.crc
        self._is_settled = True
        if self.settings.encoding is None and self.encoding in _GUESSED:
            self.notes.append(
                Text(
                    f"{self.path}: not UTF-8; read as {_GUESSED[self.encoding]}"
                    f" ({self.encoding}); ",
                    Option("encoding"),
                    " overrides",
                )
            )

    def peek(self) -> None:
        """Read enough to know the header."""
        while not self.header:
            try:
                for _ in self.pieces(_PEEK_BYTES):
                    if self.header:
                        break
            except OtherEncodingError:
                self.header = []

    def _split(self, text: NDArray[np.uint8], line: int, *, is_last: bool) -> CsvPiece:
        self.delimiter = self.delimiter or self._find_delimiter(text, is_last)
        columns = len(self.header) or self._count_columns(text, is_last)
        rows = self._lex(text, self.delimiter, columns, is_last)
        if not self.header and (rows.header or columns or is_last):
            self.header = self._name_columns(rows.header, columns, text)
        bad = rows.bad_rows
        if any(fault == "text" for _, _, fault, _ in bad):
            self._doubt_encoding(text)
        rejects = []
        at, last = 0, line
        for record, offset, fault, fields in bad:
            last += _core.count_lines(text, at, offset)
            at = offset
            where = f"{self.path}, line {last}"
            rejects.append(Reject(record, None, where, self._reason(fault, fields)))
        return CsvPiece(text, rows, rejects, line)

    def _count_columns(self, text: NDArray[np.uint8], is_last: bool) -> int:
        """Return the number of columns if the first row is a record; 0 if it contains names."""
        self.has_header = True
        if self.settings.header:
            return 0
        for size in (_SAMPLE_BYTES, len(text)):
            sample = text[:size].copy()
            below = self._lex(sample, self.delimiter, 0, is_last and len(sample) == len(text))
            if below.header and below.rows:
                break
        cells = [cell.decode(errors="replace") for cell in below.header]
        if self.settings.header is None:
            first = _judge_first_row(cells, below)
            names = self.settings.names
            if names is not None:  # mostly passed for files without a header
                first = _FirstRow(
                    list(names) == cells or (first.is_header and first.is_sure), is_sure=True
                )
            self.has_header = first.is_header
            self._note_header(first, cells)
        else:
            self.has_header = False
        return 0 if self.has_header else len(cells)

    def _note_header(self, first: _FirstRow, cells: list[str]) -> None:
        shown = ", ".join(repr(cell) for cell in cells[:3]) + (", ..." if len(cells) > 3 else "")
        if not first.is_header and self.settings.names is None:
            named = "'column_1'" if len(cells) == 1 else f"'column_1' to 'column_{len(cells)}'"
            self.notes.append(
                Text(
                    f"{self.path}: no header found, as the first row ({shown}) looks like data;"
                    f" columns are named {named}; ",
                    Option("names"),
                    " names them, ",
                    Option("header", True),
                    " reads the first row as names",
                )
            )
        elif first.is_header and not first.is_sure:
            self.notes.append(
                Text(
                    f"{self.path}: the first row ({shown}) was read as the names of the columns; ",
                    Option("header", False),
                    " reads it as a record",
                )
            )

    def _lex(
        self, text: NDArray[np.uint8], delimiter: str, columns: int, is_last: bool
    ) -> _core.CsvText:
        absent, blank = self.settings.absent, self.settings.blank
        threads = _thread_count()
        try:
            return _core.CsvText(
                text,
                delimiter,
                columns,
                is_last,
                MAX_ROW_BYTES,
                absent,
                blank,
                threads,
                self.settings.comment,
                self.settings.decimal,
            )
        except ValueError as error:
            raise SourceError(f"line 1: expected a header, got {error}", where=self.path) from None

    def _find_delimiter(self, text: NDArray[np.uint8], is_last: bool) -> str:
        """Return the delimiter with which most rows have as many cells as the header."""
        if self.settings.delimiter is not None:
            return self.settings.delimiter
        if unpacked_suffix(self.path) == ".tsv":
            return "\t"
        sample = text[:_SAMPLE_BYTES].copy()
        found = []
        columns = (self.settings.decimal, self.settings.comment)
        for delimiter in [one for one in _DELIMITERS if one not in columns]:
            rows = self._lex(sample, delimiter, 0, is_last and len(sample) == len(text))
            total = rows.rows + len(rows.bad_rows)
            share = (rows.rows + 1) / (total + 1)
            found.append((len(rows.header) > 1, share, len(rows.header), delimiter))
        best = max(found, key=lambda one: one[:3])
        return best[3] if best[0] else found[0][3]

    def _name_columns(self, cells: list[bytes], columns: int, text: NDArray[np.uint8]) -> list[str]:
        names = [""] * columns if columns else self._read_header(cells, text)
        given = self.settings.names
        if given is not None:
            if len(given) != len(names):
                wanted = f" for {len(names)} columns, got {len(given)}"
                problem = Text("expected ", Option("names"), wanted)
                raise SourceError(problem, where=self.path)
            names = list(given)
        return rename_columns(
            _number_names(names), dict(self.settings.rename), where=str(self.path)
        )

    def _read_header(self, cells: list[bytes], text: NDArray[np.uint8]) -> list[str]:
        where = f"{self.path}: line {1 + self.settings.skip_rows}"
        if not cells:
            after = f" after {self.settings.skip_rows:,} lines" if self.settings.skip_rows else ""
            raise SourceError(
                f"expected a header and rows, got an empty file{after}", where=self.path
            )
        if any(b"\0" in cell for cell in cells):
            raise SourceError(
                "expected a header of text, got a NUL byte",
                where=where,
                hint=Text("if this is UTF-16, pass ", Option("encoding", "utf-16-le")),
            )
        try:
            return [cell.decode() for cell in cells]
        except UnicodeDecodeError:
            self._doubt_encoding(text)
            raise SourceError("expected a header in UTF-8", where=where) from None

    def _doubt_encoding(self, text: NDArray[np.uint8]) -> None:
        if self._is_settled or self.settings.encoding is not None or self.encoding != "utf-8":
            return
        other = other_encoding(text)
        if other is not None:
            self.encoding = other
            raise OtherEncodingError
        self._is_settled = True

    def _wrong_encoding(self, error: UnicodeDecodeError) -> Exception:
        if self.settings.encoding is None and self.encoding == "cp1252":
            self.encoding = "latin-1"  # decodes every byte
            return OtherEncodingError()
        return SourceError(f"expected text in {self.encoding}, got: {error}", where=self.path)

    def _check_left(self, left: NDArray[np.uint8], line: int) -> None:
        if len(left) > MAX_ROW_BYTES:
            raise SourceError(
                f"line {line}: expected at most {MAX_ROW_BYTES} bytes in a row, got more",
                where=self.path,
                hint="an unclosed quote takes in everything that follows",
            )

    def _reason(self, fault: str, fields: int) -> str:
        if fault == "fields":
            return f"expected {len(self.header)} cells, got {fields}"
        reasons = {
            "nul": "expected text, got a NUL byte",
            "text": f"expected text in {self.encoding}, got other bytes",
            "quote": "expected a closing quote, got the end of the file",
            "length": f"expected at most {MAX_ROW_BYTES} bytes in a row, got more",
        }
        return reasons[fault]


def _find_line(text: NDArray[np.uint8], lines: int) -> tuple[int, int]:
    """Return where the first `lines` lines end, at most all, and how many lines those are."""
    end = found = 0
    for line_end in itertools.islice(_LINE_END.finditer(text.tobytes()), lines):
        end, found = line_end.end(), found + 1
    return end, found


def _thread_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
