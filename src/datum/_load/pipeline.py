"""Pipeline that makes batches ahead on threads, in order."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from queue import SimpleQueue
from typing import Any, Protocol

from datum._load.batch import BatchBuilder, ColumnCache, ColumnSource, Fetcher, Finished, Work
from datum._load.cache import RecordCache
from datum._load.collate import Finisher
from datum._load.decode import Decoders, find_decoders
from datum._load.functions import FrameworkTools, GlobalRandomness, UserFunction
from datum._load.options import LoadOptions, find_casts
from datum._load.padding import Padder
from datum._load.stream import BatchPlan, EpochOrder
from datum._read.numbered import NumberedRecords
from datum.errors import Message
from datum.format.layout import stand_in
from datum.schema import Schema

__all__ = [
    "BatchJob",
    "ColumnSource",
    "Finished",
    "Job",
    "Pipeline",
    "Pool",
]


class BatchJob:
    """One batch, made in pieces by any threads; the thread that ends last completes it.

    Args:
        work: The steps of every batch.
        plan: The records of the batch, which are requested at once.
        piece_records: Number of records in a piece; None if no step works on single records.
    """

    def __init__(self, work: Work, plan: BatchPlan, *, piece_records: int | None) -> None:
        self._work = work
        self._plan = plan
        self._size = piece_records
        self.records = count = len(plan.numbers)
        self.pieces = 1 if piece_records is None else max(1, -(-count // piece_records))
        self._request = work.fetcher.submit(plan.numbers)
        self._lock = threading.RLock()  # garbage collection within it may close the pipeline
        self._left = self.pieces
        # Not an Event: an interrupt inside one can leave its lock held for ever.
        self._is_done = False
        self._gate = threading.Lock()  # held until the batch is done
        self._gate.acquire()
        self._failure: tuple[int, BaseException] | None = None  # of the first piece that failed
        self._cancelled: BaseException | None = None
        self._builder: BatchBuilder | None = None
        self._finished: Finished | None = None

    def run(self, piece: int) -> None:
        """Work on one piece; an error is kept for `result`."""
        try:
            builder = self._open(piece)
            if builder is not None and self._size is not None:
                start = piece * self._size
                for row in range(start, min(start + self._size, len(builder))):
                    if self._cancelled is not None:
                        self._fail(piece, self._cancelled)
                        break
                    builder.run(row)
        except BaseException as error:  # of any kind: `result` raises it
            self._fail(piece, error)
        with self._lock:
            self._left -= 1
            is_last = not self._left
        if is_last:
            self._finish()

    def _open(self, piece: int) -> BatchBuilder | None:
        """The builder, made by the first thread; None if an earlier piece has failed."""
        with self._lock:
            if self._failure is not None:
                return self._builder if self._failure[0] > piece else None
            if self._builder is None:
                try:
                    fetched = self._work.fetcher.take(self._request)
                    self._builder = BatchBuilder(self._work, self._plan, self._request, fetched)
                except BaseException as error:
                    self._failure = -1, error
            return self._builder

    def _fail(self, piece: int, error: BaseException) -> None:
        with self._lock:
            if self._failure is None or piece < self._failure[0]:
                self._failure = piece, error

    def _finish(self) -> None:
        if self._failure is None:
            assert self._builder is not None
            try:
                self._finished = self._builder.finish()
            except BaseException as error:
                self._fail(self.pieces, error)
        if self._finished is None or self._finished.batch is not None:
            self._builder = None  # frees the memory before the batch is taken
        self._open_gate()

    def run_all(self) -> None:
        """Run the remaining pieces on this thread."""
        for piece in range(self.pieces - self._left, self.pieces):
            self.run(piece)

    def cancel(self, error: BaseException) -> None:
        """Make `result` raise an error unless the batch is ready."""
        self._cancelled = error  # before the lock, which a thread that fetches columns may hold
        with self._lock:
            if not self._is_done and self._failure is None:
                self._failure = -1, error
        self._open_gate()

    def _open_gate(self) -> None:
        with self._lock:
            if not self._is_done:
                self._is_done = True
                self._gate.release()

    def wait(self) -> None:
        """Wait until the batch is ready or cancelled."""
        while not self._is_done:
            with self._gate:
                pass

    def result(self) -> Finished:
        """Return the batch, or raise its error. Call this once."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure[1]
            finally:
                del failure  # its traceback refers to this frame
        finished, builder = self._finished, self._builder
        assert finished is not None
        if finished.batch is None:  # made here, in order, since it is modelled on those before
            assert builder is not None
            return replace(finished, batch=builder.empty())
        return finished


