"""Datum's way to load a dataset into `tf.data`."""

import os
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import datum
from benchmarks.loader import DATUM, DATUM_OF_TFDS, DATUM_SHUFFLED
from benchmarks.workloads import Workload


def _load(workload: Workload, folder: Path, *, shuffle: bool) -> Any:
    return datum.load(folder).to_tf("train", batch_size=workload.batch_records, shuffle=shuffle)


LOADERS = {
    DATUM: partial(_load, shuffle=False),
    DATUM_SHUFFLED: partial(_load, shuffle=True),
    DATUM_OF_TFDS: partial(_load, shuffle=True),
}
