"""TFDS's way to load a dataset: `as_dataset` with its defaults, files shuffled."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tensorflow_datasets as tfds

from benchmarks.loader import TFDS
from benchmarks.workloads import Workload


def _load(workload: Workload, folder: Path) -> Any:
    # its own `batch_size` would pad lists with zeros
    records = tfds.builder_from_directory(folder).as_dataset(split="train", shuffle_files=True)
    is_ragged = any(field.is_ragged for field in workload.fields)
    batch = records.ragged_batch if is_ragged else records.batch
    return batch(workload.batch_records).prefetch(tf.data.AUTOTUNE)


LOADERS = {TFDS: _load}
