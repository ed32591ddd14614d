"""Attacks on training: loaders stopped at any batch, and restored on other hosts and frameworks."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import datum
from tests.torture.harness import Attack, Round, Violation
from tests.torture.readers import COUNT, find_datasets

FRAMEWORKS = ("numpy", "torch")

Part = tuple[
    list[list[int]], str, bool
]  # the numbers of each batch, the state, whether all is read


def numbers_of(batch: dict[str, Any]) -> list[int]:
    """The numbers of the records of a batch that count."""
    counts = batch.get("batch_mask", itertools.repeat(True))
    return [int(number) for number, is_real in zip(batch["id"], counts, strict=False) if is_real]


def take(folder: Path, framework: str, options: dict[str, Any], state: str, count: int) -> Part:
    """In a process of its own, as after a crash: restore a loader, and take some batches."""
    dataset = datum.load(folder)
    loader = getattr(dataset, f"to_{framework}")(**options)
    if state:
        loader.load_state_dict(json.loads(state))
    batches = [numbers_of(one) for one in itertools.islice(loader, count)]
    return batches, json.dumps(loader.state_dict()), len(batches) < count


def restore(this: Round) -> str:
    folder, _ = find_datasets(this, this.choose(kind=("dataset", "gzip dataset")))
    order = {
        "shuffle": this.random.choice((False, True, "full", "blocks", 50)),
        "seed": this.random.randrange(1000),
        "epochs": this.random.choice((1, 1, 2, 3)),
    }
    this.note(order=order)
    expected, _, _ = this.finish(take, folder, "numpy", {"batch_size": 32, **order}, "", 10**6)
    whole = [number for batch in expected for number in batch]
    if len(whole) != COUNT * order["epochs"]:
        raise Violation(f"{len(whole)} records in {order['epochs']} epochs of {COUNT}")
    taken: list[int] = []
    state = ""
    for stage in itertools.count():
        hosts, batch_size = this.random.randint(1, 4), this.random.choice((1, 3, 8, 32))
        limit = this.random.randint(1, max(1, COUNT // hosts // batch_size))
        limit = limit if stage < 6 else 10**6
        remainder = this.random.choice(("keep", "pad"))
        this.note(stage=f"{hosts} hosts, {limit} batches of {batch_size}, remainder={remainder}")
        parts: list[Part] = []
        for host in range(hosts):
            framework = this.random.choice(FRAMEWORKS)
            options = {"batch_size": batch_size, "host": (host, hosts), **order}
            options["remainder"] = remainder
            parts.append(this.finish(take, folder, framework, options, state, limit))
        for step in itertools.zip_longest(*(batches for batches, _, _ in parts), fillvalue=[]):
            taken += [number for batch in step for number in batch]
        this.tally["loaders stopped and restored"] += hosts
        state = this.random.choice(parts)[1]
        if all(is_over for _, _, is_over in parts):
            break
    this.tally["epochs read in parts"] += order["epochs"]
    if taken == whole:
        return "the undisturbed order"
    for first in range(0, len(whole), COUNT):
        if sorted(taken[first : first + COUNT]) != sorted(whole[first : first + COUNT]):
            raise Violation(f"epoch {first // COUNT} has not each record exactly once")
    raise Violation("each record once in each epoch, but not in the undisturbed order")


ATTACKS = (
    Attack(
        "restore-loader", "each record exactly once an epoch, in one order", restore, ("torch",)
    ),
)