# How long the program waits at its end for threads inside a function of the user.
MAX_EXIT_S = 5.0

_running: weakref.WeakSet[Pool] = weakref.WeakSet()


class Job(Protocol):
    """Work in pieces that can run at the same time."""

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        ...

    def run(self, piece: int) -> None:
        """Run one piece; must not raise."""
        ...


class Pool:
    """Threads that run pieces in the order in which jobs were added.

    The first job starts them. They refer to the pool and not to its owner, which ends them with
    `stop`. A forked child has none of the threads and must not use the pool.

    Args:
        threads: Number of threads.
        name: Start of the names of the threads.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._count = threads
        self._name = name
        self._threads: list[threading.Thread] = []
        # Unlike a Condition it is written in C, so an interrupt cannot leave a lock held for ever.
        # It is reentrant too: garbage collection may call `stop` at any point.
        self._queue: SimpleQueue[tuple[Job, int] | None] = SimpleQueue()
        self._is_stopped = False

    def add(self, job: Job) -> None:
        """Queue all pieces of a job."""
        if self._is_stopped:
            return
        for piece in range(job.pieces):
            self._queue.put((job, piece))
        if not self._threads:
            self._start()

    def _start(self) -> None:
        _running.add(self)
        for number in range(self._count):
            name = f"{self._name}-{number}"
            # Daemons: the interpreter would wait for other threads before `_stop_all` runs.
            thread = threading.Thread(target=_work, args=(self,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def next_piece(self) -> tuple[Job, int] | None:
        """Wait for a piece; None once the pool is stopped."""
        found = self._queue.get()
        return None if self._is_stopped else found

    def stop(self) -> None:
        """Drop the queue, and end each thread after its current piece."""
        self._is_stopped = True
        for _ in range(self._count):
            self._queue.put(None)  # wakes a thread that waits

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the threads to end, except for the one that calls this.

        Args:
            timeout_s: Longest wait for all threads together; None waits for ever.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if end is None else max(0.0, end - time.monotonic()))


def _work(pool: Pool) -> None:
    while (found := pool.next_piece()) is not None:
        job, piece = found
        job.run(piece)
        del found, job  # a thread that waits must not keep the last batch alive


@atexit.register
def _stop_all() -> None:
    """Stop every thread at the end of the program, before the interpreter clears its modules.

    A generator that is still suspended then closes its pipeline later, when modules are gone.
    """
    for pipeline in list(_open):
        pipeline.end_with_program()
    pools = list(_running)
    for pool in pools:
        pool.stop()
    end = time.monotonic() + MAX_EXIT_S
    for pool in pools:
        pool.join(max(0.0, end - time.monotonic()))


def _forget_all() -> None:
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)


# Small enough for threads to share a batch, large enough to make the cost of a piece small.
PIECE_IMAGES = 8
PIECE_LISTS = 1  # records that hold many images
PIECE_RECORDS = 64
PLANS_PER_EPOCH = 64  # how often it is told which shards are needed next
AHEAD_GROWTH = 4  # records fetched ahead for each that was given: the first do not wait for many


class Pipeline:
    """Makes the batches of plans, in the order of the plans.

    If no step works on single records in Python, `take` makes the batch from columns that the
    source has read and parsed ahead, and there is no Python thread. Otherwise a pool of threads
    decodes images and calls functions for all submitted batches. Memory is that of the batches
    submitted and not yet taken.

    The threads end with `close`, when the pipeline has no reference, and at the end of the
    program. A forked child cannot use it.

    Args:
        source: Reads and parses the records; closed by `close`.
        schema: Schema of the records.
        options: Options of the loader.
        threads: Number of threads; with 0 `take` does all the work.
        cache: Cache of records that outlasts the pipeline, for `options.cache`.
        finisher: Makes batch columns of parsed ones; None for NumPy columns.
        tools: Support of the framework for functions of the user.
        randomness: The generators of the program. If functions draw from them, `take` does all
            the work. Whether they do is known after the first batch.
    """

    def __init__(
        self,
        source: ColumnSource,
        schema: Schema,
        options: LoadOptions,
        *,
        threads: int,
        cache: ColumnCache | None = None,
        finisher: Finisher | None = None,
        tools: FrameworkTools | None = None,
        randomness: GlobalRandomness | None = None,
    ) -> None:
        self._source = source
        self._process = os.getpid()
        self._jobs: deque[BatchJob] = deque()
        self._is_closed = False
        _open.add(self)
        self._work, self._piece = _plan_work(
            source, schema, options, cache, finisher, tools, randomness
        )
        self._batches_ahead = options.prefetch or _ahead(threads, options.plan_records, self._piece)
        self._threads = threads
        self._pool: Pool | None = None
        functions = [one for one in (self._work.map, self._work.batch_map) if one is not None]
        may_draw = randomness is not None and any(one.may_draw for one in functions)
        self._randomness = randomness if may_draw else None
        if self._randomness is None or self._randomness.is_drawn is False:
            self._start_pool()

    def _start_pool(self) -> None:
        if self._threads and (self._piece is not None or self._work.batch_map is not None):
            self._pool = Pool(self._threads, "datum-load")
            weakref.finalize(self, self._pool.stop).atexit = False  # `_stop_all` does that

    def make(
        self, plans: Iterator[BatchPlan], order: EpochOrder | None = None
    ) -> Iterator[Finished]:
        """Yield the batches of all plans, made far enough ahead to keep every thread busy.

        Where records lie in an object store, `order` tells which shards are needed again soon.
        """
        if isinstance(self._source, NumberedRecords) and self._source.is_remote:
            plans = _announce(plans, self._source, order)
        pending = 0
        for plan in islice(plans, self._batches_ahead):
            self.submit(plan)
            pending += 1
        while pending:
            finished = self.take()
            pending -= 1
            for plan in islice(plans, 1):
                self.submit(plan)
                pending += 1
            yield finished

    def submit(self, plan: BatchPlan) -> None:
        """Start to make a batch, without waiting for it."""
        self._check_open()
        job = BatchJob(self._work, plan, piece_records=self._piece)
        self._jobs.append(job)
        if self._pool is not None:
            self._pool.add(job)

    def take(self) -> Finished:
        """Return the next batch in the order of submission, or raise its error.

        After an interrupt during the wait, the batch can still be taken.
        """
        self._check_open()
        if not self._jobs:
            raise IndexError(Message("expected a submitted batch to take, got none"))
        job = self._jobs[0]
        if self._pool is None:
            job.run_all()
            self._settle(job)
        job.wait()
        with suppress(IndexError):  # closed meanwhile by another thread or a function of the user
            self._jobs.popleft()
        return job.result()

    def _settle(self, job: BatchJob) -> None:
        """Start the threads after the first batch, unless functions draw from global generators."""
        if self._randomness is None or self._randomness.is_drawn is not None or not job.records:
            return
        self._randomness.settle()
        if not self._randomness.is_drawn:
            self._start_pool()
            for other in list(self._jobs)[1:]:
                if self._pool is not None:
                    self._pool.add(other)

    def _check_open(self) -> None:
        if self._process != os.getpid():
            raise RuntimeError(
                Message(
                    "expected an iteration to continue in the process that started it, got a"
                    " fork of that process",
                    hint="start a new iteration there",
                )
            )
        if self._is_closed:
            raise RuntimeError("expected an open loader, got a closed one")

    def close(self) -> None:
        """Drop batches that are not taken and end all threads; may be called more than once."""
        if self._is_closed or self._process != os.getpid():
            return  # in a forked process, threads and locks belong to the parent
        self._is_closed = True
        if self._pool is not None:
            self._pool.stop()
        # Before the join: threads skip the records they have not reached, and a thread that waits
        # in `take` wakes up.
        for job in list(self._jobs):
            job.cancel(RuntimeError("expected an open loader, got a closed one"))
        if self._pool is not None:
            self._pool.join()
        self._jobs.clear()
        self._pool = None
        self._source.close()

    def end_with_program(self) -> None:
        """Make `close` do nothing: the program is ending, and its threads are stopped anyway."""
        self._is_closed = True


# What `_stop_all` ends.
_open: weakref.WeakSet[Pipeline] = weakref.WeakSet()


def _announce(
    plans: Iterator[BatchPlan], source: NumberedRecords, order: EpochOrder | None
) -> Iterator[BatchPlan]:
    """The same plans; the records of those to come are fetched ahead, more and more of them."""
    waiting: deque[BatchPlan] = deque()
    ahead, given = 0, 0
    step = -(-order.records // PLANS_PER_EPOCH) if order is not None else 0
    due = (-1, 0)
    for plan in plans:
        if order is not None and (plan.epoch, plan.start) >= due:
            source.plan(order.numbers, order.records, plan.epoch, plan.start)
            due = (plan.epoch, plan.start + step)
        source.announce(plan.numbers)
        waiting.append(plan)
        ahead += len(plan.numbers)
        while waiting and ahead > min(source.ahead_records, AHEAD_GROWTH * given):
            ahead -= len(waiting[0].numbers)
            given += len(waiting[0].numbers)
            yield waiting.popleft()
    yield from waiting


def _ahead(threads: int, batch_size: int, piece: int | None) -> int:
    """Number of batches made ahead: one for each thread, fewer if threads share batches."""
    busy = threads if piece is None else -(-threads * piece // batch_size)
    return min(busy, threads) + 2


def _plan_work(
    source: ColumnSource,
    schema: Schema,
    options: LoadOptions,
    cache: ColumnCache | None,
    finisher: Finisher | None,
    tools: FrameworkTools | None,
    randomness: GlobalRandomness | None,
) -> tuple[Work, int | None]:
    """The steps of each batch, and the number of records in a piece of it, if it has pieces."""
    decoders = find_decoders(schema, options)
    if finisher is None:
        casts = find_casts(options.cast, schema, options.decode)
        finisher = Finisher(schema, encoded=decoders.images, casts=casts)
    has_map = options.map is not None
    given: Any = {"seed": options.seed, "tools": tools, "randomness": randomness}
    fetcher = Fetcher(source, finisher, decoders.images, cache=cache, is_stacked=not has_map)
    work = Work(
        source=source,
        fetcher=fetcher,
        finisher=finisher,
        functions=decoders.functions,
        map=options.map and UserFunction("map", options.map, **given),
        batch_map=options.batch_map and UserFunction("batch_map", options.batch_map, **given),
        padder=_make_padder(options, schema, decoders, finisher) if options.pad else None,
        skips_damage=options.on_error == "skip",
        is_padded=options.remainder == "pad",
        supervised=options.supervised,
        mapped=_mapped_by(cache, options),
    )
    if tools is not None:
        work.stack = tools.stack
    if any(feature.holds_images for feature in decoders.images.values()):
        return work, PIECE_LISTS
    if decoders.images:
        return work, PIECE_IMAGES
    return work, PIECE_RECORDS if has_map or decoders.functions else None


def _make_padder(
    options: LoadOptions, schema: Schema, decoders: Decoders, finisher: Finisher
) -> Padder:
    names = finisher.names if options.map is None else None
    return Padder(options.pad, names, _shapes_of(schema, decoders), bucket_by=options.bucket_by)


def _mapped_by(cache: ColumnCache | None, options: LoadOptions) -> dict[int, Any] | None:
    """The cached results of `map`, if these are kept."""
    if options.cache_after != "map" or not isinstance(cache, RecordCache):
        return None
    return cache.mapped


def _shapes_of(schema: Schema, decoders: Decoders) -> dict[str, tuple[int | None, ...]]:
    """The known shapes of columns, which leaves out those that functions decode."""
    features = {**schema, **decoders.images}
    return {
        name: feature.shape if name in decoders.images else stand_in(feature).shape
        for name, feature in features.items()
        if feature.encoding != "sparse" and name not in decoders.functions
    }
