"""Tables in Parquet, Feather and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked
from datum.schema import Schema
from datum.sources.arrow_columns import ConvertedColumns, convert_table
from datum.sources.arrow_features import ColumnSpec, find_specs
from datum.sources.arrow_files import ArrowFile, CastFile, open_arrow, shape_files
from datum.sources.files import Paths, find_split_files, fingerprint_files
from datum.sources.nested_rows import describe_filled
from datum.sources.options import TableOptions
from datum.sources.protocol import Block, Part, PartInfo, SourceInfo
from datum.sources.table_part import TablePart

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowTable", "part_of_files"]

MAX_MEMORY_BYTES = 256 * 2**20  # larger tables are read batch by batch


class ArrowTable(SourceInfo):
    """A table in one or more Parquet, Feather or Arrow files.

    Tables of up to 256 MB are read into memory. A larger, uncompressed Arrow file with a single
    record batch is memory-mapped; anything else is read batch by batch. Nulls are absent; structs
    become features named "struct/field"; dictionaries of texts become ids, with `class_names` in
    the metadata. Hugging Face's metadata is respected: class names, shapes of arrays, and images,
    which are structs of bytes and path.

    Args:
        path: A file, a list of files, a pattern such as `data/*.parquet`, or a dict of these by
            split.
        key: The column that names the records; it is also stored as a feature.
        split: The name of the split, unless `path` is a dict.
        columns: The columns to read, in this order; or how to treat files whose columns differ:
            "same" raises SourceError (the default), "union" reads every column, absent where a
            file lacks it, "intersection" reads the columns that all files have.
        rename: New names of columns.
    """

    kind = "Arrow table"
    suffixes = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
    is_table = True

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        key: str | None = None,
        split: str = "train",
        columns: Sequence[str] | Literal["same", "union", "intersection"] = "same",
        rename: Mapping[str, str] | None = None,
    ) -> None:
        TableOptions(columns=columns, rename=rename)
        self._rename = dict(rename or {})
        self._paths = find_split_files(path, split)
        self._key = key
        self._columns: Sequence[str] = columns
        self._dtypes: Mapping[str, str] = {}

    def cast_decimals(self, dtypes: Mapping[str, str]) -> None:
        """Read decimals as these types, by column."""
        import pyarrow as pa

        first = next(iter(self._paths.values()))[0]
        self._dtypes = {
            field.name: dtypes[field.name]
            for field in self._open([first])[0].schema
            if field.name in dtypes and pa.types.is_decimal(field.type)
        }

    @property
    def files(self) -> Mapping[str, list[Path]]:
        """The files of each split."""
        return self._paths

    def parts(self) -> Mapping[str, Part]:
        """Return the rows of each split."""
        return {name: self._part(paths) for name, paths in self._paths.items()}

    def begin(self, split: str) -> pa.RecordBatch:
        """Return the first rows of a split."""
        return next(self._open(self._paths[split])[0].batches())

    def _open(self, paths: list[Path]) -> list[ArrowFile]:
        """Return the files, each with the columns to read under their new names."""
        wanted = None if isinstance(self._columns, str) else list(self._columns)
        if wanted is not None and self._key is not None:
            wanted = list(dict.fromkeys([*wanted, self._key]))
        files: list[ArrowFile] = [open_arrow(path, wanted) for path in paths]
        files = shape_files(files, self._columns if wanted is None else "same", self._rename)
        return [CastFile(file, self._dtypes) for file in files] if self._dtypes else files

    def _part(self, paths: list[Path]) -> Part:
        files = self._open(paths)
        is_feature = isinstance(self._columns, str) or self._key in self._columns
        key = _Key(self._rename.get(self._key or "", self._key), is_feature=is_feature)
        return part_of_files(files, key)


@dataclass(frozen=True, slots=True)
class _Key:
    """The column that names the records, if there is one, and whether it is also a feature."""

    name: str | None
    is_feature: bool

    def split(self, found: ConvertedColumns, numbers: NDArray[np.int64]) -> list[str] | None:
        """Return the keys of these records; drop the column if it is not a feature."""
        if self.name is None:
            return None
        keys = found.keys(self.name, numbers)
        if not self.is_feature:
            found.drop(self.name)
        return keys


_NO_KEY = _Key(None, is_feature=False)


def part_of_files(
    files: Sequence[ArrowFile], key: _Key = _NO_KEY, *, fingerprint: str | None = None
) -> Part:
    """Return the rows of files with the same columns: in memory, memory-mapped, or streamed."""
    fingerprint = fingerprint or _fingerprint(files, key)
    is_large = sum(file.nbytes for file in files) > MAX_MEMORY_BYTES
    if is_large and (len(files) > 1 or not files[0].is_mapped):
        return _StreamedArrow(files, key, fingerprint)
    return _load(files, key, fingerprint, is_mapped=is_large)


def _load(files: Sequence[ArrowFile], key: _Key, fingerprint: str, *, is_mapped: bool) -> TablePart:
    import pyarrow as pa

    table = pa.concat_tables([file.read(mapped=is_mapped) for file in files])
    found = convert_table(table)
    keys = key.split(found, np.arange(table.num_rows))
    return TablePart(
        found.columns,
        schema=found.schema(),
        metadata=found.metadata,
        keys=keys,
        fingerprint=fingerprint,
        rows=table.num_rows,
        remarks=describe_filled(found.filled),
    )


def _fingerprint(files: Sequence[ArrowFile], key: _Key) -> str:
    return fingerprint_files([file.path for file in files], files[0].schema.names, key)


class _StreamedArrow(PartInfo):
    """A split that is too large for memory and is read batch by batch."""

    def __init__(self, files: Sequence[ArrowFile], key: _Key, fingerprint: str) -> None:
        self._files = files
        self._key = key
        self._specs = self._find_specs()
        self._names = self._find_names()
        blank = self._convert(files[0].schema.empty_table())
        key.split(blank, np.arange(0))
        lacking = self._find_lacking()
        self.schema: Schema | None = Schema(
            {
                name: replace(feature, optional=name in lacking)
                for name, feature in blank.schema().items()
            }
        )
        self.metadata: Mapping[str, Mapping[str, Any]] = blank.metadata
        self.fingerprint: str | None = fingerprint

    def blocks(self) -> Iterator[Block]:
        """Yield the rows of each batch."""
        first = 0
        for file in self._files:
            for batch in file.batches():
                found = self._convert(batch)
                numbers = np.arange(first, first + len(batch))
                keys = self._key.split(found, numbers)
                yield Block(found.columns, numbers, keys)
                first += len(batch)

    def _find_lacking(self) -> set[str]:
        """Return the features that some record lacks; read columns without null counts."""
        lacking: set[str] = set()
        unknown = []
        for name in self._files[0].schema.names:
            counts = [file.null_count(name) for file in self._files]
            if None in counts:
                unknown.append(name)
            elif any(counts):
                lacking.add(name)
        for file in self._files if unknown else ():
            for batch in file.batches(unknown):
                metadata = file.schema.metadata or {}
                columns = convert_table(batch, metadata, self._specs).columns
                lacking |= {name for name, column in columns.items() if isinstance(column, Masked)}
        return lacking

    def _find_specs(self) -> Mapping[str, ColumnSpec]:
        """Return the specs of columns for all batches, from the schema and the first rows."""
        import pyarrow as pa

        first = next(self._files[0].batches(), None)
        if first is None:
            return find_specs(self._files[0].schema.empty_table())
        known = self._files[0].schema.metadata
        return find_specs(
            pa.Table.from_batches([first.slice(0, 64)]).replace_schema_metadata(known)
        )

    def _find_names(self) -> dict[str, Any]:
        """Return the texts of dictionary columns; dictionaries may differ between batches."""
        import pyarrow as pa
        import pyarrow.compute as pc

        found: dict[str, Any] = {}
        for field in self._files[0].schema:
            if not pa.types.is_dictionary(field.type) or not _is_text(field.type.value_type):
                continue
            names = pa.array([], pa.large_string())
            for file in self._files:
                for batch in file.batches([field.name]):
                    more = batch.column(0).dictionary_decode().cast(pa.large_string())
                    names = pc.unique(pa.concat_arrays([names, more.drop_null()]))
            found[field.name] = names
        return found

    def _convert(self, batch: pa.RecordBatch | pa.Table) -> ConvertedColumns:
        """Return the columns, with the texts of dictionary columns converted to ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        for name, names in self._names.items():
            at = table.schema.get_field_index(name)
            texts = table.column(at).cast(pa.large_string())
            ids = pc.index_in(texts, value_set=names).cast(pa.int64())
            table = table.set_column(at, name, ids)
        metadata = self._files[0].schema.metadata or {}
        found = convert_table(table, metadata, self._specs)
        for name, names in self._names.items():
            found.metadata[name] = {"class_names": names.to_pylist()}
        return found


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
