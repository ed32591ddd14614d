"""Which engine reads: TensorFlow's graph, or the native core."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

__all__ = ["Choice", "Engine", "Situation", "choose_engine"]

Engine = Literal["auto", "graph", "native"]

# Of larger records parsing is a small part of the work.
LARGE_RECORD_BYTES = 8 * 2**10
# Records that others wrote have no index: it takes a pass over them to make one.
MAX_UNINDEXED_BYTES = 4 * 2**30
# A full shuffle of what does not stay in memory reads a page from the disk for every record.
MAX_PART_OF_MEMORY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What decides on the engine.

    Attributes:
        only_in_graph: an option that nothing but the graph can do; None without any.
        about_graph: an option that is about how the graph works, likewise.
        is_distributed: whether `host` is a strategy, an InputContext or the tf.data service, or
            the scope of a strategy is open.
        hosts: how many there are.
        is_traced: whether a tf.function is being traced.
        is_compressed: whether shards are.
        is_indexed: whether there is an index beside each shard.
        is_cached: whether what was read is kept.
        is_by_record: whether images are decoded, or functions called, for each record.
        is_shuffled: whether any record may come anywhere.
        record_bytes: of one record, on average.
        split_bytes: of all of them.
        memory_bytes: that this machine has.
    """

    only_in_graph: str | None = None
    about_graph: str | None = None
    is_distributed: bool = False
    hosts: int = 1
    is_traced: bool = False
    is_compressed: bool = False
    is_indexed: bool = True
    is_cached: bool = False
    is_by_record: bool = False
    is_shuffled: bool = False
    record_bytes: int = 0
    split_bytes: int = 0
    memory_bytes: int = 2**63


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and why it was chosen, in a few words."""

    engine: Literal["graph", "native"]
    reason: str


def choose_engine(asked: Engine, situation: Situation) -> Choice:
    """The engine that was asked for, or with "auto" the one that suits.

    ValueError where "native" was asked for together with an option that only the graph has.

    >>> choose_engine("auto", Situation(record_bytes=300))
    Choice(engine='native', reason='parsing is the bottleneck')
    >>> choose_engine("auto", Situation(is_compressed=True))
    Choice(engine='graph', reason='compressed shards')
    """
    if asked == "native" and situation.only_in_graph is not None:
        raise ValueError(
            f"expected no {situation.only_in_graph} with engine='native', which cannot do that\n"
            "hint: engine='graph', or leave the option out"
        )
    if asked != "auto":
        return Choice(asked, "as asked for")
    for reason in _reasons_for_graph(situation):
        return Choice("graph", reason)
    return Choice("native", "parsing is the bottleneck")


def _reasons_for_graph(found: Situation) -> Iterator[str]:
    """What speaks for the graph: first what needs it, then what gains nothing without it."""
    is_large = found.split_bytes > found.memory_bytes * MAX_PART_OF_MEMORY
    reasons = (
        (found.only_in_graph is not None, f"{found.only_in_graph}"),
        (found.about_graph is not None, f"{found.about_graph}"),
        (found.is_distributed, "a distribution strategy or service"),
        (found.hosts > 1, "several hosts"),
        (found.is_traced, "within a tf.function"),
        (found.is_compressed, "compressed shards"),
        (not found.is_indexed and found.split_bytes > MAX_UNINDEXED_BYTES, "large, and no index"),
        (found.is_shuffled and is_large, "shuffled, and larger than memory"),
        (found.is_cached, "read only once"),
        (found.is_by_record, "work on each record is the bottleneck"),
        (found.record_bytes >= LARGE_RECORD_BYTES, "large records"),
    )
    return (reason for applies, reason in reasons if applies)
