"""`datum.write` of tables: arrays and Parquet beside TFDS, CSV beside pyarrow that only reads."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import generate, tables
from benchmarks.measure import Contender
from benchmarks.suite import Setting, Suite, faster
from benchmarks.targets import Targets
from benchmarks.workloads import Workload, all_workloads
from benchmarks.write_rows import check_written

TFDS = "TFDS, GeneratorBasedBuilder over arrays"
ARRAYS = "datum.write, dict of arrays"
PARQUET = "datum.write, Parquet file"
READ_PARQUET = "pyarrow: read the Parquet file, write nothing"
CSV = "datum.write, CSV file"
READ_CSV = "pyarrow: read the CSV file, write nothing"

Prepare = Callable[[], Callable[[Path], int]]  # returns a function that writes into an empty folder


def write_tables(setting: Setting) -> Suite:
    """All of `tabular`, in memory and as a Parquet file."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    sample = range(workload.records // (10 if setting.quick else 50))
    parquet = tables.parquet_path(workload, setting.cache)
    writers: dict[str, Prepare] = {
        TFDS: partial(_tfds, workload, sample),
        ARRAYS: partial(_arrays, workload),
        PARQUET: partial(_file, parquet),
    }
    written_bytes = sum(
        path.stat().st_size for path in generate.shard_paths(workload, setting.cache)
    )
    return _suite(
        "write_tables",
        f"datum.write: {workload.records:,} rows of {workload.name} from columns",
        writers,
        workload,
        setting,
        data_bytes=written_bytes,
        sample=sample,
        reading={READ_PARQUET: partial(_reading, tables.read_parquet, parquet)},
        references=(TFDS,),
        goals=(faster(ARRAYS, TFDS, times=100), faster(PARQUET, TFDS, times=100)),
    )


def write_csv(setting: Setting) -> Suite:
    """Numbers and words in a file; a writer can be no faster than the file is read."""
    workload = tables.csv_workload(quick=setting.quick)
    path = tables.csv_path(workload, setting.cache)
    return _suite(
        "write_csv",
        f"datum.write: a CSV file of {workload.records:,} rows, {len(workload.fields)} columns",
        {CSV: partial(_file, path)},
        workload,
        setting,
        data_bytes=path.stat().st_size,
        sample=range(0),
        reading={READ_CSV: partial(_reading, tables.read_csv, path)},
        references=(READ_CSV,),
        goals=(faster(CSV, READ_CSV, times=0.5),),
    )


def _suite(
    name: str,
    title: str,
    writers: Mapping[str, Prepare],
    workload: Workload,
    setting: Setting,
    *,
    data_bytes: int,
    sample: range,
    reading: Mapping[str, Callable[[], Callable[[], int]]],
    references: tuple[str, ...],
    goals: tuple[Any, ...],
) -> Suite:
    targets = Targets(setting.cache)

    def rows(writer: str) -> range:
        return sample if writer == TFDS else range(workload.records)

    def prepare(writer: str) -> Callable[[], int]:
        write = writers[writer]()
        return lambda: write(targets.new())

    def contender(writer: str) -> Contender:
        taken = len(rows(writer))
        note = f"first {taken:,} records" if taken < workload.records else ""
        share = data_bytes * taken // workload.records
        return Contender(writer, partial(prepare, writer), taken, share, note)

    def check() -> None:
        for writer, make in writers.items():
            folder = targets.new()
            make()(folder)
            check_written(writer, folder, workload, rows(writer))
        targets.clear()

    readers = (Contender(*each, workload.records, data_bytes) for each in reading.items())
    return Suite(
        name=name,
        title=title,
        contenders=(*readers, *map(contender, writers)),
        references=references,
        goals=goals,
        check=check,
        has_memory=False,
    )


def _tfds(workload: Workload, rows: range) -> Callable[[Path], int]:
    from benchmarks import peers_tfds

    columns = tables.sequences(workload.columns())

    def run(folder: Path) -> int:
        examples = ({name: column[row] for name, column in columns.items()} for row in rows)
        return peers_tfds.write_rows(folder, examples, workload.fields)

    return run


def _arrays(workload: Workload) -> Callable[[Path], int]:
    import datum
    from benchmarks import datum_side

    columns = {name: datum_side.as_datum(column) for name, column in workload.columns().items()}
    return lambda folder: datum.write(columns, folder, progress=False).records


def _file(path: Path) -> Callable[[Path], int]:
    import datum

    return lambda folder: datum.write(path, folder, progress=False).records


def _reading(read: Callable[[Path], int], path: Path) -> Callable[[], int]:
    return lambda: read(path)
