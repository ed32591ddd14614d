"""Going through `tabular` without TensorFlow: `to_numpy` and `to_torch` beside their peers."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from benchmarks import datasets, equality
from benchmarks.measure import Contender
from benchmarks.reader import Reader
from benchmarks.suite import Goal, Setting, Suite, faster
from benchmarks.workloads import Workload, all_workloads

HAND_WRITTEN = "tf: interleave, batch, parse_example"
SHUFFLED = "tf: the same, shuffle(8192)"
IN_ORDER = "datum: to_numpy"
FULL = "datum: to_numpy, shuffled fully"
FULL_ONE_THREAD = "datum: to_numpy, shuffled fully, 1 thread"
BLOCKS = 'datum: to_numpy, shuffle="blocks"'

TFRECORD = "tfrecord: TFRecordDataset, 2 workers"
STREAMING = "MosaicML Streaming: 2 workers"
LITDATA = "LitData: StreamingDataLoader, 2 workers"
TORCH = "datum: to_torch"
TORCH_WORKERS = "datum: to_torch in a DataLoader, 2 workers"

# Of the slow ones, fewer records. Streaming repeats some unless workers have as many batches each,
# and LitData is fast only if they have whole chunks.
FEW, FEW_QUICK = 20 * 1024, 4 * 1024
MANY, MANY_QUICK = 192 * 1024, 24 * 1024


@dataclass(frozen=True)
class Way:
    """How records are gone through: what reads them, and where they are."""

    reader: Callable[[], Reader[Any]]  # loads its module: that of one must not load the others
    folder: Path
    records: int
    package: str = ""  # whose version is reported

    @property
    def note(self) -> str:
        """The version, for the table."""
        return f"{self.package} {metadata.version(self.package)}" if self.package else ""


def native_tabular(setting: Setting) -> Suite:
    """Batches of NumPy arrays."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    way = partial(
        Way, folder=datasets.datum_dataset(workload, setting.cache), records=workload.records
    )
    ways = {
        HAND_WRITTEN: way(partial(_tf_reader, "hand_written")),
        SHUFFLED: way(partial(_tf_reader, "shuffled")),
        IN_ORDER: way(_numpy_reader),
        FULL: way(partial(_numpy_reader, shuffle=True)),
        FULL_ONE_THREAD: way(partial(_numpy_reader, shuffle=True, threads=1)),
        BLOCKS: way(partial(_numpy_reader, shuffle="blocks")),
    }
    goals = (faster(FULL, SHUFFLED, times=8),)
    title = f"load tabular into NumPy, {os.cpu_count()} threads"
    return _suite("native_tabular", title, workload, ways, goals, references=(SHUFFLED,))


def torch_tabular(setting: Setting) -> Suite:
    """Shuffled batches of PyTorch tensors, each peer on the records in its own format."""
    from benchmarks import peer_datasets

    workload = all_workloads(quick=setting.quick)["tabular"]
    cache, every = setting.cache, workload.records
    few, many = (FEW_QUICK, MANY_QUICK) if setting.quick else (FEW, MANY)
    own = datasets.datum_dataset(workload, cache)
    ways = {
        TFRECORD: Way(
            partial(_peer_reader, "tfrecord_torch"),
            peer_datasets.tfrecord_dataset(workload, few, cache),
            few,
            "tfrecord",
        ),
        STREAMING: Way(
            partial(_peer_reader, "streaming"),
            peer_datasets.streaming_dataset(workload, few, cache),
            few,
            "mosaicml-streaming",
        ),
        LITDATA: Way(
            partial(_peer_reader, "litdata"),
            peer_datasets.litdata_dataset(workload, many, cache),
            many,
            "litdata",
        ),
        TORCH: Way(partial(_torch_reader, has_workers=False), own, every, "torch"),
        TORCH_WORKERS: Way(partial(_torch_reader, has_workers=True), own, every),
    }
    goals = (
        faster(TORCH, TFRECORD, times=20),
        faster(TORCH, STREAMING, times=3),
        faster(TORCH, LITDATA, times=3),
    )
    title = "load tabular into PyTorch, shuffled"
    references = (TFRECORD, STREAMING, LITDATA)
    return _suite("torch_tabular", title, workload, ways, goals, references=references)


def _tf_reader(name: str) -> Reader[Any]:
    from benchmarks import peers_tf

    make = getattr(peers_tf, name)
    return Reader(
        lambda workload, paths: partial(iter, make(workload, datasets.shards_of(paths[0]))),
        peers_tf.length_of,
        peers_tf.columns_of,
    )


def _numpy_reader(**options: Any) -> Reader[Any]:
    from benchmarks import datum_native

    return datum_native.numpy_reader(**options)


def _torch_reader(*, has_workers: bool) -> Reader[Any]:
    from benchmarks import datum_native

    return datum_native.torch_reader(has_workers=has_workers)


def _peer_reader(peer: str) -> Reader[Any]:
    reader: Reader[Any] = import_module(f"benchmarks.peers_{peer}").READER
    return reader


def _suite(
    name: str,
    title: str,
    workload: Workload,
    ways: Mapping[str, Way],
    goals: tuple[Goal, ...],
    *,
    references: tuple[str, ...],
) -> Suite:
    has_workers = name == "torch_tabular"
    contender = partial(_contender, workload=workload, is_warmed=has_workers)
    return Suite(
        name=name,
        title=f"{title}: {workload.records:,} records, batches of {workload.batch_records}",
        contenders=tuple(contender(each, way) for each, way in ways.items()),
        references=references,
        goals=goals,
        check=partial(_check, ways, workload),
        has_memory=not has_workers,  # they have theirs apart
    )


def _contender(name: str, way: Way, *, workload: Workload, is_warmed: bool) -> Contender:
    def prepare() -> Callable[[], int]:
        passes = way.reader().passes(workload, [way.folder])
        if is_warmed:
            passes()  # starts the workers
        return passes

    files = [path for path in way.folder.rglob("*") if path.is_file()]
    first = f"first {way.records:,} records" if way.records < workload.records else ""
    return Contender(
        name,
        prepare=prepare,
        records=way.records,
        data_bytes=datasets.bytes_of(files),
        note=", ".join(filter(None, (way.note, first))),
    )


def _check(ways: Mapping[str, Way], workload: Workload) -> None:
    for name, way in ways.items():
        batches = way.reader().read(workload, [way.folder])
        equality.check_reading(name, batches, workload, range(way.records))
