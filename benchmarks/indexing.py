"""Finding where the records of a long file begin: Datum beside TensorFlow and `tfrecord`."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks import generate
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Setting, Suite

COUNT = "tf: count the records of TFRecordDataset"
TFRECORD = "tfrecord package: tfrecord2idx"
DATUM = "datum: RecordFile.index"


def indexing(setting: Setting) -> Suite:
    """One file of small records."""
    records = 100_000 if setting.quick else 1_000_000
    path = generate.small_records_path(records, setting.cache)
    offsets_path = path.with_suffix(".tfindex")
    contenders: dict[str, Callable[[], Callable[[], int]]] = {
        COUNT: lambda: _count(path),
        TFRECORD: lambda: _tfrecord(path, offsets_path, records),
        DATUM: lambda: _build(path),
    }
    megabytes = path.stat().st_size / 1e6
    return Suite(
        name="index",
        title=f"index one file of {records:,} records, {megabytes:.0f} MB",
        contenders=tuple(
            Contender(name, prepare, records, data_bytes=path.stat().st_size)
            for name, prepare in contenders.items()
        ),
        references=(COUNT,),
        goals=(),
        check=lambda: _check(path, offsets_path, records),
    )


def _count(path: Path) -> Callable[[], int]:
    from benchmarks import peers_tf

    return peers_tf.counting(path)


def _tfrecord(path: Path, offsets_path: Path, records: int) -> Callable[[], int]:
    from benchmarks.peers_tfrecord import create_index

    def run() -> int:
        create_index(str(path), str(offsets_path))
        return records  # the check counts them

    return run


def _build(path: Path) -> Callable[[], int]:
    import datum.format

    def run() -> int:
        with datum.format.RecordFile(path) as file:
            return len(file.index)

    return run


def _check(path: Path, offsets_path: Path, records: int) -> None:
    import datum.format

    _tfrecord(path, offsets_path, records)()
    wanted = np.loadtxt(offsets_path, dtype=np.int64)[:, 0]
    with datum.format.RecordFile(path) as file:
        got = file.index.offsets
    if len(wanted) != records or not np.array_equal(got, wanted):
        raise OutputDiffersError(f"{DATUM}: offsets differ from those of {TFRECORD}")
