"""Which pass the workers of a DataLoader are to make: what processes tell each other of it.

A DataLoader starts its workers anew for each pass, from a loader that knows nothing of the passes
that earlier workers made. So a few numbers lie in memory that all of them share.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from datum._optional import require
from datum.adapters.torch.callers import is_starting_workers
from datum.loading.stream import Place

__all__ = ["Passes"]

torch: Any = require("torch", purpose="`to_torch`")

_BASES = 31  # rows for DataLoaders that are iterated at the same time; more than anybody starts
_MAIN = _BASES  # the row of the main process
_WARNED = _BASES + 1
_MAX_WORKERS = 1024
_WIDTH = 6
# Of a row: what it says.
_TOLD, _BEGUN, _BEGUN_BY_WORKERS = 1, 2, 3
_MAX_TORN_READS = 1000  # far more than it takes to write a row


@dataclass(frozen=True, slots=True)
class _Row:
    """One pass: its number among all, who began it, and where."""

    number: int
    base: int
    kind: int
    place: Place

    def numbers(self) -> list[int]:
        row = [self.number, self.base, self.kind, self.place.epoch, self.place.position]
        return [*row, hash(tuple(row))]  # of whole numbers: the same in every process


_alive: weakref.WeakSet[Passes] = weakref.WeakSet()


class Passes:
    """The passes over the records that processes have begun, or were told to begin.

    All workers of one iteration of a DataLoader have the same base seed, and those of the next one
    have another. The first worker to come with a new one finds where the last pass began, and
    begins the pass after it; the others find what it wrote. No lock is needed: two that come at
    the same time see the same, and write the same.
    """

    def __init__(self, table: Any = None) -> None:
        is_new = table is None
        if table is None:
            table = torch.zeros((_BASES + 2) * _WIDTH + _MAX_WORKERS, dtype=torch.int64)
        self._hold(table if table.is_shared() else table.share_memory_())
        if is_new:
            self.tell(Place())
        _alive.add(self)

    def _hold(self, table: Any) -> None:
        self._table = table
        numbers = table.numpy()
        self._rows = numbers[: (_BASES + 1) * _WIDTH].reshape(-1, _WIDTH)
        self._flags = numbers[(_BASES + 1) * _WIDTH : (_BASES + 2) * _WIDTH]
        self._taken = numbers[(_BASES + 2) * _WIDTH :]  # the last pass that each worker took

    def __reduce__(self) -> tuple[Any, ...]:
        # To a worker that is spawned the memory itself; anything else goes its own way.
        return Passes, (self._table if is_starting_workers() else self._table.clone(),)

    def part(self) -> None:
        """Go its own way from here on."""
        self._hold(self._table.clone().share_memory_())

    # In the main process.

    def tell(self, place: Place) -> None:
        """Have the next pass begin at a place, whoever makes it."""
        self._write(_MAIN, _Row(self._next_number(), 0, _TOLD, place))

    def begin(self, place: Place) -> None:
        """Note that the main process itself has begun a pass."""
        self._write(_MAIN, _Row(self._next_number(), 0, _BEGUN, place))

    def begun_by_workers(self) -> Place | None:
        """Where workers began the last pass; None if it was not they who did."""
        last = max(self._read(), key=lambda row: row.number)
        return last.place if last.kind == _BEGUN_BY_WORKERS else None

    # In a worker.

    def next_start(self, base: int, worker: int, following: Callable[[Place], Place]) -> Place:
        """Where the workers with a base seed are to begin.

        Args:
            base: the seed that all workers of an iteration have in common.
            worker: the index of this one.
            following: tells where the pass after one begins.
        """
        rows = self._read()
        joined = self._joined(rows, base, worker)
        if joined is not None:
            return joined.place
        last = max(rows, key=lambda row: row.number)
        return last.place if last.kind == _TOLD else following(last.place)

    def take(self, base: int, worker: int, place: Place) -> None:
        """Note that a worker has begun a pass at a place."""
        rows = self._read()
        joined = self._joined(rows, base, worker)
        if joined is None or joined.place != place:
            number = max(row.number for row in rows) + 1
            joined = _Row(number, base, _BEGUN_BY_WORKERS, place)
            self._write(base % _BASES, joined)
        self._taken[worker % _MAX_WORKERS] = joined.number

    def _joined(self, rows: list[_Row], base: int, worker: int) -> _Row | None:
        """The pass that other workers of the same iteration have begun, if it goes on.

        One that this worker has taken before is over, and so is one before the main process told
        of another place: workers that outlast a pass keep their seed.
        """
        main = max(row.number for row in rows if row.kind != _BEGUN_BY_WORKERS)
        for row in rows:
            if row.kind == _BEGUN_BY_WORKERS and row.base == base and row.number > main:
                is_over = self._taken[worker % _MAX_WORKERS] == row.number
                return None if is_over else row
        return None

    def is_first_to_warn(self) -> bool:
        """Whether no process has warned yet; true once."""
        is_first = not self._flags[0]
        self._flags[0] = 1
        return is_first

    # The table.

    def _next_number(self) -> int:
        return max((row.number for row in self._read()), default=0) + 1

    def _write(self, at: int, row: _Row) -> None:
        self._rows[at] = row.numbers()

    def _read(self) -> list[_Row]:
        """All rows at one moment; one that is being written is waited for."""
        for _ in range(_MAX_TORN_READS):
            found, is_torn = [], False
            for number, base, kind, epoch, position, check in self._rows.tolist():
                row = _Row(number, base, kind, Place(epoch, position))
                if not number:
                    continue
                if row.numbers()[-1] == check:
                    found.append(row)
                else:
                    is_torn = True
            if not is_torn:
                break
            time.sleep(0.0001)
        return found


def _part_all() -> None:
    """In a process that was forked, but not as a worker: each of several ranks makes all passes."""
    if not is_starting_workers():
        for passes in list(_alive):
            passes.part()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_part_all)
