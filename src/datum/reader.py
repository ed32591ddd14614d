"""Datasets opened from where they lie, whoever wrote them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from datum.dataset import Dataset
from datum.reading.adopt import open_dataset
from datum.schema import Feature, Schema

__all__ = ["load"]


def load(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    schema: Schema | Mapping[str, Feature] | None = None,
) -> Dataset:
    """Open a dataset: of Datum, of its older library, of TFDS, or plain TFRecord files.

    `path` is a folder, a manifest, one TFRecord file, a pattern such as "logs/*.tfrecord", or a
    list of files. Of datasets that are described only the description is read. Files that nobody
    described are read through once, to find what their records hold, unless `schema` says it;
    `Dataset.save_manifest` keeps what was found. ManifestError if there is no dataset, or if its
    description is not what it should be.

    >>> import datum
    >>> report = datum.write(
    ...     [{"x": 5}, {"x": 6}, {"x": 7}], "numbers", shuffle=False, progress=False
    ... )
    >>> train = datum.load("numbers")["train"]
    >>> len(train), int(train[-1]["x"]), train.read([2, 0])["x"].tolist()
    (3, 7, [7, 5])
    """
    return Dataset(open_dataset(path, schema=schema))
