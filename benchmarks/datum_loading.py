"""Datum's way to load a dataset into `tf.data`."""

import os
from functools import partial
from pathlib import Path
from typing import Any, Literal

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import datum
from benchmarks.loader import (
    AUTO_SHUFFLED,
    DATUM,
    DATUM_OF_TFDS,
    DATUM_SHUFFLED,
    NATIVE,
    NATIVE_SHUFFLED,
)
from benchmarks.workloads import Workload

Engine = Literal["auto", "graph", "native"]


def _load(workload: Workload, folder: Path, *, engine: Engine, shuffle: bool) -> Any:
    dataset = datum.load(folder)
    batch_size = workload.batch_records
    return dataset.to_tf("train", batch_size=batch_size, shuffle=shuffle, engine=engine)


LOADERS = {
    DATUM: partial(_load, engine="graph", shuffle=False),
    DATUM_SHUFFLED: partial(_load, engine="graph", shuffle=True),
    DATUM_OF_TFDS: partial(_load, engine="graph", shuffle=True),
    NATIVE: partial(_load, engine="native", shuffle=False),
    NATIVE_SHUFFLED: partial(_load, engine="native", shuffle=True),
    AUTO_SHUFFLED: partial(_load, engine="auto", shuffle=True),
}
