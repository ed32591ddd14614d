"""Loader: an iterable of batches whose position can be saved and restored."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from datum._load.buckets import Bucketed, Budget, LengthReader
from datum._load.cache import RecordCache
from datum._load.functions import FrameworkTools, GlobalRandomness, record_taker
from datum._load.options import LoadOptions, check_seed
from datum._load.pipeline import Finished, Pipeline
from datum._load.stream import (
    MAX_COUNT,
    EpochOrder,
    Ordered,
    PassProgress,
    Place,
    RecordStream,
    Stream,
    check_state,
    check_state_seed,
    to_state,
)
from datum._options import check_count, thread_count
from datum._read.numbered import NumberedRecords
from datum.errors import Damage, Message, count_of
from datum.format import Parser
from datum.schema import Schema

if TYPE_CHECKING:
    from typing import Self

__all__ = [
    "LoadReport",
    "Loader",
    "one_host",
    "one_worker",
]

MAX_LISTED = 1000  # all damage is counted, but a longer list helps nobody


@dataclass(slots=True)
class LoadReport:
    """Counts of the current pass, or of the last one.

    Attributes:
        batches: Number of batches returned.
        records: Number of records in them.
        skipped: Number of damaged records that were skipped.
        damage: The first of these records.
    """

    batches: int = 0
    records: int = 0
    skipped: int = 0
    damage: list[Damage] = field(default_factory=list)

    def add(self, records: int, damage: Iterable[Damage]) -> None:
        """Count one more batch."""
        found = list(damage)
        self.batches += 1
        self.records += records
        self.skipped += len(found)
        self.damage += found[: MAX_LISTED - len(self.damage)]

    def __str__(self) -> str:
        given = (
            f"{count_of(self.records, 'record')} in {count_of(self.batches, 'batch', 'batches')}"
        )
        lines = [f"{given}, {self.skipped:,} skipped"]
        lines += [f"  {damage}" for damage in self.damage[:5]]
        if self.skipped > 5:
            lines.append(f"  and {self.skipped - 5:,} more")
        return "\n".join(lines)


Share = tuple[int, int]


def one_host() -> Share:
    """Index and count for a program that runs alone."""
    return 0, 1


one_worker = one_host


class Loader:
    """Batches of records, made ahead by threads: dicts of NumPy arrays.

    With `batch_size=None` it returns single records instead of batches.

    Each iteration is one pass of `epochs` epochs. It starts after the end of the pass before, even
    if that was interrupted; the first one starts with epoch 0. `state_dict` returns the position
    after the last batch, and `load_state_dict` resumes there at once, with any number of hosts,
    workers and threads.

    Args:
        ordered: The records and their order.
        options: Options of the loader.
        convert: Converts each batch for a framework; None for no change.
        find_host: Returns the index of this host and the number of hosts, unless the options do.
        find_worker: Returns the index and number of the worker processes of this host.
        tools: Support of the framework for functions of the user.
    """

    def __init__(
        self,
        ordered: Ordered,
        options: LoadOptions,
        *,
        convert: Callable[[Any], Any] | None = None,
        find_host: Callable[[], Share] = one_host,
        find_worker: Callable[[], Share] = one_worker,
        tools: FrameworkTools | None = None,
    ) -> None:
        self.options = options
        self.ordered = ordered
        self.schema: Schema = options.selected(ordered.schema)
        self.report = LoadReport()
        self._parser = Parser(self.schema)
        count = sum(len(run) for _, run in ordered.parts)
        self._cache = RecordCache(records=count) if options.cache else None
        has_budget = options.batch_tokens is not None or options.buckets is not None
        self._budget = Budget(ordered, options) if has_budget else None
        self._convert = convert
        self._find_host = find_host
        self._find_worker = find_worker
        self._tools = tools
        self._randomness: GlobalRandomness | None = None
        if options.map is not None or options.batch_map is not None:
            self._randomness = GlobalRandomness(*(tools.generators if tools else ()))
        self._begin = PassProgress()  # where the next iteration starts
        self._begun: PassProgress | None = None  # where the last one started that returned anything
        self._progress = self._begin
        self._is_placed = False  # whether the program chose where the next iteration starts
        self._has_warned = False
        self._open: weakref.WeakSet[Pipeline] = weakref.WeakSet()

    def with_records(self, ordered: Ordered) -> Loader:
        """A loader of other records with the same options."""
        return Loader(
            ordered,
            self.options,
            convert=self._convert,
            find_host=self._find_host,
            find_worker=self._find_worker,
            tools=self._tools,
        )

    # Iterating.

    def __iter__(self) -> Iterator[Any]:
        # Decided here and not at the first batch, because a state may be taken in between. It is
        # the only rule for workers that outlast a pass: they do not know how far the program got.
        if self._begun is self._begin:
            self._move_to(PassProgress(self._next_start(), self._progress.worker))
        self._warn_of_short_batches(self._stream(), self._begin.start)
        return self._batches(self._begin)

    def _next_start(self) -> Place:
        """The start of the iteration after one that was interrupted."""
        stream, progress = self._stream(), self._progress
        place = progress.start
        if self.options.epochs is None and progress.worker[1] == 1:
            place = stream.after(place, max(0, progress.batches - 1))  # that of the last batch
        return stream.next_pass(place)

    def _batches(self, begin: PassProgress) -> Iterator[Any]:
        worker = self._find_worker()
        threads = self.options.threads or max(1, thread_count(None) // worker[1])
        stream = self._stream()
        progress = begin
        if progress.worker != worker:  # the place is that of all workers together
            progress = PassProgress(progress.start, worker)
        self._begun = begin
        self._is_placed = False
        self.report = report = LoadReport()
        self._progress = progress
        pipeline = self._open_pipeline(threads)
        try:
            plans = stream.plans(progress.start, worker=worker, done=progress.batches)
            for finished in pipeline.make(plans, self.ordered.order):
                first = progress.batches
                report.add(finished.records, finished.damage)
                for turn, element in self._elements(finished):
                    progress = self._progress = replace(progress, batches=first + turn)
                    yield element
                progress = replace(progress, batches=first + finished.plan.turns)
                if self._begin is begin:  # no other place was chosen meanwhile
                    self._progress = progress  # also after damaged records
        finally:
            pipeline.close()
        if self._begin is begin:  # no other place was chosen meanwhile
            self._move_to(PassProgress(stream.next_pass(progress.start), worker))

    def _elements(self, finished: Finished) -> Iterator[tuple[int, Any]]:
        """The batch, or each of its records, with its step in the plan."""
        convert = self._convert or (lambda element: element)
        if self.options.batch_size is not None:
            yield 1, convert(finished.batch)
            return
        take = record_taker(finished.batch)
        for row, at in enumerate(finished.rows.tolist()):
            yield at + 1, convert(take(row))

    def _move_to(self, progress: PassProgress) -> None:
        self._begin = self._progress = progress

    def _start_at(self, progress: PassProgress) -> None:
        """Start the next iteration at a place that the program chose."""
        self._move_to(progress)
        self._is_placed = True

    def _stream(self) -> Stream:
        options = self.options
        order: EpochOrder = self.ordered.order
        host = options.host or self._find_host()
        check_seed(options.is_seed_drawn, hosts=host[1])
        remainder = options.remainder_on(host[1])
        if self._budget is not None:
            return self._budget.stream(host, remainder)
        if options.batch_size is None:
            return RecordStream(order, 1, host, remainder, options.epochs)
        if options.bucket_by is not None:
            lengths = LengthReader(self.ordered, options.bucket_by, options.on_error)
            order = Bucketed(order, lengths, options.batch_size * host[1], options)
        return Stream(order, options.batch_size, host, remainder, options.epochs)

    def _warn_of_short_batches(self, stream: Stream, place: Place) -> None:
        """Warn once of short or empty batches: the mean loss of an empty batch is NaN."""
        last = stream.last_batches(place)
        if self._has_warned or len(last) == 1 or min(last) == stream.batch_size:
            return
        self._has_warned = True
        sizes = ", ".join(map(str, last[:16])) + (", ..." if len(last) > 16 else "")
        warnings.warn(
            Message(
                f"remainder='keep' ends each epoch with batches of {sizes} records on hosts 0 to"
                f" {len(last) - 1}, instead of {stream.batch_size}",
                where=f"split {self.ordered.name!r}",
                hint="remainder='wrap' (the default on several hosts), 'drop' and 'pad' have full"
                " batches only",
            ),
            stacklevel=3,
        )

    def _open_pipeline(self, threads: int) -> Pipeline:
        source = NumberedRecords(
            self.ordered.parts, self._parser, threads=threads, on_error=self.options.on_error
        )
        pipeline = Pipeline(
            source,
            self.schema,
            self.options,
            threads=threads,
            cache=self._cache,
            tools=self._tools,
            randomness=self._randomness,
        )
        self._open.add(pipeline)
        return pipeline

    def __len__(self) -> int:
        """Number of batches in a whole pass on this host, whatever the position."""
        count = self._stream().count(Place())
        if count is None:
            raise TypeError(
                Message(f"{self!r}: expected a number of `epochs`, got None, which has no end")
            )
        return count

    @property
    def remaining(self) -> int | None:
        """Number of batches left in the current pass; None without end.

        After `load_state_dict` it is the number of batches of the next iteration, and before the
        first batch of a pass it is `len(loader)`.
        """
        progress = self._current()
        count = self._stream().count(progress.start)
        if count is None:
            return None
        index, workers = progress.worker
        return max(0, -(-(count - index) // workers) - progress.batches)

    def close(self) -> None:
        """End all running iterations and their threads."""
        for pipeline in list(self._open):
            pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # Position.

    def set_epoch(self, epoch: int) -> None:
        """Start the next iteration with this epoch.

        Right after `load_state_dict` with a state of this epoch it changes nothing: a program that
        resumes can call it at the start of every epoch.
        """
        epoch = check_count("epoch", epoch, least=0, most=MAX_COUNT)
        if not (self._is_placed and self._begin.start.epoch == epoch):
            self._start_at(PassProgress(Place(epoch)))

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The position after the last batch, as plain values that fit into JSON.

        Args:
            batches: Number of batches taken since the iteration started. Needed in the main
                process of a DataLoader with workers, since each worker counts its own batches.
        """
        if batches is None:
            progress = self._current()
        else:
            batches = check_count("batches", batches, least=0, most=MAX_COUNT)
            progress = PassProgress(self._pass_start(), batches=batches)
        if progress.worker[1] == 1:
            progress = PassProgress(self._stream().reached(progress.start, progress.batches))
        return to_state(self._identity(), progress)

    def _current(self) -> PassProgress:
        """The progress of this loader."""
        return self._progress

    def _pass_start(self) -> Place:
        """The place where the current pass started."""
        return self._begin.start

    def _identity(self) -> dict[str, Any]:
        """The values that a state must agree with."""
        identity = dict(self.ordered.identity)
        if self._budget is not None:
            identity["order"] += f", {self._budget.describe(self._stream().host[1])}"
        elif self.options.bucket_by is not None:
            size = self._stream().global_batch
            identity["order"] += f", {self.options.bucket_by} sorted for batches of {size}"
        return identity

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Start the next iteration at the position of a state; StateError if it does not fit."""
        where = f"split {self.ordered.name!r}"
        identity = self._identity()
        if self.options.is_seed_drawn:
            identity["seed"] = check_state_seed(state, where)
        progress = check_state(
            state,
            identity,
            records=self.ordered.order.records,
            worker=self._find_worker(),
            where=where,
        )
        if self.options.is_seed_drawn:
            self._take_seed(identity["seed"])
        self._start_at(progress)

    def _take_seed(self, seed: int) -> None:
        """Take over the seed of a state, for a loader that was made with `seed=None`."""
        self.options = replace(self.options, seed=seed)
        self.ordered = self.ordered.with_seed(self.options.seed)
        if self._budget is not None:
            self._budget.take_order(self.ordered, self.options)

    def __getstate__(self) -> dict[str, Any]:
        # Native objects and threads stay with their process.
        return {**vars(self), "_parser": None, "_open": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._parser = Parser(self.schema)
        self._open = weakref.WeakSet()

    def _describe_batches(self) -> str:
        options = self.options
        if options.batch_tokens is not None:
            return f"batches of up to {options.batch_tokens:,} tokens"
        return f"batches of {options.batch_size}" if options.batch_size else "one at a time"

    def __repr__(self) -> str:
        options, place = self.options, self._begin.start
        facts = [
            repr(self.ordered.name),
            f"{self.ordered.order.records:,} records",
            self._describe_batches(),
            f"order {self.ordered.identity['order']}",
            f"seed {options.seed}",
            f"epoch {place.epoch}",
        ]
        if options.host is not None:
            facts.append(f"host {options.host[0]} of {options.host[1]}")
        return f"{type(self).__name__}({', '.join(facts)})"
