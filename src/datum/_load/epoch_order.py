"""Order of an epoch: the record at each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum import _core

__all__ = [
    "BLOCKS_PER_WINDOW",
    "SHARDS_AT_ONCE",
    "WINDOW_RECORDS",
    "Mode",
    "Order",
    "ShardOrder",
    "key_of",
    "mix",
    "seeds_at",
]

Mode = Literal["none", "full", "blocks"]

# Number of blocks of neighbours in a window: enough for each batch to be a sample of the whole
# split, with blocks that are long enough for a disk to read at full speed.
BLOCKS_PER_WINDOW = 64
WINDOW_RECORDS = 16384
SHARDS_AT_ONCE = 4  # whose records are mixed: more mix better, and take more of a cache


_GOLDEN = 0x9E3779B97F4A7C15
_MASK = 2**64 - 1


def mix(number: int) -> int:
    """The finalizer of SplitMix64: any change of a number changes half of the bits."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)


def key_of(*parts: int | str) -> int:
    """A key of 64 bits for a permutation, derived from numbers and words.

    It is made with arithmetic alone, so that a TensorFlow graph can compute it for any epoch.

    >>> key_of(0, 0, "order") == key_of(0, 1, "order")
    False
    """
    key = 0
    for part in parts:
        rest = int.from_bytes(part.encode(), "little") if isinstance(part, str) else part
        while True:  # 64 bits at a time
            key = mix((key ^ (rest & _MASK)) + _GOLDEN & _MASK)
            rest >>= 64
            if not rest:
                break
    return key


