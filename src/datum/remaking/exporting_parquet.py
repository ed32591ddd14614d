"""A split as a Parquet file: columns in Arrow's types."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datum.reading.arrow_arrays import to_arrow
from datum.reading.tables import arrow_schema
from datum.remaking.exporting_target import create
from datum.schema import Schema

__all__ = ["ParquetSplit"]


class ParquetSplit:
    """Writes a row group for each batch.

    Attributes:
        files: how many files there are.
        nbytes: how large they are, once they are closed.
    """

    def __init__(
        self, path: Path, schema: Schema, metadata: Mapping[str, Mapping[str, Any]]
    ) -> None:
        import pyarrow.parquet as pq

        self.files = 1
        self.nbytes = 0
        self._path = path
        self._features = schema
        self._schema = arrow_schema(schema, metadata)
        self._file = create(path)
        self._writer = pq.ParquetWriter(self._file, self._schema)

    def write(self, batch: Mapping[str, Any], records: int) -> None:
        """Write the columns of some records."""
        import pyarrow as pa

        arrays = [to_arrow(batch[name], feature) for name, feature in self._features.items()]
        table = pa.Table.from_arrays(arrays, schema=self._schema)
        self._writer.write_table(table, row_group_size=max(records, 1))

    def close(self) -> None:
        """Write the end of the file."""
        self._writer.close()
        self._file.close()
        self.nbytes = self._path.stat().st_size
