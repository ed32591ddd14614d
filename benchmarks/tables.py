"""Workloads as files of tables, Parquet and CSV, and how pyarrow reads them."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import workloads
from benchmarks.cached import cached
from benchmarks.workloads import Array, Column, Columns, Field, Lists, Workload

WORDS = 100  # that the column of categories chooses from


def csv_workload(*, quick: bool) -> Workload:
    """Ten columns of decimals, ten of integers, a text and a word out of a hundred."""
    return Workload(
        "csv",
        records=25_000 if quick else 200_000,
        sample_records=None,
        fields=(
            *(Field(f"f{i}", "float") for i in range(10)),
            *(Field(f"i{i}", "int") for i in range(10)),
            Field("text", "bytes"),
            Field("word", "bytes"),
        ),
        row_field="i0",
        make=_make_csv,
    )


def csv_path(workload: Workload, cache: Path) -> Path:
    """The workload as a CSV file with a header."""
    name = f"{workload.name}-{workload.records}.csv"
    return cached(name, cache, partial(_save_csv, workload), workloads, sys.modules[__name__])


def parquet_path(workload: Workload, cache: Path) -> Path:
    """The workload as a Parquet file, compressed as pyarrow does by default."""
    name = f"{workload.name}-{workload.records}.parquet"
    return cached(name, cache, partial(_save_parquet, workload), workloads, sys.modules[__name__])


def read_csv(path: Path) -> int:
    """Reads the whole file, as pyarrow does by default; returns the number of rows."""
    from pyarrow import csv

    rows: int = csv.read_csv(path).num_rows
    return rows


def read_parquet(path: Path) -> int:
    """Reads the whole file, as pyarrow does by default; returns the number of rows."""
    from pyarrow import parquet

    rows: int = parquet.read_table(path).num_rows
    return rows


def sequences(columns: Columns) -> dict[str, Any]:
    """Columns that can be asked for the value of a row."""
    return {name: _sequence(column) for name, column in columns.items()}


def _make_csv(records: int) -> Columns:
    rng = np.random.default_rng(5)
    columns: dict[str, Column] = {f"f{i}": rng.standard_normal(records).round(4) for i in range(10)}
    columns["i0"] = np.arange(records, dtype=np.int64)
    for i in range(1, 10):
        columns[f"i{i}"] = rng.integers(0, 10**i, records)
    columns["text"] = _texts(rng, records)
    columns["word"] = _texts(rng, WORDS)[rng.integers(0, WORDS, records)]
    return columns


def _texts(rng: np.random.Generator, count: int) -> Array:
    """Lower-case ASCII of 16 letters."""
    letters = rng.integers(97, 123, 16 * count, dtype=np.uint8).tobytes()
    return np.array([letters[16 * i : 16 * i + 16] for i in range(count)], dtype=object)


def _save_csv(workload: Workload, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import csv

    texts = {field.name for field in workload.fields if field.kind == "bytes"}
    columns = {
        name: pa.array(column).cast(pa.string()) if name in texts else column
        for name, column in workload.columns().items()
    }
    csv.write_csv(pa.table(columns), path)


def _save_parquet(workload: Workload, path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {name: _arrow(column) for name, column in workload.columns().items()}
    parquet.write_table(pa.table(columns), path)


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    if isinstance(column, Lists):
        return pa.LargeListArray.from_arrays(column.row_splits, column.values)
    if column.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(column.reshape(-1), column.shape[1])
    return pa.array(column)


def _sequence(column: Column) -> Any:
    return np.split(column.values, column.row_splits[1:-1]) if isinstance(column, Lists) else column
