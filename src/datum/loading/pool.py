"""A few threads that work through pieces of jobs in order, and end with their owner."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from queue import SimpleQueue
from typing import Protocol

__all__ = ["Job", "Pool"]

# How long the end of the program waits for threads that are within a function of the user.
MAX_EXIT_S = 5.0

_running: weakref.WeakSet[Pool] = weakref.WeakSet()


class Job(Protocol):
    """Work in pieces that may be done at the same time."""

    @property
    def pieces(self) -> int:
        """How many there are."""
        ...

    def run(self, piece: int) -> None:
        """Do one; must not raise."""
        ...


class Pool:
    """Threads that take pieces in the order in which jobs were added.

    They are started by the first job. They hold the pool and not its owner, who lets go of them by
    `stop`. A forked child has none of the threads, and must not touch the pool.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._count = threads
        self._name = name
        self._threads: list[threading.Thread] = []
        # Written in C, unlike a Condition: an interrupt within that can leave its lock taken for
        # ever. And reentrant: garbage may be collected, and `stop` called by that, at any place.
        self._queue: SimpleQueue[tuple[Job, int] | None] = SimpleQueue()
        self._is_stopped = False

    def add(self, job: Job) -> None:
        """Queue all pieces of a job."""
        if self._is_stopped:
            return
        for piece in range(job.pieces):
            self._queue.put((job, piece))
        if not self._threads:
            self._start()

    def _start(self) -> None:
        _running.add(self)
        for number in range(self._count):
            name = f"{self._name}-{number}"
            # Daemons, since the interpreter would wait for others before it lets us stop them.
            thread = threading.Thread(target=_work, args=(self,), name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def next_piece(self) -> tuple[Job, int] | None:
        """Wait for a piece; None once the pool was stopped."""
        found = self._queue.get()
        return None if self._is_stopped else found

    def stop(self) -> None:
        """Leave what is queued, and have the threads end after the piece they are at."""
        self._is_stopped = True
        for _ in range(self._count):
            self._queue.put(None)  # wakes one that waits

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the threads to end; called by one of them, only for the others.

        So long at most, if a time is given, for all of them together.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(None if end is None else max(0.0, end - time.monotonic()))


def _work(pool: Pool) -> None:
    while (found := pool.next_piece()) is not None:
        job, piece = found
        job.run(piece)
        del found, job  # a batch must not live on in a thread that waits for the next


@atexit.register
def _stop_all() -> None:
    """At the end of the program, before the interpreter takes itself apart."""
    pools = list(_running)
    for pool in pools:
        pool.stop()
    end = time.monotonic() + MAX_EXIT_S
    for pool in pools:
        pool.join(max(0.0, end - time.monotonic()))


def _forget_all() -> None:
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)
