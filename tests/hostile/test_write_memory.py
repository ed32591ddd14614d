"""Memory that does not grow with the number of records."""

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
