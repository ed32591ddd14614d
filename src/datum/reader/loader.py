"""Datasets opened or verified where they lie, whoever wrote them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from datum.configs import DatasetConfigs
from datum.dataset import Dataset
from datum.format.wording import count_of
from datum.reading.adopt import open_dataset
from datum.reading.verify import VerifyReport
from datum.reading.verifying.anything import verify_path
from datum.schema import Feature, Schema

__all__ = ["load", "verify"]

SHOWN_DAMAGES = 5


def load(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    dataset_configs: DatasetConfigs | None = None,
    *,
    schema: Schema | Mapping[str, Feature] | None = None,
    on_error: Literal["raise", "skip"] = "raise",
) -> Dataset:
    """Open a dataset: of Datum, of its older library, of TFDS, or plain TFRecord files.

    `path` is a folder, a manifest, one TFRecord file, a pattern such as "logs/*.tfrecord", or a
    list of files. Of datasets that are described only the description is read; a pattern or a list
    may name some shards of a dataset of Datum, which keep what its manifest says of them:
    CorruptRecordError if one has another size, and a warning if the manifest is damaged. Files that
    nobody described are read through once, to find what their records hold, unless `schema` says
    it; `Dataset.save_manifest` keeps what was found. ManifestError if there is no dataset, or if
    its description is not what it should be.

    `dataset_configs` says what `train_fn`, `val_fn` and `test_fn` of the dataset give.

    Damage in files that nobody described is an error. With `on_error="skip"` they open with what is
    sound: damaged records, torn ends, records that are no Examples and shards that are missing are
    left out, everywhere, and are told by a warning and in `Dataset.damage`. Of described datasets
    it is the loaders that meet damage, and that have an `on_error` of their own.

    >>> import datum
    >>> report = datum.write(
    ...     [{"x": 5}, {"x": 6}, {"x": 7}], "numbers", shuffle=False, progress=False
    ... )
    >>> train = datum.load("numbers")["train"]
    >>> len(train), int(train[-1]["x"]), train.read([2, 0])["x"].tolist()
    (3, 7, [7, 5])
    """
    if on_error not in ("raise", "skip"):
        raise ValueError(f"expected `on_error` raise or skip, got {on_error!r}")
    contents = open_dataset(path, schema=schema, skips_damage=on_error == "skip")
    for note in contents.notes:
        warnings.warn(note, UserWarning, stacklevel=2)
    dataset = Dataset(contents, dataset_configs)
    if dataset.damage:
        warnings.warn(_describe_damage(dataset), UserWarning, stacklevel=2)
    return dataset


def verify(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    deep: bool = False,
    threads: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> VerifyReport:
    """Check every record of what lies at a path, also where `load` gives up.

    `path` is as in `load`, the rest as in `Dataset.verify`. Where the manifest is damaged its files
    are checked as plain ones; where records are no Examples, their CRCs and number. What is no
    dataset and no TFRecord file raises what `load` does.

    >>> import datum
    >>> report = datum.write({"x": [5, 6, 7]}, "three", progress=False)
    >>> with open("three/datum.json", "a") as file:
    ...     print("!", file=file)
    >>> found = verify("three")
    >>> found.records, [problem.kind for problem in found.problems]
    (3, ['manifest'])
    """
    return verify_path(path, deep=deep, threads=threads, progress=progress)


def _describe_damage(dataset: Dataset) -> str:
    count = len(dataset.damage)
    lines = [f"{dataset.path}: damage in {count_of(count, 'place')}, left out"]
    lines += [f"  {damage}" for damage in dataset.damage[:SHOWN_DAMAGES]]
    if count > SHOWN_DAMAGES:
        lines.append(f"  and {count_of(count - SHOWN_DAMAGES, 'place')} more")
    return "\n".join([*lines, "hint: datum.repair writes what is sound to a dataset of its own"])
