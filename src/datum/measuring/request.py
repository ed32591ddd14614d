"""`datum.measure`: what is asked for, checked, and the dataset opened."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from typing import Any

from datum.dataset import Dataset
from datum.errors import DatumError, SplitError
from datum.loading import LoadOptions
from datum.loading.checks import check_count
from datum.loading.options import Shuffle
from datum.measuring.frameworks import choose_frameworks, quiet
from datum.measuring.measurement import Measurement
from datum.measuring.run import Asked, check_records, measure_records
from datum.reader import load
from datum.reading import Split

__all__ = ["measure"]

Path = str | os.PathLike[str]


def measure(
    dataset: Dataset | Path | Iterable[Path],
    *,
    split: str | None = None,
    batch_size: int = 64,
    seconds: float = 2.0,
    frameworks: Iterable[str] | str | None = None,
    shuffle: Shuffle = True,
    columns: Iterable[str] | None = None,
    threads: int | None = None,
    workers: int = 2,
    map: Callable[..., Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure how fast a dataset is read here, and what takes the time.

    One thread goes through stage after stage: bytes are read, CRCs checked, columns parsed, images
    decoded, records mapped, batches put together. Then each framework that is installed takes the
    batches as a program does, with all threads. Everything goes through the same records, a part
    of the split that suits the time, and in turn: medians are told, and how far the turns lay
    apart. The files are in memory by then; what the disk does is told beside it.

    Of records that are no Examples the bytes are read and checked, no more. Damage raises what
    reading it does.

    Args:
        dataset: what `datum.load` gives, or takes.
        split: "train", "train[:10%]" and so on; None is "train" where there is one, else the first.
        batch_size: how many records a batch has.
        seconds: that each stage and each loader may take.
        frameworks: some of "numpy", "torch", "jax" and "tf"; None is all that are installed.
        shuffle: as for `to_numpy`.
        columns: the features to read; None is all.
        threads: how many loaders use; None is one for each core.
        workers: how many processes a DataLoader has.
        map: a function of a record, as for `to_numpy`. TensorFlow goes without it.
        progress: called with what is done, and with what there is to do.

    >>> import datum
    >>> report = datum.write({"x": range(100)}, "hundred", progress=False)
    >>> found = datum.measure("hundred", seconds=0.01, frameworks=["numpy"])
    >>> [stage.name for stage in found.stages]
    ['read', 'crc', 'parse', 'shuffle', 'batch']
    """
    chosen = choose_frameworks(frameworks)
    seconds = _check_seconds(seconds)
    workers = check_count("workers", workers, least=1)
    batch_size = check_count("batch_size", batch_size, least=1)
    options = LoadOptions(
        batch_size=batch_size, shuffle=shuffle, columns=columns, threads=threads, map=map
    )
    opened, unknown = _open(dataset)
    records = _find_split(opened, split)
    asked = Asked(
        name=_name(dataset, opened),
        dataset=opened,
        split=records,
        options=options,
        seconds=seconds,
        workers=workers,
        progress=progress,
    )
    if not opened.schema:
        return check_records(asked, unknown)
    with quiet():
        return measure_records(asked, chosen)


def _check_seconds(seconds: Any) -> float:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"expected `seconds` to be a number, got {seconds!r}")
    if not 0 < seconds < math.inf:
        raise ValueError(f"expected `seconds` above 0, got {seconds!r}")
    return float(seconds)


def _open(dataset: Any) -> tuple[Dataset, DatumError | None]:
    """A dataset; of records that are no Examples without features, and why that is."""
    if isinstance(dataset, Dataset):
        return dataset, None
    try:
        return load(dataset), None
    except DatumError as error:
        try:
            return load(dataset, schema={}), error
        except DatumError:
            raise error from None


def _name(given: Any, opened: Dataset) -> str:
    """What the user calls it: of a single file its path, not its folder."""
    return os.fspath(given) if isinstance(given, (str, os.PathLike)) else str(opened.path)


def _find_split(dataset: Dataset, name: str | None) -> Split:
    if name is None:
        names = list(dataset)
        name = "train" if "train" in names or not names else names[0]
    split = dataset[name]
    if not len(split):
        others = [other for other, info in dataset.splits.items() if info.records]
        hint = f"there are some in {', '.join(others)}" if others else ""
        raise SplitError(
            f"split {name!r}: expected records to measure with, got none",
            where=dataset.path,
            hint=hint,
        )
    return split
