"""Whole datasets that loaders read, made once: by Datum, and of the same records by TFDS."""

import os
import sys
from functools import partial
from pathlib import Path

from benchmarks import generate, photos, workloads
from benchmarks.cached import cached
from benchmarks.workloads import Workload


def datum_dataset(workload: Workload, cache: Path) -> Path:
    """The workload as `datum.write` stores it, rows in their order."""
    name = f"datum-{workload.name}-{workload.records}"
    return cached(name, cache, partial(_write_datum, workload), workloads, sys.modules[__name__])


def tfds_dataset(workload: Workload, records: int, cache: Path) -> Path:
    """The first records of the workload as TFDS stores them: the folder of the version."""
    name = f"tfds-{workload.name}-{records}"
    make = partial(_write_tfds, workload, records)
    home = cached(name, cache, make, workloads, sys.modules[__name__])
    return next(home.glob("*/*/dataset_info.json")).parent


def photo_dataset(count: int, cache: Path) -> Path:
    """Photos of ten classes as `datum.write` stores a folder of them, shuffled."""
    make = partial(_write_photos, count, cache)
    return cached(f"datum-photos-{count}", cache, make, photos, sys.modules[__name__])


def sorted_dataset(records: int, shards: int, cache: Path) -> Path:
    """One number per record, `row`, in order over all shards."""
    make = partial(_write_sorted, records, shards)
    return cached(f"datum-sorted-{records}-{shards}", cache, make, sys.modules[__name__])


def shards_of(dataset: Path) -> list[Path]:
    """The TFRecord files of a dataset, in order."""
    return sorted(path for path in dataset.iterdir() if ".tfrecord" in path.name)


def bytes_of(paths: list[Path]) -> int:
    """How large files are together."""
    return sum(path.stat().st_size for path in paths)


def _write_datum(workload: Workload, folder: Path) -> None:
    import datum
    from benchmarks import datum_side

    columns = {name: datum_side.as_datum(each) for name, each in workload.columns().items()}
    schema = dict(datum_side.schema_of(workload.fields))
    shards = workload.shards
    datum.write(columns, folder, schema=schema, shuffle=False, shards=shards, progress=False)


def _write_tfds(workload: Workload, records: int, folder: Path) -> None:
    from benchmarks import peers_tfds

    rows = generate.rows_of(workload, range(records))
    peers_tfds.write_rows(folder, rows, workload.fields)


def _write_photos(count: int, cache: Path, folder: Path) -> None:
    import datum

    datum.write(photos.photo_folder(count, cache), folder, shards=os.cpu_count(), progress=False)


def _write_sorted(records: int, shards: int, folder: Path) -> None:
    import numpy as np

    import datum

    rows = {"row": np.arange(records)}
    datum.write(rows, folder, shuffle=False, shards=shards, progress=False)
