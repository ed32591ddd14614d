"""Records in an order: where they lie, and which of them comes when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.loading.missing import find_lacking, required_features
from datum.loading.options import LoadOptions
from datum.loading.state import fingerprint
from datum.loading.stream import SeededOrder
from datum.reading import Split
from datum.reading.batches import Run
from datum.reading.local import check_counts
from datum.reading.order import WINDOW_RECORDS, Order
from datum.reading.shards import Shards
from datum.schema import Schema

__all__ = ["OrderWithout", "Ordered", "Parts", "make_order", "order_split"]

SEARCHED_RECORDS = 1 << 20  # at a time, for those that are left out

Parts = tuple[tuple[Shards, Run], ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """What a loader goes through.

    Attributes:
        name: what was asked for, for messages.
        schema: what each record holds.
        parts: where the records lie; numbers count through them.
        order: which number comes at which position of an epoch.
        identity: what a saved state has to agree with, as plain values.
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
    """The order that `shuffle` asks for."""
    shuffle: Any = options.shuffle
    if shuffle is False or (shuffle == 0 and not isinstance(shuffle, str)):
        return Order(records)
    if shuffle is True or shuffle == "full":
        return Order(records, "full", options.seed, reshuffles=options.reshuffle)
    window = WINDOW_RECORDS if shuffle == "blocks" else int(shuffle)
    return Order(records, "blocks", options.seed, window, reshuffles=options.reshuffle)


def order_split(split: Split, options: LoadOptions) -> Ordered:
    """The records of a split in the order that the options ask for."""
    check_counts(split.shards, (run.shard for run in split.runs))
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
    """An order without some of its records, the others one after the other as they come in it.

    So every batch is full. To find where those left out would come, each epoch is gone through
    once, at some 30 million records a second.

    Args:
        order: of all records.
        left_out: the numbers of the records to leave out, rising.

    >>> OrderWithout(Order(5), np.array([1, 2])).numbers(0, np.arange(3))
    array([0, 3, 4])
    """

    def __init__(self, order: SeededOrder, left_out: NDArray[np.int64]) -> None:
        self._order = order
        self._left_out = left_out
        self._held: tuple[int, NDArray[np.int64]] | None = None

    @property
    def records(self) -> int:
        """How many positions an epoch has."""
        return self._order.records - len(self._left_out)

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        held = self._held
        if held is None or held[0] != epoch:
            self._held = held = epoch, self._find_gaps(epoch)
        passed = np.searchsorted(held[1], positions, "right")
        return self._order.numbers(epoch, positions + passed)

    def with_seed(self, seed: int) -> OrderWithout:
        """The order of another seed, without the same records."""
        return OrderWithout(self._order.with_seed(seed), self._left_out)

    def _find_gaps(self, epoch: int) -> NDArray[np.int64]:
        """For each record left out how many others come before it, rising."""
        found = []
        for start in range(0, self._order.records, SEARCHED_RECORDS):
            positions = np.arange(start, min(start + SEARCHED_RECORDS, self._order.records))
            numbers = self._order.numbers(epoch, positions)
            found.append(positions[np.isin(numbers, self._left_out)])
        places = np.concatenate([np.empty(0, np.int64), *found])
        return places - np.arange(len(places))
