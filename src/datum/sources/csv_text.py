"""The rows of a CSV file, piece by piece, taken apart by the core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.errors import SourceError
from datum.sources.csv_encoding import TextReader, other_encoding
from datum.sources.files import open_file, unpacked_suffix
from datum.sources.source import Reject

__all__ = ["MAX_ROW_BYTES", "CsvFile", "CsvPiece", "CsvSettings", "OtherEncodingError"]

MAX_ROW_BYTES = 64 * 2**20  # far above any row that is meant, far below the memory of a computer
_DELIMITERS = ",;\t|"
_SAMPLE_BYTES = 64 * 2**10  # that tell the delimiter


@dataclass(frozen=True, slots=True)
class CsvSettings:
    """How files are read.

    Attributes:
        delimiter: between cells; None to find out.
        encoding: of the text; None to find out.
        absent: words that stand for no value, in any column.
        blank: words that do so in columns of numbers and truth values.
    """

    delimiter: str | None = None
    encoding: str | None = None
    absent: tuple[str, ...] = ("",)
    blank: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CsvPiece:
    """Some rows of a file.

    Attributes:
        text: their bytes, which columns of text point into.
        rows: what the core made of them.
        rejects: rows that cannot be read, numbered within the piece.
    """

    text: NDArray[np.uint8]
    rows: _core.CsvText
    rejects: list[Reject]

    @property
    def records(self) -> int:
        """How many rows there are, with those that cannot be read."""
        return self.rows.rows + len(self.rejects)


class OtherEncodingError(Exception):
    """The text is not encoded as it seemed: the file is to be read again."""


@dataclass(slots=True, eq=False)
class CsvFile:
    """One file, and what is known of it once it was read.

    Attributes:
        path: where it is.
        settings: how it is read.
        encoding: of its text; empty until it is known.
        delimiter: between its cells.
        header: a name for each column: numbered where the file has one twice, or none.
        crc: the checksum of its bytes.
    """

    path: Path
    settings: CsvSettings
    encoding: str = ""
    delimiter: str = ""
    header: list[str] = field(default_factory=list)
    crc: int = 0
    _is_settled: bool = False  # whether the encoding is no guess any more

    def pieces(self, piece_bytes: int) -> Iterator[CsvPiece]:
        """All rows, in pieces of about so many bytes.

        Raises OtherEncodingError, at most twice, while the encoding is being found out.
        """
        reader = TextReader(self.path, self.encoding or self.settings.encoding)
        left = np.empty(0, np.uint8)
        line = 1
        self.header = []
        with open_file(self.path) as file:
            try:
                for text, is_last in reader.runs(file, piece_bytes):
                    self.encoding = reader.encoding or ""
                    if len(left):
                        text = np.concatenate([left, text])
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

    def _split(self, text: NDArray[np.uint8], line: int, *, is_last: bool) -> CsvPiece:
        self.delimiter = self.delimiter or self._find_delimiter(text, is_last)
        columns = len(self.header)
        rows = self._lex(text, self.delimiter, columns, is_last)
        if columns == 0 and (rows.header or is_last):
            self.header = self._read_header(rows.header, text)
        bad = rows.bad_rows
        if any(fault == "text" for _, _, fault, _ in bad):
            self._doubt_encoding(text)
        rejects = []
        at = 0
        for record, offset, fault, fields in bad:
            line += _core.count_lines(text, at, offset)
            at = offset
            where = f"{self.path}, line {line}"
            rejects.append(Reject(record, None, where, self._reason(fault, fields)))
        return CsvPiece(text, rows, rejects)

    def _lex(
        self, text: NDArray[np.uint8], delimiter: str, columns: int, is_last: bool
    ) -> _core.CsvText:
        absent, blank = self.settings.absent, self.settings.blank
        threads = _thread_count()
        try:
            return _core.CsvText(
                text, delimiter, columns, is_last, MAX_ROW_BYTES, absent, blank, threads
            )
        except ValueError as error:
            raise SourceError(f"{self.path}: line 1: expected a header, got {error}") from None

    def _find_delimiter(self, text: NDArray[np.uint8], is_last: bool) -> str:
        """The one that gives most rows as many cells as the header has, and most cells."""
        if self.settings.delimiter is not None:
            return self.settings.delimiter
        if unpacked_suffix(self.path) == ".tsv":
            return "\t"
        sample = text[:_SAMPLE_BYTES].copy()
        found = []
        for delimiter in _DELIMITERS:
            rows = self._lex(sample, delimiter, 0, is_last and len(sample) == len(text))
            total = rows.rows + len(rows.bad_rows)
            share = (rows.rows + 1) / (total + 1)
            found.append((len(rows.header) > 1, share, len(rows.header), delimiter))
        best = max(found, key=lambda one: one[:3])
        return best[3] if best[0] else ","

    def _read_header(self, cells: list[bytes], text: NDArray[np.uint8]) -> list[str]:
        if not cells:
            raise SourceError(f"{self.path}: expected a header and rows, got an empty file")
        if any(b"\0" in cell for cell in cells):
            raise SourceError(
                f"{self.path}: line 1: expected a header of text, got a NUL byte\n"
                "hint: if this is UTF-16, pass encoding='utf-16-le'"
            )
        try:
            names = [cell.decode() for cell in cells]
        except UnicodeDecodeError:
            self._doubt_encoding(text)
            raise SourceError(f"{self.path}: line 1: expected a header in UTF-8") from None
        return _number_names(names)

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
            self.encoding = "latin-1"  # in which every byte is a character
            return OtherEncodingError()
        return SourceError(f"{self.path}: expected text in {self.encoding}, got: {error}")

    def _check_left(self, left: NDArray[np.uint8], line: int) -> None:
        if len(left) > MAX_ROW_BYTES:
            raise SourceError(
                f"{self.path}: line {line}: expected at most {MAX_ROW_BYTES} bytes in a row,"
                " got more\nhint: a quote that is not closed takes in all that follows"
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


def _number_names(cells: list[str]) -> list[str]:
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


def _thread_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
