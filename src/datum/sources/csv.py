"""Tables in CSV files, with types inferred from every row."""

from __future__ import annotations

import copy
import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked
from datum.errors import Option, SourceError, Text
from datum.schema import Feature, Schema
from datum.sources.cells import cell_kind, read_cell, read_column
from datum.sources.csv_text import CsvFile, CsvPiece, CsvSettings, OtherEncodingError
from datum.sources.files import Paths, find_split_files, unpacked_suffix
from datum.sources.options import JOIN_HINT, TableKeywords, TableOptions, pick_columns
from datum.sources.protocol import Block, Part, PartInfo, Reject, SourceInfo, take_rows
from datum.sources.table_part import TablePart, keys_of

__all__ = [
    "PIECE_BYTES",
    "CsvRequest",
    "CsvScan",
    "CsvTable",
]

PIECE_BYTES = 8 * 2**20  # of text at a time, if it is not kept in memory
_PACKED_RATIO = 8  # estimated size of text relative to its compressed file
_SEEN_BOOL, _SEEN_WIDE, _SEEN_BLANK, _SEEN_TEXT, _SEEN_ABSENT = 1, 4, 16, 32, 64  # bits of the core
_SHOWN_HEADERS = 6
_SHOWN_NAMES = 8


@dataclass(frozen=True, slots=True)
class CsvRequest:
    """The columns and types to read from a table.

    Attributes:
        key: The column that names the records, if there is one.
        columns: The columns to read, or a word for how to treat headers that differ.
        features: Features to convert cells to, by column; other types are inferred.
    """

    key: str | None
    columns: Sequence[str]
    features: Mapping[str, Feature]

    def kind(self, name: str) -> str:
        """Return the type that the core reads a column as."""
        return cell_kind(self.features[name]) if name in self.features else "empty"


@dataclass(slots=True)
class _Tally:
    """Counts of the cells of a column that look like numbers and of those that do not.

    Attributes:
        regular: Cells that look like numbers.
        odd: Cells that do not.
        codes: Cells that are numbers except for leading zeros.
        first_odd: The location and content of the first odd cell.
        advice: How to read the odd cell as a number.
    """

    regular: int = 0
    odd: int = 0
    codes: int = 0
    first_odd: str = ""
    advice: str = ""


