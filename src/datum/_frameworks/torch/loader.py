"""Loader of PyTorch tensors, alone or within a DataLoader and its workers."""

from __future__ import annotations

import inspect
import os
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from datum._frameworks.torch.tensors import TOOLS, to_own_tensors, to_pinned, to_shipped, to_tensors
from datum._load.loader import Loader
from datum._load.options import LoadOptions
from datum._load.stream import Ordered, PassProgress, Place, Stream
from datum._optional import require
from datum._options import check_kind
from datum.errors import Message, StateError

__all__ = [
    "Passes",
    "Rank",
    "TorchLoader",
    "find_base_seed",
    "find_collation",
    "find_worker",
    "is_shared_out",
    "is_starting_workers",
    "is_worker",
    "make_loader",
]

torch: Any = require("torch", purpose="`to_torch`")


Share = tuple[int, int]  # index and count

# The table of passes in shared memory.
_BASES = 31  # rows for DataLoaders that run at the same time, more than anyone starts
_MAIN = _BASES  # the row of the main process
_WIDTH = 6
_MAX_WORKERS = 1024
_MAX_TORN_READS = 1000  # far more than it takes to write a row
_PLACED, _BEGUN, _BEGUN_BY_WORKERS = 1, 2, 3  # kinds of rows

# Methods by which Accelerate and Trainer read all records, which they distribute themselves.
# (`num_examples` asks for the records of all processes.)
_SHARERS = frozenset(
    f"{name}.{method}"
    for name in ("DataLoaderDispatcher", "IterableDatasetShard")
    for method in ("__iter__", "__len__", "_fetch_batches")
) | {"Trainer.num_examples"}


def make_loader(
    ordered: Ordered, options: LoadOptions, *, pin_memory: bool | None = None
) -> TorchLoader:
    """Make the loader that `Dataset.to_torch` and `Mix.to_torch` return."""
    return TorchLoader(ordered, options, pin_memory=pin_memory)


