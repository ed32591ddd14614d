import enum
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

_Damage: TypeAlias = tuple[int, int, int, str]
_Range: TypeAlias = tuple[int, int]
_Stored: TypeAlias = tuple[
    NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64] | None, NDArray[np.bool_] | None
]
_Batch: TypeAlias = tuple[
    list[_Stored], NDArray[np.uint8], NDArray[np.int64] | None, list[tuple[int, str]]
]
_Memory: TypeAlias = Buffer | NDArray[Any]
_Path: TypeAlias = str | os.PathLike[str]
_Version: TypeAlias = tuple[int, int, int, int]  # device, inode, bytes, time of change in ns
_Stats: TypeAlias = tuple[
    int, tuple[int, int, int, int], _Range | None, _Range | None, _Range | None, int
]

class Fault(Exception): ...

def allocate(bytes: int) -> NDArray[np.uint8]: ...
def crc32c(data: _Memory, crc: int = 0, implementation: str | None = None) -> int: ...
def crc32c_implementations() -> list[str]: ...
def mask_crc(crc: int) -> int: ...
def undo_png_filters(filtered: _Memory, row_bytes: int, pixel_bytes: int, out: _Memory) -> bool: ...

class MappedFile:
    def __init__(self, path: _Path) -> None: ...
    def __len__(self) -> int: ...
    @property
    def version(self) -> _Version: ...
    def read(self, start: int, size: int) -> NDArray[np.uint8]: ...
    def crc32c(self, start: int, size: int, crc: int = 0) -> int: ...
    def gather(
        self, starts: NDArray[np.int64], sizes: NDArray[np.int64], threads: int
    ) -> NDArray[np.uint8]: ...
    def check(self) -> None: ...

class Scanner:
    def __init__(
        self, recovery: str, check_lengths: bool, check_payloads: bool, max_record_bytes: int
    ) -> None: ...
    def scan(
        self, buffer: _Memory, skip: int, last: bool, max_records: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def scan_file(
        self, file: MappedFile, max_records: int, max_bytes: int
    ) -> tuple[
        NDArray[np.uint8] | None, int, NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]
    ]: ...
    @property
    def position(self) -> int: ...
    @property
    def records_seen(self) -> int: ...
    @property
    def unread_from(self) -> int: ...
    @property
    def bytes_wanted(self) -> int: ...
    @property
    def fatal(self) -> _Damage | None: ...
    def take_damage(self) -> list[_Damage]: ...

