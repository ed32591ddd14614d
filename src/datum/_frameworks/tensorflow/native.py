"""Reader on the native core, which passes batches to TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, groupby, islice, tee
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._frameworks.tensorflow.blocks import find_lost
from datum._frameworks.tensorflow.dataset import PythonPasses, batches_per_epoch
from datum._frameworks.tensorflow.image_decoders import as_pixels, decode_small
from datum._frameworks.tensorflow.readers import OrderedReader, ReadRequest, RecordSteps
from datum._frameworks.tensorflow.steps import (
    KEPT,
    NUMBER,
    SEED,
    ElementCache,
    apply,
    finish_batches,
    unbatch,
)
from datum._frameworks.tensorflow.transfer import (
    Buffers,
    GeneratorDataset,
    Packed,
    Packer,
    Unpacker,
    as_stored,
)
from datum._load.buckets import Bucketed, LengthReader
from datum._load.cache import RecordCache, copy_column
from datum._load.collate import Finisher
from datum._load.epoch_order import key_of, seeds_at
from datum._load.options import MASK
from datum._load.pipeline import Pipeline
from datum._load.stream import BatchPlan, EpochOrder, OrderWithout, Place, Stream
from datum._optional import require
from datum._options import thread_count
from datum._read.numbered import NumberedRecords
from datum.errors import CorruptRecordError, Damage
from datum.format import Parser
from datum.schema import Feature, Schema
from datum.transforms.graph import leave_as_is

__all__ = ["NativeReader"]

tf: Any = require("tensorflow", purpose="`to_tf`")

Numbers = NDArray[np.int64]

# Records passed over at a time, in several batches if these are small: each call takes 0.3 ms.
TRANSFERRED_RECORDS = 1024


class NativeReader(OrderedReader[PythonPasses]):
    """Reads a split with the native core: a loader of NumPy whose batches go to TensorFlow."""

    def __init__(self, request: ReadRequest) -> None:
        split, options = request.split, request.options
        self._stored = as_stored(request.schema)
        self._decoded = request.decoded
        super().__init__(request, self._stored, PythonPasses)
        features = {SEED: Feature("int64", (2,)), MASK: Feature("bool")}
        extra = {name: features[name] for name in self.extra_columns}
        self._schema = Schema({**as_pixels(self._stored, request.decoded), **extra})
        self._packer = Packer(self._schema)
        self._parser = Parser(self._stored)
        self._cache: RecordCache | _ElementPlaces | None = None
        if options.cache:
            self._cache = RecordCache(len(split))
        self._together = 1
        if not self._is_large:
            self._together = max(1, TRANSFERRED_RECORDS // (options.batch_size or 1))
        elif options.batch_size is None:
            self._together = self._chunk

    def _find_order(self, request: ReadRequest) -> tuple[EpochOrder, Mapping[str, Any]]:
        """The order of the intact records, and the values that a state must agree with."""
        options, order = self._load_options, self._ordered.order
        identity = dict(self._ordered.identity)
        lost = find_lost(request.split) if options.on_error == "skip" else ()
        if len(lost):
            order = OrderWithout(order, np.asarray(lost))
            identity["order"] += f", {len(lost)} lost"
        if options.bucket_by is None:
            return order, identity
        size = options.plan_records * request.host[1]
        lengths = LengthReader(self._ordered, options.bucket_by, options.on_error)
        identity["order"] += f", {options.bucket_by} sorted for batches of {size}"
        return Bucketed(order, lengths, size, options), identity

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
        """A dataset of the results of `steps` for the records of all epochs."""
        options, alone = self._options, replace(self.stream, epochs=1)
        decode, cache = self._decode_kept(steps, self._no_records)
        if cache is not None:  # keep the results of `decode` instead of records
            kept = {NUMBER: Feature("int64"), KEPT: Feature("bool")}
            self._packer = Packer(Schema({**self._schema, **kept}))
            self._cache = _ElementPlaces(cache)
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
        """The start of each epoch of a pass."""
        place, epochs = self._passes.begin(), self.stream.epochs
        left = count() if epochs is None else range(epochs - place.epoch % epochs)
        for number in left:
            yield (np.array([place.epoch + number, 0 if number else place.position]),)

    def _pack(self, parts: Iterable[_Part]) -> Generator[Packed, None, None]:
        """Read the records of each part, and pack their columns."""
        buffers, pipeline = Buffers(), self._open_pipeline()
        planned, parts = tee(parts)
        try:
            finished = pipeline.make((part.as_plan() for part in planned), self.stream.order)
            for part, made in zip(parts, finished, strict=True):
                for damage in made.damage:  # newer than the order, which leaves out damage
                    raise CorruptRecordError(
                        damage, hint="Dataset.verify lists all damage", damage=damage
                    )
                yield self._packer.pack(self._with_extra(made.batch, part), len(part), buffers)
        finally:
            pipeline.close()

    def _open_pipeline(self) -> Pipeline:
        threads = thread_count(None)
        on_error = self._load_options.on_error
        return Pipeline(
            NumberedRecords(self._ordered.parts, self._parser, threads=threads, on_error=on_error),
            self._stored,
            self._load_options,
            threads=threads,
            cache=self._cache,
            finisher=_StoredColumns(self._stored, self._packer, self._decoded),
        )

    def _with_extra(self, columns: dict[str, Any], part: _Part) -> dict[str, Any]:
        if MASK in self.extra_columns:
            columns[MASK] = part.is_real
        if SEED in self.extra_columns:
            epoch = part.epoch if self._options.reshuffle else 0
            columns[SEED] = seeds_at(key_of(self._options.seed, epoch, "map"), part.positions)
        if isinstance(self._cache, _ElementPlaces):
            columns[NUMBER] = part.numbers
        return columns


class _StoredColumns(Finisher):
    """Leaves columns as they are stored, for a `Packer`; only small images are decoded."""

    def __init__(self, schema: Schema, packer: Packer, decoded: Collection[str]) -> None:
        super().__init__(schema, encoded={})
        self._schema = schema
        self._packer = packer
        self._decoded = decoded

    def finish(self, columns: dict[str, Any]) -> dict[str, Any]:
        """The columns that the packer takes."""
        made = self._packer.unmask(decode_small(columns, self._schema, self._decoded))
        if KEPT in self._packer.names:
            made[KEPT] = np.zeros(len(next(iter(made.values()))), np.bool_)
        return made

    def settle(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The same columns."""
        return batch


