"""Loading each workload into `tf.data`: `to_tf` beside pipelines by hand and TFDS."""

from functools import partial

from benchmarks import datasets, equality
from benchmarks.loader import (
    AUTO_SHUFFLED,
    DATUM,
    DATUM_OF_TFDS,
    DATUM_SHUFFLED,
    HAND_WRITTEN,
    IN_GRAPH,
    NATIVE,
    NATIVE_SHUFFLED,
    SHUFFLED,
    TFDS,
    Loading,
)
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Setting, Suite, faster
from benchmarks.workloads import Workload, all_workloads

OF_TFDS = (TFDS, DATUM_OF_TFDS)  # they read what TFDS wrote, which is less: it takes long
NAMES = (HAND_WRITTEN, SHUFFLED, TFDS, DATUM, DATUM_SHUFFLED, DATUM_OF_TFDS)
LOOPED = (HAND_WRITTEN, SHUFFLED, DATUM, DATUM_SHUFFLED)
BY_ENGINE = (HAND_WRITTEN, SHUFFLED, DATUM_SHUFFLED, NATIVE, NATIVE_SHUFFLED, AUTO_SHUFFLED)


def load_tabular(setting: Setting) -> Suite:
    """Scalars, a vector, text and a ragged list."""
    goals = (
        faster(DATUM_SHUFFLED, SHUFFLED, times=1.8),
        faster(DATUM, SHUFFLED, times=2.4),
        faster(DATUM, HAND_WRITTEN, times=2.4),
        faster(DATUM_SHUFFLED, TFDS, times=20),
    )
    return _suite("load_tabular", "tabular", setting, goals)


def load_wide(setting: Setting) -> Suite:
    """Two hundred float features."""
    return _suite("load_wide", "wide", setting, ())


def load_tokens(setting: Setting) -> Suite:
    """One ragged list of 512 to 2048 integers."""
    return _suite("load_tokens", "tokens", setting, ())


def native_tf(setting: Setting) -> Suite:
    """Speed of `to_tf` with the native engine and with the graph engine."""
    goals = (faster(NATIVE_SHUFFLED, SHUFFLED, times=4),)
    looped = (SHUFFLED, DATUM_SHUFFLED, NATIVE_SHUFFLED)
    return _suite("native_tf", "tabular", setting, goals, names=BY_ENGINE, looped=looped)


def load_first(setting: Setting) -> Suite:
    """From nothing to the first batch of `tabular`, all modules being loaded."""
    workload = all_workloads(quick=setting.quick)["tabular"]
    return Suite(
        name="load_first",
        title=f"load tabular: time to the first batch of {workload.batch_records}",
        contenders=tuple(_first(_loading(name, workload, setting)) for name in NAMES),
        references=(HAND_WRITTEN, SHUFFLED),
        goals=(),
        check=lambda: None,  # the suite `load_tabular` checks these loaders
    )


def _suite(
    name: str,
    data: str,
    setting: Setting,
    goals: tuple[Goal, ...],
    *,
    names: tuple[str, ...] = NAMES,
    looped: tuple[str, ...] = LOOPED,
) -> Suite:
    workload = all_workloads(quick=setting.quick)[data]
    every = (*names, *(each + IN_GRAPH for each in looped))
    loadings = [_loading(each, workload, setting) for each in every]
    files = datasets.shards_of(loadings[0].folder)
    return Suite(
        name=name,
        title=f"load {data} into tf.data: {workload.records:,} records, "
        f"{datasets.bytes_of(files) / 1e6:.0f} MB, {len(files)} shards, "
        f"batches of {workload.batch_records}",
        contenders=tuple(_whole(loading, len(_rows(loading))) for loading in loadings),
        references=tuple(each for each in (HAND_WRITTEN, SHUFFLED, TFDS) if each in names),
        goals=goals,
        check=partial(_check, [each for each in loadings if not each.name.endswith(IN_GRAPH)]),
    )


def _loading(name: str, workload: Workload, setting: Setting) -> Loading:
    if name in OF_TFDS:
        records = workload.sample_records or workload.records
        return Loading(name, workload, datasets.tfds_dataset(workload, records, setting.cache))
    return Loading(name, workload, datasets.datum_dataset(workload, setting.cache))


def _rows(loading: Loading) -> range:
    workload = loading.workload
    return range((loading.name in OF_TFDS and workload.sample_records) or workload.records)


def _whole(loading: Loading, records: int) -> Contender:
    return Contender(
        loading.name,
        prepare=loading.passes,
        records=records,
        data_bytes=datasets.bytes_of(datasets.shards_of(loading.folder)),
        note=f"first {records:,} records" if records < loading.workload.records else "",
    )


def _first(loading: Loading) -> Contender:
    batch_records, records = loading.workload.batch_records, len(_rows(loading))
    data_bytes = datasets.bytes_of(datasets.shards_of(loading.folder)) * batch_records // records
    return Contender(loading.name, lambda: loading.first_batch, batch_records, data_bytes)


def _check(loadings: list[Loading]) -> None:
    from benchmarks import peers_tf

    for loading in loadings:
        batches = [peers_tf.columns_of(batch) for batch in loading.make()]
        equality.check_reading(loading.name, batches, loading.workload, _rows(loading))
