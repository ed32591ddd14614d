"""Numbers and lines of `datum bench`."""

import pytest

from datum.cli import bench_page
from tests.unit.measure.made import make_measurement


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.00001, "0"),
        (0.00123456, "0.00123"),
        (0.5, "0.500"),
        (0.9996, "1.00"),
        (3.14159, "3.14"),
        (31.4159, "31.4"),
        (314.159, "314"),
        (999.9, "1,000"),
        (123_456_789, "123,000,000"),
    ],
)
def test_three_digits_count(value, expected):
    assert bench_page.rounded(value) == expected


@pytest.mark.parametrize(
    ("share", "expected"), [(0, "0 %"), (0.004, "<1 %"), (0.006, "1 %"), (1, "100 %")]
)
def test_percent(share, expected):
    assert bench_page.percent(share) == expected


def test_a_split_in_one_line():
    found = make_measurement(compression="gzip")
    assert (
        bench_page.describe_split(found) == "split train: 12,345 records, 10 shards, 1.2 GB, gzip"
    )


def test_a_run_in_one_line():
    found = make_measurement()
    assert bench_page.describe_run(found) == "128 records of 100.0 kB, batches of 64, shuffled"
    options = {**found.options, "shuffle": False, "columns": ["a", "b"]}
    found = make_measurement(options=options, measured_records=12_345)
    assert bench_page.describe_run(found).startswith("all records of")
    assert bench_page.describe_run(found).endswith("in order, columns a, b")


def test_the_verdict_is_the_time_of_a_step():
    assert "of 64 records that takes longer than 32.0 ms" in bench_page.verdict(make_measurement())
    assert bench_page.verdict(make_measurement(speeds=())) == ""


def test_threads_and_programs():
    found = make_measurement()
    assert bench_page.describe_threads(found) == "2 threads"
    assert bench_page.describe_programs(found) == "Python 3.12.1"


def test_every_stage_has_words():
    from datum._inspect.measure.contenders import STAGES

    assert set(bench_page.STAGES) == set(STAGES)
