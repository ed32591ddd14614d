"""Timing of contenders side by side: in turn, many rounds, the best of each."""

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Contender:
    """Something to time: `prepare` once, then each call does the whole work.

    The call returns the number of records it delivered, which must be `records`
    (0 for work that has none).
    """

    name: str
    prepare: Callable[[], Callable[[], int]]
    records: int
    data_bytes: int
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """All runs of one contender."""

    contender: Contender
    seconds: tuple[float, ...]

    @property
    def best_s(self) -> float:
        """The fastest run: noise only ever adds time."""
        return min(self.seconds)

    @property
    def records_per_s(self) -> float:
        """Records of the fastest run by its time."""
        return self.contender.records / self.best_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes of data of the fastest run by its time."""
        return self.contender.data_bytes / self.best_s


def race(contenders: Sequence[Contender], rounds: int) -> dict[str, Timing]:
    """Runs every contender once per round, each round starting with the next one."""
    runs = {contender.name: contender.prepare() for contender in contenders}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds):
        first = turn % len(contenders)
        for contender in (*contenders[first:], *contenders[:first]):
            seconds[contender.name].append(_time(contender, runs[contender.name]))
        print(f"  round {turn + 1} of {rounds}", end="\r", file=sys.stderr, flush=True)
    return {
        contender.name: Timing(contender, tuple(seconds[contender.name]))
        for contender in contenders
    }


def _time(contender: Contender, run: Callable[[], int]) -> float:
    gc.collect()
    start = time.perf_counter()
    records = run()
    elapsed_s = time.perf_counter() - start
    if records != contender.records:
        raise RuntimeError(f"{contender.name}: expected {contender.records} records, got {records}")
    return elapsed_s