class CsvScan:
    """One pass over all files.

    Attributes:
        seen: What the cells of each column look like, as bits of the core.
        is_kept: Whether all pieces were kept in memory.
        kept: The pieces of each file.
    """

    def __init__(
        self,
        files: Sequence[CsvFile],
        request: CsvRequest,
        *,
        known: Sequence[CsvFile] | None = None,
    ) -> None:
        self.seen: dict[str, int] = {}
        self.is_kept = True
        self.kept: dict[CsvFile, list[CsvPiece]] = {}
        self._files = files
        self._request = request
        self._known = known or files  # their headers decide which columns there are
        self._tallies: dict[str, _Tally] = {}
        self._bad: dict[CsvPiece, dict[str, list[int]]] = {}  # rows, by column

    def run(self, *, max_bytes: int, head_bytes: int | None = None) -> None:
        """Read all files, and keep them if their text takes at most `max_bytes`.

        With `head_bytes`, read only that many bytes of each file.
        """
        sizes = map(_text_bytes, self._files)
        self.is_kept = head_bytes is not None or sum(sizes) <= max_bytes
        left = max_bytes
        for file in self._files:
            pieces = self._read(file, left, head_bytes)
            left -= sum(len(piece.text) for piece in pieces)
            if self.is_kept:
                self.kept[file] = pieces
            else:
                self.kept.clear()
                self._bad.clear()
        self._check_rename()

    def _read(self, file: CsvFile, max_bytes: int, head_bytes: int | None) -> list[CsvPiece]:
        """Scan a file; start again if its encoding turns out to be another."""
        while True:
            try:
                return self._read_once(file, max_bytes, head_bytes)
            except OtherEncodingError:
                continue

    def _read_once(self, file: CsvFile, max_bytes: int, head_bytes: int | None) -> list[CsvPiece]:
        seen: dict[str, int] = {}
        tallies: dict[str, _Tally] = {}
        kept: list[CsvPiece] = []
        size = head_bytes or (_text_bytes(file) + 1 if self.is_kept else PIECE_BYTES)
        for piece in file.pieces(size):
            for name, bits in self._look(file, piece, tallies).items():
                seen[name] = seen.get(name, 0) | bits
            max_bytes -= len(piece.text)
            if max_bytes < 0:  # compressed more than estimated
                self.is_kept = False
                kept.clear()
            if self.is_kept:
                kept.append(piece)
            else:
                self._bad.clear()
            if head_bytes is not None and file.header:
                break
        for name, bits in seen.items():
            self.seen[name] = self.seen.get(name, 0) | bits
        for name, tally in tallies.items():
            known = self._tallies.setdefault(name, _Tally())
            if not known.odd:
                known.first_odd, known.advice = tally.first_odd, tally.advice
            known.regular += tally.regular
            known.odd += tally.odd
            known.codes += tally.codes
        return kept

    def _look(self, file: CsvFile, piece: CsvPiece, tallies: dict[str, _Tally]) -> dict[str, int]:
        if not file.header:
            return {}  # the first row continues in the next piece
        names = self._names(file)
        at = _positions(file)
        wanted = [self._request.kind(name) for name in names]
        looks = piece.rows.look([at[name] for name in names], wanted)
        found = {}
        for name, (seen, regular, odd, first_odd, codes, bad) in zip(names, looks, strict=True):
            found[name] = seen
            if bad:
                self._bad.setdefault(piece, {})[name] = bad
            tally = tallies.setdefault(name, _Tally())
            if odd and not tally.odd:
                cell = piece.rows.field(first_odd, at[name]).decode(errors="replace")
                (line,) = piece.lines_of([first_odd])
                tally.first_odd = f"{file.path}, line {line:,}: {cell!r:.80}"
                tally.advice = _advise(cell)
            tally.regular += regular
            tally.odd += odd
            tally.codes += codes
        if self._request.columns == "union":
            for name in self._every_name:
                found.setdefault(name, _SEEN_ABSENT)
        return found

    def _names(self, file: CsvFile) -> list[str]:
        """Return the columns to read from a file."""
        columns, key = self._request.columns, self._request.key
        first = self._known[0]
        if not isinstance(columns, str):
            names = pick_columns(file.header, columns, where=str(file.path))
        elif columns == "union":
            names = file.header
        elif columns == "intersection":
            names = self._shared_names
            if not names:
                raise _headers_error(self._known, "no column that all files have")
        else:
            if set(file.header) != set(first.header):
                raise _headers_error(self._known, "headers that differ")
            names = first.header
        if key is not None and key not in names:
            names = [*names, *pick_columns(file.header, [key], where=str(file.path))]
        return names

    @functools.cached_property
    def _every_name(self) -> list[str]:
        return list(dict.fromkeys(name for file in self._known for name in file.header))

    @functools.cached_property
    def _shared_names(self) -> list[str]:
        shared = set(self._known[0].header).intersection(*(file.header for file in self._known))
        return [name for name in self._known[0].header if name in shared]

    def _check_rename(self) -> None:
        """Raise SourceError if `rename` names a column that no file has."""
        for old, new in self._files[0].settings.rename:
            if new not in self._every_name:
                where = str(self._files[0].path)
                pick_columns(self._every_name, [old], where=where, option="rename")

    def _is_wanted(self, name: str) -> bool:
        return isinstance(self._request.columns, str) or name in self._request.columns

    @property
    def schema(self) -> Schema:
        """The features of columns that have a value; the key only if it is also a feature."""
        features = {}
        for name, seen in self.seen.items():
            dtype = _core.csv_type(seen)
            is_number = dtype in ("int64", "float64", "bool")
            lacks = seen & (_SEEN_ABSENT | (_SEEN_BLANK if is_number else 0))
            if dtype != "empty" and self._is_wanted(name):
                is_given = self._request.kind(name) != "empty"
                found = Feature(dtype, optional=lacks != 0)
                features[name] = self._request.features[name] if is_given else found
        return Schema(features)

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:
        """Columns that were left out, and the encoding of text other than UTF-8."""
        found: dict[str, dict[str, Any]] = {}
        encodings = sorted({file.encoding for file in self._files} - {"utf-8", "utf-8-sig"})
        for name, seen in self.seen.items():
            dtype = _core.csv_type(seen)
            if not self._is_wanted(name):
                continue
            if dtype == "empty":
                found[name] = {"left_out": "no record has a value"}
            elif dtype == "str" and encodings:
                found[name] = {"encoding": ", ".join(encodings)}
        return found

    def notes(self, files: Sequence[CsvFile]) -> list[str]:
        """Return the assumptions about these files, and why columns of numbers are text."""
        found = [note for file in files for note in file.notes]
        for name, seen in self.seen.items():
            tally = self._tallies.get(name, _Tally())
            is_text = _core.csv_type(seen) == "str" and self._request.kind(name) == "empty"
            if not is_text or not self._is_wanted(name):
                continue
            if not seen & _SEEN_TEXT and seen & _SEEN_BOOL:
                found.append(f"column {name!r} is text, as it has both numbers and truth values")
            elif not seen & _SEEN_TEXT and seen & _SEEN_WIDE:
                found.append(
                    f"column {name!r} is text, as it has fractions beside integers beyond 2^53"
                )
            elif 0 < tally.odd < tally.regular and not tally.codes:
                more = " and others" if tally.odd > 1 else ""
                odd = f"column {name!r} is text, not numbers: {tally.first_odd}{more}; "
                found.append(Text(odd, tally.advice))
        return found

    def fingerprint(self, files: Sequence[CsvFile]) -> str:
        """Return a text that changes when the content of a file, or how it is read, changes."""
        types = {name: _core.csv_type(seen) for name, seen in self.seen.items()}
        text = repr((types, self._request, [(file.crc, file.settings) for file in files]))
        return f"{_core.crc32c(text.encode()):08x}"

    # Rows after the scan.

    def take_block(
        self, pieces: Sequence[tuple[CsvFile, CsvPiece]], first: int, *, is_reread: bool = False
    ) -> Block:
        """Return the rows of pieces; `first` is the number of the first record.

        With `is_reread` the pieces were not kept since the scan and are scanned again.
        """
        for file, piece in pieces if is_reread else ():
            for name, bits in self._look(file, piece, {}).items():
                if self.seen[name] | bits != self.seen[name]:
                    raise _changed_error(file)
        columns = self._take_columns(pieces)
        rejects: list[Reject] = []
        numbers = []
        for _, piece in pieces:
            rejects += [replace(one, record=first + one.record) for one in piece.rejects]
            lost = [one.record for one in piece.rejects]
            numbers.append(first + np.delete(np.arange(piece.records), lost))
            first += piece.records
        every = np.concatenate([np.empty(0, np.int64), *numbers])
        columns, faults = self._convert(columns, pieces)
        if faults:
            rejects += self._reject_rows(faults, pieces, every)
            kept = np.delete(np.arange(len(every)), list(faults))
            columns = {name: take_rows(column, kept) for name, column in columns.items()}
            every = every[kept]
            rejects.sort(key=lambda reject: reject.record)
        for _, piece in pieces:
            self._bad.pop(piece, None)
        keys = self._take_keys(columns, every)
        return Block({name: columns[name] for name in self.schema}, every, keys, rejects)

    def _convert(
        self, columns: dict[str, Any], pieces: Sequence[tuple[CsvFile, CsvPiece]]
    ) -> tuple[dict[str, Any], dict[int, list[str]]]:
        """Convert columns to the features requested; return them and the faults by row."""
        converted = dict(columns)
        faults: dict[int, list[str]] = {}
        for name in columns:
            if self._request.kind(name) == "empty":
                continue
            feature = self._request.features[name]
            first, wrong = 0, {}
            for file, piece in pieces:
                for row in self._bad.get(piece, {}).get(name, ()):
                    cell = piece.rows.field(row, _positions(file)[name]).decode()
                    wrong[first + row] = f"expected {feature.dtype}, got {cell!r:.100}"
                first += piece.rows.rows
            converted[name], others = read_column(columns[name], feature)
            for row, problem in sorted({**others, **wrong}.items()):
                faults.setdefault(row, []).append(f"column {name!r}: {problem}")
        return converted, faults

    def _reject_rows(
        self,
        faults: Mapping[int, Sequence[str]],
        pieces: Sequence[tuple[CsvFile, CsvPiece]],
        numbers: NDArray[np.int64],
    ) -> list[Reject]:
        """Return the rows with cells that do not fit the schema, with their lines."""
        rejects = []
        first = 0
        rows = np.array(sorted(faults), np.int64)
        for file, piece in pieces:
            own = rows[(rows >= first) & (rows < first + piece.rows.rows)]
            lines = piece.lines_of((own - first).tolist())
            for row, line in zip(own.tolist(), lines, strict=True):
                where = f"{file.path}, line {line}"
                rejects.append(Reject(int(numbers[row]), None, where, "; ".join(faults[row])))
            first += piece.rows.rows
        return rejects

    def _take_keys(self, columns: Mapping[str, Any], numbers: NDArray[np.int64]) -> Any:
        """Return the keys of the records of these numbers, if they have any."""
        key = self._request.key
        if key is None:
            return None
        if key not in columns and len(numbers):
            raise SourceError(f"expected keys in column {key!r}, got none")
        return keys_of(key, columns[key], numbers=numbers) if len(numbers) else []

    def _take_columns(self, pieces: Sequence[tuple[CsvFile, CsvPiece]]) -> dict[str, Any]:
        """Return the columns of scanned pieces, by name."""
        parts_of: dict[str, list[Any]] = {}
        placed = [(piece.rows, _positions(file)) for file, piece in pieces]
        for name, seen in self.seen.items():
            dtype = _core.csv_type(seen)
            if dtype != "empty":
                parts_of[name] = [
                    rows.take(at[name], seen) if name in at else _absent(dtype, rows.rows)
                    for rows, at in placed
                ]
        texts = [piece.text for _, piece in pieces]
        starts = np.cumsum([0, *map(len, texts)])
        text = texts[0] if len(texts) == 1 else np.concatenate([np.empty(0, np.uint8), *texts])
        return {name: _join(parts, text, starts) for name, parts in parts_of.items()}


