"""What all rows of CSV files say together: the type of each column, and its values."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked
from datum.errors import SourceError
from datum.schema import Feature, Schema
from datum.sources.csv_text import CsvFile, CsvPiece, OtherEncodingError
from datum.sources.files import unpacked_suffix
from datum.sources.source import Block
from datum.sources.table_part import keys_of

__all__ = ["PIECE_BYTES", "CsvScan", "changed_error"]

PIECE_BYTES = 8 * 2**20  # of text at a time, where it does not stay in memory
_PACKED_RATIO = 8  # how much larger text may well be than its packed file
_SEEN_BLANK, _SEEN_ABSENT = 16, 64  # bits of the core


class CsvScan:
    """One reading of all files.

    Attributes:
        key: the column that names records, if there is one.
        seen: what was seen in each column, as bits of the core.
        is_kept: whether all pieces were kept.
        kept: the pieces of each file.
    """

    def __init__(
        self, files: Sequence[CsvFile], key: str | None, columns: Sequence[str] | None
    ) -> None:
        self.key = key
        self.seen: dict[str, int] = {}
        self.is_kept = True
        self.kept: dict[CsvFile, list[CsvPiece]] = {}
        self._files = files
        self._columns = columns

    def run(self, *, max_bytes: int) -> None:
        """Read all files, and keep them if their text takes no more than so many bytes."""
        self.is_kept = sum(map(_text_bytes, self._files)) <= max_bytes
        left = max_bytes
        for file in self._files:
            pieces = self._read(file, left)
            left -= sum(len(piece.text) for piece in pieces)
            if self.is_kept:
                self.kept[file] = pieces
            else:
                self.kept.clear()

    def _read(self, file: CsvFile, max_bytes: int) -> list[CsvPiece]:
        """Look through a file; over again where its encoding turns out to be another."""
        while True:
            try:
                return self._read_once(file, max_bytes)
            except OtherEncodingError:
                continue

    def _read_once(self, file: CsvFile, max_bytes: int) -> list[CsvPiece]:
        seen: dict[str, int] = {}
        kept: list[CsvPiece] = []
        size = _text_bytes(file) + 1 if self.is_kept else PIECE_BYTES
        for piece in file.pieces(size):
            for name, bits in self._look(file, piece).items():
                seen[name] = seen.get(name, 0) | bits
            max_bytes -= len(piece.text)
            if max_bytes < 0:  # it was packed tighter than it seemed
                self.is_kept = False
                kept.clear()
            if self.is_kept:
                kept.append(piece)
        for name, bits in seen.items():
            self.seen[name] = self.seen.get(name, 0) | bits
        return kept

    def _look(self, file: CsvFile, piece: CsvPiece) -> dict[str, int]:
        names = self._names(file)
        at = _positions(file)
        return dict(zip(names, piece.rows.look([at[name] for name in names]), strict=True))

    def _names(self, file: CsvFile) -> list[str]:
        """The columns to take, of which the file must have every one."""
        first = self._files[0]
        if set(file.header) != set(first.header):
            raise SourceError(
                f"{file.path}: expected the columns of {first.path}: {', '.join(first.header)};"
                f" got {', '.join(file.header)}"
            )
        names = list(dict.fromkeys(first.header if self._columns is None else self._columns))
        if self.key is not None and self.key not in names:
            names.append(self.key)
        known = set(first.header)
        for name in names:
            if name not in known:
                near = difflib.get_close_matches(name, first.header, 1)
                hint = f"did you mean {near[0]!r}?" if near else f"there are {first.header}"
                raise SourceError(f"{file.path}: expected a column {name!r}\nhint: {hint}")
        return names

    def _is_wanted(self, name: str) -> bool:
        return self._columns is None or name in self._columns

    @property
    def schema(self) -> Schema:
        """The features of columns that have a value; the key is one only if asked for."""
        features = {}
        for name, seen in self.seen.items():
            dtype = _core.csv_type(seen)
            is_number = dtype in ("int64", "float64", "bool")
            lacks = seen & (_SEEN_ABSENT | (_SEEN_BLANK if is_number else 0))
            if dtype != "empty" and self._is_wanted(name):
                features[name] = Feature(dtype, optional=lacks != 0)
        return Schema(features)

    @property
    def metadata(self) -> dict[str, dict[str, Any]]:
        """What was left out, and in what text was encoded, if not in UTF-8."""
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

    def fingerprint(self, files: Sequence[CsvFile]) -> str:
        """A text that changes when the content of a file, or what is made of it, does."""
        types = {name: _core.csv_type(seen) for name, seen in self.seen.items()}
        text = repr((types, self.key, self._columns, [(file.crc, file.settings) for file in files]))
        return f"{_core.crc32c(text.encode()):08x}"

    def take_block(self, file: CsvFile, piece: CsvPiece, first: int) -> Block:
        """The rows of a piece that was not kept; `first` is the number of its first record."""
        for name, bits in self._look(file, piece).items():
            if self.seen[name] | bits != self.seen[name]:
                raise changed_error(file)
        columns = self.take_columns([(file, piece)])
        rejects = [replace(reject, record=first + reject.record) for reject in piece.rejects]
        numbers = np.arange(first, first + piece.records)
        numbers = np.delete(numbers, [reject.record - first for reject in rejects])
        keys = self.take_keys(columns, numbers)
        return Block({name: columns[name] for name in self.schema}, numbers, keys, rejects)

    def take_keys(self, columns: Mapping[str, Any], numbers: NDArray[np.int64]) -> Any:
        """The names of the records of these numbers, if they have any."""
        if self.key is None:
            return None
        if self.key not in columns and len(numbers):
            raise SourceError(f"expected keys in column {self.key!r}, got none")
        return keys_of(self.key, columns[self.key], numbers=numbers) if len(numbers) else []

    def take_columns(self, pieces: Sequence[tuple[CsvFile, CsvPiece]]) -> dict[str, Any]:
        """The columns of pieces that were looked at, by their names."""
        taken: dict[str, list[Any]] = {}
        placed = [(piece, _positions(file)) for file, piece in pieces]
        for name, seen in self.seen.items():
            if _core.csv_type(seen) != "empty":
                taken[name] = [piece.rows.take(at[name], seen) for piece, at in placed]
        texts = [piece.text for _, piece in pieces]
        starts = np.cumsum([0, *map(len, texts)])
        text = texts[0] if len(texts) == 1 else np.concatenate([np.empty(0, np.uint8), *texts])
        return {name: _join(parts, text, starts) for name, parts in taken.items()}


def _positions(file: CsvFile) -> dict[str, int]:
    return {name: at for at, name in enumerate(file.header)}


def changed_error(file: CsvFile) -> SourceError:
    """The error for a file that is not as it was when it was scanned."""
    return SourceError(f"{file.path}: expected a file that stays as it is, got a change in it")


def _text_bytes(file: CsvFile) -> int:
    """How many bytes of text a file is expected to have."""
    size = file.path.stat().st_size
    is_packed = unpacked_suffix(file.path) != file.path.suffix.lower()
    return size * _PACKED_RATIO if is_packed else size


def _join(parts: list[Any], text: Any, starts: Any) -> Any:
    """One column of its pieces; those of text point into all text."""
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
