"""Writing `tabular` to a file: Datum from rows and from columns, beside `tf.train.Example`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import equality, generate, reading
from benchmarks.measure import Contender
from benchmarks.reader import HAND_WRITTEN
from benchmarks.suite import Setting, Suite, faster
from benchmarks.workloads import Workload, all_workloads

BY_HAND = "tf.train.Example by hand, rows"
BY_HAND_ARRAYS = "tf.train.Example by hand, rows with arrays"
ROWS = "datum, rows, 2 threads"
ROWS_ARRAYS = "datum, rows with arrays, 2 threads"
COLUMNS_ONE_THREAD = "datum, columns, 1 thread"
COLUMNS = "datum, columns, 2 threads"

Write = Callable[[Path], int]


def writing(setting: Setting) -> Suite:
    """The same rows, as dicts of plain Python values, with arrays for lists, and as columns."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    rows = range(5_000 if setting.quick else 20_000)
    writers: dict[str, Callable[[], Write]] = {
        BY_HAND: lambda: _by_hand(workload, _plain_rows(workload, rows)),
        BY_HAND_ARRAYS: lambda: _by_hand(workload, _array_rows(workload, rows)),
        ROWS: lambda: _datum(workload, _plain_rows(workload, rows), threads=2),
        ROWS_ARRAYS: lambda: _datum(workload, _array_rows(workload, rows), threads=2),
        COLUMNS_ONE_THREAD: lambda: _datum(workload, _columns(workload, rows), threads=1),
        COLUMNS: lambda: _datum(workload, _columns(workload, rows), threads=2),
    }
    written_bytes = generate.first_records_path(workload, len(rows), setting.cache).stat().st_size
    target = setting.cache / "written.tfrecord"

    def contender(name: str) -> Contender:
        return Contender(
            name, lambda: partial(writers[name](), target), len(rows), data_bytes=written_bytes
        )

    def check() -> None:
        for name, prepare in writers.items():
            prepare()(target)
            batches = reading.reader(HAND_WRITTEN).read(workload, [target])
            equality.check_reading(name, batches, workload, rows)

    return Suite(
        name="write",
        title=f"write {workload.name}: {len(rows):,} records to a file",
        contenders=tuple(contender(name) for name in writers),
        references=(BY_HAND,),
        goals=(
            faster(ROWS, BY_HAND, times=20),
            faster(COLUMNS, BY_HAND, times=100),
        ),
        check=check,
    )


def _by_hand(workload: Workload, rows: list[dict[str, Any]]) -> Write:
    from benchmarks import peers_tf_writing

    return lambda path: peers_tf_writing.write(path, rows, workload.fields)


def _datum(workload: Workload, data: Any, *, threads: int) -> Write:
    from benchmarks import datum_side

    schema = datum_side.schema_of(workload.fields)
    return lambda path: datum_side.write(path, data, schema, threads=threads)


def _plain_rows(workload: Workload, rows: range) -> list[dict[str, Any]]:
    return generate.rows_of(workload, rows)


def _array_rows(workload: Workload, rows: range) -> list[dict[str, Any]]:
    """Lists as NumPy arrays, as they come from a computation."""
    plain = generate.rows_of(workload, rows)
    dtypes = {"float": np.float32, "int": np.int64}
    for field in workload.fields:
        if field.shape:
            for row in plain:
                row[field.name] = np.array(row[field.name], dtypes[field.kind])
    return plain


def _columns(workload: Workload, rows: range) -> dict[str, Any]:
    from benchmarks import datum_side

    taken = equality.take_rows(workload.columns(), np.arange(rows.start, rows.stop))
    return {name: datum_side.as_datum(column) for name, column in taken.items()}
