"""What a write says it did."""

from pathlib import Path

from datum._write.report import SplitReport, WriteReport


def test_a_report_adds_up_its_splits():
    report = WriteReport(
        Path("photos"),
        {"train": SplitReport(900, 10_000, 2, 3), "val": SplitReport(1, 500, 1)},
        1.25,
        resumed_shards=1,
        quarantine=Path("photos/quarantine.jsonl"),
        skipped=("a.txt", "b.md", "c.db", "d.txt"),
    )
    assert (report.records, report.bytes, report.shards) == (901, 10_500, 3)
    assert report.quarantined == {"train": 3, "val": 0}
    assert str(report).splitlines() == [
        "photos: 901 records in 1.2 s",
        "  train  900 records, 2 shards, 10.0 kB; 3 left out",
        "  val    1 record, 1 shard, 500 B",
        "  1 shard of an earlier run kept",
        "  left out, with reasons: photos/quarantine.jsonl",
        "  4 files without records passed by: a.txt, b.md, c.db, ...",
    ]