def seeds_at(key: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two random numbers for each position, derived from a key.

    >>> seeds_at(1, np.arange(3)).shape
    (3, 2)
    """
    places = positions.astype(np.uint64)[:, np.newaxis] * np.uint64(2) + np.arange(
        2, dtype=np.uint64
    )
    state: Any = (places + np.uint64(1)) * np.uint64(_GOLDEN) + np.uint64(key)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: NDArray[np.int64] = (state ^ (state >> np.uint64(31))).view(np.int64)
    return found


@dataclass(frozen=True, slots=True)
class Order:
    """The order of the records of a split in every epoch, computed without a table.

    It depends on these attributes alone, so it is the same for any number of threads, workers and
    hosts.

    Attributes:
        records: Number of records.
        mode: "none" keeps the order of writing. "full" shuffles all records. "blocks" shuffles
            blocks of neighbours, and then the records within windows of such blocks.
        seed: Seed of the shuffle.
        window: Number of records in a window, for "blocks".
        reshuffles: Whether each epoch has another order.

    >>> order = Order(5, "full", seed=1)
    >>> sorted(order.numbers(0, np.arange(5)).tolist())
    [0, 1, 2, 3, 4]
    """

    records: int
    mode: Mode = "none"
    seed: int = 0
    window: int = WINDOW_RECORDS
    reshuffles: bool = True

    @property
    def description(self) -> str:
        """A description of the order, without seed and records."""
        name = f"blocks of {self.window}" if self.mode == "blocks" else self.mode
        return name if self.reshuffles or self.mode == "none" else f"{name}, once"

    def with_seed(self, seed: int) -> Order:
        """The order of the same records with another seed."""
        return replace(self, seed=seed)

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        epoch = epoch if self.reshuffles else 0
        if self.mode == "none" or self.records < 2:
            return positions
        if self.mode == "full":
            return _core.permute(positions, self.records, key_of(self.seed, epoch, "order"))
        return self._numbers_by_block(epoch, positions)

    def _numbers_by_block(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        # A larger window has the same order, since there is one block, but would overflow.
        window_records = min(self.window, BLOCKS_PER_WINDOW * self.records)
        size = max(1, window_records // BLOCKS_PER_WINDOW)
        blocks = -(-self.records // size)
        key = key_of(self.seed, epoch, "blocks")
        # All blocks are full except the last one of the split, which comes at `short`. Positions
        # after it are moved by `gap`, as if it were full too.
        gap = blocks * size - self.records
        last = np.array([blocks - 1], np.int64)
        short = int(_core.permute(last, blocks, key, True)[0])
        start_of_gap = (short + 1) * size - gap

        def spread(places: NDArray[np.int64]) -> NDArray[np.int64]:
            return places + np.where(places < start_of_gap, 0, gap)

        per_window = size * max(1, window_records // size)
        windows = spread(positions) // per_window
        mixed = np.empty_like(positions)
        for window in np.unique(windows).tolist():
            begin = window * per_window - (gap if short < window * per_window // size else 0)
            is_last = (window + 1) * per_window >= blocks * size
            after = (window + 1) * per_window
            end = self.records if is_last else after - (gap if short < after // size else 0)
            inside = windows == window
            key_here = key_of(self.seed, epoch, "window", window)
            mixed[inside] = begin + _core.permute(positions[inside] - begin, end - begin, key_here)
        places = spread(mixed)
        found = _core.permute(places // size, blocks, key)
        return found * size + places % size


class ShardOrder:
    """Shards in random order, and the records of a few consecutive ones in random order.

    Whoever reads in this order needs a few shards at a time, each once in an epoch: so it suits
    datasets that are larger than the local cache of an object store. Like `Order` it depends on
    nothing but what is given here.

    Args:
        sizes: how many records each shard has.
        seed: another seed gives another order.
        at_once: how many shards are mixed.
        reshuffles: whether each epoch has another order.

    Attributes:
        records: how many there are.

    >>> order = ShardOrder([2, 2, 2], seed=1, at_once=1)
    >>> order.numbers(0, np.arange(6)).tolist()
    [3, 2, 1, 0, 5, 4]
    """

    def __init__(
        self,
        sizes: Sequence[int],
        seed: int = 0,
        at_once: int = SHARDS_AT_ONCE,
        *,
        reshuffles: bool = True,
    ) -> None:
        self._sizes = np.array(sizes, np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._seed = seed
        self._at_once = at_once
        self._reshuffles = reshuffles
        self.records = int(self._sizes.sum())
        self._laid_out: tuple[int, NDArray[np.int64], NDArray[np.int64]] | None = None

    @property
    def description(self) -> str:
        """What tells one order from another, but for seed and records."""
        name = f"shards, {self._at_once} at once"
        return name if self._reshuffles else f"{name}, once"

    def with_seed(self, seed: int) -> ShardOrder:
        """The order of the same records with another seed."""
        return ShardOrder(self._sizes.tolist(), seed, self._at_once, reshuffles=self._reshuffles)

    def shards(self, epoch: int) -> NDArray[np.int64]:
        """The shards in the order of an epoch."""
        places = np.arange(len(self._sizes))
        if len(places) < 2:
            return places
        return _core.permute(places, len(places), key_of(self._seed, self._epoch(epoch), "shards"))

    def _epoch(self, epoch: int) -> int:
        return epoch if self._reshuffles else 0

    def _lay_out(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The shards of an epoch, and the position that each starts at."""
        laid_out = self._laid_out
        if laid_out is None or laid_out[0] != epoch:
            shards = self.shards(epoch)
            begins = np.cumsum(self._sizes[shards]) - self._sizes[shards]
            laid_out = self._laid_out = epoch, shards, begins
        return laid_out[1], laid_out[2]

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        epoch = self._epoch(epoch)
        shards, begins = self._lay_out(epoch)
        bounds = np.append(begins[:: self._at_once], self.records)
        windows = np.searchsorted(bounds, positions, "right") - 1
        mixed = np.empty_like(positions)
        for window in np.unique(windows).tolist():
            begin, end = int(bounds[window]), int(bounds[window + 1])
            inside = windows == window
            key = key_of(self._seed, epoch, "window", window)
            mixed[inside] = begin + _core.permute(positions[inside] - begin, end - begin, key)
        at = np.searchsorted(begins, mixed, "right") - 1
        found: NDArray[np.int64] = self._starts[shards[at]] + mixed - begins[at]
        return found
