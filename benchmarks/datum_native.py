"""Datum's native loader: batches of NumPy arrays and of PyTorch tensors."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import datum
from benchmarks.datum_side import columns_of, length_of
from benchmarks.reader import Reader
from benchmarks.workloads import Workload

Batches = Callable[[], Iterator[dict[str, Any]]]


def numpy_reader(**options: Any) -> Reader[dict[str, Any]]:
    """`to_numpy` with these options."""

    def prepare(workload: Workload, paths: Sequence[Path]) -> Batches:
        (folder,) = paths
        dataset = datum.load(folder)
        return lambda: iter(dataset.to_numpy("train", batch_size=workload.batch_records, **options))

    return Reader(prepare, length_of, columns_of)


def torch_reader(*, has_workers: bool) -> Reader[dict[str, Any]]:
    """`to_torch` in this process, or in a DataLoader with two workers."""
    from benchmarks import torch_batches

    def prepare(workload: Workload, paths: Sequence[Path]) -> Batches:
        (folder,) = paths
        loader = torch_loader(folder, workload.batch_records, has_workers=has_workers)
        return partial(iter, loader)

    return Reader(prepare, torch_batches.length_of, torch_batches.columns_of)


def torch_loader(folder: Path, batch_size: int, *, has_workers: bool, **options: Any) -> Any:
    """Batches of tensors, fully shuffled."""
    from benchmarks import torch_batches

    loader = datum.load(folder).to_torch("train", batch_size=batch_size, shuffle=True, **options)
    return torch_batches.in_workers(loader, batch_size=None) if has_workers else loader
