"""Where a loader has come to, as a few numbers that fit into JSON."""

from __future__ import annotations

import json
import operator
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import PurePath
from typing import Any

from datum.errors import StateError
from datum.loading.stream import Place
from datum.reading.batches import Run

__all__ = ["MAX_COUNT", "Progress", "check_state", "check_state_seed", "fingerprint", "to_state"]

VERSION = 1
MAX_COUNT = 2**53  # of epochs and batches: what every reader of JSON holds exactly
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
    state: Any,
    identity: Mapping[str, Any],
    *,
    records: int,
    worker: tuple[int, int],
    where: str,
) -> Progress:
    """Read what `to_state` made; StateError if it is of other records, or in another order.

    Args:
        state: what a program gives; it may have come from anywhere.
        identity: what the state has to agree with.
        records: Number of positions in an epoch.
        worker: the index of this worker, and how many there are.
        where: what the loader reads, for messages.
    """
    known = {"version", "epoch", "position", *identity}
    if not isinstance(state, Mapping) or not known <= set(state):
        raise StateError(
            f"expected what `state_dict` gave, got {reprlib.repr(state)}",
            where=where,
            hint="loader.load_state_dict(other.state_dict())",
        )
    if not _is_equal(state["version"], VERSION):
        got = reprlib.repr(state["version"])
        raise StateError(f"expected state of version {VERSION}, got {got}", where=where)
    for name, value in identity.items():
        if not _is_equal(state[name], value):
            got = reprlib.repr(state[name])
            raise StateError(
                f"expected state of {_WHAT[name]}, {name} {value!r}, got {got}",
                where=where,
                hint="the order would be another one; make the loader as it was, or start anew",
            )
    epoch = _count(state, "epoch", where, most=MAX_COUNT)
    position = _count(state, "position", where, most=records)
    start = Place(epoch, position)
    if "worker" not in state:
        return Progress(start, worker)
    given = state["worker"]
    if not isinstance(given, (list, tuple)) or tuple(map(_to_int, given)) != worker:
        raise StateError(
            f"expected state of worker {worker}, got one of {reprlib.repr(given)}",
            where=where,
            hint="loader.state_dict(batches=n) of the main process fits any number of workers",
        )
    return Progress(start, worker, _count(state, "batches", where, most=MAX_COUNT))


def check_state_seed(state: Any, where: str) -> int:
    """The seed of a state, which a loader whose seed was drawn takes over."""
    return _count(state if isinstance(state, Mapping) else {}, "seed", where, most=None)


def _is_equal(found: Any, expected: int | str) -> bool:
    """Whether a value of a state is this one; a number may be one of NumPy."""
    if isinstance(expected, str):
        return isinstance(found, str) and found == expected
    return _to_int(found) == expected


def _to_int(found: Any) -> int | None:
    """A whole number as a plain one; None for all else."""
    try:
        return None if isinstance(found, bool) else operator.index(found)
    except TypeError:
        return None


def _count(state: Mapping[str, Any], name: str, where: str, *, most: int | None) -> int:
    found = state.get(name)
    number = _to_int(found)
    if number is None or number < 0 or (most is not None and number > most):
        bounds = "0 or more" if most is None else f"0 to {most:,}"
        raise StateError(
            f"expected `{name}` of {bounds}, got {reprlib.repr(found)}",
            where=where,
            hint="give the state just as `state_dict` returned it",
        )
    return number
