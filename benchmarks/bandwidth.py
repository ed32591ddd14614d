"""What this machine's memory can do, measured beside the readers that come near it."""

from collections.abc import Callable

import numpy as np

from benchmarks.measure import Contender
from benchmarks.suite import Setting

COPY = "memory: copy by NumPy, 1 thread"
READ = "memory: sum by NumPy, 1 thread"


def contenders(setting: Setting) -> tuple[Contender, ...]:
    """A copy and a read of an array far larger than the caches."""
    array_bytes = (1 << 28) if setting.quick else (1 << 30)
    return (
        Contender(COPY, lambda: _copying(array_bytes), records=0, data_bytes=array_bytes),
        Contender(READ, lambda: _reading(array_bytes), records=0, data_bytes=array_bytes),
    )


def _copying(array_bytes: int) -> Callable[[], int]:
    source = np.ones(array_bytes // 8)
    target = np.zeros_like(source)

    def run() -> int:
        np.copyto(target, source)
        return 0

    return run


def _reading(array_bytes: int) -> Callable[[], int]:
    source = np.ones(array_bytes // 8)

    def run() -> int:
        source.sum()
        return 0

    return run
