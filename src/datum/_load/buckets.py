"""Batches of records of similar length, by bounds or by a budget of tokens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._load.epoch_order import key_of
from datum._load.mix import MixedOrder
from datum._load.options import LoadOptions, Remainder
from datum._load.padding import Pad, find_pad
from datum._load.stream import BatchPlan, EpochOrder, Ordered, Place, Stream
from datum._options import thread_count
from datum._read.numbered import NumberedRecords, ReadResult
from datum.columns import BytesColumn, Masked, Ragged, positions_of
from datum.errors import Message, SplitError
from datum.format import Parser

__all__ = [
    "Bucketed",
    "Budget",
    "BudgetStream",
    "LengthReader",
]

# Number of batches whose records are sorted by length: enough for the records of a batch to have
# about one length, few enough for batches of each length to come throughout the epoch.
WINDOW_BATCHES = 64

PIECE_RECORDS = 4096  # records whose lengths are read together

Lengths = Callable[[NDArray[np.int64]], NDArray[np.int64]]


class LengthReader:
    """Reads the length of a feature in records: its items, or the bytes of a text.

    Args:
        ordered: The records.
        name: Name of the feature.
        on_error: Whether damaged records are skipped, with a length of 0.
    """

    def __init__(self, ordered: Ordered, name: str, on_error: Literal["raise", "skip"]) -> None:
        feature = ordered.schema[name]
        is_string = feature.encoding != "image" and feature.is_string and not feature.shape
        if not is_string and feature.shape[:1] != (None,):
            raise ValueError(
                Message(
                    f"expected `bucket_by` to name a feature of variable length, got {name!r}:"
                    f" {feature!r}"
                )
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
        """The length of each record; 0 if it is damaged or lacks the feature."""
        return self._lengths(self._source.take(self._source.submit(numbers)), len(numbers))

    def _lengths(self, result: ReadResult, count: int) -> NDArray[np.int64]:
        found = _lengths_of(result.columns[self._name])
        if result.rows is None:
            return found
        lengths = np.zeros(count, np.int64)
        lengths[result.rows] = found
        return lengths

    def read_all(self) -> NDArray[np.int32]:
        """Read the length of every record on threads, a piece at a time."""
        threads = thread_count(None)
        source = self._open(threads)
        lengths = np.zeros(len(source), np.int32)
        waiting: deque[tuple[slice, int]] = deque()

        def take() -> None:
            piece, ticket = waiting.popleft()
            lengths[piece] = self._lengths(source.take(ticket), piece.stop - piece.start)

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
        """File and number of a record, for messages."""
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
    """An order that is sorted by length within windows, with the batches in random order.

    Each record comes once, for any number of workers and threads. Unlike other orders it depends on
    the size of the batch of all hosts.

    Args:
        order: The order to sort within windows.
        lengths: Returns the lengths of records.
        global_batch: Number of records in a batch of all hosts.
        options: Options of the loader, for the seed of the order of batches.
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
        """Number of positions in an epoch."""
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


STEPS_PER_OCTAVE = 8  # default bounds: a batch is at most an eighth below its budget
KEPT_LAYOUTS = 2  # that of the current epoch, and of the next, which is read ahead
SHOWN_BOUNDS = 8  # in a state; more of them are replaced by a digest


