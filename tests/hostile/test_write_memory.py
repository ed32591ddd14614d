"""Memory that does not grow with the number of records."""

import sys

import numpy as np
import pytest

from tests.hostile.shards import MIB, run_measured

# The program and its libraries, blocks on their way, 128 MiB that may be held, as much to sort it.
BOUND = 700 * MIB

ROWS = """
import datum, itertools
out, count, kind = args
def rows():
    for number in range(int(count)):
        yield {"id": number, "x": number / 7, "text": f"record {number}"}
def keyed():
    return ((f"key {number}", row) for number, row in enumerate(rows()))
options = {"splits": {f"split{n}": 0.1 for n in range(10)}} if kind == "divided" else {}
source = keyed() if kind == "keyed" else rows()
report = datum.write(source, out, shuffle=kind != "in order", progress=False, **options)
return report.records
"""


@pytest.mark.parametrize("kind", ["shuffled", "in order", "divided", "keyed"])
def test_a_generator_of_many_rows_takes_bounded_memory(tmp_path, kind):
    count = 600_000
    records, growth = run_measured(ROWS, tmp_path / "out", count, kind)
    assert records == count
    assert growth < BOUND


LARGE = """
import datum
out, count = args
def rows():
    for number in range(int(count)):
        yield {"x": bytes([number % 256]) * 2**20}
report = datum.write(rows(), out, progress=False)
return report.records
"""


def test_large_records_are_not_gathered_by_the_thousand(tmp_path):
    """A block of 4,096 records of 1 MiB would be 4 GiB."""
    records, growth = run_measured(LARGE, tmp_path / "out", 1000)
    assert records == 1000
    assert growth < BOUND


HELD = """
import datum, psutil, threading
from tests.hostile.test_write_memory import Held
out, = args
source = Held(100_000)
most, is_over = [0], threading.Event()
def watch():
    me = psutil.Process()
    while not is_over.wait(0.02):
        sizes = []
        for process in (me, *me.children(recursive=True)):
            try:
                sizes.append(process.memory_full_info().pss)
            except psutil.Error:
                pass
        most[0] = max(most[0], sum(sizes))
watcher = threading.Thread(target=watch)
watcher.start()
report = datum.write(source, out, workers=4, progress=False)
is_over.set()
watcher.join()
return report.records, most[0]
"""


class Held:
    """A map-style dataset of 200 MB that lie in memory."""

    def __init__(self, count):
        self.values = np.ones((count, 2000), np.uint8)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, number):
        return {"x": int(self.values[number, 0])}


@pytest.mark.skipif(sys.platform != "linux", reason="shares of memory are known on Linux only")
def test_a_dataset_that_lies_in_memory_is_not_there_once_for_each_worker(tmp_path):
    (records, most), _ = run_measured(HELD, tmp_path / "out")
    assert records == 100_000
    assert most < 900 * MIB  # twice the data, and five processes
