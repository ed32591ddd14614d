"""The processes that write."""

import os
import signal
import sys
import threading

import pytest

from datum import WriteError
from datum._write.workers import MAX_SENT_BYTES, WorkerProcesses, can_use_processes, map_ordered


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_results_come_in_the_order_of_the_pieces(workers):
    assert list(map_ordered(lambda n: n * n, range(100), workers=workers)) == [
        n * n for n in range(100)
    ]


def test_pieces_are_asked_for_only_shortly_before_they_are_needed():
    asked = []

    def pieces():
        for n in range(100):
            asked.append(n)
            yield n

    results = map_ordered(lambda n: n, pieces(), workers=2)
    next(results)
    assert len(asked) < 10
    results.close()


def test_an_error_comes_in_its_place():
    results = map_ordered(lambda n: 10 // (3 - n), range(10), workers=2)
    assert [next(results) for _ in range(3)] == [3, 5, 10]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_no_thread_is_left_when_nobody_asks_for_more():
    before = threading.active_count()
    results = map_ordered(lambda n: n, range(100), workers=3)
    next(results)
    results.close()
    assert threading.active_count() == before


def test_processes_do_the_work_elsewhere():
    with WorkerProcesses(abs, count=2) as processes:
        assert list(map_ordered(processes, [-1, 2, -3], workers=2)) == [1, 2, 3]


def test_an_error_in_a_process_is_raised_here():
    with WorkerProcesses(int, count=1) as processes, pytest.raises(ValueError, match="'x'"):
        processes("x")


def test_a_process_that_was_killed_is_replaced():
    with WorkerProcesses(eval, count=1) as processes:
        victim = processes("__import__('os').getpid()")
        os.kill(victim, signal.SIGKILL)
        assert processes("1 + 1") == 2


def test_work_that_kills_its_process_is_an_error_and_no_hang():
    with WorkerProcesses(eval, count=1) as processes:
        with pytest.raises(WriteError, match="died twice on one piece of work"):
            processes("__import__('os').kill(__import__('os').getpid(), 9)")
        assert processes("2") == 2


def test_what_the_work_prints_does_not_mix_with_answers(capfd):
    with WorkerProcesses(eval, count=1) as processes:
        assert processes("print('hello') or 5") == 5
    assert "hello" in capfd.readouterr().err


class Adds:
    """Work of a size that is not worth sending."""

    def __init__(self, offset):
        self.offset = offset
        self.ballast = bytes(MAX_SENT_BYTES)

    def __call__(self, number):
        return number + self.offset, os.getpid()


def test_work_that_holds_on_to_this_process_cannot_be_done_elsewhere(tmp_path):
    assert can_use_processes(abs)
    with (tmp_path / "file").open("w") as file:
        assert not can_use_processes(file)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are copied on Linux alone")
def test_work_that_cannot_be_sent_is_done_by_copies_of_this_process():
    offset = 10
    with WorkerProcesses(Adds(offset), count=2) as processes:
        found = list(map_ordered(processes, range(20), workers=2))
        assert [value for value, _ in found] == list(range(10, 30))
        assert os.getpid() not in {pid for _, pid in found}
        victim = found[-1][1]
        os.kill(victim, signal.SIGKILL)
        assert [processes(n)[0] for n in range(4)] == [10, 11, 12, 13]
    with pytest.raises(ProcessLookupError):
        os.kill(found[0][1], 0)


def test_the_work_does_not_read_requests():
    with WorkerProcesses(eval, count=1) as processes:
        assert processes("__import__('sys').stdin.read()") == ""
