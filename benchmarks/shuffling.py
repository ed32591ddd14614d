"""How well a shuffle mixes: `to_tf` beside a plain buffer, on records that are sorted.

`python -m benchmarks.shuffling` prints all figures; the suite `shuffling` has the goals.
"""

import argparse
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from benchmarks import datasets
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Outcome, Setting, Suite
from benchmarks.workloads import Array

WINDOW = 8192
BATCH = 1024
SHARDS = (1, 4, 64)
CLASSES = 100
BUFFER = "tf: interleave, shuffle(8192)"
SEQUENTIAL = "tf: file after file, shuffle(8192)"
DATUM = "datum: to_tf, shuffle=8192"
DEFAULT = "datum: to_tf, shuffle=True"
NEAR_ZERO = 0.3  # a random order of a hundred blocks reaches 0.1

Make = Callable[[Path], Any]


@dataclass(frozen=True)
class Mixing:
    """How far an order is from the one on the disk; a true permutation has 0, 1, 1 and 1.

    Attributes:
        correlation: of the places of records on the disk and in the order (Pearson's).
        displacement: Mean distance of the two places, relative to a random order.
        neighbours: how often two neighbours come within a batch's length of each other, as a
            multiple of that of a random order.
        classes: Classes in a batch of records sorted by class, relative to a random order.
    """

    correlation: float
    displacement: float
    neighbours: float
    classes: float


def mixing_of(rows: Array) -> Mixing:
    """The figures of an order, given as the place on the disk of each record that came."""
    records = len(rows)
    places = np.empty(records, np.int64)
    places[rows] = np.arange(records)
    near = np.mean(np.abs(np.diff(places)) < BATCH)
    batches = (rows * CLASSES // records)[: records // BATCH * BATCH].reshape(-1, BATCH)
    found = np.mean([len(np.unique(batch)) for batch in batches])
    return Mixing(
        correlation=float(np.corrcoef(np.arange(records), rows)[0, 1]),
        displacement=float(np.mean(np.abs(places - np.arange(records))) / (records / 3)),
        neighbours=float(near / (2 * BATCH / records)),
        classes=float(found / (CLASSES * (1 - (1 - 1 / CLASSES) ** BATCH))),
    )


def shuffling(setting: Setting) -> Suite:
    """Goals for `to_tf` on sorted records, with any number of shards."""
    records = _records(quick=setting.quick)

    @cache
    def mixed(name: str, shards: int) -> Mixing:
        return mixing_of(_order(name, datasets.sorted_dataset(records, shards, setting.cache)))

    def contender(name: str) -> Contender:
        folder = datasets.sorted_dataset(records, 4, setting.cache)
        data_bytes = datasets.bytes_of(datasets.shards_of(folder))
        return Contender(name, partial(_passes, name, folder), records, data_bytes)

    goals = [goal for shards in SHARDS for goal in _goals(mixed, shards)]
    return Suite(
        name="shuffling",
        title=f"shuffle {records:,} sorted records of one number, batches of {BATCH}",
        contenders=tuple(contender(name) for name in MAKERS),
        references=(BUFFER,),
        goals=tuple(goals),
        check=lambda: None,  # an order in which not every record comes once stops the goals
    )


def _goals(mixed: Callable[[str, int], Mixing], shards: int) -> list[Goal]:
    def correlation(_: Outcome) -> float:
        return abs(mixed(DATUM, shards).correlation)

    def classes(_: Outcome) -> float:
        return mixed(DATUM, shards).classes / mixed(BUFFER, shards).classes

    def neighbours(_: Outcome) -> float:
        return mixed(DATUM, shards).neighbours / mixed(BUFFER, shards).neighbours

    where = f"{shards} shard{'s' if shards > 1 else ''}, {DATUM}"
    against = f"against {BUFFER}"
    return [
        Goal(f"{where}: correlation of places", NEAR_ZERO, "", correlation, is_ceiling=True),
        Goal(f"{where}: classes in a batch, {against}", 1.0, "x", classes),
        Goal(f"{where}: neighbours near, {against}", 1.05, "x", neighbours, is_ceiling=True),
    ]


def _records(*, quick: bool) -> int:
    return 50_000 if quick else 200_000


def _order(name: str, folder: Path) -> Array:
    rows = np.concatenate([batch["row"].numpy() for batch in MAKERS[name](folder)])
    if not np.array_equal(np.sort(rows), np.arange(len(rows))):
        raise RuntimeError(f"{name}: expected every record once, got another number of some")
    return rows


def _passes(name: str, folder: Path) -> Callable[[], int]:
    dataset = MAKERS[name](folder)
    return lambda: sum(int(batch["row"].shape[0]) for batch in dataset)


def _plain(folder: Path, *, cycle: int) -> Any:
    import tensorflow as tf

    names = [str(path) for path in datasets.shards_of(folder)]
    files = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names), seed=0)
    records = files.interleave(tf.data.TFRecordDataset, cycle_length=cycle)
    spec = {"row": tf.io.FixedLenFeature((), tf.int64)}
    batches = records.shuffle(WINDOW, seed=0).batch(BATCH)
    return batches.map(lambda raw: tf.io.parse_example(raw, spec))


def _datum(folder: Path, *, shuffle: bool | int) -> Any:
    import datum

    return datum.load(folder).to_tf("train", batch_size=BATCH, shuffle=shuffle)


MAKERS: Mapping[str, Make] = {
    BUFFER: partial(_plain, cycle=4),
    SEQUENTIAL: partial(_plain, cycle=1),
    DATUM: partial(_datum, shuffle=WINDOW),
    DEFAULT: partial(_datum, shuffle=True),
}


def main() -> None:
    """Prints the figures of every shuffle and number of shards."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.shuffling", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a quarter of the records")
    arguments = parser.parse_args()
    home = Path(__file__).parent.parent / "build" / "bench"
    records = _records(quick=arguments.quick)
    print(f"{'':36}shards  correlation  displacement  neighbours near  classes in a batch")
    for name in MAKERS:
        for shards in SHARDS:
            mixing = mixing_of(_order(name, datasets.sorted_dataset(records, shards, home)))
            print(
                f"{name:36}{shards:6}{mixing.correlation:13.3f}{mixing.displacement:14.2f}"
                f"{mixing.neighbours:17.1f}{mixing.classes:20.2f}"
            )


if __name__ == "__main__":
    main()
