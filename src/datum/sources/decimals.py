"""Decimals, which records cannot hold, as the floats, integers or texts that the user asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from datum.errors import SourceError
from datum.sources.arrow_files import ArrowFile

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CastFile", "cast_decimal", "cast_decimals"]


def cast_decimal(value: Decimal, dtype: str) -> Any:
    """A decimal as a feature of this type has it; a fraction stays one, for whoever refuses it.

    >>> cast_decimal(Decimal("1.50"), "str"), cast_decimal(Decimal("3.0"), "int64")
    ('1.50', 3)
    """
    if dtype == "str":
        return str(value)
    if dtype.startswith("float"):
        return float(value)
    return int(value) if value == value.to_integral_value() else float(value)


def cast_decimals(table: Any, dtypes: Mapping[str, str]) -> Any:
    """A table in memory, of any kind, with decimals in the columns named as these types."""
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
    """An Arrow table, or a batch of one."""
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
                hint="datum.Feature('float64') takes fractions, 'str' every digit",
            ) from None
    return table


def _arrow_type(dtype: str) -> pa.DataType:
    import pyarrow as pa

    if dtype == "str":
        return pa.large_string()
    return pa.float64() if dtype.startswith("float") else pa.int64()


class CastFile:
    """An `ArrowFile` whose decimals are cast as they are read."""

    def __init__(self, file: ArrowFile, dtypes: Mapping[str, str]) -> None:
        self.path: Path = file.path
        self.nbytes = file.nbytes
        self.schema: pa.Schema = _cast_arrow(file.schema.empty_table(), dtypes).schema
        self.is_mapped = file.is_mapped and self.schema.equals(file.schema)
        self._file = file
        self._dtypes = dtypes

    def read(self, *, mapped: bool = False) -> pa.Table:
        """All rows."""
        return _cast_arrow(self._file.read(mapped=mapped), self._dtypes)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows, some at a time; only these columns."""
        for batch in self._file.batches(columns):
            yield from _cast_arrow(batch, self._dtypes).to_batches()

    def null_count(self, column: str) -> int | None:
        """How many records have no value, if the file tells that."""
        return self._file.null_count(column)
