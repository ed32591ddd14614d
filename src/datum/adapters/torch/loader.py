"""A loader of PyTorch tensors, which a DataLoader takes too."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from datum._optional import require
from datum.adapters.torch.processes import Rank, find_worker, is_worker
from datum.adapters.torch.shipping import to_shipped
from datum.adapters.torch.tensors import to_pinned, to_tensors
from datum.loading import Loader, LoadOptions
from datum.loading.checks import check_kind
from datum.loading.ordered import Ordered
from datum.loading.state import Progress

__all__ = ["TorchLoader", "make_loader"]

torch: Any = require("torch", purpose="`to_torch`")


def make_loader(
    ordered: Ordered, options: LoadOptions, *, pin_memory: bool | None = None
) -> TorchLoader:
    """The loader that `Dataset.to_torch` and `Mix.to_torch` give."""
    return TorchLoader(ordered, options, pin_memory=pin_memory)


class TorchLoader(Loader, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches as dicts of tensors, made ahead by threads: an IterableDataset.

    Iterated over as it is, or by `DataLoader(loader, batch_size=None, num_workers=n)`, it gives
    the same batches in the same order. Of several ranks of `torch.distributed` each gets its part
    of every batch.

    A worker is given the epoch when it is started, and from then on goes to the next one with
    every pass, also after one that was broken off. So call `set_epoch` before each pass, unless
    the workers are persistent. `report` tells of what this process has read; workers warn of
    damage that they skip.

    Args:
        ordered: the records, and their order.
        options: what is asked for.
        pin_memory: whether tensors lie in memory that a GPU copies from by itself. None is where
            there is CUDA. In workers of a DataLoader it is the DataLoader's own `pin_memory` that
            counts.
    """

    def __init__(
        self, ordered: Ordered, options: LoadOptions, *, pin_memory: bool | None = None
    ) -> None:
        if pin_memory is not None:
            check_kind("pin_memory", pin_memory, bool, "True, False or None")
        super().__init__(ordered, options, find_host=Rank(), find_worker=find_worker)
        self.pin_memory = pin_memory

    def with_records(self, ordered: Ordered) -> TorchLoader:
        """A loader of other records that is like this one in all else."""
        return make_loader(ordered, self.options, pin_memory=self.pin_memory)

    def _batches(self, begin: Progress) -> Iterator[Any]:
        self._convert = self._find_convert()
        yield from super()._batches(begin)
        if self.report.skipped and is_worker():
            warnings.warn(f"split {self.ordered.name!r}: {self.report}", stacklevel=2)

    def _find_convert(self) -> Callable[[Any], Any]:
        """What makes a batch of tensors in this process."""
        if is_worker():
            return to_shipped
        has_gpu = torch.cuda.is_available() if self.pin_memory is None else self.pin_memory
        return _to_pinned_tensors if has_gpu else to_tensors


def _to_pinned_tensors(batch: Any) -> Any:
    return to_pinned(to_tensors(batch))
