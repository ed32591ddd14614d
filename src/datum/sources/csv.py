"""Tables in CSV files, with types that hold for every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.csv_encoding import check_encoding
from datum.sources.csv_scan import PIECE_BYTES, CsvScan, changed_error
from datum.sources.csv_text import CsvFile, CsvSettings
from datum.sources.files import Paths, find_split_files
from datum.sources.source import Block, Part
from datum.sources.table_part import TablePart

__all__ = ["CsvTable"]

MAX_MEMORY_BYTES = 256 * 2**20  # of text that is kept in memory as a whole
_BLANKS = ("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none")


class CsvTable:
    """A table in one or more CSV files; the first row has the names of the columns.

    The type of a column is told over all rows of all files: int64, float64, bool (all cells are
    true or false), or text, exactly as it stands. A number with a leading zero or plus makes its
    column text, as do integers beyond 64 bits. Empty cells are absent. A second column of one name
    gets a number; a column without any value is left out, which the metadata tells.

    Rows with too few or too many cells, with NUL bytes or bad UTF-8 are rejected, by their lines.
    Files of up to 256 MB in all are read into memory; others are read twice, piece by piece.

    Args:
        path: a file (.csv, .tsv, also .gz), a list of files, a pattern such as `data/*.csv`, or a
            dict of these by split.
        delimiter: between cells; by default that of comma, semicolon, tab and bar which fits.
        encoding: by default UTF-8, or what a byte order mark says, or else Windows-1252.
        key: the column that names the records; it stays a feature, too.
        columns: those to take, in this order; by default all.
        null_values: words that mean that there is no value. By default an empty cell does; in
            columns that hold numbers otherwise, so do NA, N/A, null and None.
        split: what the split is called, if `path` is no dict.
    """

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        delimiter: str | None = None,
        encoding: str | None = None,
        key: str | None = None,
        columns: Sequence[str] | None = None,
        null_values: Sequence[str] | None = None,
        split: str = "train",
    ) -> None:
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
            raise SourceError(f"expected a delimiter of one character, got {delimiter!r}")
        if delimiter is not None and not delimiter.isascii():
            raise SourceError(f"expected a delimiter in ASCII, got {delimiter!r}")
        if isinstance(columns, str) or isinstance(null_values, str):
            raise SourceError("expected lists as `columns` and `null_values`, got a str")
        if not all(isinstance(word, str) for word in null_values or ()):
            raise SourceError(f"expected words as `null_values`, got {null_values!r}")
        self._settings = CsvSettings(
            delimiter,
            None if encoding is None else check_encoding(encoding),
            ("",) if null_values is None else tuple(null_values),
            _BLANKS if null_values is None else ("",),
        )
        self._key = key
        self._columns = None if columns is None else list(columns)
        self._paths = find_split_files(path, split)

    def parts(self) -> Mapping[str, Part]:
        """The rows of each split; types are told over all of them."""
        files = {
            name: [CsvFile(path, self._settings) for path in paths]
            for name, paths in self._paths.items()
        }
        if len({frozenset(some[0].header) for some in files.values()}) == 1:
            return self._scan(files)
        # A split may lack columns, as a test without labels does; each then has types of its own.
        found = [self._scan({name: some}) for name, some in files.items()]
        return {name: part for parts in found for name, part in parts.items()}

    def _scan(self, files: Mapping[str, list[CsvFile]]) -> dict[str, Part]:
        scan = CsvScan([file for some in files.values() for file in some], self._key, self._columns)
        scan.run(max_bytes=MAX_MEMORY_BYTES)
        if scan.is_kept:
            return {name: _load(scan, some) for name, some in files.items()}
        return {name: _StreamedCsv(scan, some) for name, some in files.items()}


class _StreamedCsv:
    """A split that is too large for memory, read again piece by piece."""

    def __init__(self, scan: CsvScan, files: Sequence[CsvFile]) -> None:
        self.schema: Schema | None = scan.schema
        self.metadata: Mapping[str, Mapping[str, Any]] = scan.metadata
        self.fingerprint: str | None = scan.fingerprint(files)
        self._scan = scan
        self._files = files

    def blocks(self) -> Iterator[Block]:
        """The rows of each piece; raises SourceError if a file has changed since it was scanned."""
        first = 0
        for file in self._files:
            crc = file.crc
            for piece in file.pieces(PIECE_BYTES):
                block = self._scan.take_block(file, piece, first)
                first += piece.records
                yield block
            if file.crc != crc:
                raise changed_error(file)


def _load(scan: CsvScan, files: Sequence[CsvFile]) -> TablePart:
    """The part of files whose pieces were kept."""
    pieces = [(file, piece) for file in files for piece in scan.kept[file]]
    columns = scan.take_columns(pieces)
    rejects = []
    first = 0
    for _, piece in pieces:
        rejects += [replace(one, record=first + one.record) for one in piece.rejects]
        first += piece.records
    numbers = np.delete(np.arange(first), [reject.record for reject in rejects])
    return TablePart(
        {name: columns[name] for name in scan.schema},
        schema=scan.schema,
        metadata=scan.metadata,
        keys=scan.take_keys(columns, numbers),
        rejects=rejects,
        fingerprint=scan.fingerprint(files),
        rows=len(numbers),
    )
