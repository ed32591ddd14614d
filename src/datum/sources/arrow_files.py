"""Parquet files and Arrow files, read whole or batch by batch."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from datum.errors import SourceError
from datum.sources.arrow_columns import check_names
from datum.sources.files import open_file

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowFile", "open_arrow"]

BATCH_ROWS = 16_384


class ArrowFile(Protocol):
    """One file.

    Attributes:
        path: where it is.
        schema: its columns, those that were asked for.
        nbytes: about how much memory they take.
        is_mapped: whether they can be used where they lie in the file.
    """

    path: Path
    schema: pa.Schema
    nbytes: int
    is_mapped: bool

    def read(self, *, mapped: bool = False) -> pa.Table:
        """All rows, in memory of their own or, if they can be, `mapped` where they lie."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, some at a time; only these columns."""
        ...

    def null_count(self, column: str) -> int | None:
        """How many records have no value, if the file tells that."""
        ...


def open_arrow(path: Path, columns: Sequence[str] | None) -> ArrowFile:
    """Open a file by what it holds: Parquet, or Arrow's file or stream format."""
    with open_file(path) as file:
        start = file.read(6)
    with _told(path):
        if start[:4] == b"PAR1":
            return _ParquetFile(path, columns)
        return _IpcFile(path, columns, is_stream=start != b"ARROW1")


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path}: expected a Parquet or Arrow file, got: {error}") from error


def _check_columns(path: Path, columns: Sequence[str] | None, schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    names = schema.names
    check_names(names, f"\nhint: give them new ones in {path}")
    if columns is None:
        return schema.remove_metadata()
    for name in columns:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise SourceError(f"{path}: expected a column {name!r}\nhint: {hint}")
    return pa.schema([schema.field(name) for name in columns])


class _ParquetFile:
    """A Parquet file."""

    def __init__(self, path: Path, columns: Sequence[str] | None) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with pq.ParquetFile(path) as file:
            self.schema = _check_columns(path, columns, file.schema_arrow)
            facts = file.metadata
        groups = [facts.row_group(i) for i in range(facts.num_row_groups)]
        self.nbytes = sum(group.total_byte_size for group in groups)
        self.is_mapped = False
        self._nulls = _count_nulls(groups)

    def read(self, *, mapped: bool = False) -> pa.Table:  # noqa: ARG002 - it never is
        import pyarrow.parquet as pq

        with _told(self.path), pq.ParquetFile(self.path) as file:
            return file.read(columns=self.schema.names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        wanted = self.schema.names if columns is None else list(columns)
        with _told(self.path), pq.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=wanted):
                yield batch.select(wanted)

    def null_count(self, column: str) -> int | None:
        return self._nulls.get(column) if self.schema.field(column).nullable else 0


def _count_nulls(groups: list[Any]) -> dict[str, int]:
    """How many nulls each flat column has; those for which that is not known are left out."""
    counts: dict[str, int] = {}
    unknown = set()
    for group in groups:
        for at in range(group.num_columns):
            chunk = group.column(at)
            name, facts = chunk.path_in_schema, chunk.statistics
            if facts is None or not facts.has_null_count:
                unknown.add(name)
            else:
                counts[name] = counts.get(name, 0) + facts.null_count
    return {name: count for name, count in counts.items() if name not in unknown}


class _IpcFile:
    """A file of Arrow record batches, with (Feather) or without an index of them."""

    def __init__(self, path: Path, columns: Sequence[str] | None, *, is_stream: bool) -> None:
        self.path = path
        self._is_stream = is_stream
        with self._open() as reader:
            self.schema = _check_columns(path, columns, reader.schema)
            self.nbytes = path.stat().st_size
            self.is_mapped = not is_stream and _lies_in_one_piece(reader)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        import pyarrow as pa

        with _told(self.path), pa.memory_map(str(self.path)) as memory:
            yield pa.ipc.open_stream(memory) if self._is_stream else pa.ipc.open_file(memory)

    def read(self, *, mapped: bool = False) -> pa.Table:
        import pyarrow as pa

        if not mapped:
            with _told(self.path), pa.OSFile(str(self.path)) as file:
                opened = pa.ipc.open_stream(file) if self._is_stream else pa.ipc.open_file(file)
                return opened.read_all().select(self.schema.names)
        with self._open() as reader:
            return reader.read_all().select(self.schema.names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        wanted = self.schema.names if columns is None else list(columns)
        with self._open() as reader:
            if self._is_stream:
                for batch in reader:
                    yield batch.select(wanted)
                return
            for at in range(reader.num_record_batches):
                yield reader.get_batch(at).select(wanted)

    def null_count(self, column: str) -> int | None:
        return None if self.schema.field(column).nullable else 0


def _lies_in_one_piece(reader: Any) -> bool:
    """Whether there is one batch, and reading it takes no memory, as it would to unpack it."""
    import pyarrow as pa

    if reader.num_record_batches != 1:
        return False
    before = pa.total_allocated_bytes()
    batch = reader.get_batch(0)
    return bool(pa.total_allocated_bytes() - before < batch.nbytes // 2)