def has_valid_header(data: _Memory) -> bool: ...
def first_damage(
    buffer: _Memory, offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> tuple[int, str] | None: ...
def load_index(data: _Memory) -> tuple[NDArray[np.int64], int, int]: ...
def dump_index(offsets: NDArray[np.int64], stream_bytes: int, shard_crc32c: int = 0) -> bytes: ...

class Kind(enum.Enum):
    UNSET = 0
    BYTES = 1
    FLOAT = 2
    INT64 = 3

class Layout(enum.Enum):
    FIXED = 0
    VARIABLE = 1
    STEPS = 2
    NESTED_STEPS = 3

class Cell(enum.Enum):
    BOOL = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT32 = 9
    SLICE = 10
    RAW = 11

class ColumnSpec:
    def __init__(
        self,
        key: bytes,
        kind: Kind,
        layout: Layout,
        cell: Cell,
        unit: int,
        is_text: bool,
        is_optional: bool,
        default_value: bytes,
    ) -> None: ...

class Plan:
    def __init__(self, columns: Sequence[ColumnSpec]) -> None: ...
    def parse(
        self, buffer: _Memory, starts: NDArray[np.int64], lengths: NDArray[np.int64], threads: int
    ) -> list[_Stored]: ...

def take_strings(buffer: _Memory, slices: NDArray[np.int64], is_text: bool) -> list[Any]: ...

class Discovery:
    def __init__(self) -> None: ...
    def add(
        self, buffer: _Memory, starts: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def with_unknown_fields(self) -> int: ...
    @property
    def context(self) -> dict[str, _Stats]: ...
    @property
    def lists(self) -> dict[str, _Stats]: ...

class ColumnInput:
    def __init__(self, key: bytes, kind: Kind, layout: Layout, cell: Cell, unit: int) -> None: ...
    def set_values(self, values: _Memory) -> None: ...
    def set_slices(self, buffer: _Memory, slices: NDArray[np.int64]) -> None: ...
    def set_splits(
        self, splits: NDArray[np.int64], inner: NDArray[np.int64] | None = None
    ) -> None: ...
    def set_present(self, present: NDArray[np.bool_]) -> None: ...

def encode(
    sources: list[ColumnInput], rows: int, threads: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
def find_bad_text(buffer: _Memory, slices: NDArray[np.int64]) -> int | None: ...
def narrow(doubles: NDArray[np.float64]) -> tuple[NDArray[np.float32], bool, int | None]: ...
def find_wide(numbers: _Memory, element: Element) -> int | None: ...
def frame(payloads: list[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...

class Element(enum.Enum):
    BOOL = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5
    UINT16 = 6
    UINT32 = 7
    UINT64 = 8
    FLOAT16 = 9
    BFLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    COMPLEX = 13
    TIME = 14
    BYTES = 15
    TEXT = 16
    FILE = 17

class RowFeature:
    def __init__(
        self,
        name: str,
        keys: Sequence[bytes],
        kind: Kind,
        cell: Cell,
        element: Element | None,
        accepts: int,
        is_optional: bool,
        shape: Sequence[int],
        max_array_items: int,
        is_watched: bool,
    ) -> None: ...

class CollectedColumn:
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...  # only the core makes it
    @property
    def sources(self) -> list[ColumnInput]: ...
    @property
    def missing(self) -> int: ...
    @property
    def has_negative(self) -> bool: ...
    @property
    def is_uneven(self) -> bool: ...
    @property
    def is_rounded(self) -> bool: ...
    @property
    def wide(self) -> tuple[int, float] | None: ...
    @property
    def exact(self) -> ColumnInput | None: ...

class RowCollector:
    def __init__(self, features: list[RowFeature], ignores_none: bool) -> None: ...
    def collect(self, rows: list[Any]) -> None: ...
    def update(self, features: list[RowFeature], rows: list[Any]) -> None: ...
    def finish(self) -> list[CollectedColumn | None]: ...
    @property
    def rows_done(self) -> int: ...

def summarize(
    requests: list[tuple[ColumnInput, Element, bool]], rows: int, threads: int
) -> list[tuple[int, Any, Any, Any, dict[Any, int] | None]]: ...
def gather(
    data: _Memory, starts: NDArray[np.int64], sizes: NDArray[np.int64], threads: int
) -> NDArray[np.uint8]: ...
def hash_keys(keys: list[str]) -> NDArray[np.uint64]: ...
def permute(
    positions: NDArray[np.int64], records: int, key: int, inverse: bool = False
) -> NDArray[np.int64]: ...

class ShardSet:
    def __init__(self, ends: NDArray[np.int64], max_open: int | None = None) -> None: ...
    def missing(self, numbers: NDArray[np.int64]) -> list[int]: ...
    def open(
        self,
        run: int,
        path: _Path,
        version: _Version,
        index: _Path,
        first: int,
        records: int,
        crc32c: int | None = None,
    ) -> None: ...
    def open_at(
        self, run: int, path: _Path, version: _Version, offsets: NDArray[np.int64], first: int
    ) -> None: ...
    def find(self, number: int) -> tuple[int, int, int | None, int | None]: ...

class BatchLoader:
    def __init__(self, plan: Plan, shards: ShardSet, threads: int, skip_damaged: bool) -> None: ...
    def submit(self, numbers: NDArray[np.int64]) -> int: ...
    def take(self, ticket: int) -> _Batch: ...
    def read(self, numbers: NDArray[np.int64]) -> _Batch: ...
    def close(self) -> None: ...

def snapshot(value: Any, copy_other: Callable[[Any], Any]) -> Any: ...
def size_of(value: Any) -> int: ...
def take_items(
    iterator: Any,
    items: list[Any],
    limit: int,
    max_bytes: int,
    copy_other: Callable[[Any], Any],
) -> None: ...

class CsvText:
    def __init__(
        self,
        text: NDArray[np.uint8],
        delimiter: str,
        columns: int,
        is_last: bool,
        max_row_bytes: int,
        absent: Sequence[str],
        blank: Sequence[str],
        threads: int,
        comment: str = "\0",
        decimal: str = ".",
    ) -> None: ...
    @property
    def header(self) -> list[bytes]: ...
    @property
    def rows(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def bad_rows(self) -> list[tuple[int, int, str, int]]: ...
    def look(
        self, columns: Sequence[int], wanted: Sequence[str]
    ) -> list[tuple[int, int, int, int, int, list[int]]]: ...
    def offset(self, row: int, column: int) -> int: ...
    def field(self, row: int, column: int) -> bytes: ...
    def take(
        self, column: int, seen: int
    ) -> tuple[str, NDArray[Any], NDArray[np.bool_] | None]: ...

def count_lines(text: NDArray[np.uint8], begin: int, end: int) -> int: ...
def csv_type(seen: int) -> str: ...
