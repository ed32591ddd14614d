"""Tables in Parquet, Feather and Arrow files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum.columns import Masked
from datum.errors import SourceError
from datum.schema import Schema
from datum.sources.arrow_columns import FoundColumns, convert_table
from datum.sources.arrow_files import ArrowFile, open_arrow
from datum.sources.files import Paths, find_split_files, fingerprint_files
from datum.sources.source import Block, Part
from datum.sources.table_part import TablePart, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowTable"]

MAX_MEMORY_BYTES = 256 * 2**20  # of columns that are read into memory as a whole


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
        wanted = self._columns
        if wanted is not None and self._key is not None:
            wanted = list(dict.fromkeys([*wanted, self._key]))
        files = [open_arrow(path, wanted) for path in paths]
        for file in files[1:]:
            if not file.schema.equals(files[0].schema):
                raise SourceError(
                    f"{file.path}: expected the columns of {files[0].path}:\n{files[0].schema}\n"
                    f"got:\n{file.schema}"
                )
        key = _Key(self._key, is_feature=self._columns is None or self._key in self._columns)
        is_large = sum(file.nbytes for file in files) > MAX_MEMORY_BYTES
        if is_large and (len(files) > 1 or not files[0].is_mapped):
            return _StreamedArrow(files, key)
        return _load(files, key, is_mapped=is_large)


@dataclass(frozen=True, slots=True)
class _Key:
    """The column that names records, if there is one, and whether it is a feature, too."""

    name: str | None
    is_feature: bool

    def split(self, found: FoundColumns, numbers: NDArray[np.int64]) -> list[str] | None:
        """The keys of these records; the column goes if it is no feature."""
        if self.name is None:
            return None
        keys = found.keys(self.name, numbers)
        if not self.is_feature:
            found.drop(self.name)
        return keys


def _load(files: Sequence[ArrowFile], key: _Key, *, is_mapped: bool) -> TablePart:
    import pyarrow as pa

    table = pa.concat_tables([file.read(mapped=is_mapped) for file in files])
    found = convert_table(table)
    keys = key.split(found, np.arange(table.num_rows))
    return TablePart(
        found.columns,
        metadata=found.metadata,
        keys=keys,
        fingerprint=_fingerprint(files, key),
        rows=table.num_rows,
    )


def _fingerprint(files: Sequence[ArrowFile], key: _Key) -> str:
    return fingerprint_files([file.path for file in files], files[0].schema.names, key)


class _StreamedArrow:
    """A split that is too large for memory, read batch by batch."""

    def __init__(self, files: Sequence[ArrowFile], key: _Key) -> None:
        self._files = files
        self._key = key
        self._names = self._find_names()
        blank = self._convert(files[0].schema.empty_table())
        key.split(blank, np.arange(0))
        lacking = self._find_lacking()
        self.schema: Schema | None = Schema(
            {
                name: replace(feature, optional=name in lacking)
                for name, feature in schema_of(blank.columns).items()
            }
        )
        self.metadata: Mapping[str, Mapping[str, Any]] = blank.metadata
        self.fingerprint: str | None = _fingerprint(files, key)

    def blocks(self) -> Iterator[Block]:
        """The rows of each batch."""
        first = 0
        for file in self._files:
            for batch in file.batches():
                found = self._convert(batch)
                numbers = np.arange(first, first + len(batch))
                keys = self._key.split(found, numbers)
                yield Block(found.columns, numbers, keys)
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

    def _convert(self, batch: pa.RecordBatch | pa.Table) -> FoundColumns:
        """The columns, with texts that have a dictionary made into ids."""
        import pyarrow as pa
        import pyarrow.compute as pc

        table = batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch])
        for name, names in self._names.items():
            at = table.schema.get_field_index(name)
            texts = table.column(at).cast(pa.large_string())
            ids = pc.index_in(texts, value_set=names).cast(pa.int64())
            table = table.set_column(at, name, ids)
        found = convert_table(table)
        for name, names in self._names.items():
            found.metadata[name] = {"class_names": names.to_pylist()}
        return found


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
