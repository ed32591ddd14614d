"""Records read by the native core, handed to TensorFlow a batch at a time."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from dataclasses import replace
from itertools import count, groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.adapters.tensorflow.batching import densify_single, pad_batches, unbatch
from datum.adapters.tensorflow.blocks import bytes_of
from datum.adapters.tensorflow.buffers import Buffers
from datum.adapters.tensorflow.damage import find_lost
from datum.adapters.tensorflow.handover import Handover
from datum.adapters.tensorflow.mapping import apply
from datum.adapters.tensorflow.options import TfOptions
from datum.adapters.tensorflow.packing import Packed, Packer, as_stored
from datum.adapters.tensorflow.plan import (
    LARGE_RECORD_BYTES,
    PARSED_LARGE_RECORDS,
    PARSED_RECORDS,
)
from datum.adapters.tensorflow.small_images import as_pixels, decode_small
from datum.adapters.tensorflow.sound import SoundOrder
from datum.adapters.tensorflow.unpacking import Unpacker
from datum.errors import CorruptRecordError
from datum.format import Parser
from datum.format.threads import thread_count
from datum.loading.caching import RecordCache, copy_column
from datum.loading.options import LoadOptions
from datum.loading.ordered import order_split
from datum.loading.stream import EpochOrder, Place, Stream
from datum.reading import Split
from datum.reading.numbered import NumberedRecords, Taken
from datum.schema import Schema
from datum.transforms.graph import leave_as_is

__all__ = ["NativeReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

Numbers = NDArray[np.int64]

# Handed over at a time, in several batches if these are small: each time costs some 0.3 ms.
HANDED_RECORDS = 1024
BATCHES_AHEAD = 2  # more than there are threads, so that none waits for TensorFlow


class NativeReader:
    """Reads a split in the order of `to_numpy`, the same for any number of hosts and threads.

    Each new iteration begins with the epoch after those of the one before.

    Args:
        split: the records of all hosts.
        schema: the features to read.
        options: what is asked for.
        host: the index of this host, and how many there are.
        decoded: images that are decoded as they are read; see `small_images`.

    Attributes:
        records: how many this host gives in an epoch.
    """

    def __init__(
        self,
        split: Split,
        schema: Schema,
        options: TfOptions,
        *,
        host: tuple[int, int],
        decoded: Collection[str] = (),
    ) -> None:
        self._options = options
        stored = as_stored(schema)
        self._packer = Packer(as_pixels(stored, decoded))

        def finish(columns: dict[str, Any]) -> dict[str, Any]:
            return self._packer.unmask(decode_small(columns, stored, decoded))

        self._source = _Source(split, stored, options, finish)
        order = self._source.order
        is_large = bytes_of(split) >= LARGE_RECORD_BYTES * max(1, len(split))
        self._chunk = PARSED_LARGE_RECORDS if is_large else PARSED_RECORDS
        self._together = 1
        if options.batch_size is not None and not is_large:
            self._together = max(1, HANDED_RECORDS // options.batch_size)
        drops = options.drop_remainder and options.batch_size and options.bucket_fn is None
        remainder: Any = "drop" if drops else "keep"
        size = options.batch_size or self._chunk
        self._stream = Stream(order, size, host, remainder, options.epochs)
        self.records = _records_of(self._stream)

    def batches(self) -> Any:
        """Batches of all epochs, those that differ in length padded where asked."""
        options, passes = self._options, count()
        together = self._together

        def start() -> Generator[Packed, None, None]:
            place = Place(next(passes) * (options.epochs or 1))
            return self._pack(_numbers_of(self._stream, place, together))

        unpacker = Unpacker(self._packer, options.batch_size, drop_remainder=options.drop_remainder)
        packed = Handover(start, unpacker.spec)
        if together > 1:
            packed = packed.flat_map(_numbering(unpacker))
        batches = apply(packed, leave_as_is(unpacker.unpack), options)
        return pad_batches(densify_single(batches, options), options)

    def read(self, decode: Callable[..., Any] | None, *_form: Any) -> Any:
        """The single records of one epoch, decoded."""
        options, passes = self._options, count()
        stream = replace(self._stream, epochs=1)

        def start() -> Generator[Packed, None, None]:
            numbers = _numbers_of(stream, Place(next(passes)), self._together)
            return self._pack(_regroup(numbers, self._chunk))

        unpacker = Unpacker(self._packer)
        packed = Handover(start, unpacker.spec)
        records = unbatch(apply(packed, leave_as_is(unpacker.unpack), options))
        return apply(records, leave_as_is(decode) if decode else None, options)

    def _pack(self, numbers: Iterable[Numbers]) -> Generator[Packed, None, None]:
        buffers = Buffers()
        for columns, records in self._source.read(numbers):
            yield self._packer.pack(columns, records, buffers)


class _Source:
    """The columns of records by their numbers, read ahead; kept, if asked for."""

    def __init__(
        self, split: Split, schema: Schema, options: TfOptions, finish: Callable[..., Any]
    ) -> None:
        seed = secrets.randbits(62) if options.seed is None else options.seed
        ordered = order_split(
            split,
            LoadOptions(
                shuffle=options.shuffle,
                seed=seed,
                reshuffle=options.reshuffle,
                columns=list(schema),
                missing=options.missing,
            ),
        )
        self._finish = finish
        self._parser = Parser(schema)
        self._parts = ordered.parts
        self._on_error = options.on_error
        self._cache = RecordCache(len(split)) if options.cache else None
        self.order: EpochOrder = ordered.order
        if options.on_error == "skip":
            lost = find_lost(split)
            self.order = SoundOrder(self.order, lost) if len(lost) else self.order

    def read(self, batches: Iterable[Numbers]) -> Iterator[tuple[dict[str, Any], int]]:
        """The columns of each batch, and how many records it has."""
        threads = thread_count(None)
        records = NumberedRecords(
            self._parts, self._parser, threads=threads, on_error=self._on_error
        )
        waiting: deque[tuple[Numbers, Numbers, int | None]] = deque()
        try:
            for numbers in batches:
                waiting.append(self._submit(records, numbers))
                if len(waiting) >= threads + BATCHES_AHEAD:
                    yield self._take(records, *waiting.popleft())
            while waiting:
                yield self._take(records, *waiting.popleft())
        finally:
            records.close()

    def _submit(
        self, records: NumberedRecords, numbers: Numbers
    ) -> tuple[Numbers, Numbers, int | None]:
        """What was asked for, what of it is read, and the ticket for that."""
        unknown = numbers
        if self._cache is not None:
            unknown = numbers[self._cache.find(numbers) == 0]
        return numbers, unknown, records.submit(unknown) if len(unknown) else None

    def _take(
        self, records: NumberedRecords, numbers: Numbers, read: Numbers, ticket: int | None
    ) -> tuple[dict[str, Any], int]:
        columns: dict[str, Any] = {}
        if ticket is not None:
            columns = self._finish(_whole(records.take(ticket)))
        if self._cache is None:
            return columns, len(numbers)
        if ticket is not None:
            rows = np.arange(len(read))
            columns = {name: copy_column(column, rows) for name, column in columns.items()}
            self._cache.add(read, columns)
        if len(read) < len(numbers):
            columns = self._cache.gather(self._cache.find(numbers))
        return columns, len(numbers)


def _whole(taken: Taken) -> dict[str, Any]:
    """The columns of all that was asked for: what is damaged was left out before."""
    for damage in taken.damage:
        raise CorruptRecordError(f"{damage}\nhint: Dataset.verify lists what is damaged", damage)
    return taken.columns


def _records_of(stream: Stream) -> int:
    """How many records of an epoch this host gives."""
    full, rest = divmod(stream.order.records, stream.global_batch)
    index, hosts = stream.host
    part = rest * (index + 1) // hosts - rest * index // hosts
    return full * stream.batch_size + (0 if stream.remainder == "drop" else part)


def _numbers_of(stream: Stream, place: Place, together: int) -> Iterator[Numbers]:
    """The records of so many batches at a time, of one epoch each; of none that would be empty."""
    if not _records_of(stream):
        return
    size, joined = stream.batch_size, stream
    if stream.host[1] == 1:  # the same positions in fewer steps
        joined = replace(stream, batch_size=size * together, remainder="keep")
        together = 1
    for _, plans in groupby(joined.plans(place), key=lambda plan: plan.epoch):
        while some := list(islice(plans, together)):
            numbers = np.concatenate([plan.numbers for plan in some])
            if stream.remainder == "drop":
                numbers = numbers[: len(numbers) // size * size]
            if len(numbers):
                yield numbers


def _numbering(unpacker: Unpacker) -> Callable[[Any, Any], Any]:
    """What gives arrays of several batches once for each of them, with its number."""

    @leave_as_is
    def number(flat: Any, strings: Any) -> Any:
        batches = unpacker.count(flat)
        given = [tf.data.Dataset.from_tensors(array).repeat(batches) for array in (flat, strings)]
        return tf.data.Dataset.zip((*given, tf.data.Dataset.range(batches)))

    return number


def _regroup(batches: Iterable[Numbers], size: int) -> Iterator[Numbers]:
    """The same numbers in other batches: of `size`, but for the last."""
    held = np.empty(0, np.int64)
    for numbers in batches:
        held = np.concatenate([held, numbers])
        whole = len(held) // size * size
        yield from held[:whole].reshape(-1, size)
        held = held[whole:]
    if len(held):
        yield held