class TorchLoader(Loader, torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches as dicts of tensors, made ahead by threads: an IterableDataset.

    It yields the same batches in the same order by itself and within
    `DataLoader(loader, batch_size=None, num_workers=n)`. With `torch.distributed`, each rank gets
    its part of every batch. Where Accelerate or a Trainer distributes what one rank reads, that
    rank reads all.

    Each pass is the next epoch, also in workers, and after a pass that was interrupted. `report`
    covers what this process has read; workers warn of damage that they skip.

    Args:
        ordered: The records and their order.
        options: The options of `to_torch`.
        pin_memory: Whether tensors are in memory that a GPU copies from by itself. None means
            where CUDA is available. Within a DataLoader with workers, its own `pin_memory` counts.
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
        self._placed_in = 0  # the process in which the program chose the start

    def with_records(self, ordered: Ordered) -> TorchLoader:
        """Make a loader of other records with the same options."""
        return make_loader(ordered, self.options, pin_memory=self.pin_memory)

    def lightning_callback(self) -> Any:
        """A callback for `lightning.Trainer`, to resume an epoch with another number of processes.

        Lightning counts the batches of an epoch and continues with the number that was saved. With
        more processes an epoch has fewer batches, so it would end too early. The callback sets the
        number to that of the current number of processes. If that has not changed, it does nothing.
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
                self._move_to(PassProgress(stream.next_pass(last)))
        elif not self._is_placed_here():
            worker = find_worker()
            place = self._passes.next_start(find_base_seed(), worker[0], stream.next_pass)
            self._move_to(PassProgress(place, worker))
        return super().__iter__()

    def _refuse_collation(self) -> None:
        """Raise ValueError for a DataLoader that makes batches of batches."""
        if self.options.batch_size is not None and find_collation() is not None:
            raise ValueError(
                Message(
                    f"split {self.ordered.name!r}: expected a DataLoader with batch_size=None,"
                    f" since the loader returns batches of {self.options.batch_size} already; got"
                    " one that batches them again",
                    hint="DataLoader(loader, batch_size=None); or to_torch(batch_size=None) for"
                    " single records, which the DataLoader batches",
                )
            )

    def set_epoch(self, epoch: int) -> None:
        """Start the next iteration with this epoch, also in workers that are already running."""
        if self._passes.begun_by_workers() is not None:
            self._is_placed = False  # the last request was fulfilled
        super().set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        hint = ""
        if name == "dataset":  # used by libraries that skip batches by reading them
            hint = (
                "a loader resumes at once with `load_state_dict`; Trainer resumes with"
                " train_dataset=ds.to_torch(..., batch_size=None)"
            )
        raise AttributeError(
            Message(f"{type(self).__name__!r} object has no attribute {name!r}", hint=hint)
        )

    def _start_at(self, progress: PassProgress) -> None:
        super()._start_at(progress)
        self._placed_in = os.getpid()
        if not is_worker():
            self._passes.set_next(progress.start)

    def _is_placed_here(self) -> bool:
        """Whether the start was set in this very process, as torchdata does in workers."""
        return self._is_placed and self._placed_in == os.getpid()

    def _warn_of_short_batches(self, stream: Stream, place: Place) -> None:
        is_short = min(stream.last_batches(place)) < stream.batch_size
        if is_short and find_worker()[0] == 0 and self._passes.is_first_to_warn():
            super()._warn_of_short_batches(stream, place)

    def _current(self) -> PassProgress:
        if not is_worker() and self._passes.begun_by_workers() is not None:
            raise StateError(
                "only the workers of a DataLoader know how far they have read",
                where=f"split {self.ordered.name!r}",
                hint="loader.state_dict(batches=n), with the number of batches taken in this pass;"
                " or torchdata's StatefulDataLoader, whose own state_dict asks its workers",
            )
        return super()._current()

    def _pass_start(self) -> Place:
        last = None if is_worker() else self._passes.begun_by_workers()
        return super()._pass_start() if last is None else last

    def _batches(self, begin: PassProgress) -> Iterator[Any]:
        if is_worker():
            self._passes.take(find_base_seed(), find_worker()[0], begin.start)
        else:
            self._passes.begin(begin.start)
        self._convert = self._find_convert()
        yield from super()._batches(begin)
        if self.report.skipped and is_worker():
            first, *more = str(self.report).split("\n")
            warning = Message(first, where=f"split {self.ordered.name!r}", details=more)
            warnings.warn(warning, stacklevel=2)

    def _find_convert(self) -> Callable[[Any], Any]:
        """The function that makes tensors of a batch in this process."""
        if self.options.batch_size is None:  # a DataLoader pins the batches that it makes
            return to_own_tensors if is_worker() else to_tensors
        if is_worker():
            return to_shipped
        has_gpu = torch.cuda.is_available() if self.pin_memory is None else self.pin_memory
        return _to_pinned_tensors if has_gpu else to_tensors


def _to_pinned_tensors(batch: Any) -> Any:
    return to_pinned(to_tensors(batch))


# The processes of PyTorch.


def is_worker() -> bool:
    """Whether this process is a worker of a DataLoader."""
    return torch.utils.data.get_worker_info() is not None


def find_worker() -> Share:
    """Index of this worker of a DataLoader, and number of workers."""
    info = torch.utils.data.get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def find_base_seed() -> int:
    """The seed that all workers of one iteration of a DataLoader share; only in a worker."""
    info = torch.utils.data.get_worker_info()
    base: int = info.seed - info.id
    return base


class Rank:
    """The rank of this process and the number of processes, once there is a process group.

    A process that was started with a loader, such as a worker of a DataLoader, has no process
    group: its rank is that of the process that the loader comes from. Where another library
    distributes what it reads, there is only one rank.
    """

    __slots__ = ("_is_shared_out", "_origin")

    def __init__(self, origin: Share | None = None) -> None:
        self._origin = origin
        self._is_shared_out = False

    def __call__(self) -> Share:
        """Return the rank and the number of ranks; (0, 1) without a process group."""
        return self._find() or (0, 1)

    def look(self) -> None:
        """Check, as an iteration starts, whether another library distributes the records."""
        self._is_shared_out = is_shared_out()

    def _find(self) -> Share | None:
        if self._is_shared_out or is_shared_out():
            return 0, 1
        group = torch.distributed
        if group.is_available() and group.is_initialized():
            return group.get_rank(), group.get_world_size()
        return self._origin

    def __reduce__(self) -> tuple[Any, ...]:
        return Rank, (self._find(),)  # pickled, it goes to another process


# The passes of all processes.


@dataclass(frozen=True, slots=True)
class _Row:
    """One pass: its number among all, the kind of its start, and the place."""

    number: int
    base: int
    kind: int
    place: Place

    def numbers(self) -> list[int]:
        row = [self.number, self.base, self.kind, self.place.epoch, self.place.position]
        return [*row, hash(tuple(row))]  # the same in every process, since all are integers


_alive: weakref.WeakSet[Passes] = weakref.WeakSet()


class Passes:
    """The passes over the records that processes have started, or must start.

    A DataLoader starts new workers for each pass, from a loader that knows nothing of the passes of
    earlier workers. So a table in shared memory holds them. All workers of one iteration have the
    same base seed, and those of the next one have another. The first worker with a new base seed
    reads where the last pass started, and starts the pass after it; the others read what it wrote.
    No lock is needed: two workers at the same time read the same, and write the same.
    """

    def __init__(self, table: Any = None) -> None:
        is_new = table is None
        if table is None:
            table = torch.zeros((_BASES + 2) * _WIDTH + _MAX_WORKERS, dtype=torch.int64)
        self._hold(table if table.is_shared() else table.share_memory_())
        if is_new:
            self.set_next(Place())
        _alive.add(self)

    def _hold(self, table: Any) -> None:
        self._table = table
        numbers = table.numpy()
        self._rows = numbers[: (_BASES + 1) * _WIDTH].reshape(-1, _WIDTH)
        self._flags = numbers[(_BASES + 1) * _WIDTH : (_BASES + 2) * _WIDTH]
        self._taken = numbers[(_BASES + 2) * _WIDTH :]  # the last pass that each worker took

    def __reduce__(self) -> tuple[Any, ...]:
        # A spawned worker shares the memory; any other copy becomes independent.
        return Passes, (self._table if is_starting_workers() else self._table.clone(),)

    def part(self) -> None:
        """Become independent of other processes."""
        self._hold(self._table.clone().share_memory_())

    # In the main process.

    def set_next(self, place: Place) -> None:
        """Set the start of the next pass, in whatever process it runs."""
        self._write(_MAIN, _Row(self._next_number(), 0, _PLACED, place))

    def begin(self, place: Place) -> None:
        """Record that the main process itself has started a pass."""
        self._write(_MAIN, _Row(self._next_number(), 0, _BEGUN, place))

    def begun_by_workers(self) -> Place | None:
        """The place where workers started the last pass; None if the main process started it."""
        last = max(self._read(), key=lambda row: row.number)
        return last.place if last.kind == _BEGUN_BY_WORKERS else None

    # In a worker.

    def next_start(self, base: int, worker: int, following: Callable[[Place], Place]) -> Place:
        """The place where the workers with a base seed start.

        Args:
            base: Seed that all workers of an iteration share.
            worker: Index of this worker.
            following: Computes where the pass after another one starts.
        """
        rows = self._read()
        joined = self._joined(rows, base, worker)
        if joined is not None:
            return joined.place
        last = max(rows, key=lambda row: row.number)
        return last.place if last.kind == _PLACED else following(last.place)

    def take(self, base: int, worker: int, place: Place) -> None:
        """Record that a worker has started a pass at a place."""
        rows = self._read()
        joined = self._joined(rows, base, worker)
        if joined is None or joined.place != place:
            number = max(row.number for row in rows) + 1
            joined = _Row(number, base, _BEGUN_BY_WORKERS, place)
            self._write(base % _BASES, joined)
        self._taken[worker % _MAX_WORKERS] = joined.number

    def _joined(self, rows: list[_Row], base: int, worker: int) -> _Row | None:
        """The current pass of other workers of the same iteration, if there is one.

        A pass that this worker has taken before is over, and so is one from before the main process
        set another place: workers that outlast a pass keep their seed.
        """
        main = max(row.number for row in rows if row.kind != _BEGUN_BY_WORKERS)
        for row in rows:
            if row.kind == _BEGUN_BY_WORKERS and row.base == base and row.number > main:
                is_over = self._taken[worker % _MAX_WORKERS] == row.number
                return None if is_over else row
        return None

    def is_first_to_warn(self) -> bool:
        """Whether no process has warned yet; true once."""
        is_first = not self._flags[0]
        self._flags[0] = 1
        return is_first

    # The table.

    def _next_number(self) -> int:
        return max((row.number for row in self._read()), default=0) + 1

    def _write(self, at: int, row: _Row) -> None:
        self._rows[at] = row.numbers()

    def _read(self) -> list[_Row]:
        """All rows, after those that are being written."""
        for _ in range(_MAX_TORN_READS):
            found, is_torn = [], False
            for number, base, kind, epoch, position, check in self._rows.tolist():
                row = _Row(number, base, kind, Place(epoch, position))
                if not number:
                    continue
                if row.numbers()[-1] == check:
                    found.append(row)
                else:
                    is_torn = True
            if not is_torn:
                break
            time.sleep(0.0001)
        return found


def _part_all() -> None:
    """Make the passes of a forked process independent, unless it is a worker."""
    if not is_starting_workers():
        for passes in list(_alive):
            passes.part()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_part_all)


# The callers of a loader, which an `IterableDataset` learns of from the stack alone.


def _callers() -> Iterator[FrameType]:
    frame = inspect.currentframe()
    while frame is not None:
        yield frame
        frame = frame.f_back


def find_collation() -> Any:
    """The function with which the calling DataLoader makes batches; None if it makes none.

    A function of the program itself is trusted to expect batches.
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
    """Whether the caller distributes what it reads to all processes, as Accelerate does.

    A forked worker still has the callers of the process that it comes from.
    """
    return any(frame.f_code.co_qualname in _SHARERS for frame in _callers())


def is_starting_workers() -> bool:
    """Whether a DataLoader, also that of torchdata, is starting its workers now."""
    end = "MultiProcessingDataLoaderIter.__init__"
    return any(frame.f_code.co_qualname.endswith(end) for frame in _callers())
