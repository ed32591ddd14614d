"""Which part of a split this host reads."""

from __future__ import annotations

import operator
from typing import Any

__all__ = ["SERVICE", "find_host", "part_of"]

SERVICE = "service"


def find_host(host: Any) -> tuple[int, int]:
    """The index of a host and the number of hosts, from whatever tells them.

    That is a pair, a `tf.distribute.InputContext`, a `tf.distribute.Strategy`, None for one host
    alone, or `SERVICE` where the tf.data service deals out the blocks.

    >>> find_host((1, 4))
    (1, 4)
    """
    if host is None or (isinstance(host, str) and host == SERVICE):
        return 0, 1
    if hasattr(host, "input_pipeline_id"):
        return int(host.input_pipeline_id), int(host.num_input_pipelines)
    if hasattr(host, "cluster_resolver"):
        return _place_in_cluster(host.cluster_resolver)
    try:
        index, count = (operator.index(number) for number in host)
    except (TypeError, ValueError):
        raise TypeError(
            "expected `host` to be (index, count), a tf.distribute.InputContext, a strategy,"
            f" or {SERVICE!r}, got {host!r}"
        ) from None
    if not 0 <= index < count:
        raise ValueError(f"expected `host` with an index from 0 to its count - 1, got {host!r}")
    return index, count


def _place_in_cluster(resolver: Any) -> tuple[int, int]:
    """Workers count as hosts, a chief as the first of them; evaluators and the like do not."""
    spec = resolver.cluster_spec() if resolver is not None else None
    if spec is None or not spec.jobs or resolver.task_type not in ("chief", "worker"):
        return 0, 1
    chiefs = spec.num_tasks("chief") if "chief" in spec.jobs else 0
    workers = spec.num_tasks("worker") if "worker" in spec.jobs else 0
    first = 0 if resolver.task_type == "chief" else chiefs
    return first + int(resolver.task_id), chiefs + workers


def part_of(records: int, host: tuple[int, int]) -> tuple[int, int]:
    """The records from the first number up to the second are those of this host.

    Parts differ by one record at most, and make up the whole.

    >>> [part_of(10, (index, 4)) for index in range(4)]
    [(0, 2), (2, 5), (5, 7), (7, 10)]
    """
    index, count = host
    return records * index // count, records * (index + 1) // count
