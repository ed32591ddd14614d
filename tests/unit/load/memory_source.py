"""Records in memory, given by number as the native reader gives those of files."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from datum._load.options import LoadOptions
from datum._load.pipeline import Finished, Pipeline
from datum._load.stream import BatchPlan
from datum._read.numbered import ReadResult
from datum.columns import Sparse
from datum.errors import Damage
from datum.format import Parser, Records, encode
from datum.schema import Feature, Schema

SCHEMA = {
    "x": Feature("int64"),
    "text": Feature("str"),
    "raw": Feature("bytes"),
    "tokens": Feature("int32", (None,)),
    "words": Feature("str", (None,)),
    "age": Feature("float32", optional=True),
    "name": Feature("str", optional=True),
    "grid": Feature("float32", (None, None), encoding="raw", optional=True),
    "bag": Feature("float32", (5,), encoding="sparse"),
    "day": Feature("datetime64[D]"),
}


def make_rows(count: int) -> list[dict[str, Any]]:
    return [
        {
            "x": n,
            "text": f"t{n}",
            "raw": bytes([n]),
            "tokens": list(range(n % 4)),
            "words": ["w"] * (n % 3),
            "age": None if n % 2 else n / 2,
            "name": None if n % 2 else "someone",
            "grid": None if n % 2 else np.full((2, n), n, np.float32),
            "bag": Sparse(np.array([[n % 5]]), np.ones(1, np.float32), (5,)),
            "day": np.datetime64("2020-01-01") + n,
        }
        for n in range(count)
    ]


class MemorySource:
    """A `ColumnSource` of encoded records; those in `lost` cannot be read."""

    def __init__(
        self,
        rows: list[dict[str, Any]],
        schema: Mapping[str, Feature],
        *,
        lost: tuple[int, ...] = (),
        before_take: Callable[[int], None] = lambda ticket: None,
    ) -> None:
        self.schema = Schema(schema)
        self.payloads = list(encode(rows, self.schema).records())
        self.parser = Parser(self.schema)
        self.lost = lost
        self.before_take = before_take
        self.submitted: list[list[int]] = []
        self.taken: list[int] = []
        self.is_closed = False

    def submit(self, numbers: np.ndarray) -> int:
        self.submitted.append(numbers.tolist())
        return len(self.submitted) - 1

    def take(self, ticket: int) -> ReadResult:
        self.before_take(ticket)
        self.taken.append(ticket)
        numbers = self.submitted[ticket]
        sound = [row for row, number in enumerate(numbers) if number not in self.lost]
        records = Records.of(self.payloads[numbers[row]] for row in sound)
        damage = tuple(
            Damage("memory", 10 * n, 10 * n + 10, n, "payload checksum")
            for n in numbers
            if n in self.lost
        )
        rows = np.array(sound, np.int64) if damage else None
        return ReadResult(self.parser.parse(records, threads=1), rows, damage)

    def locate(self, number: int) -> tuple[str, int, int | None]:
        return "memory", number, 10 * number

    def close(self) -> None:
        self.is_closed = True


def plan(numbers: Any, *, start: int = 0, real: int | None = None, epoch: int = 0) -> BatchPlan:
    """The batch of some records, at positions that follow each other."""
    found = np.array(numbers, np.int64)
    positions = start + np.arange(len(found))
    count = len(found) if real is None else real
    return BatchPlan(epoch, start, start + len(found), found, positions, count)


def open_pipeline(source: MemorySource, *, threads: int = 2, cache: Any = None, **options: Any):
    return Pipeline(source, source.schema, LoadOptions(**options), threads=threads, cache=cache)


def finish(source: MemorySource, plans: list[BatchPlan], **options: Any) -> list[Finished]:
    """All batches, one after the other."""
    pipeline = open_pipeline(source, **options)
    try:
        for one in plans:
            pipeline.submit(one)
        return [pipeline.take() for _ in plans]
    finally:
        pipeline.close()


def load(source: MemorySource, *numbers: list[int], **options: Any) -> list[Any]:
    """The batches of some lists of records."""
    starts = np.cumsum([0, *map(len, numbers)]).tolist()
    plans = [plan(some, start=start) for some, start in zip(numbers, starts, strict=False)]
    return [finished.batch for finished in finish(source, plans, **options)]


def loading_threads() -> list[threading.Thread]:
    """Those of pools that live."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("datum-load")]
