"""A suite: contenders for one piece of work, the check that they agree, and the goals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import Contender, Timing


@dataclass(frozen=True)
class Setting:
    """How large the work is, and where generated files are kept."""

    quick: bool
    cache: Path


@dataclass(frozen=True)
class Memory:
    """What one pass added to a fresh process at its peak; `own_bytes` leaves out mapped files."""

    resident_bytes: int
    own_bytes: int


@dataclass(frozen=True)
class Outcome:
    """What was measured of each contender, by name."""

    timings: Mapping[str, Timing]
    memory: Mapping[str, Memory]


@dataclass(frozen=True)
class Goal:
    """A bound on one figure; `measure` takes it from the outcome, None if not measured."""

    text: str
    bound: float
    unit: str
    measure: Callable[[Outcome], float | None]
    is_ceiling: bool = False

    def is_met(self, value: float) -> bool:
        """Whether `value` is on the right side of the bound."""
        return value <= self.bound if self.is_ceiling else value >= self.bound


@dataclass(frozen=True)
class Suite:
    """`references` are the contenders that all others are given as multiples of."""

    name: str
    title: str
    contenders: tuple[Contender, ...]
    references: tuple[str, ...]
    goals: tuple[Goal, ...]
    check: Callable[[], None]
    has_memory: bool = True
    max_rounds: int | None = None
    is_in_bytes: bool = False  # the figure to look at is bytes/s, not records/s


def faster(contender: str, peer: str, *, times: float) -> Goal:
    """The goal that `contender` delivers `times` the records/s of `peer`."""

    def ratio(outcome: Outcome) -> float:
        timings = outcome.timings
        return timings[contender].records_per_s / timings[peer].records_per_s

    return Goal(f"{contender}, against {peer}", times, "x", ratio)


def rate(contender: str, *, gigabytes_per_s: float) -> Goal:
    """The goal that `contender` goes through that many bytes."""

    def measured(outcome: Outcome) -> float:
        return outcome.timings[contender].bytes_per_s / 1e9

    return Goal(contender, gigabytes_per_s, "GB/s", measured)


def speed(contender: str, *, records_per_s: float) -> Goal:
    """The goal that `contender` delivers that many records."""

    def measured(outcome: Outcome) -> float:
        return outcome.timings[contender].records_per_s

    return Goal(contender, records_per_s, "records/s", measured)


def within(contender: str, *, milliseconds: float) -> Goal:
    """The goal that `contender` is done with all of its work by then."""

    def measured(outcome: Outcome) -> float:
        return outcome.timings[contender].best_s * 1000

    return Goal(contender, milliseconds, "ms", measured, is_ceiling=True)
