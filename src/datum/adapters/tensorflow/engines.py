"""Which engine reads: TensorFlow's graph, or the native core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Choice", "Engine", "Situation", "choose_engine"]

Engine = Literal["auto", "graph", "native"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What decides on the engine.

    Attributes:
        only_in_graph: an option that nothing but the graph can do; None without any.
        about_graph: an option that is about how the graph works, likewise.
        is_traced: whether a tf.function is being traced.
        is_shared: whether TensorFlow may give the dataset to other processes: those of a cluster
            to which no `host` was told, or of a TPU.
    """

    only_in_graph: str | None = None
    about_graph: str | None = None
    is_traced: bool = False
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """An engine, and why it was chosen, in a few words."""

    engine: Literal["graph", "native"]
    reason: str


def choose_engine(asked: Engine, situation: Situation) -> Choice:
    """The engine that was asked for, or with "auto" the one that suits.

    ValueError where "native" was asked for together with an option that only the graph has.

    >>> choose_engine("auto", Situation())
    Choice(engine='native', reason='Python runs in this process')
    >>> choose_engine("auto", Situation(is_traced=True))
    Choice(engine='graph', reason='within a tf.function')
    """
    if asked == "native" and situation.only_in_graph is not None:
        raise ValueError(
            f"expected no {situation.only_in_graph} with engine='native', which cannot do that\n"
            "hint: engine='graph', or leave the option out"
        )
    if asked != "auto":
        return Choice(asked, "as asked for")
    reasons = (
        (situation.only_in_graph is not None, f"{situation.only_in_graph}"),
        (situation.about_graph is not None, f"{situation.about_graph}"),
        (situation.is_traced, "within a tf.function"),
        (situation.is_shared, "other processes may read it"),
    )
    for applies, reason in reasons:
        if applies:
            return Choice("graph", reason)
    return Choice("native", "Python runs in this process")
