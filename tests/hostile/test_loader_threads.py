"""The threads that read records by number: they end, let interrupts through and survive a fork."""

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from datum import Feature, Schema
from datum.errors import SchemaError
from tests.signals import usual_signals
from tests.unit.read.opened import ALL, opened, parts_of, write_parts
from tests.unit.read.written import write_dataset

TASKS = Path("/proc/self/task")
on_linux = pytest.mark.skipif(not TASKS.is_dir(), reason="needs /proc")


def count_threads():
    return len(list(TASKS.iterdir()))


@pytest.fixture
def parts(tmp_path):
    return write_parts(tmp_path)


@on_linux
def test_threads_end_when_closed_or_forgotten(parts):
    before = count_threads()
    records = opened(parts, 4)
    for _ in range(50):
        records.submit(ALL)
    assert count_threads() == before + 4
    records.close()
    records.close()
    assert count_threads() == before
    records = opened(parts, 4)
    ticket = records.submit(ALL)
    assert ticket
    del records
    gc.collect()
    assert count_threads() == before


def test_a_closed_one_says_so(parts):
    for threads in (0, 1):
        records = opened(parts, threads)
        ticket = records.submit([0])
        records.close()
        with pytest.raises(ValueError, match="got closed ones"):
            records.take(ticket)
        with pytest.raises(ValueError, match="got closed ones"):
            records.submit([0])


def test_whoever_waits_is_told_of_a_close(parts):
    """Takes wait behind so much work that none of them is done when the loader is closed."""
    records = opened(parts, 1)
    numbers = np.zeros(500_000, np.int64)
    tickets = [records.submit(numbers) for _ in range(20)]
    outcomes = []
    begun = threading.Barrier(4)

    def wait(ticket):
        begun.wait()
        try:
            records.take(ticket)
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=wait, args=(ticket,)) for ticket in tickets[-3:]]
    for thread in threads:
        thread.start()
    begun.wait()
    records.close()
    for thread in threads:
        thread.join()
    assert outcomes == ["expected open records, got closed ones"] * 3


def test_too_much_to_fill_in_is_an_error_of_the_batch_that_asked_for_it(tmp_path):
    rows = [{"x": 1}]
    parts = parts_of(
        tmp_path, write_dataset(tmp_path, {"train": [rows]}, Schema({"x": Feature("int64")}))
    )
    huge = Schema({"x": Feature("int64"), "much": Feature("int64", (2**40,), optional=True)})
    for threads in (0, 1):
        records = opened(parts, threads, schema=huge)
        with pytest.raises(SchemaError, match="in 100,000 records need too much memory"):
            records.read([0] * 100_000)
        records.close()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_is_told_and_does_not_hang(parts):
    """While threads work, and with what the parent submitted left untaken."""
    records = opened(parts, 2)
    waiting = [records.submit(ALL * 500) for _ in range(20)]
    idle = opened(parts, 0)
    idle.read([0])
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(30)
            told = 0
            for call in (lambda: records.submit([0]), lambda: records.take(waiting[0]),
                         lambda: idle.submit([0])):  # fmt: skip
                try:
                    call()
                except RuntimeError as error:
                    told += "got a fork of that process" in str(error)
            records.close()
            mine = opened(parts, 2)
            is_right = mine.read(ALL)["x"].tolist() == ALL
            mine.close()
            del records, mine, idle
            gc.collect()
            code = 0 if told == 3 and is_right else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    for ticket in waiting:
        assert records.take(ticket).columns["x"].tolist() == ALL * 500
    records.close()


SCRIPT = """
    import os, signal, sys, threading
    import numpy as np
    import datum
    from datum.format import Parser
    from datum._read.numbered import NumberedRecords
    split = datum.load(sys.argv[1])["train"]
    parser = Parser(split.schema)
    records = NumberedRecords([(split.shards, run) for run in split.runs], parser, threads=1)
    tickets = [records.submit(np.zeros(500_000, np.int64)) for _ in range(10)]
"""


def run_script(folder, code):
    script = textwrap.dedent(SCRIPT) + textwrap.dedent(code)
    command = [sys.executable, "-c", script, folder]
    with usual_signals():
        return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_an_interrupt_gets_through_to_whoever_waits(parts):
    code = """
        try:
            threading.Timer(0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            records.take(tickets[-1])
        except KeyboardInterrupt:
            print("interrupted")
            print(records.take(tickets[0]).columns["x"].sum())
        records.close()
    """
    done = run_script(parts[0][0].folder, code)
    assert (done.stdout, done.stderr) == ("interrupted\n0\n", "")


def test_a_program_may_end_while_threads_work(parts):
    done = run_script(parts[0][0].folder, "print('end')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
