"""Datasets of numbered records, and what comes out of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import datum


def write_numbers(folder: Path, count: int = 100, **options: Any) -> datum.Dataset:
    """Records 0 to `count`, each with a list of as many items as its last digit."""
    rows = ({"x": number, "items": [number] * (number % 10)} for number in range(count))
    options = {"shuffle": False, "progress": False, "shards": 4, **options}
    datum.write(rows, folder, **options)
    return datum.load(folder)


def numbers(dataset: Any, name: str = "x") -> list[int]:
    """The values of one feature, through all batches."""
    return [int(n) for batch in dataset for n in np.ravel(batch[name].numpy())]


def damage_record(path: Path, number: int, *, at: int = 13) -> None:
    """Flip a bit of a record: of its payload, or with `at` below 12 of its length."""
    offsets = datum.format.RecordFile(path).index.offsets
    data = bytearray(path.read_bytes())
    data[int(offsets[number]) + at] ^= 1
    path.write_bytes(bytes(data))
