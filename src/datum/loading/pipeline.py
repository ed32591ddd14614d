"""Batches made in order by threads, from records that are read ahead."""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from datum.errors import Message
from datum.format.layout import stand_in
from datum.loading.caching import RecordCache
from datum.loading.casting import find_casts
from datum.loading.decoding import Decoders, find_decoders
from datum.loading.fetching import ColumnCache, ColumnSource, Fetcher
from datum.loading.finishing import Finisher
from datum.loading.job import BatchJob
from datum.loading.making import Finished, Work
from datum.loading.mapping import FrameworkTools, UserFunction
from datum.loading.options import LoadOptions
from datum.loading.padding import Padder
from datum.loading.pool import Pool
from datum.loading.randomness import GlobalRandomness
from datum.loading.stream import BatchPlan
from datum.schema import Schema

__all__ = ["ColumnSource", "Finished", "Pipeline"]

# Enough for the threads to share a batch, and to make little of what each piece costs.
PIECE_IMAGES = 8
PIECE_LISTS = 1  # records that hold many images
PIECE_RECORDS = 64


class Pipeline:
    """Makes batches of the records that plans name, in the order of the plans.

    Where nothing is done to single records in Python, `take` itself makes the batch of what the
    source has read and parsed ahead, and there is no Python thread. Otherwise a pool of threads
    decodes images and calls functions, for all batches that were submitted, whether or not anybody
    waits for them. Memory is that of the batches submitted and not yet taken.

    The threads end with `close`, when nobody holds the pipeline any more, and at the end of the
    program. A forked child cannot use it.

    Args:
        source: reads and parses the records; closed by `close`.
        schema: what it reads.
        options: what is to be done.
        threads: how many threads there are; with 0 all is done within `take`.
        cache: where records are kept from one pipeline to the next, for `options.cache`.
        finisher: makes columns of what the source returns; None for those of NumPy.
        tools: what the framework has for functions of the user.
        randomness: the generators of the program. Where functions draw from them, all is done
            within `take`; the first batch tells whether they do.
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
            weakref.finalize(self, self._pool.stop).atexit = False  # the pool has its own

    def make(self, plans: Iterator[BatchPlan]) -> Iterator[Finished]:
        """Make the batches of all plans in order, as many ahead as keep every thread busy."""
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
        """Start to make a batch; never waits for it."""
        self._check_open()
        job = BatchJob(self._work, plan, piece_records=self._piece)
        self._jobs.append(job)
        if self._pool is not None:
            self._pool.add(job)

    def take(self) -> Finished:
        """The next batch in the order of submission; raises what went wrong in it.

        An interrupt while it waits leaves the batch to be taken again.
        """
        self._check_open()
        if not self._jobs:
            raise IndexError("expected a batch that was submitted, got none left to take")
        job = self._jobs[0]
        if self._pool is None:
            job.run_all()
            self._settle(job)
        job.wait()
        with suppress(IndexError):  # closed meanwhile: by another thread, or a user's function
            self._jobs.popleft()
        return job.result()

    def _settle(self, job: BatchJob) -> None:
        """After the first batch: go on with threads, unless functions need the program's own."""
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
                    "expected a loader to be iterated in the process that started to, got a"
                    " forked one",
                    hint="start an iteration of its own there",
                )
            )
        if self._is_closed:
            raise RuntimeError("expected a loader that is open, got one that was closed")

    def close(self) -> None:
        """Drop what is not taken, and end every thread; may be called more than once."""
        if self._process != os.getpid():
            return  # the threads are the parent's, and so are the locks
        self._is_closed = True
        if self._pool is not None:
            self._pool.stop()
        # Before the threads are waited for: they leave the records that they have not come to.
        for job in list(self._jobs):  # and for one that waits in another thread
            job.cancel(RuntimeError("expected a loader that is open, got one that was closed"))
        if self._pool is not None:
            self._pool.join()
        self._jobs.clear()
        self._pool = None
        self._source.close()


def _ahead(threads: int, batch_size: int, piece: int | None) -> int:
    """A thread works on a batch of its own, unless batches are shared out in pieces."""
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
    """What is to be done to each batch, and how many records make a piece of it, if any."""
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
        padder=Padder(
            options.pad,
            None if has_map else finisher.names,
            _shapes_of(schema, decoders),
            bucket_by=options.bucket_by,
        ),
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


def _mapped_by(cache: ColumnCache | None, options: LoadOptions) -> dict[int, Any] | None:
    """Where the results of `map` are kept, if they are."""
    if options.cache_after != "map" or not isinstance(cache, RecordCache):
        return None
    return cache.mapped


def _shapes_of(schema: Schema, decoders: Decoders) -> dict[str, tuple[int | None, ...]]:
    """What is known of the shapes of columns: not of those that functions decode."""
    features = {**schema, **decoders.images}
    return {
        name: feature.shape if name in decoders.images else stand_in(feature).shape
        for name, feature in features.items()
        if feature.encoding != "sparse" and name not in decoders.functions
    }
