"""An order of records without those that are lost."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from datum.loading.stream import EpochOrder

__all__ = ["SoundOrder"]

LOOKED_AT = 2**20  # positions at a time, in search of those that are lost


class SoundOrder:
    """The records of an order that are not lost, one after the other in that order.

    So every batch is full. To find out where those lost would come, each epoch is gone through
    once, at some 30 million records a second.

    Args:
        order: of all records.
        lost: the numbers of those that are lost.

    >>> from datum.reading.order import Order
    >>> SoundOrder(Order(5), np.array([1, 2])).numbers(0, np.arange(3))
    array([0, 3, 4])
    """

    def __init__(self, order: EpochOrder, lost: NDArray[np.int64]) -> None:
        self._order = order
        self._lost = lost
        self._held: tuple[int, NDArray[np.int64]] | None = None

    @property
    def records(self) -> int:
        """How many positions an epoch has."""
        return self._order.records - len(self._lost)

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        held = self._held
        if held is None or held[0] != epoch:
            self._held = held = epoch, self._find_gaps(epoch)
        passed = np.searchsorted(held[1], positions, "right")
        return self._order.numbers(epoch, positions + passed)

    def _find_gaps(self, epoch: int) -> NDArray[np.int64]:
        """For each lost record how many others come before it, rising."""
        found = []
        for start in range(0, self._order.records, LOOKED_AT):
            positions = np.arange(start, min(start + LOOKED_AT, self._order.records))
            numbers = self._order.numbers(epoch, positions)
            found.append(positions[np.isin(numbers, self._lost)])
        places = np.concatenate([np.empty(0, np.int64), *found])
        return places - np.arange(len(places))