class Budget:
    """The buckets of records by length, and the number of rows in a batch of each bucket.

    A record belongs to the bucket with the smallest bound that holds it. The batches of a bucket
    have as many rows on each host as fit into `batch_tokens` at that bound, and at most
    `batch_size`. Records that do not fill a batch move up to the next bucket that has any, so only
    the last bucket has a remainder. Only the order of batches differs between epochs.

    The lengths of all records are read once, here. A loader that is sent to other processes takes
    them along.

    Args:
        ordered: The records and their order.
        options: Options of the loader, with `bucket_by`.

    Attributes:
        bounds: Bound of each bucket.
        rows: Number of rows in a batch of each bucket.
    """

    def __init__(self, ordered: Ordered, options: LoadOptions) -> None:
        assert options.bucket_by is not None
        self._ordered = ordered
        self._options = options
        self._pad = find_pad(options.pad, options.bucket_by)
        reader = LengthReader(ordered, options.bucket_by, options.on_error)
        lengths = reader.read_all()
        if self.is_constant and ordered.order.records < len(lengths):  # the others are excluded
            lengths[np.setdiff1d(np.arange(len(lengths)), self._numbers(0))] = 0
        self._refuse_nested()
        self.bounds = self._find_bounds(int(lengths.max(initial=1)))
        self._refuse_longer(lengths, reader)
        self.rows = [self._rows_at(bound) for bound in self.bounds]
        buckets = np.minimum(np.searchsorted(self.bounds, lengths), len(self.bounds) - 1)
        self._buckets = buckets.astype(np.min_scalar_type(len(self.bounds)))  # of each record
        self._layouts: dict[tuple[int, int], _Layout] = {}
        self._counts: dict[int, NDArray[np.int64]] = {}

    def take_order(self, ordered: Ordered, options: LoadOptions) -> None:
        """Change the order of the records."""
        self._ordered, self._options = ordered, options
        self._layouts, self._counts = {}, {}

    def _find_bounds(self, longest: int) -> list[int]:
        if self._options.buckets is not None:
            return list(self._options.buckets)
        pad = self._pad or Pad()
        if pad.length is not None:
            return pad.extents([longest], name=str(self._options.bucket_by))
        bounds = [1]
        while bounds[-1] < longest:
            step = max(1, (1 << bounds[-1].bit_length() - 1) // STEPS_PER_OCTAVE)
            bounds.append(min(longest, bounds[-1] + step))
        name = str(self._options.bucket_by)
        return sorted({pad.extents([bound], name=name)[0] for bound in bounds})

    def _refuse_nested(self) -> None:
        """Raise ValueError for several variable dimensions, which one length cannot describe."""
        name = str(self._options.bucket_by)
        shape = self._ordered.schema[name].shape
        if shape.count(None) > 1 and self._pad is not None and not self._pad.is_plain:
            raise ValueError(
                Message(
                    f"feature {name!r}: expected one variable dimension, to pad batches with a"
                    f" limit of tokens, got shape {shape}",
                    hint="use pad=True, or no `pad`",
                )
            )

    def _refuse_longer(self, lengths: NDArray[np.int32], reader: LengthReader) -> None:
        options, most = self._options, self.bounds[-1]
        if options.buckets is not None:
            limit, hint = "the last of `buckets`", "choose a larger last bucket, or pad=datum.Pad("
            hint += "truncate=True) to cut longer rows"
            is_sound = self._pad is not None and self._pad.truncate
        else:
            assert options.batch_tokens is not None
            is_sound = most <= options.batch_tokens
            limit, hint, most = (
                "`batch_tokens`",
                "choose a larger `batch_tokens`",
                options.batch_tokens,
            )
        padded = self.bounds[-1]
        longer = np.flatnonzero(lengths > most)
        if is_sound or (not len(longer) and padded <= most):
            return
        if not len(longer):  # records are longer only once they are padded
            raise ValueError(
                Message(
                    f"expected `batch_tokens` of {padded} or more, the length that rows are"
                    " padded to,"
                    f" got {most}"
                )
            )
        raise ValueError(
            Message(
                f"{reader.describe(int(longer[0]))}, feature {options.bucket_by!r}: expected a"
                f" length of {most} at most, {limit}, got {lengths[longer[0]]}; {len(longer):,}"
                f" of {len(lengths):,} records are longer",
                hint=hint,
            )
        )

    def _rows_at(self, bound: int) -> int:
        options = self._options
        assert options.batch_size is not None
        if options.batch_tokens is None:
            return options.batch_size
        return min(options.batch_size, options.batch_tokens // bound)

    def length_of(self, bucket: int) -> int | None:
        """The length that rows of a bucket are padded to; None if it depends on the batch."""
        return None if self._options.buckets is None else self.bounds[bucket]

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_layouts": {}}  # large, and quickly made again

    def stream(self, host: tuple[int, int], remainder: Remainder) -> BudgetStream:
        """The batches of one host."""
        top = self.rows[self._top(self._count(0))]
        return BudgetStream(
            self._ordered.order, top, host, remainder, self._options.epochs, budget=self
        )

    def describe(self, hosts: int) -> str:
        """A description of the buckets, which a state must agree with."""
        pairs = [f"{rows} x {bound}" for rows, bound in zip(self.rows, self.bounds, strict=True)]
        shown = ", ".join(pairs)
        if len(pairs) > SHOWN_BOUNDS:
            shown = f"{len(pairs)} shapes {blake2b(shown.encode(), digest_size=6).hexdigest()}"
        return f"{self._options.bucket_by} in batches of {shown} on {hosts} host(s)"

    # Epochs.

    @property
    def is_constant(self) -> bool:
        """Whether all epochs have the same records, and therefore as many batches."""
        return not isinstance(self._ordered.order, MixedOrder)

    def _numbers(self, epoch: int) -> NDArray[np.int64]:
        order = self._ordered.order
        return order.numbers(epoch, np.arange(order.records))

    def _count(self, epoch: int) -> NDArray[np.int64]:
        """Number of records of an epoch in each bucket."""
        key = 0 if self.is_constant else epoch
        if key not in self._counts:
            found = self._buckets[self._numbers(key)]
            self._counts[key] = np.bincount(found, minlength=len(self.bounds))
        return self._counts[key]

    def _top(self, counts: NDArray[np.int64]) -> int:
        """The last bucket with records."""
        return int(np.flatnonzero(counts)[-1]) if counts.any() else 0

    def batches(self, epoch: int, hosts: int) -> tuple[int, int]:
        """Number of full batches of an epoch, and of records left over."""
        counts, full, rest = self._count(epoch), 0, 0
        for bucket in np.flatnonzero(counts).tolist():
            made, rest = divmod(rest + int(counts[bucket]), self.rows[bucket] * hosts)
            full += made
        return full, rest

    def layout(self, epoch: int, hosts: int) -> _Layout:
        """The batches of an epoch."""
        key = (epoch, hosts)
        if key not in self._layouts:
            self._layouts[key] = self._lay_out(epoch, hosts)
            while len(self._layouts) > KEPT_LAYOUTS:
                del self._layouts[next(iter(self._layouts))]
        return self._layouts[key]

    def _lay_out(self, epoch: int, hosts: int) -> _Layout:
        numbers = self._numbers(epoch)
        buckets = self._buckets[numbers]
        by_bucket = np.argsort(buckets, kind="stable")
        counts = np.bincount(buckets, minlength=len(self.bounds))
        ends = np.cumsum(counts)
        rest = np.empty(0, np.int64)
        pools, sizes, owners = [], [], []
        for bucket in np.flatnonzero(counts).tolist():
            # Records from the bucket below come first, so that they move up no further.
            pool = np.concatenate([rest, by_bucket[ends[bucket] - counts[bucket] : ends[bucket]]])
            size = self.rows[bucket] * hosts
            full = len(pool) // size
            pools.append(pool[: full * size])
            rest = pool[full * size :]
            sizes += [size] * full
            owners += [bucket] * full
        flat = np.concatenate([*pools, np.empty(0, np.int64)])
        size_of = np.array(sizes, np.int64)
        firsts = np.cumsum(size_of) - size_of
        batches = self._mix(epoch, flat, firsts)
        places = flat[positions_of(firsts[batches], size_of[batches])]
        starts = np.concatenate([[0], np.cumsum(size_of[batches])])
        top = self._top(counts)
        return _Layout(
            numbers[np.concatenate([places, rest])],
            starts,
            np.concatenate([np.array(owners, np.int64)[batches], [top]]),
        )

    def _mix(
        self, epoch: int, flat: NDArray[np.int64], firsts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The order of the batches: random, or without a shuffle that of their last records."""
        options = self._options
        if not len(firsts):
            return firsts
        if options.shuffle is False or options.shuffle == 0:
            return np.argsort(np.maximum.reduceat(flat, firsts), kind="stable")
        key = key_of(options.seed, epoch if options.reshuffle else 0, "budget")
        return _core.permute(np.arange(len(firsts)), len(firsts), key)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """The batches of one epoch.

    Attributes:
        numbers: Numbers of the records, batch after batch, with the remainder at the end.
        starts: Start of each full batch in `numbers`, and end of the last one.
        buckets: Bucket of each full batch, and of the remainder.
    """

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]
    buckets: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BudgetStream(Stream):
    """The batches of one host, with as many rows as the bucket of each allows.

    A batch of all hosts has the same number of rows on every host, and host i takes its records i,
    i + hosts and so on. The records left over at the end of an epoch are fewer than one batch of
    the last bucket: "keep" returns them as they are, with first records of the epoch for hosts that
    would get none; "pad" and "wrap" fill up with the first records; "drop" leaves them out.

    Attributes:
        budget: The buckets.
    """

    budget: Budget = field(kw_only=True)

    def _counted(self, epoch: int) -> int:
        full, rest = self.budget.batches(epoch, self.host[1])
        return full + (1 if rest and self.remainder != "drop" else 0)

    def _layout(self, epoch: int) -> _Layout:
        return self.budget.layout(epoch, self.host[1])

    def _index(self, place: Place) -> int:
        """Number of batches of the epoch before a place."""
        if not place.position:
            return 0
        return int(np.searchsorted(self._layout(place.epoch).starts, place.position))

    def count(self, place: Place) -> int | None:
        """Number of batches from a place to the end of its pass; None without end."""
        epochs = self._epochs_from(place.epoch)
        if epochs is None:
            return None
        if self.budget.is_constant:
            whole = self._counted(place.epoch) * epochs
        else:
            whole = sum(map(self._counted, range(place.epoch, place.epoch + epochs)))
        return max(whole - self._index(place), whole - self._counted(place.epoch))

    def last_batches(self, place: Place) -> list[int]:
        """Number of records of each host in the last batch of the epoch of a place."""
        hosts = self.host[1]
        rest = self.budget.batches(place.epoch, hosts)[1]
        if self.remainder != "keep" or not rest:
            return [self.batch_size] * hosts
        return [len(range(host, max(rest, hosts), hosts)) for host in range(hosts)]

    def after(self, place: Place, batches: int) -> Place:
        """The place after a number of batches, computed in one step."""
        epoch, index = place.epoch, self._index(place) + batches
        while index >= (counted := self._counted(epoch)):
            epochs = index // counted if self.budget.is_constant and counted else 1
            epoch, index = epoch + epochs, max(0, index - epochs * counted)
            if not counted:
                return Place(epoch, 0)
        return Place(epoch, int(self._layout(epoch).starts[index]) if index else 0)

    def _normal(self, place: Place) -> Place:
        """The same place, or the start of the next epoch if this one has no batch left."""
        is_end = self._index(place) >= self._counted(place.epoch)
        return Place(place.epoch + 1, 0) if is_end else place

    def _refuse_nothing(self) -> None:
        records, hosts = self.order.records, self.host[1]
        least = max(self.budget.rows) * hosts
        is_some = self._counted(0) > 0 if self.budget.is_constant else records >= least
        if self.remainder == "drop" and records and not is_some:
            raise SplitError(
                f"expected a full batch on every host, since short batches are dropped, got"
                f" {records} records",
                hint="choose smaller `batch_tokens` or `batch_size`, or drop_remainder=False",
            )

    def _plan(self, place: Place, step: int) -> BatchPlan:  # noqa: ARG002
        layout, (host, hosts) = self._layout(place.epoch), self.host
        records, index = len(layout.numbers), self._index(place)
        bucket = int(layout.buckets[index])
        size = self.budget.rows[bucket] * hosts
        stop = min(records, place.position + size)
        if self.remainder == "keep":
            size = max(stop - place.position, hosts)
        positions = place.position + np.arange(host, size, hosts)
        real = len(positions) if self.remainder == "wrap" else int((positions < records).sum())
        positions %= records
        return BatchPlan(
            place.epoch,
            place.position,
            stop,
            layout.numbers[positions],
            positions,
            real,
            length=self.budget.length_of(bucket),
        )
