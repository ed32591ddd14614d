"""Which of several processes this one is: of `torch.distributed`, and of a DataLoader."""

from __future__ import annotations

from typing import Any

from datum._optional import require
from datum.adapters.torch.callers import is_shared_out

__all__ = ["Rank", "find_base_seed", "find_worker", "is_worker"]

torch: Any = require("torch", purpose="`to_torch`")

Share = tuple[int, int]


def is_worker() -> bool:
    """Whether this process is a worker of a DataLoader."""
    return torch.utils.data.get_worker_info() is not None


def find_worker() -> Share:
    """The index of this worker of a DataLoader, and how many there are."""
    info = torch.utils.data.get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def find_base_seed() -> int:
    """What all workers of one iteration of a DataLoader have in common; only in a worker."""
    info = torch.utils.data.get_worker_info()
    base: int = info.seed - info.id
    return base


class Rank:
    """Finds the rank of this process, and the number of processes, once there is a process group.

    A process that was started with a loader, as DataLoader's workers are, has no process group of
    its own: it has the rank of the process that the loader comes from. Where another library shares
    out what it reads, this is the only one.
    """

    __slots__ = ("_is_shared_out", "_origin")

    def __init__(self, origin: Share | None = None) -> None:
        self._origin = origin
        self._is_shared_out = False

    def __call__(self) -> Share:
        """The rank, and how many there are; (0, 1) where there is no process group."""
        return self._find() or (0, 1)

    def look(self) -> None:
        """Find out, as an iteration starts, whether it is another library that shares it out."""
        self._is_shared_out = is_shared_out()

    def _find(self) -> Share | None:
        if self._is_shared_out or is_shared_out():
            return 0, 1
        group = torch.distributed
        if group.is_available() and group.is_initialized():
            return group.get_rank(), group.get_world_size()
        return self._origin

    def __reduce__(self) -> tuple[Any, ...]:
        return Rank, (self._find(),)  # pickled, it goes to another process