def _advise(cell: str) -> str:
    """Return how to read a column as numbers despite this cell."""
    if re.fullmatch(r"-?[0-9]+,[0-9]+", cell):
        return Text(Option("decimal", ","), " reads it as a number")
    try:
        read_cell(cell, Feature("float64"))
    except ValueError:
        return Text("a ", Option("schema"), " that makes it a number rejects those rows")
    return Text("a ", Option("schema"), " that makes it a number reads those, too")


def _absent(dtype: str, rows: int) -> tuple[str, NDArray[Any], NDArray[np.bool_]]:
    """Return a column without values, in the form the core returns columns."""
    count = 2 * rows if dtype == "str" else rows
    values: NDArray[Any] = np.zeros(count, np.bool_ if dtype == "bool" else np.int64)
    return dtype, values, np.zeros(rows, np.bool_)


def _headers_error(files: Sequence[CsvFile], got: str) -> SourceError:
    """Return the error for files with different columns, naming files and columns."""
    groups: dict[frozenset[str], list[CsvFile]] = {}
    for file in files:
        groups.setdefault(frozenset(file.header), []).append(file)
    first = files[0].header
    lines = []
    for names, some in itertools.islice(groups.items(), _SHOWN_HEADERS):
        more = f" and {len(some) - 1:,} more" if len(some) > 1 else ""
        no_header = "" if some[0].has_header else " (no header found)"
        lines.append(
            f"  {some[0].path}{more}{no_header}: {_describe_header(names, some[0], first)}"
        )
    if len(groups) > _SHOWN_HEADERS:
        lines.append(f"  and {len(groups) - _SHOWN_HEADERS:,} other headers")
    hint = JOIN_HINT
    if not all(file.has_header for file in files):
        either = Option("header", True), " or ", Option("header", False)
        hint = Text(hint, "; ", *either, " says whether the first row has the names")
    return SourceError(
        f"expected the same columns in all files, got {got}: {len(groups):,} headers in"
        f" {len(files):,} files",
        details=lines,
        hint=hint,
    )


