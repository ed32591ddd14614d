"""Parquet and Arrow files, read whole or in batches, with decimals cast."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from datum.errors import Option, SourceError, Text, suggest
from datum.schema import Feature
from datum.sources.arrow_columns import check_names
from datum.sources.arrow_features import METADATA_KEY
from datum.sources.files import open_file
from datum.sources.options import JOIN_HINT, pick_columns, rename_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ArrowFile",
    "CastFile",
    "cast_decimal",
    "cast_decimals",
    "open_arrow",
    "shape_files",
]

BATCH_ROWS = 16_384
BATCH_BYTES = 32 * 2**20  # of rows that contain files
_KEPT = (METADATA_KEY, b"datum")  # metadata of schemas


class ArrowFile(Protocol):
    """One file.

    Attributes:
        path: The path of the file.
        schema: The columns to read.
        nbytes: About how much memory they take.
        is_mapped: Whether they can be memory-mapped.
    """

    path: Path
    schema: pa.Schema
    nbytes: int
    is_mapped: bool

    def read(self, *, mapped: bool = False) -> pa.Table:
        """Return all rows, copied to memory or, if `mapped` and possible, memory-mapped."""
        ...

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in batches."""
        ...

    def null_count(self, column: str) -> int | None:
        """Return the number of records without a value; None if the file does not report it."""
        ...


def open_arrow(path: Path, columns: Sequence[str] | None) -> ArrowFile:
    """Open a Parquet file, or one in Arrow's file or stream format, recognised by content."""
    with open_file(path) as file:
        start = file.read(6)
    with _arrow_errors(path):
        if start[:4] == b"PAR1":
            return _ParquetFile(path, columns)
        return _IpcFile(path, columns, is_stream=start != b"ARROW1")


