"""Parts that the tests of writing read from, and the options of a write."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from datum import Feature, Schema
from datum._write.options import WriteOptions
from datum.sources import Block


@dataclass
class Numbers:
    """Records that hold their own number; it notes in which order they were read."""

    count: int
    keys: Any = None
    schema: Any = Schema({"x": Feature("int64")})  # noqa: RUF009 - it cannot be changed
    metadata: Any = field(default_factory=dict)
    fingerprint: Any = None
    stored_bytes: Any = None
    is_slow_python: bool = False
    read_numbers: list[int] = field(default_factory=list)

    def __len__(self):
        return self.count

    def read(self, numbers):
        self.read_numbers += numbers.tolist()
        keys = None if self.keys is None else [self.keys[n] for n in numbers.tolist()]
        return Block([{"x": n} for n in numbers.tolist()], np.asarray(numbers), keys)


@dataclass
class NumbersSource:
    """A source of one part."""

    part: Any

    def parts(self):
        return {"train": self.part}


def options(**given: Any) -> Any:
    return WriteOptions(**{"workers": 1, **given})