def _describe_header(names: frozenset[str], file: CsvFile, first: Sequence[str]) -> str:
    if set(names) == set(first):
        return _list_names(first)
    lacking = [name for name in first if name not in names]
    further = [name for name in file.header if name not in first]
    differences = [f"lacks {_list_names(lacking)}"] if lacking else []
    differences += [f"also has {_list_names(further)}"] if further else []
    return "; ".join(differences)


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def _positions(file: CsvFile) -> dict[str, int]:
    return {name: at for at, name in enumerate(file.header)}


def _changed_error(file: CsvFile) -> SourceError:
    """Return the error for a file that has changed since it was scanned."""
    return SourceError("the file has changed since it was scanned", where=file.path)


def _text_bytes(file: CsvFile) -> int:
    """Return the estimated size of the text of a file."""
    size = file.path.stat().st_size
    is_packed = unpacked_suffix(file.path) != file.path.suffix.lower()
    return size * _PACKED_RATIO if is_packed else size


def _join(parts: list[Any], text: Any, starts: Any) -> Any:
    """Join pieces of a column; columns of text point into the joined text."""
    dtype = parts[0][0]
    values = [part[1] for part in parts]
    present = None
    if any(part[2] is not None for part in parts):
        masks = [np.ones(_rows(part), np.bool_) if part[2] is None else part[2] for part in parts]
        present = masks[0] if len(masks) == 1 else np.concatenate(masks)
    if dtype == "str":
        for part, start in zip(values, starts, strict=False):
            part[::2] += start
    joined = values[0] if len(values) == 1 else np.concatenate(values)
    column: Any = joined
    if dtype == "str":
        column = BytesColumn(text, joined, is_text=True)
    elif dtype == "float64":
        column = joined.view(np.float64)
    return column if present is None else Masked(column, present)