class _ElementPlaces:
    """An `ElementCache` as the loader sees it: the columns of any record stand for kept ones.

    The graph does not look at the columns of a record whose element is in the cache, so they need
    not be read.
    """

    def __init__(self, elements: ElementCache) -> None:
        self._elements = elements
        self._example: dict[str, Any] = {}

    def find(self, numbers: Numbers) -> Numbers:
        """Above 0 for each record whose element is in the cache."""
        if not self._example:
            return np.zeros(len(numbers), np.int64)
        return self._elements.find(numbers).astype(np.int64)

    def gather(self, places: Numbers) -> dict[str, Any]:
        """Columns of the right types for this many records."""
        rows = np.zeros(len(places), np.int64)
        return {name: column[rows] for name, column in self._example.items()}

    def add(self, numbers: Numbers, columns: dict[str, Any]) -> None:
        """Keep one record, which stands for all."""
        if not self._example and len(numbers):
            first = np.zeros(1, np.int64)
            example = {name: copy_column(column, first) for name, column in columns.items()}
            self._example = {**example, KEPT: np.ones(1, np.bool_)}

    def add_lost(self, numbers: Numbers, damage: Collection[Damage]) -> None:
        """Keep nothing: damage that the order does not leave out is an error."""

    def damage_at(self, places: Numbers) -> list[Damage]:  # noqa: ARG002
        """No damage, since no place is below 0."""
        return []


# The records that are read together.


@dataclass(frozen=True, slots=True)
class _Part:
    """Some records of an epoch: their numbers, their positions, and which of them are real."""

    epoch: int
    numbers: Numbers
    positions: Numbers
    is_real: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: slice) -> _Part:
        return _Part(self.epoch, self.numbers[rows], self.positions[rows], self.is_real[rows])

    @staticmethod
    def of_plan(plan: BatchPlan) -> _Part:
        """The records of one batch."""
        is_real = np.arange(len(plan.numbers)) < plan.real
        return _Part(plan.epoch, plan.numbers, plan.positions, is_real)

    def as_plan(self) -> BatchPlan:
        """One batch of all these records."""
        return BatchPlan(self.epoch, 0, 0, self.numbers, self.positions, len(self))

    @staticmethod
    def joined(parts: list[_Part]) -> _Part:
        """Parts of one epoch, one after the other."""
        if len(parts) == 1:
            return parts[0]
        fields = zip(*((p.numbers, p.positions, p.is_real) for p in parts), strict=True)
        return _Part(parts[0].epoch, *map(np.concatenate, fields))


def _parts_of(stream: Stream, place: Place, together: int) -> Iterator[_Part]:
    """The records of `together` batches at a time, which never span epochs and are never empty."""
    if not batches_per_epoch(stream):
        return
    size, joined = stream.batch_size, stream
    if stream.host[1] == 1 and stream.remainder in ("keep", "drop"):
        # The same positions in fewer steps.
        joined = replace(stream, batch_size=size * together, remainder="keep")
        together = 1
    for _, plans in groupby(joined.plans(place), key=lambda plan: plan.epoch):
        while some := [_Part.of_plan(plan) for plan in islice(plans, together)]:
            part = _Part.joined(some)
            if stream.remainder == "drop":
                part = part[: len(part) // size * size]
            if len(part):
                yield part


def _numbering(unpacker: Unpacker) -> Callable[[Any, Any], Any]:
    """Make a function that repeats arrays of several batches, with the number of each batch."""

    @leave_as_is
    def number(flat: Any, strings: Any) -> Any:
        batches = unpacker.count(flat)
        given = [tf.data.Dataset.from_tensors(array).repeat(batches) for array in (flat, strings)]
        return tf.data.Dataset.zip((*given, tf.data.Dataset.range(batches)))

    return number


def _regroup(parts: Iterable[_Part], size: int) -> Iterator[_Part]:
    """The same records of an epoch in parts of `size`, but for the last."""
    held: list[_Part] = []
    for part in parts:
        whole = _Part.joined([*held, part])
        end = len(whole) // size * size
        for start in range(0, end, size):
            yield whole[start : start + size]
        held = [whole[end:]]
    if held and len(held[0]):
        yield held[0]
