"""How soon the first shuffled batch is there, and what memory many records take."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, peer_datasets
from benchmarks.equality import OutputDiffersError
from benchmarks.measure import Contender
from benchmarks.suite import Goal, Outcome, Setting, Suite, within

BATCH_RECORDS = 1024
FIRST_MS = 50
GROWN_MB = 4  # what chance makes of it; the records themselves are hundreds
MEGABYTE = 1_000_000


def native_first(setting: Setting) -> Suite:
    """From `datum.load` to the first batch, and whole passes over once and four times as many."""
    few = 100_000 if setting.quick else 1_000_000
    counts = (few, 4 * few)
    folders = {count: peer_datasets.small_dataset(count, setting.cache) for count in counts}
    first = tuple(
        _contender(_first_name(count), _first, folders[count], BATCH_RECORDS, of=count)
        for count in counts
    )
    every = tuple(
        _contender(_name(count), _pass, folders[count], count, of=count) for count in counts
    )
    return Suite(
        name="native_first",
        title="small records, shuffled fully: to the first batch, and through all of them",
        contenders=(*first, *every),
        references=(_name(few),),
        goals=(
            *(within(_first_name(count), milliseconds=FIRST_MS) for count in counts),
            Goal(
                f"own memory of a pass over {4 * few:,} records, less that over {few:,}",
                GROWN_MB,
                "MB",
                partial(_grown, few=_name(few), many=_name(4 * few)),
                is_ceiling=True,
            ),
        ),
        check=partial(_check, folders),
    )


def _first_name(count: int) -> str:
    return f"datum: load, first batch of {count:,}"


def _name(count: int) -> str:
    return f"datum: to_numpy, all of {count:,}"


def _contender(
    name: str, work: Callable[[Path], int], folder: Path, records: int, *, of: int
) -> Contender:
    data_bytes = datasets.bytes_of(datasets.shards_of(folder)) * records // of

    def prepare() -> Callable[[], int]:
        _batches(folder).close()  # modules are loaded before
        return partial(work, folder)

    return Contender(name, prepare, records, data_bytes)


def _batches(folder: Path) -> Any:
    import datum

    loaded = datum.load(folder)
    return loaded.to_numpy("train", batch_size=BATCH_RECORDS, shuffle=True)


def _first(folder: Path) -> int:
    return len(next(iter(_batches(folder)))["x"])


def _pass(folder: Path) -> int:
    return sum(len(batch["x"]) for batch in _batches(folder))


def _grown(outcome: Outcome, *, few: str, many: str) -> float | None:
    if not {few, many} <= outcome.memory.keys():
        return None
    grown = outcome.memory[many].own_bytes - outcome.memory[few].own_bytes
    return max(0, grown) / MEGABYTE


def _check(folders: dict[int, Path]) -> None:
    """Raise unless a pass yields every record once, in another order."""
    for count, folder in folders.items():
        batches = list(_batches(folder))
        x = np.concatenate([batch["x"] for batch in batches])
        y = np.concatenate([batch["y"] for batch in batches])
        is_same = np.array_equal(np.sort(x), np.arange(count))
        wanted = peer_datasets.small_columns(count)
        if not is_same or not np.array_equal(y, wanted["y"][x]):
            raise OutputDiffersError(f"{_name(count)}: the records are not those written")
        if np.array_equal(x, wanted["x"]):
            raise OutputDiffersError(f"{_name(count)}: the records are in order")
