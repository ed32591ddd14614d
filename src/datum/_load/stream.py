"""Stream of batch plans: the records of each batch by order, epoch, host and worker."""

from __future__ import annotations

import json
import operator
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from datum._load.epoch_order import WINDOW_RECORDS, Order, ShardOrder
from datum._load.missing import find_lacking, required_features
from datum._load.options import RECORDS_AT_ONCE, LoadOptions, Remainder
from datum._read.local import check_counts
from datum._read.shards import ShardRange, Shards
from datum._read.split import Split
from datum.errors import SplitError, StateError
from datum.schema import Schema

__all__ = [
    "MAX_COUNT",
    "BatchPlan",
    "EpochOrder",
    "OrderWithout",
    "Ordered",
    "Parts",
    "PassProgress",
    "Place",
    "RecordStream",
    "SeededOrder",
    "Stream",
    "check_state",
    "check_state_seed",
    "fingerprint",
    "make_order",
    "order_split",
    "to_state",
]


class EpochOrder(Protocol):
    """The record at each position of an epoch."""

    @property
    def records(self) -> int:
        """Number of positions in an epoch."""

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions."""


class SeededOrder(EpochOrder, Protocol):
    """An order that depends on a seed."""

    def with_seed(self, seed: int) -> SeededOrder:
        """The order of the same records with another seed."""


@dataclass(frozen=True, slots=True)
class Place:
    """The progress of a pass: an epoch, and the next position in it for all hosts together."""

    epoch: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """The records of one batch of this host.

    Attributes:
        epoch: The epoch of the batch.
        start: Position in the epoch where the batch of all hosts starts.
        stop: Position where the next one starts.
        numbers: Numbers of the records of this host.
        positions: Positions of these records in the epoch.
        real: Number of these records that count; those after them only fill up the batch.
        turns: Number of steps of this host's stream: 1 for a batch, more for single records.
        length: Length that rows of the feature `bucket_by` are padded to; None for no such length.
    """

    epoch: int
    start: int
    stop: int
    numbers: NDArray[np.int64]
    positions: NDArray[np.int64]
    real: int
    turns: int = 1
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """The batches of one host from any place on.

    The batch of all hosts is the next `hosts * batch_size` positions of the epoch, and each host
    takes an equal part of it. No batch spans two epochs. All hosts have the same number of
    batches.

    Attributes:
        order: The record at each position.
        batch_size: Number of records in a batch of this host.
        host: Index of this host, and number of hosts.
        remainder: Treatment of the last positions of an epoch that do not fill a batch.
        epochs: Number of epochs in a pass; None never ends.
    """

    order: EpochOrder
    batch_size: int
    host: tuple[int, int] = (0, 1)
    remainder: Remainder = "keep"
    epochs: int | None = 1

    @property
    def global_batch(self) -> int:
        """Number of positions in a batch of all hosts."""
        return self.batch_size * self.host[1]

    def _left(self, position: int) -> int:
        """Number of batches of an epoch from a position on."""
        positions = max(0, self.order.records - position)
        if self.remainder == "drop":
            return positions // self.global_batch
        return -(-positions // self.global_batch)

    def _epochs_from(self, epoch: int) -> int | None:
        """Number of epochs from this one to the end of its pass; None never ends."""
        return None if self.epochs is None else self.epochs - epoch % self.epochs

    def next_pass(self, place: Place) -> Place:
        """The start of the pass after the one of a place.

        A pass without end must have been interrupted, so the next one starts with the next epoch.
        """
        return Place(place.epoch + (self._epochs_from(place.epoch) or 1), 0)

    def count(self, place: Place) -> int | None:
        """Number of batches from a place to the end of its pass; None without end."""
        epochs = self._epochs_from(place.epoch)
        if epochs is None:
            return None
        return self._left(place.position) + (epochs - 1) * self._left(0)

    def last_batches(self, place: Place) -> list[int]:
        """Number of records of each host in the last batch of the epoch of a place."""
        hosts = self.host[1]
        rest = max(0, self.order.records - place.position) % self.global_batch
        if self.remainder != "keep" or not rest:
            return [self.batch_size] * hosts
        return [rest * (host + 1) // hosts - rest * host // hosts for host in range(hosts)]

    def after(self, place: Place, batches: int) -> Place:
        """The place after a number of batches, computed in one step."""
        left = self._left(place.position)
        if batches < left:
            return Place(place.epoch, place.position + batches * self.global_batch)
        per_epoch = self._left(0)
        if not per_epoch:
            return Place(place.epoch + 1, 0)
        epochs, batches = divmod(batches - left, per_epoch)
        return Place(place.epoch + 1 + epochs, batches * self.global_batch)

    def reached(self, start: Place, batches: int) -> Place:
        """The place of a pass after a number of batches.

        The end of a pass is not yet the start of the next one: a program that resumes there finds
        the pass at its end, as it was.
        """
        if not batches:
            return start
        place = self.after(start, batches)
        is_end = self.epochs is not None and not place.position and not place.epoch % self.epochs
        return Place(place.epoch - 1, self.order.records) if is_end else place

    def _normal(self, place: Place) -> Place:
        """The same place, or the start of the next epoch if this one has no batch left."""
        return place if self._left(place.position) else Place(place.epoch + 1, 0)

    def plans(
        self, start: Place, *, worker: tuple[int, int] = (0, 1), done: int = 0
    ) -> Iterator[BatchPlan]:
        """Yield the plans of the batches from a place to the end of its pass.

        Args:
            start: The place where all workers start.
            worker: Index of this worker and number of workers. A worker takes the batches `index`,
                `index + count` and so on.
            done: Number of batches of this worker to skip.
        """
        self._refuse_nothing()
        index, count = worker
        epochs = self._epochs_from(start.epoch)
        end = None if epochs is None else start.epoch + epochs
        place = self.after(self._normal(start), index + done * count)
        while self.order.records and (end is None or place.epoch < end):
            plan = self._plan(place, count)
            yield plan
            place = self.after(place, plan.turns * count)

    def _refuse_nothing(self) -> None:
        records = self.order.records
        if self.remainder == "drop" and 0 < records < self.global_batch:
            raise SplitError(
                f"expected at least {self.global_batch} records, a full batch on every host, since"
                f" short batches are dropped, got {records}",
                hint="choose a smaller `batch_size`, or drop_remainder=False",
            )

    def _plan(self, place: Place, step: int) -> BatchPlan:  # noqa: ARG002
        """The batch at a place; a worker takes every `step`th batch."""
        records, (host, hosts) = self.order.records, self.host
        left = records - place.position
        stop = min(records, place.position + self.global_batch)
        first = place.position + host * self.batch_size
        real = self.batch_size
        if left >= self.global_batch:
            positions = np.arange(first, first + self.batch_size)
        elif self.remainder == "wrap":
            positions = np.arange(first, first + self.batch_size) % records
        else:
            begin, end = left * host // hosts, left * (host + 1) // hosts
            positions = place.position + np.arange(begin, end)
            real = len(positions)
            if self.remainder == "pad":
                fill = np.arange(self.batch_size - real) % records
                positions = np.concatenate([positions, fill])
        numbers = self.order.numbers(place.epoch, positions)
        return BatchPlan(place.epoch, place.position, stop, numbers, positions, real)


@dataclass(frozen=True, slots=True)
class RecordStream(Stream):
    """Single records: in each turn every host takes one.

    Many are planned at a time. If the last turn of an epoch has too few records for all hosts, with
    "keep" some hosts have one record less than others.
    """

    batch_size: int = 1

    def _own_left(self, position: int) -> int:
        """Number of records of this host in an epoch from a position on."""
        index, hosts = self.host
        if self.remainder != "keep":
            return self._left(position)
        return max(0, -(-(self.order.records - position - index) // hosts))

    def count(self, place: Place) -> int | None:
        """Number of records from a place to the end of its pass; None without end."""
        epochs = self._epochs_from(place.epoch)
        if epochs is None:
            return None
        return self._own_left(place.position) + (epochs - 1) * self._own_left(0)

    def last_batches(self, place: Place) -> list[int]:  # noqa: ARG002
        """One record for each host: a single record is never short."""
        return [1] * self.host[1]

    def _plan(self, place: Place, step: int) -> BatchPlan:
        """The records of the next turns of a worker, which takes every `step`th turn."""
        records, (host, hosts) = self.order.records, self.host
        turns = min(-(-self._left(place.position) // step), RECORDS_AT_ONCE)
        positions = place.position + host + np.arange(turns) * step * hosts
        if self.remainder == "wrap":
            positions %= records
        positions = positions[positions < records]
        numbers = self.order.numbers(place.epoch, positions)
        stop = min(records, place.position + turns * step * hosts)
        return BatchPlan(
            place.epoch, place.position, stop, numbers, positions, len(positions), turns
        )


VERSION = 1
MAX_COUNT = 2**53  # epochs and batches: every JSON reader holds such numbers exactly
_WHAT = {
    "records": "the same records",
    "order": "the same `shuffle`",
    "seed": "the same `seed`",
}


@dataclass(frozen=True, slots=True)
class PassProgress:
    """A start, and the number of batches since.

    Attributes:
        start: The place where all workers started.
        worker: Index of this worker, and number of workers.
        batches: Number of batches that this worker has returned.
    """

    start: Place = field(default_factory=Place)
    worker: tuple[int, int] = (0, 1)
    batches: int = 0


def fingerprint(runs: Iterable[ShardRange]) -> str:
    """A digest that identifies the records of these ranges, in whatever folder they are."""
    digest = blake2b(digest_size=12)
    for run in runs:
        shard = run.shard
        name = PurePath(shard.name).name
        facts = [name, shard.bytes, shard.records, shard.crc32c, run.start, run.stop]
        digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def to_state(identity: Mapping[str, Any], progress: PassProgress) -> dict[str, Any]:
    """The state of a loader, as plain values that fit into JSON."""
    place = {"epoch": progress.start.epoch, "position": progress.start.position}
    state = {"version": VERSION, **identity, **place}
    if progress.worker[1] > 1:
        state |= {"worker": list(progress.worker), "batches": progress.batches}
    return state


def check_state(
    state: Any,
    identity: Mapping[str, Any],
    *,
    records: int,
    worker: tuple[int, int],
    where: str,
) -> PassProgress:
    """Read a state; raise StateError if it is of other records or another order.

    Args:
        state: State of unknown origin.
        identity: Values that the state must agree with.
        records: Number of positions in an epoch.
        worker: Index of this worker, and number of workers.
        where: Description of the records, for messages.
    """
    known = {"version", "epoch", "position", *identity}
    if not isinstance(state, Mapping) or not known <= set(state):
        raise StateError(
            f"expected a state from `state_dict`, got {reprlib.repr(state)}",
            where=where,
            hint="loader.load_state_dict(other.state_dict())",
        )
    if not _is_equal(state["version"], VERSION):
        got = reprlib.repr(state["version"])
        raise StateError(f"expected state of version {VERSION}, got {got}", where=where)
    for name, value in identity.items():
        if not _is_equal(state[name], value):
            got = reprlib.repr(state[name])
            raise StateError(
                f"expected state of {_WHAT[name]}, {name} {value!r}, got {got}",
                where=where,
                hint="make the loader with the same options, or start from the beginning",
            )
    epoch = _count(state, "epoch", where, most=MAX_COUNT)
    position = _count(state, "position", where, most=records)
    start = Place(epoch, position)
    if "worker" not in state:
        return PassProgress(start, worker)
    given = state["worker"]
    if not isinstance(given, (list, tuple)) or tuple(map(_to_int, given)) != worker:
        raise StateError(
            f"expected the state of worker {worker}, got that of {reprlib.repr(given)}",
            where=where,
            hint="loader.state_dict(batches=n) of the main process fits any number of workers",
        )
    return PassProgress(start, worker, _count(state, "batches", where, most=MAX_COUNT))


def check_state_seed(state: Any, where: str) -> int:
    """The seed of a state, for a loader that was made with `seed=None`."""
    return _count(state if isinstance(state, Mapping) else {}, "seed", where, most=None)


def _is_equal(found: Any, expected: int | str) -> bool:
    """Whether a value of a state equals the expected one; it may be a NumPy number."""
    if isinstance(expected, str):
        return isinstance(found, str) and found == expected
    return _to_int(found) == expected


def _to_int(found: Any) -> int | None:
    """A whole number as an `int`; None for any other value."""
    try:
        return None if isinstance(found, bool) else operator.index(found)
    except TypeError:
        return None


def _count(state: Mapping[str, Any], name: str, where: str, *, most: int | None) -> int:
    found = state.get(name)
    number = _to_int(found)
    if number is None or number < 0 or (most is not None and number > most):
        bounds = "0 or more" if most is None else f"0 to {most:,}"
        raise StateError(
            f"expected `{name}` of {bounds}, got {reprlib.repr(found)}",
            where=where,
            hint="pass the state exactly as `state_dict` returned it",
        )
    return number


SEARCHED_RECORDS = 1 << 20  # positions searched at a time for excluded records

Parts = tuple[tuple[Shards, ShardRange], ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """The records of a loader in their order.

    Attributes:
        name: Name of the split as requested, for messages.
        schema: Schema of the records.
        parts: Shard ranges with the records, numbered from 0 through all of them.
        order: The number of the record at each position of an epoch.
        identity: Plain values that a saved state must agree with.
    """

    name: str
    schema: Schema
    parts: Parts
    order: SeededOrder
    identity: Mapping[str, Any]

    def with_seed(self, seed: int) -> Ordered:
        """The same records in the order of another seed."""
        return replace(
            self, order=self.order.with_seed(seed), identity={**self.identity, "seed": seed}
        )


def make_order(records: int, options: LoadOptions) -> Order:
    """The order for the option `shuffle`, unless it depends on shards."""
    shuffle: Any = options.shuffle
    if shuffle is False or (shuffle == 0 and not isinstance(shuffle, str)):
        return Order(records)
    if shuffle is True or shuffle == "full":
        return Order(records, "full", options.seed, reshuffles=options.reshuffle)
    window = WINDOW_RECORDS if shuffle == "blocks" else int(shuffle)
    return Order(records, "blocks", options.seed, window, reshuffles=options.reshuffle)


def order_split(split: Split, options: LoadOptions) -> Ordered:
    """The records of a split in the order of the options."""
    check_counts(split.shards, [run.shard for run in split.runs])
    order: Order | ShardOrder
    if options.shuffle == "shards":
        sizes = [len(run) for run in split.runs]
        order = ShardOrder(sizes, options.seed, reshuffles=options.reshuffle)
    else:
        order = make_order(len(split), options)
    description = order.description
    parts = tuple((split.shards, run) for run in split.runs)
    chosen: SeededOrder = order
    named = isinstance(options.missing, Mapping)
    read = split.schema if named else split.schema.select(options.selected(split.schema))
    required = required_features(read, options.missing)
    if required:
        lacking = find_lacking(parts, split.schema, required)
        chosen = OrderWithout(order, lacking) if len(lacking) else order
        description += f", without records that lack {' or '.join(required)}"
    identity = {"records": fingerprint(split.runs), "order": description, "seed": options.seed}
    return Ordered(split.name, split.schema, parts, chosen, identity)


class OrderWithout:
    """An order without some of its records; the others move up, so that every batch is full.

    The positions of excluded records are found by computing the order of each epoch once, at some
    30 million records a second.

    Args:
        order: Order of all records.
        excluded: Numbers of the records to exclude, in ascending order.

    >>> OrderWithout(Order(5), np.array([1, 2])).numbers(0, np.arange(3))
    array([0, 3, 4])
    """

    def __init__(self, order: SeededOrder, excluded: NDArray[np.int64]) -> None:
        self._order = order
        self._excluded = excluded
        self._held: tuple[int, NDArray[np.int64]] | None = None

    @property
    def records(self) -> int:
        """Number of positions in an epoch."""
        return self._order.records - len(self._excluded)

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        held = self._held
        if held is None or held[0] != epoch:
            self._held = held = epoch, self._find_gaps(epoch)
        passed = np.searchsorted(held[1], positions, "right")
        return self._order.numbers(epoch, positions + passed)

    def with_seed(self, seed: int) -> OrderWithout:
        """The order of another seed, with the same records excluded."""
        return OrderWithout(self._order.with_seed(seed), self._excluded)

    def _find_gaps(self, epoch: int) -> NDArray[np.int64]:
        """Number of other records before each excluded one, in ascending order."""
        found = []
        for start in range(0, self._order.records, SEARCHED_RECORDS):
            positions = np.arange(start, min(start + SEARCHED_RECORDS, self._order.records))
            numbers = self._order.numbers(epoch, positions)
            found.append(positions[np.isin(numbers, self._excluded)])
        places = np.concatenate([np.empty(0, np.int64), *found])
        return places - np.arange(len(places))
