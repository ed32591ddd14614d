"""An order in which records of about the same length come together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum.columns import BytesColumn, Masked, Ragged
from datum.format import Parser
from datum.format.threads import thread_count
from datum.loading.options import LoadOptions
from datum.loading.ordered import Ordered
from datum.loading.stream import EpochOrder
from datum.reading.numbered import NumberedRecords, Taken
from datum.reading.order import key_of

__all__ = ["Bucketed", "LengthReader"]

# Records are sorted by length among those of so many batches: enough for a batch to have about one
# length, few enough for batches of each length to come throughout the epoch.
WINDOW_BATCHES = 64

PIECE_RECORDS = 4096  # whose lengths are read together

Lengths = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class LengthReader:
    """How long a feature is in each of some records: items, or bytes of a text."""

    def __init__(self, ordered: Ordered, name: str, on_error: Literal["raise", "skip"]) -> None:
        feature = ordered.schema[name]
        is_string = feature.encoding != "image" and feature.is_string and not feature.shape
        if not is_string and feature.shape[:1] != (None,):
            raise ValueError(
                f"expected `bucket_by` to name a feature that differs in length, got {name!r}:"
                f" {feature!r}"
            )
        self._name = name
        self._ordered = ordered
        self._on_error = on_error
        self._source = self._open(threads=0)

    def _open(self, threads: int) -> NumberedRecords:
        ordered = self._ordered
        parser = Parser(ordered.schema.select([self._name]))
        return NumberedRecords(ordered.parts, parser, threads=threads, on_error=self._on_error)

    def __call__(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The length of each; 0 for those that are lost or absent."""
        return self._found(self._source.take(self._source.submit(numbers)), len(numbers))

    def _found(self, taken: Taken, count: int) -> NDArray[np.int64]:
        found = _lengths_of(taken.columns[self._name])
        if taken.rows is None:
            return found
        lengths = np.zeros(count, np.int64)
        lengths[taken.rows] = found
        return lengths

    def read_all(self) -> NDArray[np.int32]:
        """The length of every record, by its number; read by threads, a piece at a time."""
        threads = thread_count(None)
        source = self._open(threads)
        lengths = np.zeros(len(source), np.int32)
        waiting: deque[tuple[slice, int]] = deque()

        def take() -> None:
            piece, ticket = waiting.popleft()
            lengths[piece] = self._found(source.take(ticket), piece.stop - piece.start)

        try:
            for first in range(0, len(lengths), PIECE_RECORDS):
                piece = slice(first, min(first + PIECE_RECORDS, len(lengths)))
                waiting.append((piece, source.submit(np.arange(piece.start, piece.stop))))
                if len(waiting) > threads + 1:
                    take()
            while waiting:
                take()
        finally:
            source.close()
        return lengths

    def describe(self, number: int) -> str:
        """Where a record lies, for messages."""
        file, record, _ = self._source.locate(number)
        return f"{file}: record {record}"


def _lengths_of(column: Any) -> NDArray[np.int64]:
    if isinstance(column, Masked):
        return np.where(column.present, _lengths_of(column.values), 0)
    if isinstance(column, Ragged):
        return column.row_lengths
    if isinstance(column, BytesColumn):
        return column.lengths
    return np.array([0 if item is None else len(item) for item in column], np.int64)


class Bucketed:
    """An order whose records are sorted by length within windows, in batches of random order.

    It is an order like any other: each record comes once, whatever the number of workers and
    threads. But it does depend on how many records all hosts together take at once.
    """

    def __init__(
        self, order: EpochOrder, lengths: Lengths, global_batch: int, options: LoadOptions
    ) -> None:
        self._order = order
        self._lengths = lengths
        self._batch = global_batch
        self._seed = options.seed if options.shuffle is not False else None
        self._reshuffles = options.reshuffle
        self._held: tuple[tuple[int, int], NDArray[np.int64]] | None = None

    @property
    def records(self) -> int:
        """How many positions an epoch has."""
        return self._order.records

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        size = self._batch * WINDOW_BATCHES
        windows = positions // size
        found = np.empty_like(positions)
        for window in np.unique(windows).tolist():
            inside = windows == window
            found[inside] = self._window(epoch, window)[positions[inside] - window * size]
        return found

    def _window(self, epoch: int, window: int) -> NDArray[np.int64]:
        if self._held is None or self._held[0] != (epoch, window):
            self._held = (epoch, window), self._sort(epoch, window)
        return self._held[1]

    def _sort(self, epoch: int, window: int) -> NDArray[np.int64]:
        size = self._batch * WINDOW_BATCHES
        stop = min(self.records, (window + 1) * size)
        numbers = self._order.numbers(epoch, np.arange(window * size, stop))
        numbers = numbers[np.argsort(self._lengths(numbers), kind="stable")]
        whole = len(numbers) // self._batch
        if self._seed is None or whole < 2:
            return numbers
        key = key_of(self._seed, epoch if self._reshuffles else 0, "buckets", window)
        batches = _core.permute(np.arange(whole), whole, key)
        cut = whole * self._batch
        mixed = numbers[:cut].reshape(whole, self._batch)[batches].reshape(-1)
        return np.concatenate([mixed, numbers[cut:]])
