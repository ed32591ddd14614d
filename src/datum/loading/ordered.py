"""Records in an order: where they lie, and which of them comes when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datum.loading.options import LoadOptions
from datum.loading.state import fingerprint
from datum.loading.stream import EpochOrder
from datum.reading import Split
from datum.reading.batches import Run
from datum.reading.order import WINDOW_RECORDS, Order
from datum.reading.shards import Shards
from datum.schema import Schema

__all__ = ["Ordered", "Parts", "make_order", "order_split"]

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
    order: EpochOrder
    identity: Mapping[str, Any]


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
    order = make_order(len(split), options)
    identity = {
        "records": fingerprint(split.runs),
        "order": order.description,
        "seed": options.seed,
    }
    parts = tuple((split.shards, run) for run in split.runs)
    return Ordered(split.name, split.schema, parts, order, identity)
