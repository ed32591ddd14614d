"""What an export made."""

from pathlib import Path

from datum._rewrite.export import ExportedSplit, ExportReport

REPORT = ExportReport(
    Path("out"),
    "images",
    {"train": ExportedSplit(1200, 3_000_000, 1201), "val": ExportedSplit(1, 10, 1)},
    1.23456,
)


def test_a_report_sums_its_splits():
    assert (REPORT.records, REPORT.bytes, REPORT.files) == (1201, 3_000_010, 1202)


def test_a_report_is_a_summary():
    assert str(REPORT) == (
        "out: 1,201 records as images in 1.2 s\n"
        "  train  1,200 records, 1,201 files, 3.0 MB\n"
        "  val    1 record, 1 file, 10 B"
    )


def test_a_report_is_plain_values():
    assert REPORT.to_json() == {
        "path": "out",
        "format": "images",
        "records": 1201,
        "bytes": 3_000_010,
        "files": 1202,
        "seconds": 1.235,
        "splits": {
            "train": {"records": 1200, "bytes": 3_000_000, "files": 1201},
            "val": {"records": 1, "bytes": 10, "files": 1},
        },
    }
