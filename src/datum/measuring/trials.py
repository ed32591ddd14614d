"""`to_numpy` with one thing changed, where that may help: advice need not guess then."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace

from datum.format.threads import thread_count
from datum.loading import Loader, LoadOptions
from datum.loading.ordered import order_split
from datum.measuring.advice import (
    CACHED,
    LARGER_BATCHES,
    MORE_THREADS,
    PART_OF_MEMORY,
    larger_batch,
)
from datum.measuring.machine import Machine
from datum.measuring.pictures import ImageSizes
from datum.measuring.sample import Sample
from datum.measuring.stages import batches_of
from datum.measuring.timing import Contender

__all__ = ["trial_contenders"]

MAX_BATCH = 256  # from here on the cost of a batch as such is small
SMALL_IMAGES = 16  # images in a batch; of more, decoding takes the time


def trial_contenders(
    sample: Sample,
    options: LoadOptions,
    *,
    records: int,
    sizes: ImageSizes | None,
    machine: Machine,
) -> Iterator[Contender]:
    """What is worth trying with a split of so many records."""
    memory = PART_OF_MEMORY * (machine.memory_bytes or 0)
    if sizes is not None and records * sizes.bytes <= memory:
        yield _trial(CACHED, sample, replace(options, cache=True))
    most = MAX_BATCH if sizes is None and options.map is None else SMALL_IMAGES
    larger = larger_batch(options.plan_records)
    if options.plan_records <= most and sample.records >= larger:
        yield _trial(LARGER_BATCHES, sample, replace(options, batch_size=larger))
    if options.threads is not None and options.threads < thread_count(None):
        yield _trial(MORE_THREADS, sample, replace(options, threads=None))


def _trial(name: str, sample: Sample, options: LoadOptions) -> Contender:
    @functools.cache
    def run(passes: int) -> Loader:
        asked = replace(options, epochs=passes)
        return Loader(order_split(sample.split, asked), asked)

    return Contender(name, run, batches_of(sample.records, options.plan_records))
