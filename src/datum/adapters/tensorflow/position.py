"""Where a `tf.data.Dataset` has come to: saved and restored as that of any other loader."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from datum.errors import StateError
from datum.loading.checks import check_count
from datum.loading.state import Progress, check_state, to_state
from datum.loading.stream import Place, Stream

__all__ = ["Passes", "Position", "PythonPasses", "batches_of_epoch"]


class Passes(Protocol):
    """Which pass is under way, and which is next; kept by whatever starts them."""

    def get(self) -> tuple[Place | None, Place]:
        """Where the pass under way began, None without one; and where the next one begins."""

    def set(self, begun: Place | None, following: Place) -> None:
        """Change both."""


class PythonPasses:
    """The passes of a dataset that is fed by Python: each iterator calls `begin`.

    Args:
        stream: tells where the pass after another begins.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._begun: Place | None = None
        self._following = Place()

    def get(self) -> tuple[Place | None, Place]:
        """Where the pass under way began, None without one; and where the next one begins."""
        with self._lock:
            return self._begun, self._following

    def set(self, begun: Place | None, following: Place) -> None:
        """Change both."""
        with self._lock:
            self._begun, self._following = begun, following

    def begin(self) -> Place:
        """Start the next pass."""
        with self._lock:
            self._begun = self._following
            self._following = self._stream.next_pass(self._begun)
            return self._begun


def batches_of_epoch(stream: Stream, position: int = 0) -> int:
    """How many batches an epoch gives from a position on: none is empty."""
    place = Place(0, position)
    count = replace(stream, epochs=1).count(place) or 0
    return count - (1 if count and _lacks_last(stream) else 0)


def _lacks_last(stream: Stream) -> bool:
    """Whether nothing of the last batch of an epoch falls to this host."""
    rest = stream.order.records % stream.global_batch
    index, hosts = stream.host
    is_empty = rest * (index + 1) // hosts == rest * index // hosts
    return bool(stream.remainder == "keep" and rest and is_empty)


@dataclass(slots=True)
class _Count:
    """How many batches an iterator has given."""

    batches: int = 0


class Position:
    """The place of a dataset, counted by its Python iterator or told by the program.

    Args:
        stream: which records each batch has.
        passes: where passes begin.
        identity: what a state has to agree with.
        name: what was asked for, for messages.
        echo: how often each batch is given.
    """

    def __init__(
        self,
        stream: Stream,
        passes: Passes,
        identity: Mapping[str, Any],
        *,
        name: str,
        echo: int = 1,
    ) -> None:
        self._stream = stream
        self._passes = passes
        self._identity = identity
        self._where = f"split {name!r}"
        self._echo = echo
        self._count = _Count()

    @property
    def seed(self) -> int:
        """The seed of the order."""
        return int(self._identity["seed"])

    # Counting.

    def iterate(self) -> _Count:
        """A new iterator is made; what it gives is to be counted."""
        begun, following = self._passes.get()
        given = self._count.batches
        if begun is not None and given and self._stream.epochs is None:
            last = self._stream.after(begun, self._in_stream(begun, given - 1))
            following = self._stream.next_pass(last)
        self._passes.set(None, following)
        self._count = _Count()
        return self._count

    def end(self, count: _Count) -> None:
        """An iterator has come to its end."""
        if count is self._count:
            self._passes.set(None, self._passes.get()[1])
            self._count = _Count()

    def _in_stream(self, start: Place, given: int) -> int:
        """So many batches that were given, as a number of those of all hosts together."""
        given //= self._echo
        if not _lacks_last(self._stream):
            return given
        first = batches_of_epoch(self._stream, start.position)
        each = batches_of_epoch(self._stream)
        if given < first or not each:
            return given
        epochs, rest = divmod(given - first, each)
        return first + 1 + epochs * (each + 1) + rest

    def place(self, batches: int | None = None) -> Place:
        """The place after the last batch, or after so many of the pass under way."""
        begun, following = self._passes.get()
        start = following if begun is None else begun
        given = self._count.batches if batches is None else batches
        if begun is None and batches is None:
            return start
        return self._stream.reached(start, self._in_stream(start, given))

    @property
    def remaining(self) -> int | None:
        """How many batches the pass under way still has, or else the next one; None: no end."""
        place, epochs = self.place(), self._stream.epochs
        if epochs is None:
            return None
        more = (epochs - 1 - place.epoch % epochs) * batches_of_epoch(self._stream)
        return (batches_of_epoch(self._stream, place.position) + more) * self._echo

    # Saving.

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """The place as plain values that fit into JSON."""
        if batches is not None:
            batches = check_count("batches", batches, least=0)
        return to_state(self._identity, Progress(self.place(batches)))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Begin the next pass where a state was taken; StateError if it does not fit."""
        progress = check_state(state, self._identity, worker=(0, 1), where=self._where)
        if progress.batches:
            raise StateError(f"{self._where}: expected the state of a whole host, got a worker's")
        self._passes.set(None, progress.start)
        self._count = _Count()
