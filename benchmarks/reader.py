"""What the benchmark asks of anything that reads a workload into batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks.workloads import Columns, Workload

Batch = TypeVar("Batch")

HAND_WRITTEN = "tf: interleave, batch, parse_example"
SHUFFLED = "tf: the same, shuffled"
BATCHED_INSIDE = "tf: batch inside the interleave"
ONE_BY_ONE = "tf: parse_single_example, batch (TFDS)"
TFRECORD = "tfrecord package"
ONE_THREAD = "datum, 1 thread"
TWO_THREADS = "datum, 2 threads"
LEFT_IN_COLUMN = "datum, 2 threads, bytes left in column"


@dataclass(frozen=True)
class Reader(Generic[Batch]):
    """One way to read a workload.

    `prepare(workload, paths)` may do what a program does once, such as building a graph;
    each call of what it returns begins a pass, and that is what is timed.
    `columns` is for checking and is never timed.
    """

    prepare: Callable[[Workload, Sequence[Path]], Callable[[], Iterator[Batch]]]
    length: Callable[[Batch], int]
    columns: Callable[[Batch], Columns]

    def passes(self, workload: Workload, paths: Sequence[Path]) -> Callable[[], int]:
        """A function that reads everything once and returns the number of records."""
        begin = self.prepare(workload, paths)
        return lambda: sum(self.length(batch) for batch in begin())

    def read(self, workload: Workload, paths: Sequence[Path]) -> list[Columns]:
        """The columns of every batch of one pass."""
        return [self.columns(batch) for batch in self.prepare(workload, paths)()]
