"""Contenders timed in turn, round after round: what else the machine does hits all alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

__all__ = ["ROUNDS", "Contender", "Timing", "calibrate", "race"]

ROUNDS = 5  # a median of fewer says little; of more, each turn would be short
MIN_ROUNDS = 3
PATIENCE = 1.5  # times its seconds that a contender may take before it sits out
MAX_PASSES = 10_000

Clock = Callable[[], float]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to time.

    Attributes:
        name: of it.
        run: makes so many passes, after those batches that do not count; gives all batches.
        batches: how many there are in each pass.
        lead: how many come first that are not timed, where it takes long to start.
        epochs: how often a pass goes through the records.
        passes: how many passes there are in a turn.
        clock: what it is timed by.
    """

    name: str
    run: Callable[[int], Iterable[object]]
    batches: int
    lead: int = 0
    epochs: int = 1
    passes: int = 1
    clock: Clock = time.perf_counter


@dataclass(frozen=True, slots=True)
class Timing:
    """How long it took to go through the records once, in seconds: one number for each turn.

    >>> timing = Timing((1.0, 9.0, 2.0))
    >>> timing.median, timing.spread
    (2.0, 1.0)
    """

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one: neither a lucky turn nor a disturbed one counts."""
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the distance of the quartiles, as a part of the median."""
        if len(self.seconds) < 2 or not self.median:
            return 0.0
        low, _, high = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return (high - low) / 2 / self.median


def calibrate(contender: Contender, *, turn_s: float) -> int:
    """How many passes of a contender take about as long as a turn; it is warm afterwards."""
    elapsed_s = _time(contender, 1)
    if elapsed_s < turn_s:  # the first pass also opened files, traced functions, started workers
        elapsed_s = _time(contender, 1)
    return max(1, min(MAX_PASSES, round(turn_s / max(elapsed_s, 1e-9))))


def race(
    contenders: Sequence[Contender],
    *,
    seconds: float,
    progress: Progress | None = None,
) -> Mapping[str, Timing]:
    """Give each contender a turn in every round; each round starts with the next one.

    Nobody takes much more than `seconds`: who is slow sits out the last rounds.
    """
    with _settled():
        return _race(contenders, seconds, progress)


@contextmanager
def _settled() -> Iterator[None]:
    """Keep the garbage collector from looking through all that frameworks made, within a turn."""
    if gc.get_freeze_count():  # somebody else's, who would not want it undone
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _race(
    contenders: Sequence[Contender], seconds: float, progress: Progress | None
) -> Mapping[str, Timing]:
    taken: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    spent = dict.fromkeys(taken, 0.0)
    for turn in range(ROUNDS):
        first = turn % max(1, len(contenders))
        for at, contender in enumerate((*contenders[first:], *contenders[:first])):
            name = contender.name
            if progress is not None:
                progress(turn * len(contenders) + at, ROUNDS * len(contenders))
            if _may_run(len(taken[name]), spent[name], seconds):
                begun = time.perf_counter()
                elapsed_s = _time(contender, contender.passes)
                taken[name].append(elapsed_s / contender.passes / contender.epochs)
                spent[name] += time.perf_counter() - begun
    return {name: Timing(tuple(found)) for name, found in taken.items()}


def _may_run(turns: int, spent_s: float, seconds: float) -> bool:
    if not turns:
        return True
    next_s = spent_s + spent_s / turns
    return next_s <= PATIENCE * seconds * (1 if turns >= MIN_ROUNDS else 2)


def _time(contender: Contender, passes: int) -> float:
    clock = contender.clock
    count = 0
    start = clock()
    for _ in contender.run(passes):
        count += 1
        if count == contender.lead:
            start = clock()
    elapsed_s = clock() - start
    expected = contender.lead + passes * contender.batches
    if count != expected:
        raise RuntimeError(f"{contender.name}: expected {expected} batches, got {count}")
    return elapsed_s
