"""Where a loader has come to, as a few numbers that fit into JSON."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from datum.errors import StateError
from datum.loading.stream import Place
from datum.reading.batches import Run

__all__ = ["Progress", "check_state", "fingerprint", "to_state"]

VERSION = 1
_WHAT = {
    "records": "the same records",
    "order": "the same `shuffle`",
    "seed": "the same `seed`",
}


@dataclass(frozen=True, slots=True)
class Progress:
    """A place to start from, and how many batches this worker has given since.

    Attributes:
        start: where all workers started.
        worker: the index of this worker, and how many there are.
        batches: how many batches this worker has given.
    """

    start: Place = field(default_factory=Place)
    worker: tuple[int, int] = (0, 1)
    batches: int = 0


def fingerprint(runs: Iterable[Run]) -> str:
    """What tells these records from others, wherever the files lie."""
    digest = blake2b(digest_size=12)
    for run in runs:
        shard = run.shard
        name = PurePath(shard.name).name
        facts = [name, shard.bytes, shard.records, shard.crc32c, run.start, run.stop]
        digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def to_state(identity: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """The state of a loader of these records in this order."""
    place = {"epoch": progress.start.epoch, "position": progress.start.position}
    state = {"version": VERSION, **identity, **place}
    if progress.worker[1] > 1:
        state |= {"worker": list(progress.worker), "batches": progress.batches}
    return state


def check_state(
    state: Any, identity: Mapping[str, Any], *, worker: tuple[int, int], where: str
) -> Progress:
    """Read what `to_state` made; StateError if it is of other records, or in another order."""
    known = {"version", "epoch", "position", *identity}
    if not isinstance(state, Mapping) or not known <= set(state):
        raise StateError(f"{where}: expected what `state_dict` gave, got {state!r}")
    if state["version"] != VERSION:
        raise StateError(f"{where}: expected state of version {VERSION}, got {state['version']!r}")
    for name, value in identity.items():
        if state[name] != value:
            raise StateError(
                f"{where}: expected state of {_WHAT[name]}, {name} {value!r}, got {state[name]!r}\n"
                "hint: the order would be another one; make the loader as it was, or start anew"
            )
    start = Place(*(_count(state, name, where) for name in ("epoch", "position")))
    if "worker" not in state:
        return Progress(start, worker)
    if state["worker"] not in (worker, list(worker)):
        raise StateError(
            f"{where}: expected state of worker {worker}, got one of {state['worker']!r}\n"
            "hint: loader.state_dict(batches=n) of the main process fits any number of workers"
        )
    return Progress(start, worker, _count(state, "batches", where))


def _count(state: Mapping[str, Any], name: str, where: str) -> int:
    try:
        number = operator.index(state[name])
    except (KeyError, TypeError):
        number = -1
    if number < 0 or isinstance(state[name], bool):
        raise StateError(f"{where}: expected `{name}` of 0 or more, got {state.get(name)!r}")
    return number
