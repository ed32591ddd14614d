"""How many threads to use."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["thread_count"]


def thread_count(threads: Any) -> int:
    """`threads`, or one for each core this process may run on."""
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if not isinstance(threads, int) or threads < 1:
        raise ValueError(f"expected `threads` of 1 or more, got {threads}")
    return int(threads)
