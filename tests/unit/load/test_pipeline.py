"""Batches prepared ahead on threads."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading

import numpy as np
import pytest

import datum
from datum._load import stream
from datum._load.cache import RecordCache
from datum._load.epoch_order import WINDOW_RECORDS, Order
from datum._load.options import LoadOptions
from datum._load.pipeline import Pipeline, Pool
from datum._load.stream import OrderWithout, make_order, order_split
from datum._read.numbered import NumberedRecords
from datum.format import Parser
from datum.schema import Feature
from tests.unit.load.memory_source import (
    SCHEMA,
    MemorySource,
    load,
    loading_threads,
    make_rows,
    open_pipeline,
    plan,
)


@pytest.fixture
def source() -> MemorySource:
    return MemorySource(make_rows(40), SCHEMA)


def slow_first(first: threading.Event):
    """A `map` that holds back the first record until another batch has come by."""

    def change(record: dict) -> dict:
        if record["x"] == 0:
            assert first.wait(20)
        if record["x"] >= 30:
            first.set()
        return record

    return change


# Order.
@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_batches_come_in_the_order_of_submission(source: MemorySource, threads: int) -> None:
    chance = random.Random(threads)
    delays = [chance.randrange(20_000) for _ in range(40)]

    def change(record: dict) -> dict:
        sum(range(delays[record["x"]]))
        return record

    numbers = [list(range(at, at + 5)) for at in range(0, 40, 5)]
    batches = load(source, *numbers, threads=threads, map=change)
    assert [batch["x"].tolist() for batch in batches] == numbers


def test_a_later_batch_can_be_ready_before_an_earlier_one(source: MemorySource) -> None:
    change = slow_first(threading.Event())
    batches = load(source, list(range(10)), list(range(30, 40)), threads=2, map=change)
    assert [batch["x"][0] for batch in batches] == [0, 30]


def test_the_pool_works_ahead_while_nobody_takes(source: MemorySource) -> None:
    seen = threading.Semaphore(0)

    def change(record: dict) -> dict:
        seen.release()
        return record

    pipeline = open_pipeline(source, map=change)
    for at in range(0, 40, 10):
        pipeline.submit(plan(range(at, at + 10)))
    for _ in range(40):
        assert seen.acquire(timeout=20)
    pipeline.close()


def test_pieces_of_one_batch_run_at_the_same_time() -> None:
    source = MemorySource([{"x": n} for n in range(128)], {"x": Feature("int64")})
    both = threading.Barrier(2)

    def change(record: dict) -> dict:
        if record["x"] in (0, 64):
            both.wait(20)
        return record

    (batch,) = load(source, list(range(128)), threads=2, map=change)
    assert batch["x"].tolist() == list(range(128))


# Ends.
def test_without_functions_and_images_there_is_no_thread(source: MemorySource) -> None:
    pipeline = open_pipeline(source)
    pipeline.submit(plan([1, 2]))
    assert not loading_threads()
    assert pipeline.take().records == 2
    pipeline.close()


def test_close_ends_all_threads_and_the_source(source: MemorySource) -> None:
    pipeline = open_pipeline(source, map=lambda record: record, threads=3)
    pipeline.submit(plan(range(40)))
    assert len(loading_threads()) == 3
    pipeline.close()
    pipeline.close()
    assert not loading_threads()
    assert source.is_closed


def test_close_drops_what_is_queued(source: MemorySource) -> None:
    started, go_on = threading.Event(), threading.Event()
    seen = []

    def change(record: dict) -> dict:
        seen.append(int(record["x"]))
        started.set()
        assert go_on.wait(20)
        return record

    pipeline = open_pipeline(source, map=change, threads=1)
    for number in range(10):
        pipeline.submit(plan([number]))
    assert started.wait(20)
    closing = threading.Thread(target=pipeline.close)
    closing.start()
    while not pipeline._is_closed:
        pass
    go_on.set()
    closing.join(20)
    assert not closing.is_alive()
    assert seen[0] == 0
    assert len(seen) < 10


def test_close_waits_for_the_record_that_is_worked_on_and_no_other(source: MemorySource) -> None:
    started, go_on = threading.Event(), threading.Event()
    seen = []

    def change(record: dict) -> dict:
        seen.append(int(record["x"]))
        started.set()
        assert go_on.wait(20)
        return record

    pipeline = open_pipeline(source, map=change, threads=1)
    pipeline.submit(plan(range(40)))  # all of them are one piece
    (job,) = pipeline._jobs
    assert started.wait(20)
    closing = threading.Thread(target=pipeline.close)
    closing.start()
    job.wait()
    go_on.set()
    closing.join(20)
    assert not closing.is_alive()
    assert seen == [0]
    with pytest.raises(RuntimeError, match="got a closed one"):
        job.result()


def test_a_function_that_closes_its_own_pipeline_is_told(source: MemorySource) -> None:
    def change(record: dict) -> dict:
        pipeline.close()
        return record

    pipeline = open_pipeline(source, map=change, threads=2)
    pipeline.submit(plan([1, 2]))
    with pytest.raises(RuntimeError, match="got a closed one"):
        pipeline.take()
    pipeline.close()


def test_one_who_waits_is_told_when_another_thread_closes(source: MemorySource) -> None:
    go_on = threading.Event()
    found: list[BaseException] = []

    def change(record: dict) -> dict:
        assert go_on.wait(20)
        raise AssertionError("dropped")

    pipeline = open_pipeline(source, map=change, threads=1)
    pipeline.submit(plan([1]))
    pipeline.submit(plan([2]))

    def take_all() -> None:
        try:
            while True:
                pipeline.take()
        except AssertionError:
            take_all()
        except RuntimeError as error:
            found.append(error)

    waiting = threading.Thread(target=take_all)
    waiting.start()
    closing = threading.Thread(target=pipeline.close)
    closing.start()
    go_on.set()
    closing.join(20)
    waiting.join(20)
    assert not waiting.is_alive()
    assert len(found) == 1


def test_an_interrupt_in_take_leaves_all_closable(source: MemorySource) -> None:
    go_on = threading.Event()

    def change(record: dict) -> dict:
        assert go_on.wait(20)
        return record

    pipeline = open_pipeline(source, map=change)
    pipeline.submit(plan([7]))
    job = pipeline._jobs[0]
    wait = job.wait

    def interrupted() -> None:
        raise KeyboardInterrupt

    job.wait = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        pipeline.take()
    job.wait = wait  # type: ignore[method-assign]
    go_on.set()
    assert pipeline.take().batch["x"] == [7]
    pipeline.close()
    assert not loading_threads()


def test_an_interrupt_within_a_function_is_raised_by_take(source: MemorySource) -> None:
    def change(record: dict) -> dict:
        raise KeyboardInterrupt

    for threads in (0, 2):
        pipeline = open_pipeline(source, map=change, threads=threads)
        pipeline.submit(plan([7]))
        with pytest.raises(KeyboardInterrupt):
            pipeline.take()
        pipeline.close()
    assert not loading_threads()


def test_threads_end_when_nobody_holds_the_pipeline(source: MemorySource) -> None:
    pipeline = open_pipeline(source, map=lambda record: record)
    pipeline.submit(plan([1]))
    threads = loading_threads()
    assert threads
    del pipeline
    gc.collect()
    for thread in threads:
        thread.join(20)
    assert not loading_threads()


def test_a_closed_pipeline_says_so(source: MemorySource) -> None:
    pipeline = open_pipeline(source)
    pipeline.close()
    with pytest.raises(RuntimeError, match="got a closed one"):
        pipeline.take()


def test_taking_what_was_not_submitted_says_so(source: MemorySource) -> None:
    pipeline = open_pipeline(source)
    with pytest.raises(IndexError, match="batch to take, got none"):
        pipeline.take()
    pipeline.close()


_ABANDONED = """
import itertools, os, sys
from tests.unit.load.memory_source import *
source = MemorySource([{"x": n} for n in range(64)], {"x": Feature("int64")})
pipeline = open_pipeline(source, map=lambda record: record)
for _ in range(50):
    pipeline.submit(plan(range(64)))
