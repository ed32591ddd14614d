"""Order of a mix: several splits, each with its share of every batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._load.epoch_order import key_of
from datum._load.options import LoadOptions
from datum._load.stream import Ordered, SeededOrder
from datum.errors import Message, SchemaError
from datum.schema import Schema

__all__ = [
    "MixedOrder",
    "mix_shares",
    "order_mix",
]

# Number of consecutive positions among which each split has exactly its share. A power of two above
# any usual batch: shares are exact to a few thousandths of a percent.
ROUND = 1 << 16


def mix_shares(weights: Sequence[Any]) -> list[int]:
    """The number of positions out of `ROUND` for each weight: in proportion, at least one.

    >>> mix_shares([0.5, 0.25, 0.25])
    [32768, 16384, 16384]
    """
    for weight in weights:
        # NumPy registers its numbers as Real, but not its bool.
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not math.isfinite(weight) or weight <= 0:
            raise ValueError(Message(f"expected weights above 0, got {weight!r}"))
    most = max(weights)
    parts = [float(weight / most) for weight in weights]  # whose sum cannot overflow
    exact = [part / math.fsum(parts) * ROUND for part in parts]
    shares = [max(1, math.floor(share)) for share in exact]
    by_rest = sorted(range(len(exact)), key=lambda i: shares[i] - exact[i])
    for i in range(ROUND - sum(shares)):
        shares[by_rest[i % len(by_rest)]] += 1
    while sum(shares) > ROUND:  # many tiny weights were raised to one
        shares[shares.index(max(shares))] -= 1
    return shares


@dataclass(frozen=True, slots=True)
class MixedOrder:
    """The order of the records of several splits, a function of the position alone.

    Within each round of positions the splits come in random order, each as often as its share, and
    each with its records in its own order. A split that ends starts again in the order of its next
    epoch. An epoch of the mix has as many positions as there are records, so it need not match the
    epochs of the splits.

    Attributes:
        orders: Order of each split.
        firsts: Number of the first record of each split.
        shares: Number of positions of each split in a round.
        seed: Seed of the order of the splits in a round.
    """

    orders: tuple[SeededOrder, ...]
    firsts: tuple[int, ...]
    shares: tuple[int, ...]
    seed: int

    @property
    def records(self) -> int:
        """Number of positions in an epoch."""
        return sum(order.records for order in self.orders)

    def numbers(self, epoch: int, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these positions of an epoch."""
        places = positions + epoch * self.records
        rounds = places // ROUND
        found = np.empty_like(positions)
        for number in np.unique(rounds).tolist():
            here = rounds == number
            found[here] = self._of_round(number, places[here] - number * ROUND)
        return found

    def with_seed(self, seed: int) -> MixedOrder:
        """The same mix, each split in the order of another seed."""
        return replace(self, orders=tuple(order.with_seed(seed) for order in self.orders))

    def _of_round(self, number: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the records at these places of a round."""
        deal, before = (table[places] for table in _deal(self.shares, self.seed, number))
        found = np.empty_like(places)
        for source in np.unique(deal).tolist():
            here = deal == source
            nth = number * self.shares[source] + before[here]
            found[here] = self.firsts[source] + self._nth(source, nth)
        return found

    def _nth(self, source: int, nth: NDArray[np.int64]) -> NDArray[np.int64]:
        """The records of one split, counted through all its epochs."""
        order = self.orders[source]
        epochs, positions = nth // order.records, nth % order.records
        found = np.empty_like(nth)
        for epoch in np.unique(epochs).tolist():
            here = epochs == epoch
            found[here] = order.numbers(epoch, positions[here])
        return found


@lru_cache(maxsize=4)  # half a MiB and a millisecond each; consecutive batches share one
def _deal(
    shares: tuple[int, ...], seed: int, number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The split at each place of a round, and the number of places before it with that split."""
    places = _core.permute(np.arange(ROUND), ROUND, key_of(seed, number, "mix"))
    deal = np.repeat(np.arange(len(shares)), shares)[places]
    by_split = np.argsort(deal, kind="stable")
    before = np.empty(ROUND, np.int64)
    before[by_split] = np.arange(ROUND) - np.repeat(np.cumsum(shares) - shares, shares)
    return deal, before


def order_mix(
    parts: Sequence[Ordered], weights: Sequence[float], *, seed: int, options: LoadOptions
) -> Ordered:
    """Mix the records of several splits by weight; each split keeps its own order."""
    for part in parts:
        if not part.order.records:
            raise ValueError(
                Message(f"expected splits with records to mix, got the empty split {part.name!r}")
            )
    shares = mix_shares(weights)
    counts = [sum(len(run) for _, run in part.parts) for part in parts]
    ends = np.cumsum([0, *counts]).tolist()
    order = MixedOrder(tuple(part.order for part in parts), tuple(ends[:-1]), tuple(shares), seed)
    named = zip(shares, parts, strict=True)
    identity: dict[str, Any] = {
        "records": "+".join(part.identity["records"] for part in parts),
        "order": f"mix {seed}: " + ", ".join(f"{n} {p.identity['order']}" for n, p in named),
        "seed": options.seed,
    }
    name = "+".join(part.name for part in parts)
    places = tuple(place for part in parts for place in part.parts)
    return Ordered(name, _common_schema(parts, options), places, order, identity)


def _common_schema(parts: Sequence[Ordered], options: LoadOptions) -> Schema:
    """The schema of the mix; SchemaError if the splits differ in a selected feature."""
    first, *others = parts
    chosen = options.selected(first.schema)
    for other in others:
        theirs = options.selected(other.schema)
        for name in dict.fromkeys([*chosen, *theirs]):
            got = [schema.get(name) for schema in (chosen, theirs)]
            if got[0] != got[1]:
                raise SchemaError(
                    f"expected the same feature {name!r} in the splits of a mix, got {got[0]!r} in"
                    f" {first.name!r} and {got[1]!r} in {other.name!r}",
                    hint="select the features that they share with `columns`",
                    feature=name,
                )
    return first.schema
