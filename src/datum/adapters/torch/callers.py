"""Who iterates over a loader: what a DataLoader, and libraries around one, are about to do with it.

An `IterableDataset` is told nothing of that. It can only look at who calls it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

from datum._optional import require

__all__ = ["find_collation", "is_shared_out", "is_starting_workers"]

# What Accelerate and Trainer read all records by, of which they themselves give each process a
# part. (`num_examples` asks for the records of all processes.)
_SHARERS = frozenset(
    f"{name}.{method}"
    for name in ("DataLoaderDispatcher", "IterableDatasetShard")
    for method in ("__iter__", "__len__", "_fetch_batches")
) | {"Trainer.num_examples"}

torch: Any = require("torch", purpose="`to_torch`")


def _callers() -> Iterator[FrameType]:
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def find_collation() -> Any:
    """The function by which a DataLoader that iterates now makes batches; None if it makes none.

    One that the program gave is trusted to know what it is given.
    """
    for frame in _callers():
        if frame.f_code.co_qualname == "_IterableDatasetFetcher.__init__":
            collate = frame.f_locals.get("collate_fn")
            is_known = collate is torch.utils.data.default_collate
            is_known |= type(collate).__module__.startswith("transformers.")
            is_known |= getattr(collate, "__module__", "").startswith("transformers.")
            return collate if frame.f_locals.get("auto_collation") and is_known else None
    return None


def is_shared_out() -> bool:
    """Whether the caller gives each process its part of what it reads, as Accelerate does.

    A worker that is forked still has the callers of the process it comes from.
    """
    return any(frame.f_code.co_qualname in _SHARERS for frame in _callers())


def is_starting_workers() -> bool:
    """Whether a DataLoader, also that of torchdata, is starting its workers now."""
    end = "MultiProcessingDataLoaderIter.__init__"
    return any(frame.f_code.co_qualname.endswith(end) for frame in _callers())
