"""Tables in Parquet, Feather and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from datum.columns import Masked
from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.arrow_columns import convert_table
from datum.sources.arrow_files import ArrowFile, open_arrow
from datum.sources.files import Paths, find_split_files, fingerprint_files
from datum.sources.source import Block, Part
from datum.sources.table_part import TablePart, keys_of, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowTable"]

MAX_MEMORY_BYTES = 256 * 2**20  # of columns that are read into memory as a whole
_LEFT_OUT = "left_out"


class ArrowTable:
    """A table in one or more Parquet, Feather or Arrow files of the same columns.

    Tables of up to 256 MB are read into memory, and a larger Arrow file that is one piece and not
    compressed is mapped into it; others are read piece by piece. Nulls are absent; structs become
    features named "struct/field"; dictionaries of texts become ids, with `class_names` in the
    metadata.

    Args:
        path: a file, a list of files, a pattern such as `data/*.parquet`, or a dict of these by
            split.
        key: the column that names the records; it stays a feature, too.
        columns: those to take, in this order; by default all.
        split: what the split is called, if `path` is no dict.
    """

    def __init__(
        self,
        path: Paths | Mapping[str, Paths],
        *,
        key: str | None = None,
        columns: Sequence[str] | None = None,
        split: str = "train",
    ) -> None:
        if isinstance(columns, str):
            raise SourceError(f"expected a list as `columns`, got {columns!r}")
        self._paths = find_split_files(path, split)
        self._key = key
        self._columns = columns

    def parts(self) -> Mapping[str, Part]:
        """The rows of each split."""
        return {name: self._part(paths) for name, paths in self._paths.items()}

    def _part(self, paths: list[Path]) -> Part:
        files = [open_arrow(path, self._columns) for path in paths]
        for file in files[1:]:
            if not file.schema.equals(files[0].schema):
                raise SourceError(
                    f"{file.path}: expected the columns of {files[0].path}:\n{files[0].schema}\n"
                    f"got:\n{file.schema}"
                )
        is_mapped = len(files) == 1 and files[0].is_mapped
        if not is_mapped and sum(file.nbytes for file in files) > MAX_MEMORY_BYTES:
            return _StreamedArrow(files, self._key)
        import pyarrow as pa

        table = pa.concat_tables([file.read() for file in files])
        found = convert_table(table)
        keys = None if self._key is None else keys_of(self._key, _column(found.columns, self._key))
        fingerprint = fingerprint_files(paths, self._columns, self._key)
        return TablePart(
            found.columns,
            metadata=found.metadata,
            keys=keys,
            fingerprint=fingerprint,
            rows=table.num_rows,
        )


def _column(columns: Mapping[str, Any], name: str) -> Any:
    if name not in columns:
        raise SourceError(f"expected a key among {', '.join(columns)}, got {name!r}")
    return columns[name]


class _StreamedArrow:
    """A split that is too large for memory, read batch by batch."""

    def __init__(self, files: Sequence[ArrowFile], key: str | None) -> None:
        self._files = files
        self._key = key
        self._names = self._find_names()
        blank = convert_table(self._with_ids(files[0].schema.empty_table()))
        lacking = self._find_lacking()
        self.schema: Schema | None = Schema(
            {
                name: replace(feature, optional=name in lacking)
                for name, feature in schema_of(blank.columns).items()
            }
        )
        metadata = {name: facts for name, facts in blank.metadata.items() if _LEFT_OUT in facts}
        for name, names in self._names.items():
            metadata[name] = {"class_names": names.to_pylist()}
        self.metadata: Mapping[str, Mapping[str, Any]] = metadata
        columns = files[0].schema.names
        self.fingerprint: str | None = fingerprint_files([f.path for f in files], columns, key)

    def blocks(self) -> Iterator[Block]:
        """The rows of each batch."""
        first = 0
        for file in self._files:
            for batch in file.batches():
                columns = convert_table(self._with_ids(batch)).columns
                keys = (
                    None if self._key is None else keys_of(self._key, _column(columns, self._key))
                )
                yield Block(columns, np.arange(first, first + len(batch)), keys)
                first += len(batch)

    def _find_lacking(self) -> set[str]:
        """The features that some record lacks; columns are read if the files do not tell."""
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
                columns = convert_table(batch).columns
                lacking |= {name for name, column in columns.items() if isinstance(column, Masked)}
        return lacking

    def _find_names(self) -> dict[str, Any]:
        """The texts of columns that have a dictionary: it may differ from batch to batch."""
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

    def _with_ids(self, batch: pa.RecordBatch | pa.Table) -> pa.Table:
        """The batch with texts that have a dictionary made into ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        for name, names in self._names.items():
            at = table.schema.get_field_index(name)
            texts = table.column(at).cast(pa.large_string())
            ids = pc.index_in(texts, value_set=names).cast(pa.int64())
            table = table.set_column(at, name, ids)
        return table


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
