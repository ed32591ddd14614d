"""A loader of PyTorch tensors, which a DataLoader takes too."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from datum._optional import require
from datum.adapters.torch.callers import find_collation
from datum.adapters.torch.functions import TOOLS
from datum.adapters.torch.passes import Passes
from datum.adapters.torch.processes import Rank, find_base_seed, find_worker, is_worker
from datum.adapters.torch.shipping import to_shipped
from datum.adapters.torch.tensors import to_own_tensors, to_pinned, to_tensors
from datum.errors import StateError
from datum.loading import Loader, LoadOptions
from datum.loading.checks import check_kind
from datum.loading.ordered import Ordered
from datum.loading.state import Progress
from datum.loading.stream import Place, Stream

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

    Where Accelerate or a Trainer gives each rank its part of what one of them reads, it gives all.

    Each pass is the next epoch, also one that workers make, and after one that was broken off.
    `report` tells of what this process has read; workers warn of damage that they skip.

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
        self._rank = Rank()
        super().__init__(
            ordered, options, find_host=self._rank, find_worker=find_worker, tools=TOOLS
        )
        self.pin_memory = pin_memory
        self._passes = Passes()
        self._told_in = 0  # the process in which the program said where to start

    def with_records(self, ordered: Ordered) -> TorchLoader:
        """A loader of other records that is like this one in all else."""
        return make_loader(ordered, self.options, pin_memory=self.pin_memory)

    def lightning_callback(self) -> Any:
        """A callback for `lightning.Trainer`, to resume an epoch with another number of processes.

        Lightning counts the batches of an epoch, and goes on with the number that was saved. With
        more processes an epoch has fewer, so without this callback it would end too early. The
        callback sets the number to that of the batches which as many processes as there are now
        would have read. With the same number of processes it changes nothing.
        """
        lightning: Any = require("lightning.pytorch", purpose="`lightning_callback`")
        loader = self

        class CountBatches(lightning.Callback):  # type: ignore[misc]
            def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002
                count = trainer.fit_loop.epoch_loop.batch_progress.current
                read = len(loader) - (loader.remaining or 0)
                change = read - count.ready
                for name in ("ready", "started", "processed", "completed"):
                    setattr(count, name, getattr(count, name) + change)

        return CountBatches()

    def __iter__(self) -> Iterator[Any]:
        self._refuse_collation()
        self._rank.look()
        stream = self._stream()
        if not is_worker():
            last = self._passes.begun_by_workers()
            if last is not None:
                self._move_to(Progress(stream.next_pass(last)))
        elif not self._is_told_here():
            worker = find_worker()
            place = self._passes.next_start(find_base_seed(), worker[0], stream.next_pass)
            self._move_to(Progress(place, worker))
        return super().__iter__()

    def _refuse_collation(self) -> None:
        """A DataLoader that makes batches of batches adds a dimension that nobody asked for."""
        if self.options.batch_size is not None and find_collation() is not None:
            raise ValueError(
                f"split {self.ordered.name!r}: expected a DataLoader with batch_size=None, since"
                f" the loader gives batches of {self.options.batch_size} already; got one that"
                " makes batches of them\n"
                "hint: DataLoader(loader, batch_size=None); or to_torch(batch_size=None) for single"
                " records, which a DataLoader makes batches of"
            )

    def set_epoch(self, epoch: int) -> None:
        """Start the next iteration with this epoch; also that of workers which run already."""
        if self._passes.begun_by_workers() is not None:
            self._is_told = False  # what was said last is done
        super().set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if name == "dataset":  # what skips batches by reading them looks for it
            hint = (
                "\nhint: a loader goes on at once by `load_state_dict`; Trainer resumes with"
                " train_dataset=ds.to_torch(..., batch_size=None)"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _start_at(self, progress: Progress) -> None:
        super()._start_at(progress)
        self._told_in = os.getpid()
        if not is_worker():
            self._passes.tell(progress.start)

    def _is_told_here(self) -> bool:
        """Whether it was told in this very process where to start, as torchdata does in workers."""
        return self._is_told and self._told_in == os.getpid()

    def _warn_of_short_batches(self, stream: Stream, place: Place) -> None:
        is_short = min(stream.last_batches(place)) < stream.batch_size
        if is_short and find_worker()[0] == 0 and self._passes.is_first_to_warn():
            super()._warn_of_short_batches(stream, place)

    def _current(self) -> Progress:
        if not is_worker() and self._passes.begun_by_workers() is not None:
            raise StateError(
                f"split {self.ordered.name!r}: workers of a DataLoader have read, and only they"
                " know how far\n"
                "hint: loader.state_dict(batches=n), with the number of batches taken in this pass;"
                " or torchdata's StatefulDataLoader, whose own state_dict asks its workers"
            )
        return super()._current()

    def _pass_start(self) -> Place:
        last = None if is_worker() else self._passes.begun_by_workers()
        return super()._pass_start() if last is None else last

    def _batches(self, begin: Progress) -> Iterator[Any]:
        if is_worker():
            self._passes.take(find_base_seed(), find_worker()[0], begin.start)
        else:
            self._passes.begin(begin.start)
        self._convert = self._find_convert()
        yield from super()._batches(begin)
        if self.report.skipped and is_worker():
            warnings.warn(f"split {self.ordered.name!r}: {self.report}", stacklevel=2)

    def _find_convert(self) -> Callable[[Any], Any]:
        """What makes a batch of tensors in this process."""
        if self.options.batch_size is None:  # pinned, if at all, once a DataLoader has batches
            return to_own_tensors if is_worker() else to_tensors
        if is_worker():
            return to_shipped
        has_gpu = torch.cuda.is_available() if self.pin_memory is None else self.pin_memory
        return _to_pinned_tensors if has_gpu else to_tensors


def _to_pinned_tensors(batch: Any) -> Any:
    return to_pinned(to_tensors(batch))
