"""Tables in CSV files, with types that hold for every row."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from datum.schema import Feature, Schema
from datum.sources.csv_scan import PIECE_BYTES, CsvScan, CsvWish, changed_error
from datum.sources.csv_text import CsvFile, CsvSettings
from datum.sources.files import Paths, find_split_files
from datum.sources.source import Block, Part, Reject
from datum.sources.table_options import TableOptions, check_table_options
from datum.sources.table_part import TablePart

__all__ = ["CsvTable"]

MAX_MEMORY_BYTES = 256 * 2**20  # of text that is kept in memory as a whole


class CsvTable:
    """A table in one or more CSV files.

    The type of a column is inferred from all rows of all files: int64, float64, bool (all cells
    are true or false), or text, exactly as it stands. A number with a leading zero or plus makes
    its column text, as do integers beyond 64 bits. A schema given to `datum.write` decides
    instead: cells are read as the types it gives. Empty cells are absent. A second column of one
    name gets a number; a column without any value is left out, which the metadata tells.

    Rows with too few or too many cells, with NUL bytes, bad UTF-8 or cells that the schema does
    not allow are rejected, by their lines. Files of up to 256 MB in all are read into memory;
    others are read twice, piece by piece.

    Args:
        path: A file (.csv, .tsv, also .gz), a list of files, a pattern such as `data/*.csv`, or a
            dict of these by split.
        key: The column that names the records; it stays a feature, too.
        split: What the split is called, if `path` is no dict.
        **options: See `TableOptions`; a table of CSV takes all of them.

    >>> CsvTable("data.csv", delimeter=";")
    Traceback (most recent call last):
    TypeError: CsvTable() has no option 'delimeter'
    hint: did you mean 'delimiter'?
    """

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        key: str | None = None,
        split: str = "train",
        **options: Unpack[TableOptions],
    ) -> None:
        check_table_options(options, of="CsvTable")
        columns = options.get("columns", "same")
        rename = options.get("rename", {})
        self._settings = CsvSettings.of(options)
        self._wish = CsvWish(
            key if key is None else rename.get(key, key),
            columns if isinstance(columns, str) else [rename.get(one, one) for one in columns],
            {},
        )
        self._paths = find_split_files(path, split)

    def guided(self, features: Mapping[str, Feature]) -> CsvTable:
        """The same table, with cells read as these features where it has columns of their names."""
        table = copy.copy(self)
        table._wish = replace(self._wish, features=dict(features))  # noqa: SLF001 - of its own class
        return table

    def parts(self) -> Mapping[str, Part]:
        """The rows of each split; types are inferred from all of them."""
        parts: dict[str, Part] = {}
        for files in self._group():
            scan = CsvScan([file for some in files.values() for file in some], self._wish)
            scan.run(max_bytes=MAX_MEMORY_BYTES)
            for name, some in files.items():
                parts[name] = _load(scan, some) if scan.is_kept else _StreamedCsv(scan, some)
        return {name: parts[name] for name in self._paths}

    def begin(self, max_bytes: int) -> dict[str, tuple[TablePart, int]]:
        """The first rows of each split, and how many lines they take.

        So many bytes are read of each file that has another header. The headers of all files are
        read, so that what `parts` refuses is refused here.
        """
        begun = {}
        for files in self._group():
            every = [file for some in files.values() for file in some]
            for name, some in files.items():
                firsts = list({tuple(file.header): file for file in reversed(some)}.values())
                scan = CsvScan(firsts, self._wish, known=every)
                scan.run(max_bytes=max_bytes * len(firsts), head_bytes=max_bytes)
                lines = sum(piece.lines for file in firsts for piece in scan.kept[file])
                lines -= sum(file.has_header for file in firsts)
                begun[name] = _load(scan, firsts), max(lines, 1)
        return begun

    def _group(self) -> list[dict[str, list[CsvFile]]]:
        """The files by split; splits of other columns apart, as those have types of their own.

        A split may lack columns, as a test without labels does.
        """
        files = {
            name: [CsvFile(path, self._settings) for path in paths]
            for name, paths in self._paths.items()
        }
        every = [file for some in files.values() for file in some]
        for file in every if len(every) > 1 else ():
            file.peek()
        groups: dict[frozenset[str], dict[str, list[CsvFile]]] = {}
        for name, some in files.items():
            names = frozenset(column for file in some for column in file.header)
            groups.setdefault(names, {})[name] = some
        return list(groups.values())


class _StreamedCsv:
    """A split that is too large for memory, read again piece by piece."""

    def __init__(self, scan: CsvScan, files: Sequence[CsvFile]) -> None:
        self.schema: Schema | None = scan.schema
        self.metadata: Mapping[str, Mapping[str, Any]] = scan.metadata
        self.fingerprint: str | None = scan.fingerprint(files)
        self.notes: Sequence[str] = scan.notes(files)
        self.rejects: Sequence[Reject] = ()  # known when they are read again, in their order
        self._scan = scan
        self._files = files

    def blocks(self) -> Iterator[Block]:
        """The rows of each piece; raises SourceError if a file has changed since it was scanned."""
        first = 0
        for file in self._files:
            crc = file.crc
            for piece in file.pieces(PIECE_BYTES):
                yield self._scan.take_block([(file, piece)], first, is_again=True)
                first += piece.records
            if file.crc != crc:
                raise changed_error(file)


def _load(scan: CsvScan, files: Sequence[CsvFile]) -> TablePart:
    """The part of files whose pieces were kept."""
    block = scan.take_block([(file, piece) for file in files for piece in scan.kept[file]], 0)
    assert isinstance(block.data, dict)
    return TablePart(
        block.data,
        schema=scan.schema,
        metadata=scan.metadata,
        keys=block.keys,
        rejects=block.rejects,
        fingerprint=scan.fingerprint(files),
        rows=len(block),
        notes=scan.notes(files),
    )