pipeline.take()
%s
print("end")
"""


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(print('end'))", "os.fork() or (pipeline.close(), sys.exit(0))"]
)
def test_a_program_ends_in_the_midst_of_iterating(end: str) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _ABANDONED % end],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert found.stdout == "end\n"
    assert not found.stderr


_INTERRUPTED = """
import random, signal

from tests.unit.load.memory_source import SCHEMA, MemorySource, make_rows, open_pipeline, plan

class Interrupt(BaseException):
    pass

def interrupt(*_):
    raise Interrupt

signal.signal(signal.SIGALRM, interrupt)
chance = random.Random(0)
for _ in range(300):
    source = MemorySource(make_rows(40), SCHEMA)
    pipeline = open_pipeline(source, map=lambda record: record, threads=2)
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(0.0001, 0.01))
        pipeline.submit(plan(range(8)))
        while True:
            pipeline.submit(plan(range(8)))
            pipeline.take()
    except Interrupt:
        pass
    except RuntimeError as error:  # what Python makes of it where it starts a thread
        assert isinstance(error.__context__, Interrupt)
    pipeline.close()
print("end")
"""


def test_an_interrupt_at_any_place_leaves_no_lock_taken() -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _INTERRUPTED],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert found.stdout == "end\n"


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_touch_the_pool(source: MemorySource) -> None:
    pipeline = open_pipeline(source, map=lambda record: record)
    pipeline.submit(plan([1]))
    child = os.fork()
    if child == 0:
        try:
            pipeline.take()
        except RuntimeError:
            pipeline.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert pipeline.take().batch["x"] == [1]
    pipeline.close()


# From files.
def test_records_of_files_come_as_those_in_memory(tmp_path) -> None:
    rows = make_rows(12)
    datum.write(rows, tmp_path / "out", schema=SCHEMA, shuffle=False, shards=2)
    split = datum.load(tmp_path / "out")["train"]

    def loaded(**options) -> dict:
        parts = [(split.shards, run) for run in split.runs]
        source = NumberedRecords(parts, Parser(split.schema), threads=1)
        pipeline = Pipeline(source, split.schema, LoadOptions(**options), threads=2)
        pipeline.submit(plan([7, 2, 11]))
        try:
            return pipeline.take().batch
        finally:
            pipeline.close()

    wanted = load(MemorySource(rows, split.schema), [7, 2, 11])[0]
    for got in (loaded(), loaded(map=lambda record: record)):
        assert list(got) == list(wanted)
        assert got["text"].tolist() == wanted["text"].tolist()
        assert got["tokens"].to_list() == wanted["tokens"].to_list()
        assert got["bag"].to_list() == wanted["bag"].to_list()


def test_a_cache_is_used_without_threads_too(source: MemorySource) -> None:
    cache = RecordCache(40)
    load(source, [1, 2, 3], cache=cache)
    (batch,) = load(source, [3, 1], cache=cache)
    assert batch["x"].tolist() == [3, 1]
    assert len(source.submitted) == 1


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


@pytest.mark.parametrize(
    ("shuffle", "expected"),
    [
        (False, Order(9)),
        (0, Order(9)),
        (True, Order(9, "full", 4)),
        ("full", Order(9, "full", 4)),
        ("blocks", Order(9, "blocks", 4, WINDOW_RECORDS)),
        (1, Order(9, "blocks", 4, 1)),
        (500, Order(9, "blocks", 4, 500)),
        (np.int64(500), Order(9, "blocks", 4, 500)),
    ],
)
def test_shuffle_names_an_order(shuffle, expected):
    assert make_order(9, LoadOptions(shuffle=shuffle, seed=4)) == expected


def test_one_order_for_all_epochs_can_be_asked_for():
    order = make_order(9, LoadOptions(shuffle=True, reshuffle=False))
    assert order == Order(9, "full", 0, reshuffles=False)


@pytest.fixture
def ds(tmp_path):
    datum.write(
        {"x": range(20)}, tmp_path / "d", shards=2, splits={"a": 0.5, "b": 0.5}, progress=False
    )
    return datum.load(tmp_path / "d")


def test_a_split_is_told_by_name_records_and_places(ds):
    stream = order_split(ds["a+b"], LoadOptions())
    assert stream.name == "a+b"
    assert stream.order.records == 20
    assert sum(len(run) for _, run in stream.parts) == 20
    assert set(stream.identity) == {"records", "order", "seed"}


@pytest.mark.parametrize(
    ("split", "options"),
    [
        ("b", {}),
        ("a[:3]", {}),
        ("a+b", {}),
        ("a", {"shuffle": True}),
        ("a", {"shuffle": 7}),
        ("a", {"seed": 1}),
    ],
)
def test_another_split_or_order_has_another_identity(ds, split, options):
    plain = order_split(ds["a"], LoadOptions()).identity
    assert order_split(ds[split], LoadOptions(**options)).identity != plain


@pytest.mark.parametrize("options", [{"batch_size": 7}, {"threads": 3}, {"host": (1, 2)}])
def test_batches_threads_and_hosts_are_no_part_of_the_identity(ds, options):
    plain = order_split(ds["a"], LoadOptions()).identity
    assert order_split(ds["a"], LoadOptions(**options)).identity == plain


@pytest.mark.parametrize("mode", ["none", "full", "blocks"])
@pytest.mark.parametrize("lost", [[], [0], [49], [3, 4, 5, 17], list(range(50))])
def test_the_others_come_in_the_order_they_had(mode, lost, monkeypatch):
    monkeypatch.setattr(stream, "SEARCHED_RECORDS", 7)
    order = Order(50, mode, seed=3, window=16)
    rest = OrderWithout(order, np.array(lost, np.int64))
    assert rest.records == 50 - len(lost)
    for epoch in (0, 1, 0):
        whole = order.numbers(epoch, np.arange(50))
        expected = [n for n in whole.tolist() if n not in lost]
        assert rest.numbers(epoch, np.arange(rest.records)).tolist() == expected
        if len(expected) > 9:
            some = np.array([9, 2])
            assert rest.numbers(epoch, some).tolist() == [expected[9], expected[2]]
