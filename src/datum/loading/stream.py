"""Which records each batch has: epochs, hosts, workers, and what does not fill a batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from datum.errors import SplitError
from datum.loading.options import RECORDS_AT_ONCE, Remainder

__all__ = ["BatchPlan", "EpochOrder", "Place", "RecordStream", "SeededOrder", "Stream"]


class EpochOrder(Protocol):
    """Which record comes at which position of an epoch."""

    @property
    def records(self) -> int:
        """How many positions an epoch has."""

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions."""


class SeededOrder(EpochOrder, Protocol):
    """An order that a seed tells."""

    def with_seed(self, seed: int) -> SeededOrder:
        """The order of the same records with another seed."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pass over the records has come to: the next position of all hosts together."""

    epoch: int = 0
    position: int = 0


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What one batch of this host is made of.

    Attributes:
        epoch: the epoch it belongs to.
        start: the position of the epoch at which the batch of all hosts starts.
        stop: the position at which the next one starts.
        numbers: the records of this host's part.
        positions: their positions in the epoch.
        real: so many of them count; the others fill up.
        turns: how many steps of this host's stream they are: one, but for single records.
        length: what rows of the feature `bucket_by` are padded to; None where nothing says so.
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
    """The batches of one host, as a function of where to start.

    The batch of all hosts is the next `hosts * batch_size` positions of the epoch, and each host
    takes an equal part of it. No batch goes over the end of an epoch. All hosts have the same
    number of batches.

    Attributes:
        order: which record comes at which position.
        batch_size: how many records this host gets at a time.
        host: the index of this host, and how many there are.
        remainder: what becomes of the last positions of an epoch, too few for a full batch.
        epochs: how many epochs make a pass; None is without end.
    """

    order: EpochOrder
    batch_size: int
    host: tuple[int, int] = (0, 1)
    remainder: Remainder = "keep"
    epochs: int | None = 1

    @property
    def global_batch(self) -> int:
        """How many positions all hosts take at once."""
        return self.batch_size * self.host[1]

    def _left(self, position: int) -> int:
        """How many batches an epoch still has from a position on."""
        positions = max(0, self.order.records - position)
        if self.remainder == "drop":
            return positions // self.global_batch
        return -(-positions // self.global_batch)

    def _epochs_from(self, epoch: int) -> int | None:
        """How many epochs, this one included, the pass that it belongs to still has."""
        return None if self.epochs is None else self.epochs - epoch % self.epochs

    def next_pass(self, place: Place) -> Place:
        """Where the pass after the one that a place belongs to starts.

        After one without end, which was broken off then, that is the next epoch.
        """
        return Place(place.epoch + (self._epochs_from(place.epoch) or 1), 0)

    def count(self, place: Place) -> int | None:
        """How many batches there are from a place to the end of its pass; None without end."""
        epochs = self._epochs_from(place.epoch)
        if epochs is None:
            return None
        return self._left(place.position) + (epochs - 1) * self._left(0)

    def last_batches(self, place: Place) -> list[int]:
        """How many records each host has in the last batch of the epoch of a place."""
        hosts = self.host[1]
        rest = max(0, self.order.records - place.position) % self.global_batch
        if self.remainder != "keep" or not rest:
            return [self.batch_size] * hosts
        return [rest * (host + 1) // hosts - rest * host // hosts for host in range(hosts)]

    def after(self, place: Place, batches: int) -> Place:
        """The place that so many batches lead to, in one step."""
        left = self._left(place.position)
        if batches < left:
            return Place(place.epoch, place.position + batches * self.global_batch)
        per_epoch = self._left(0)
        if not per_epoch:
            return Place(place.epoch + 1, 0)
        epochs, batches = divmod(batches - left, per_epoch)
        return Place(place.epoch + 1 + epochs, batches * self.global_batch)

    def reached(self, start: Place, batches: int) -> Place:
        """Where a pass has come to after so many batches; its end is not yet the next one's start.

        So a program that goes on from there finds the pass at its end, as it was.
        """
        if not batches:
            return start
        place = self.after(start, batches)
        is_end = self.epochs is not None and not place.position and not place.epoch % self.epochs
        return Place(place.epoch - 1, self.order.records) if is_end else place

    def _normal(self, place: Place) -> Place:
        """The end of an epoch, and what drops from it, is the start of the next."""
        return place if self._left(place.position) else Place(place.epoch + 1, 0)

    def plans(
        self, start: Place, *, worker: tuple[int, int] = (0, 1), done: int = 0
    ) -> Iterator[BatchPlan]:
        """The batches from `start` to the end of the pass.

        Of several workers each takes the batches `index`, `index + count` and so on; `done` of
        its own are passed over.
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
                f"expected at least {self.global_batch} records, one batch on every host, since a"
                f" short one is left out, got {records}",
                hint="a smaller `batch_size`, or drop_remainder=False",
            )

    def _plan(self, place: Place, step: int) -> BatchPlan:  # noqa: ARG002
        """The batch at a place; workers take each `step`th of them."""
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
    """Single records: at each turn every host takes one.

    They are planned many at a time. Of the last turn of an epoch, which may have too few for all
    hosts, "keep" leaves some without, so that these have one record less.
    """

    batch_size: int = 1

    def _own_left(self, position: int) -> int:
        """How many records of an epoch this host still has from a position on."""
        index, hosts = self.host
        if self.remainder != "keep":
            return self._left(position)
        return max(0, -(-(self.order.records - position - index) // hosts))

    def count(self, place: Place) -> int | None:
        """How many records there are from a place to the end of its pass; None without end."""
        epochs = self._epochs_from(place.epoch)
        if epochs is None:
            return None
        return self._own_left(place.position) + (epochs - 1) * self._own_left(0)

    def last_batches(self, place: Place) -> list[int]:  # noqa: ARG002
        """Of single records none is short."""
        return [1] * self.host[1]

    def _plan(self, place: Place, step: int) -> BatchPlan:
        """The records of the next turns of a worker, which takes each `step`th turn."""
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
