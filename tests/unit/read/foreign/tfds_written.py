"""Datasets that TFDS itself writes and reads, from features and examples given as values."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds

tfds.disable_progress_bar()


class _Written(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Hands over examples that are given to it, in their order."""

    VERSION = tfds.core.Version("1.0.0")
    url_infos = None  # nothing is downloaded; TFDS looks for them by a package it does not require

    def __init__(
        self, folder: Path, features: Any, splits: Mapping[str, Iterable[Any]], form: str | None
    ) -> None:
        self._features = features
        self._splits = splits
        super().__init__(data_dir=folder, file_format=form)

    def _info(self) -> Any:
        features = tfds.features.FeaturesDict(self._features)
        return tfds.core.DatasetInfo(builder=self, features=features, disable_shuffling=True)

    def _split_generators(self, _manager: Any) -> dict[str, Any]:
        return {name: enumerate(examples) for name, examples in self._splits.items()}

    def _generate_examples(self) -> Iterator[Any]:
        return iter(())


def write_tfds(
    folder: Path,
    features: Mapping[str, Any],
    splits: Mapping[str, Iterable[Mapping[str, Any]]],
    *,
    shards: int = 1,
    file_format: str | None = None,
) -> Path:
    """Write a dataset of these splits; returns the folder that holds `features.json`."""
    builder = _Written(folder, features, splits, file_format)
    config = tfds.download.DownloadConfig(num_shards=shards, try_download_gcs=False)
    with contextlib.redirect_stdout(io.StringIO()):
        builder.download_and_prepare(download_config=config)
    return Path(builder.data_dir)


def read_tfds(folder: Path, split: str) -> list[dict[str, Any]]:
    """The records of a split as TFDS reads them, with nested features as "outer/inner"."""
    dataset = tfds.builder_from_directory(folder).as_dataset(split=split)
    return [flatten(record) for record in tfds.as_numpy(dataset)]


def flatten(record: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Features by their whole names; a nested dataset is one of columns, as lists."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        if not isinstance(value, (Mapping, np.ndarray, np.generic, bytes, tf.RaggedTensor)):
            value = _columns(list(value))
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}/")
        else:
            flat[prefix + key] = value
    return flat


def _columns(rows: list[Any]) -> Any:
    if rows and isinstance(rows[0], Mapping):
        return {key: _columns([row[key] for row in rows]) for key in rows[0]}
    return np.array(rows)