def _rows(part: Any) -> int:
    return len(part[1]) // (2 if part[0] == "str" else 1)


MAX_MEMORY_BYTES = 256 * 2**20  # larger files are read twice, in pieces


class CsvTable(SourceInfo):
    """A table in one or more CSV files.

    The type of a column is inferred from all rows of all files: int64, float64, bool (all cells
    are true or false), or text, unchanged. A number with a leading zero or plus makes its column
    text, as do integers beyond 64 bits. A schema passed to `datum.write` overrides this: cells are
    converted to its types. Empty cells are absent. A repeated column name gets a number; a column
    without any value is left out, which the metadata records.

    Rows with too few or too many cells, NUL bytes, invalid UTF-8 or cells that do not fit the
    schema are rejected, with their lines. Files of up to 256 MB in total are read into memory;
    larger ones are read twice, in pieces.

    Args:
        path: A file (.csv, .tsv, also .gz), a list of files, a pattern such as `data/*.csv`, or a
            dict of these by split.
        key: The column that names the records; it is also stored as a feature.
        split: The name of the split, unless `path` is a dict.
        **options: See `TableOptions`: a CSV table takes all of them.

    >>> CsvTable("data.csv", delimeter=";")
    Traceback (most recent call last):
    TypeError: CsvTable: got an unknown option `delimeter`
    hint: did you mean `delimiter`?
    """

    kind = "CSV table"
    suffixes = (".csv", ".tsv")
    is_table = True

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        key: str | None = None,
        split: str = "train",
        **options: Unpack[TableKeywords],
    ) -> None:
        table = TableOptions.of(options, caller="CsvTable")
        columns, rename = table.columns, table.rename or {}
        self._settings = CsvSettings.of(table)
        self._request = CsvRequest(
            key if key is None else rename.get(key, key),
            columns if isinstance(columns, str) else [rename.get(one, one) for one in columns],
            {},
        )
        self._paths = find_split_files(path, split)

    def with_features(self, features: Mapping[str, Feature]) -> CsvTable:
        """Return the same table, with cells of these columns converted to the features."""
        table = copy.copy(self)
        table._request = replace(self._request, features=dict(features))  # noqa: SLF001 - own class
        return table

    def parts(self) -> Mapping[str, Part]:
        """Return the rows of each split; types are inferred from all of them."""
        parts: dict[str, Part] = {}
        for files in self._group():
            scan = CsvScan([file for some in files.values() for file in some], self._request)
            scan.run(max_bytes=MAX_MEMORY_BYTES)
            for name, some in files.items():
                parts[name] = _load(scan, some) if scan.is_kept else _StreamedCsv(scan, some)
        return {name: parts[name] for name in self._paths}

    def begin(self, max_bytes: int) -> dict[str, tuple[TablePart, int]]:
        """Return the first rows of each split, and the number of their lines.

        Reads `max_bytes` of each file whose header differs. The headers of all files are read, so
        that this raises the same errors as `parts`.
        """
        begun = {}
        for files in self._group():
            every = [file for some in files.values() for file in some]
            for name, some in files.items():
                firsts = list({tuple(file.header): file for file in reversed(some)}.values())
                scan = CsvScan(firsts, self._request, known=every)
                scan.run(max_bytes=max_bytes * len(firsts), head_bytes=max_bytes)
                lines = sum(piece.lines for file in firsts for piece in scan.kept[file])
                lines -= sum(file.has_header for file in firsts)
                begun[name] = _load(scan, firsts), max(lines, 1)
        return begun

    def _group(self) -> list[dict[str, list[CsvFile]]]:
        """Return the files by split, grouped by columns: each group has its own types.

        A split may lack columns, such as the labels of a test split.
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


class _StreamedCsv(PartInfo):
    """A split that is too large for memory and is read again, in pieces."""

    def __init__(self, scan: CsvScan, files: Sequence[CsvFile]) -> None:
        self.schema: Schema | None = scan.schema
        self.metadata: Mapping[str, Mapping[str, Any]] = scan.metadata
        self.fingerprint: str | None = scan.fingerprint(files)
        self.notes = scan.notes(files)
        self._scan = scan
        self._files = files

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of each piece; raise SourceError if a file has changed since the scan."""
        first = 0
        for file in self._files:
            crc = file.crc
            for piece in file.pieces(PIECE_BYTES):
                yield self._scan.take_block([(file, piece)], first, is_reread=True)
                first += piece.records
            if file.crc != crc:
                raise _changed_error(file)


def _load(scan: CsvScan, files: Sequence[CsvFile]) -> TablePart:
    """Return the part of files whose pieces were kept."""
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
