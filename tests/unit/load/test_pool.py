"""Threads that work through pieces."""

from __future__ import annotations

import threading

from datum._load.pipeline import Pool


class Counting:
    """A job that notes its pieces."""

    def __init__(self, pieces: int, done: list[int], *, wait: threading.Event | None = None):
        self.pieces = pieces
        self._done = done
        self._wait = wait
        self.ended = threading.Semaphore(0)

    def run(self, piece: int) -> None:
        if self._wait is not None:
            assert self._wait.wait(20)
        self._done.append(piece)
        self.ended.release()


def names() -> list[str]:
    return sorted(t.name for t in threading.enumerate() if t.name.startswith("test-pool"))


def test_threads_start_with_the_first_job_and_end_when_stopped() -> None:
    pool = Pool(2, "test-pool")
    assert not names()
    job = Counting(3, [])
    pool.add(job)
    assert names() == ["test-pool-0", "test-pool-1"]
    for _ in range(3):
        assert job.ended.acquire(timeout=20)
    pool.stop()
    pool.join()
    assert not names()


def test_one_thread_takes_pieces_in_order() -> None:
    done: list[int] = []
    pool = Pool(1, "test-pool")
    jobs = [Counting(4, done) for _ in range(3)]
    for job in jobs:
        pool.add(job)
    for job in jobs:
        for _ in range(4):
            assert job.ended.acquire(timeout=20)
    pool.stop()
    pool.join()
    assert done == [0, 1, 2, 3] * 3


def test_what_is_queued_when_stopped_is_left() -> None:
    done: list[int] = []
    go_on = threading.Event()
    pool = Pool(1, "test-pool")
    pool.add(Counting(5, done, wait=go_on))
    pool.stop()
    go_on.set()
    pool.join()
    assert len(done) <= 1
    pool.add(Counting(1, done))
    assert not names()


def test_a_thread_of_the_pool_can_join_the_others() -> None:
    pool = Pool(2, "test-pool")

    class Stopping(Counting):
        def run(self, piece: int) -> None:
            pool.stop()
            pool.join()
            super().run(piece)

    job = Stopping(1, [])
    pool.add(job)
    assert job.ended.acquire(timeout=20)
    pool.join()
    assert not names()


def test_a_time_to_wait_is_that_of_all_threads_together() -> None:
    waited: list[float] = []

    class Endless(threading.Thread):
        def join(self, timeout: float | None = None) -> None:
            assert timeout is not None
            waited.append(timeout)
            super().join(timeout)

    go_on = threading.Event()
    pool = Pool(0, "test-pool")
    pool._threads = [Endless(target=go_on.wait, daemon=True) for _ in range(9)]
    for thread in pool._threads:
        thread.start()
    pool.join(0.1)
    go_on.set()
    assert waited[0] <= 0.1
    assert waited[1:] == [0.0] * 8


def test_a_job_that_is_done_is_not_held_by_its_thread() -> None:
    import gc
    import weakref

    pool = Pool(1, "test-pool")
    first, second = Counting(1, []), Counting(1, [])
    held = weakref.ref(first)
    pool.add(first)
    pool.add(second)
    assert second.ended.acquire(timeout=20)
    del first
    gc.collect()
    assert held() is None
    pool.stop()
    pool.join()
