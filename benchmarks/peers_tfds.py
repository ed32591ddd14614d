"""TFDS's way to write a dataset: a `GeneratorBasedBuilder` that yields one example at a time."""

import contextlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow_datasets as tfds

from benchmarks.workloads import Field

DTYPES = {"float": np.float32, "int": np.int64, "bytes": np.object_}
tfds.disable_progress_bar()


class _Builder(tfds.core.GeneratorBasedBuilder, skip_registration=True):
    """Hands over examples that are given to it; keys are their numbers."""

    VERSION = tfds.core.Version("1.0.0")
    url_infos = None  # nothing is downloaded; TFDS looks for them by a package it does not require

    def __init__(self, folder: Path, features: Any, examples: Iterable[Mapping[str, Any]]) -> None:
        self._features = features
        self._examples = examples
        super().__init__(data_dir=folder)

    def _info(self) -> Any:
        return tfds.core.DatasetInfo(builder=self, features=self._features)

    def _split_generators(self, _manager: Any) -> dict[str, Any]:
        return {"train": self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        return enumerate(self._examples)


def write_rows(folder: Path, rows: Iterable[Mapping[str, Any]], fields: Sequence[Field]) -> int:
    """Writes `rows` into `folder`; returns how many TFDS says there are."""
    features = {field.name: _feature(field) for field in fields}
    return _write(folder, tfds.features.FeaturesDict(features), rows)


def write_images(folder: Path, classes: Mapping[str, Sequence[Path]]) -> int:
    """Writes image files by class, their bytes as they are; returns how many."""
    features = tfds.features.FeaturesDict(
        {
            "image": tfds.features.Image(encoding_format="jpeg"),
            "label": tfds.features.ClassLabel(names=sorted(classes)),
        }
    )
    examples = (
        {"image": path, "label": name} for name in sorted(classes) for path in classes[name]
    )
    return _write(folder, features, examples)


def _feature(field: Field) -> Any:
    dtype = DTYPES[field.kind]
    if field.is_ragged:
        return tfds.features.Sequence(tfds.features.Scalar(dtype))
    return tfds.features.Tensor(shape=field.shape, dtype=dtype)


def _write(folder: Path, features: Any, examples: Iterable[Mapping[str, Any]]) -> int:
    builder = _Builder(folder, features, examples)
    with contextlib.redirect_stdout(io.StringIO()):  # it says where things are
        builder.download_and_prepare(file_format="tfrecord")
    return int(builder.info.splits["train"].num_examples)
