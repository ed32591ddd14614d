"""`datum.write` of Python dicts, beside `tf.train.Example` by hand and TFDS."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import equality, generate
from benchmarks.measure import Contender
from benchmarks.suite import Setting, Suite, faster
from benchmarks.targets import Targets, shard_paths
from benchmarks.workloads import Workload, all_workloads

BY_HAND = "tf.train.Example by hand"
TFDS = "TFDS, GeneratorBasedBuilder"
LIST = "datum.write, list of dicts"
GENERATOR = "datum.write, generator of dicts"
WITH_SCHEMA = "datum.write, list of dicts, float32 by schema"
UNSHUFFLED = "datum.write, list of dicts, shuffle=False"

Rows = list[dict[str, Any]]
Write = Callable[[Path, Rows], int]  # into a folder that is there and empty


def write_rows(setting: Setting) -> Suite:
    """Rows of `tabular`, as a program has them: plain Python values, in any order."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    rows = workload.shard_rows(0)
    writers: dict[str, tuple[Callable[[], Write], range]] = {
        BY_HAND: (partial(_by_hand, workload), rows[: len(rows) // 5]),
        TFDS: (partial(_tfds, workload), rows[: len(rows) // 15]),
        LIST: (_datum, rows),
        GENERATOR: (partial(_datum, as_generator=True), rows),
        WITH_SCHEMA: (partial(_datum, schema_of=workload), rows),
        UNSHUFFLED: (partial(_datum, shuffle=False), rows),
    }
    record_bytes = generate.shard_paths(workload, setting.cache)[0].stat().st_size / len(rows)
    targets = Targets(setting.cache)

    @cache
    def data() -> Rows:  # one list for all: the more objects there are, the slower is Python
        return generate.rows_of(workload, rows)

    def prepare(name: str) -> Callable[[], int]:
        make, taken = writers[name]
        write, first = make(), data()[: len(taken)]
        return lambda: write(targets.new(), first)

    def contender(name: str) -> Contender:
        taken = len(writers[name][1])
        note = f"first {taken:,} records" if taken < len(rows) else ""
        return Contender(name, partial(prepare, name), taken, int(taken * record_bytes), note)

    def check() -> None:
        for name, (make, taken) in writers.items():
            folder = targets.new()
            make()(folder, data()[: len(taken)])
            check_written(name, folder, workload, taken)
        targets.clear()

    return Suite(
        name="write_rows",
        title=f"datum.write: {len(rows):,} dicts of {workload.name}, {record_bytes:.0f} bytes each",
        contenders=tuple(contender(name) for name in writers),
        references=(BY_HAND, TFDS),
        goals=tuple(
            faster(name, peer, times=times)
            for name in (LIST, GENERATOR)
            for peer, times in ((BY_HAND, 20), (TFDS, 50))
        ),
        check=check,
        has_memory=False,  # the suite `write_scale` measures it, where it matters
    )


def check_written(name: str, folder: Path, workload: Workload, rows: range) -> None:
    """Raises unless the files in `folder` hold exactly `rows`, as TensorFlow reads them."""
    from benchmarks import written

    batches = written.read(shard_paths(folder), workload.fields)
    single = written.narrowed(name, batches, workload.columns())
    equality.check_reading(name, single, workload, rows)


def _by_hand(workload: Workload) -> Write:
    from benchmarks import peers_tf_writing

    return lambda folder, rows: peers_tf_writing.write(
        folder / "data.tfrecord", rows, workload.fields
    )


def _tfds(workload: Workload) -> Write:
    from benchmarks import peers_tfds

    return lambda folder, rows: peers_tfds.write_rows(folder, rows, workload.fields)


def _datum(
    *, as_generator: bool = False, schema_of: Workload | None = None, shuffle: bool = True
) -> Write:
    import datum
    from benchmarks import datum_side

    schema = dict(datum_side.schema_of(schema_of.fields)) if schema_of else None

    def run(folder: Path, rows: Rows) -> int:
        source = (row for row in rows) if as_generator else rows
        report = datum.write(source, folder, schema=schema, shuffle=shuffle, progress=False)
        return report.records

    return run