@contextlib.contextmanager
def _arrow_errors(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last one of names
        raise SourceError(f"expected a Parquet or Arrow file, got: {error}", where=path) from error


def _check_columns(path: Path, columns: Sequence[str] | None, schema: pa.Schema) -> pa.Schema:
    import pyarrow as pa

    names = schema.names
    check_names(names, f"rename them in {path}")
    known = {key: value for key, value in (schema.metadata or {}).items() if key in _KEPT}
    if columns is None:
        return schema.with_metadata(known)
    for name in columns:
        if name not in names:
            hint = suggest(name, names, f"there are {', '.join(names)}")
            raise SourceError(f"expected a column {name!r}", where=path, hint=hint)
    return pa.schema([schema.field(name) for name in columns], metadata=known)


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
        self._nulls, self._unknown = _count_nulls(groups)
        self._batch_rows = max(
            1, min(BATCH_ROWS, BATCH_BYTES * facts.num_rows // (self.nbytes + 1))
        )

    def read(self, *, mapped: bool = False) -> pa.Table:  # noqa: ARG002 - cannot be mapped
        import pyarrow.parquet as pq

        with _arrow_errors(self.path), pq.ParquetFile(self.path) as file:
            return file.read(columns=self.schema.names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        wanted = self.schema.names if columns is None else list(columns)
        with _arrow_errors(self.path), pq.ParquetFile(self.path, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size=self._batch_rows, columns=wanted):
                yield batch.select(wanted)

    def null_count(self, column: str) -> int | None:
        if not self.schema.field(column).nullable:
            return 0
        leaves = [count for name, count in self._nulls.items() if name.startswith(f"{column}.")]
        is_full = bool(leaves) and not any(leaves) and column not in self._unknown
        return 0 if is_full else self._nulls.get(column)


def _count_nulls(groups: list[Any]) -> tuple[dict[str, int], set[str]]:
    """Return the number of nulls in each flat column, and the columns where it is unknown."""
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
    known = {name: count for name, count in counts.items() if name not in unknown}
    return known, {name.partition(".")[0] for name in unknown}


class _IpcFile:
    """A file of Arrow record batches, with (Feather) or without an index."""

    def __init__(self, path: Path, columns: Sequence[str] | None, *, is_stream: bool) -> None:
        self.path = path
        self._is_stream = is_stream
        with self._open() as reader:
            self.schema = _check_columns(path, columns, reader.schema)
            self.nbytes = path.stat().st_size
            self.is_mapped = not is_stream and _is_contiguous(reader)

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        import pyarrow as pa

        with _arrow_errors(self.path), pa.memory_map(str(self.path)) as memory:
            yield pa.ipc.open_stream(memory) if self._is_stream else pa.ipc.open_file(memory)

    def read(self, *, mapped: bool = False) -> pa.Table:
        import pyarrow as pa

        if not mapped:
            with _arrow_errors(self.path), pa.OSFile(str(self.path)) as file:
                opened = pa.ipc.open_stream(file) if self._is_stream else pa.ipc.open_file(file)
                return _checked(opened.read_all().select(self.schema.names))
        with self._open() as reader:
            return _checked(reader.read_all().select(self.schema.names))

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        wanted = self.schema.names if columns is None else list(columns)
        with self._open() as reader:
            if self._is_stream:
                for batch in reader:
                    yield _checked(batch.select(wanted))
                return
            for at in range(reader.num_record_batches):
                yield _checked(reader.get_batch(at).select(wanted))

    def null_count(self, column: str) -> int | None:
        return None if self.schema.field(column).nullable else 0


def _checked(rows: Any) -> Any:
    """Return the rows once their offsets and texts are checked, which Arrow does not do itself."""
    rows.validate(full=True)
    return rows


def _is_contiguous(reader: Any) -> bool:
    """Return whether there is one batch that can be read without allocating memory."""
    import pyarrow as pa

    if reader.num_record_batches != 1:
        return False
    before = pa.total_allocated_bytes()
    batch = reader.get_batch(0)
    batch.validate()
    return bool(pa.total_allocated_bytes() - before < batch.nbytes // 2)


# Files whose columns differ or are renamed.


def shape_files(
    files: Sequence[ArrowFile], how: Sequence[str], rename: Mapping[str, str]
) -> list[ArrowFile]:
    """Return the files with the same columns: those of "same", "union" or "intersection"."""
    import pyarrow as pa

    first = files[0].schema
    odd = next((file for file in files if not file.schema.equals(first)), None)
    if odd is None and not rename:
        return list(files)
    if odd is not None and how == "same":
        raise _differ_error(files[0], odd)
    try:
        shared = pa.unify_schemas([file.schema for file in files])
    except pa.ArrowException as error:
        raise SourceError(
            f"expected columns of one name to have one type in all files, got: {error}",
            where=files[0].path,
        ) from error
    if how == "intersection":
        names = [name for name in first.names if all(name in one.schema.names for one in files)]
        shared = pa.schema([shared.field(name) for name in names])
    where = str(files[0].path)
    pick_columns(shared.names, list(rename), where=where, option="rename")
    renamed = rename_columns(shared.names, rename, where=where)
    return [_ShapedFile(file, shared, renamed) for file in files]


def _differ_error(first: ArrowFile, odd: ArrowFile) -> SourceError:
    """Return the error for files with different columns, naming the columns."""
    lacking = [name for name in first.schema.names if name not in odd.schema.names]
    further = [name for name in odd.schema.names if name not in first.schema.names]
    differences = [f"lacks {', '.join(lacking)}"] if lacking else []
    differences += [f"also has {', '.join(further)}"] if further else []
    differences += [
        f"has {name} as {odd.schema.field(name).type}, not {first.schema.field(name).type}"
        for name in first.schema.names
        if name in odd.schema.names and odd.schema.field(name).type != first.schema.field(name).type
    ]
    return SourceError(
        f"expected the columns of {first.path}, but it"
        f" {'; '.join(differences) or 'has them in another order'}",
        where=odd.path,
        hint=JOIN_HINT,
    )


class _ShapedFile:
    """A file with the columns of all files, under new names."""

    def __init__(self, file: ArrowFile, schema: pa.Schema, names: Sequence[str]) -> None:
        import pyarrow as pa

        self.path = file.path
        self.nbytes = file.nbytes
        self.is_mapped = file.is_mapped
        self.schema = pa.schema(
            [field.with_name(name) for field, name in zip(schema, names, strict=True)]
        )
        self._file = file
        self._old = dict(zip(names, schema.names, strict=True))

    def read(self, *, mapped: bool = False) -> pa.Table:
        return self._shape(self._file.read(mapped=mapped), self.schema.names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        wanted = self.schema.names if columns is None else list(columns)
        there = [self._old[name] for name in wanted if self._has(name)]
        for batch in self._file.batches(there or None):
            table = self._shape(pa.Table.from_batches([batch]), wanted)
            yield from table.combine_chunks().to_batches()

    def null_count(self, column: str) -> int | None:
        return self._file.null_count(self._old[column]) if self._has(column) else 1  # or more

    def _has(self, name: str) -> bool:
        return self._old[name] in self._file.schema.names

    def _shape(self, table: pa.Table, names: Sequence[str]) -> pa.Table:
        import pyarrow as pa

        columns = [
            table.column(self._old[name])
            if self._has(name)
            else pa.nulls(table.num_rows, self.schema.field(name).type)
            for name in names
        ]
        return pa.table(columns, schema=pa.schema([self.schema.field(name) for name in names]))


def cast_decimal(value: Decimal, dtype: str) -> Any:
    """Cast a decimal to a dtype; a fraction stays one if the dtype cannot hold it.

    >>> cast_decimal(Decimal("1.50"), "str"), cast_decimal(Decimal("3.0"), "int64")
    ('1.50', 3)
    """
    if dtype == "str":
        return str(value)
    if dtype.startswith("float"):
        return float(value)
    return int(value) if value == value.to_integral_value() else float(value)


def cast_decimals(table: Any, dtypes: Mapping[str, str]) -> Any:
    """Return an in-memory table of any kind, with decimals in these columns cast to the dtypes."""
    if hasattr(table, "schema") and hasattr(table, "column_names"):
        return _cast_arrow(table, dtypes)
    names = table.columns if hasattr(table, "columns") else table
    changed = {}
    for name in names:
        values = table[name] if name in dtypes else ()
        kind = getattr(getattr(values, "dtype", None), "kind", "")
        is_objects = isinstance(values, (list, tuple)) or kind == "O"
        if is_objects and any(isinstance(value, Decimal) for value in values):
            changed[name] = [
                cast_decimal(value, dtypes[name]) if isinstance(value, Decimal) else value
                for value in values
            ]
    if not changed:
        return table
    return table.assign(**changed) if hasattr(table, "assign") else {**table, **changed}


def _cast_arrow(table: Any, dtypes: Mapping[str, str]) -> Any:
    """Cast an Arrow table, or a record batch."""
    import pyarrow as pa

    if not isinstance(table, pa.Table):
        table = pa.Table.from_batches([table])
    for at, field in enumerate(table.schema):
        if field.name not in dtypes or not pa.types.is_decimal(field.type):
            continue
        kind = _arrow_type(dtypes[field.name])
        try:
            table = table.set_column(at, pa.field(field.name, kind), table.column(at).cast(kind))
        except pa.ArrowException as error:
            raise SourceError(
                f"expected decimals that are {dtypes[field.name]}, got: {error}",
                where=f"column {field.name!r}",
                hint=Text(
                    Option("schema", {field.name: Feature("float64")}),
                    " stores fractions, 'str' every digit",
                ),
            ) from None
    return table


def _arrow_type(dtype: str) -> pa.DataType:
    import pyarrow as pa

    if dtype == "str":
        return pa.large_string()
    return pa.float64() if dtype.startswith("float") else pa.int64()


class CastFile:
    """An `ArrowFile` whose decimals are cast when they are read."""

    def __init__(self, file: ArrowFile, dtypes: Mapping[str, str]) -> None:
        self.path: Path = file.path
        self.nbytes = file.nbytes
        self.schema: pa.Schema = _cast_arrow(file.schema.empty_table(), dtypes).schema
        self.is_mapped = file.is_mapped and self.schema.equals(file.schema)
        self._file = file
        self._dtypes = dtypes

    def read(self, *, mapped: bool = False) -> pa.Table:
        """Return all rows."""
        return _cast_arrow(self._file.read(mapped=mapped), self._dtypes)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows of these columns, in batches."""
        for batch in self._file.batches(columns):
            yield from _cast_arrow(batch, self._dtypes).to_batches()

    def null_count(self, column: str) -> int | None:
        """Return the number of records without a value; None if the file does not report it."""
        return self._file.null_count(column)
