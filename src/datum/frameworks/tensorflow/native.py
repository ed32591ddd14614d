"""Reader on the native core, which passes batches to TensorFlow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.errors import CorruptRecordError
from datum.format import Parser
from datum.format.threads import thread_count
from datum.frameworks.tensorflow.batching import finish_batches, unbatch
from datum.frameworks.tensorflow.blocks import find_lost
from datum.frameworks.tensorflow.images import as_pixels, decode_small
from datum.frameworks.tensorflow.mapping import KEPT, NUMBER, SEED, ElementCache, apply
from datum.frameworks.tensorflow.options import TfOptions
from datum.frameworks.tensorflow.position import PythonPasses, batches_per_epoch
from datum.frameworks.tensorflow.readers import OrderedReader, ReadRequest, RecordSteps
from datum.frameworks.tensorflow.transfer import (
    Buffers,
    GeneratorDataset,
    Packed,
    Packer,
    Unpacker,
    as_stored,
)
from datum.loading.bucketing import Bucketed, LengthReader
from datum.loading.caching import RecordCache, copy_column, join_columns
from datum.loading.options import MASK
from datum.loading.ordered import OrderWithout, order_split
from datum.loading.stream import BatchPlan, EpochOrder, Place, Stream
from datum.reading import Split
from datum.reading.numbered import NumberedRecords, Taken
from datum.reading.order import key_of, seeds_at
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["NativeReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

Numbers = NDArray[np.int64]

# Records passed over at a time, in several batches if these are small: each call takes 0.3 ms.
TRANSFERRED_RECORDS = 1024
BATCHES_AHEAD = 2  # more than there are threads, so that none waits for TensorFlow


class NativeReader(OrderedReader[PythonPasses]):
    """Reads a split with the native core."""

    def __init__(self, request: ReadRequest) -> None:
        options, decoded = request.options, request.decoded
        stored = as_stored(request.schema)

        def finish(columns: dict[str, Any]) -> dict[str, Any]:
            return self._packer.unmask(decode_small(columns, stored, decoded))

        self._source = _Source(request.split, stored, options, finish)
        order, identity = self._source.order_for(request.host)
        super().__init__(request, order, identity, PythonPasses)
        features = {SEED: Feature("int64", (2,)), MASK: Feature("bool")}
        extra = {name: features[name] for name in self.extra_columns}
        self._schema = Schema({**as_pixels(stored, decoded), **extra})
        self._packer = Packer(self._schema)
        self._together = 1
        if not self._is_large:
            self._together = max(1, TRANSFERRED_RECORDS // (options.batch_size or 1))
        elif options.batch_size is None:
            self._together = self._chunk

    def batches(self) -> Any:
        """Batches of all epochs, padded as the options say."""
        options, together = self._options, self._together

        def start() -> Generator[Packed, None, None]:
            return self._pack(_parts_of(self.stream, self._passes.begin(), together))

        unpacker = Unpacker(self._packer, options.batch_size, drop_remainder=self.has_full_batches)
        packed = GeneratorDataset(start, unpacker.spec)
        if together > 1:
            packed = packed.flat_map(_numbering(unpacker))
        return finish_batches(apply(packed, leave_as_is(unpacker.unpack), options), options)

    def records(self, steps: RecordSteps) -> Any:
        """A dataset of what `steps` make of the records of all epochs."""
        options, alone = self._options, replace(self.stream, epochs=1)
        decode, cache = self._decode_kept(steps, self._no_records)
        if cache is not None:  # keep what `decode` makes of records, instead of what was read
            kept = {NUMBER: Feature("int64"), KEPT: Feature("bool")}
            self._packer = Packer(Schema({**self._schema, **kept}))
            self._source.keep_elsewhere(cache)
        unpacker = Unpacker(self._packer)

        def records_of(start: Callable[..., Any], given: Any = None) -> Any:
            packed = GeneratorDataset(start, unpacker.spec, given=given)
            records = unbatch(apply(packed, leave_as_is(unpacker.unpack), options))
            return steps.finish(apply(records, decode, options))

        def start_epoch(place: Any) -> Generator[Packed, None, None]:
            parts = _parts_of(alone, Place(int(place[0]), int(place[1])), self._together)
            return self._pack(_regroup(parts, self._chunk))

        if options.epochs == 1:

            def start() -> Generator[Packed, None, None]:
                place = self._passes.begin()
                return start_epoch((place.epoch, place.position))

            return records_of(start)
        epochs = GeneratorDataset(self._epochs, (tf.TensorSpec((2,), tf.int64),))
        return epochs.flat_map(leave_as_is(lambda place: records_of(start_epoch, place)))

    def _no_records(self) -> Any:
        """A dataset without elements, which has the types of the records."""
        unpacker = Unpacker(self._packer)
        packed = GeneratorDataset(lambda: (_ for _ in ()), unpacker.spec)
        return unbatch(apply(packed, leave_as_is(unpacker.unpack), self._options))

    def _epochs(self) -> Generator[tuple[Numbers], None, None]:
        """Where each epoch of a pass starts."""
        place, epochs = self._passes.begin(), self.stream.epochs
        left = count() if epochs is None else range(epochs - place.epoch % epochs)
        for number in left:
            yield (np.array([place.epoch + number, 0 if number else place.position]),)

    def _pack(self, parts: Iterable[_Part]) -> Generator[Packed, None, None]:
        buffers = Buffers()
        for columns, part in self._source.read(parts):
            if MASK in self.extra_columns:
                columns[MASK] = part.is_real
            if SEED in self.extra_columns:
                epoch = part.epoch if self._options.reshuffle else 0
                columns[SEED] = seeds_at(key_of(self._options.seed, epoch, "map"), part.positions)
            yield self._packer.pack(columns, len(part), buffers)


@dataclass(frozen=True, slots=True)
class _Part:
    """Some records of an epoch: their numbers, their positions, and which of them count."""

    epoch: int
    numbers: Numbers
    positions: Numbers
    is_real: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> _Part:
        return _Part(self.epoch, self.numbers[rows], self.positions[rows], self.is_real[rows])

    @staticmethod
    def joined(parts: list[_Part]) -> _Part:
        """Parts of one epoch, one after the other."""
        if len(parts) == 1:
            return parts[0]
        fields = zip(*((p.numbers, p.positions, p.is_real) for p in parts), strict=True)
        return _Part(parts[0].epoch, *map(np.concatenate, fields))


def _part_of_plan(plan: BatchPlan) -> _Part:
    is_real = np.arange(len(plan.numbers)) < plan.real
    return _Part(plan.epoch, plan.numbers, plan.positions, is_real)


class _Source:
    """The columns of records by their numbers, read ahead; kept, if asked for."""

    def __init__(
        self,
        split: Split,
        schema: Schema,
        options: TfOptions,
        finish: Callable[..., Any],
    ) -> None:
        self._options = options.load_options(schema)
        self._ordered = order_split(split, self._options)
        self._finish = finish
        self._parser = Parser(schema)
        self._parts = self._ordered.parts
        self._on_error = options.on_error
        self._cache = RecordCache(len(split)) if options.cache else None
        self._elements: ElementCache | None = None
        self._example: dict[str, Any] = {}
        self._lost = np.empty(0, np.int64)
        if options.on_error == "skip":
            self._lost = find_lost(split)

    def order_for(self, host: tuple[int, int]) -> tuple[EpochOrder, dict[str, Any]]:
        """The order of the records that are sound, and what a state has to agree with."""
        order: Any = self._ordered.order
        identity, options = dict(self._ordered.identity), self._options
        if len(self._lost):
            order = OrderWithout(order, self._lost)
            identity["order"] += f", {len(self._lost)} lost"
        if options.bucket_by is not None:
            size = options.plan_records * host[1]
            lengths = LengthReader(self._ordered, options.bucket_by, options.on_error)
            order = Bucketed(order, lengths, size, options)
            identity["order"] += f", {options.bucket_by} sorted for batches of {size}"
        return order, identity

    def keep_elsewhere(self, cache: ElementCache) -> None:
        """Read only what this cache lacks; columns then say what it has."""
        self._cache, self._elements = None, cache

    def read(self, parts: Iterable[_Part]) -> Iterator[tuple[dict[str, Any], _Part]]:
        """The columns of each part."""
        threads = thread_count(None)
        records = NumberedRecords(
            self._parts, self._parser, threads=threads, on_error=self._on_error
        )
        waiting: deque[tuple[_Part, Numbers, int | None]] = deque()
        try:
            for part in parts:
                waiting.append((part, *self._submit(records, part.numbers)))
                if len(waiting) >= threads + BATCHES_AHEAD:
                    yield self._take(records, *waiting.popleft())
            while waiting:
                yield self._take(records, *waiting.popleft())
        finally:
            records.close()

    def _submit(self, records: NumberedRecords, numbers: Numbers) -> tuple[Numbers, int | None]:
        """What of some records is read, and the ticket for that."""
        unknown = numbers
        if self._cache is not None:
            unknown = numbers[self._cache.find(numbers) == 0]
        elif self._elements is not None and self._example:
            unknown = numbers[~self._elements.find(numbers)]
        return unknown, records.submit(unknown) if len(unknown) else None

    def _take(
        self, records: NumberedRecords, part: _Part, read: Numbers, ticket: int | None
    ) -> tuple[dict[str, Any], _Part]:
        columns: dict[str, Any] = {}
        if ticket is not None:
            columns = self._finish(_whole(records.take(ticket)))
        if self._elements is not None:
            return self._fill_up(columns, part, read), part
        if self._cache is None:
            return columns, part
        if ticket is not None:
            rows = np.arange(len(read))
            columns = {name: copy_column(column, rows) for name, column in columns.items()}
            self._cache.add(read, columns)
        if len(read) < len(part):
            columns = self._cache.gather(self._cache.find(part.numbers))
        return columns, part

    def _fill_up(self, columns: dict[str, Any], part: _Part, read: Numbers) -> dict[str, Any]:
        """The columns of a part of which only some was read; the rest is like any other record."""
        is_kept = ~np.isin(part.numbers, read)
        if not self._example:
            first = np.zeros(1, np.int64)
            self._example = {name: copy_column(column, first) for name, column in columns.items()}
        if is_kept.any():
            rows = np.empty(len(part), np.int64)
            rows[~is_kept] = np.arange(len(read))
            rows[is_kept] = len(read)
            columns = {
                name: (join_columns([columns[name], blank]) if columns else blank)[rows]
                for name, blank in self._example.items()
            }
        return {**columns, NUMBER: part.numbers, KEPT: is_kept}


def _whole(taken: Taken) -> dict[str, Any]:
    """The columns of all that was asked for: what is damaged was left out before."""
    for damage in taken.damage:
        raise CorruptRecordError(f"{damage}\nhint: Dataset.verify lists what is damaged", damage)
    return taken.columns


def _parts_of(stream: Stream, place: Place, together: int) -> Iterator[_Part]:
    """The records of so many batches at a time, of one epoch each; of none that would be empty."""
    if not batches_per_epoch(stream):
        return
    size, joined = stream.batch_size, stream
    if stream.host[1] == 1 and stream.remainder in ("keep", "drop"):
        # The same positions in fewer steps.
        joined = replace(stream, batch_size=size * together, remainder="keep")
        together = 1
    for _, plans in groupby(joined.plans(place), key=lambda plan: plan.epoch):
        while some := [_part_of_plan(plan) for plan in islice(plans, together)]:
            part = _Part.joined(some)
            if stream.remainder == "drop":
                part = part[: len(part) // size * size]
            if len(part):
                yield part


def _numbering(unpacker: Unpacker) -> Callable[[Any, Any], Any]:
    """What gives arrays of several batches once for each of them, with its number."""

    @leave_as_is
    def number(flat: Any, strings: Any) -> Any:
        batches = unpacker.count(flat)
        given = [tf.data.Dataset.from_tensors(array).repeat(batches) for array in (flat, strings)]
        return tf.data.Dataset.zip((*given, tf.data.Dataset.range(batches)))

    return number


def _regroup(parts: Iterable[_Part], size: int) -> Iterator[_Part]:
    """The same records of an epoch in other parts: of `size`, but for the last."""
    held: list[_Part] = []
    for part in parts:
        whole = _Part.joined([*held, part])
        end = len(whole) // size * size
        for start in range(0, end, size):
            yield whole[start : start + size]
        held = [whole[end:]]
    if held and len(held[0]):
        yield held[0]
