"""What a loader counts."""

from datum._load.loader import MAX_LISTED, LoadReport
from datum.errors import Damage


def damage(record: int) -> Damage:
    return Damage("a.tfrecord", record * 10, record * 10 + 10, record, "payload checksum")


def test_batches_records_and_damage_add_up():
    report = LoadReport()
    report.add(4, [])
    report.add(3, [damage(5)])
    assert (report.batches, report.records, report.skipped) == (2, 7, 1)
    assert report.damage == [damage(5)]


def test_all_damage_is_counted_and_the_first_is_listed():
    report = LoadReport()
    for first in range(0, 3000, 300):
        report.add(0, map(damage, range(first, first + 300)))
    assert report.skipped == 3000
    assert report.damage == [damage(record) for record in range(MAX_LISTED)]


def test_the_report_reads_well():
    report = LoadReport()
    report.add(1, [])
    assert str(report) == "1 record in 1 batch, 0 skipped"
    report.add(1200, [damage(7)])
    assert str(report) == (
        "1,201 records in 2 batches, 1 skipped\n"
        "  a.tfrecord: record 7, bytes 70-80: payload checksum"
    )


def test_long_lists_are_cut_short():
    report = LoadReport()
    report.add(0, map(damage, range(8)))
    lines = str(report).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "  and 3 more"
