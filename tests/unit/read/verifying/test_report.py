import json
from dataclasses import replace
from pathlib import Path

from datum._read.record_checks import Problem, VerifyReport

DAMAGE = Problem("train", "a.tfrecord", "payload checksum", "expected x, got y", 7, 312, 400)
REPORT = VerifyReport(Path("photos"), 1000, 2_500_000, 4, ())


def test_a_problem_names_file_record_and_byte():
    assert str(DAMAGE) == "a.tfrecord: record 7 at byte 312: payload checksum: expected x, got y"


def test_a_problem_of_a_feature_names_it():
    problem = replace(DAMAGE, kind="schema", feature="label")
    assert problem.place == "record 7 at byte 312, feature 'label'"
    assert "record 7 at byte 312, feature 'label': schema: " in str(problem)


def test_a_problem_of_a_whole_file_has_no_place():
    problem = Problem("train", "a.tfrecord", "missing file", "expected a file, got none")
    assert problem.place == ""
    assert str(problem) == "a.tfrecord: missing file: expected a file, got none"


def test_a_sound_report_is_one_line():
    assert REPORT.is_sound
    assert str(REPORT) == "photos: sound: 1,000 records, 4 shards, 2.5 MB read"


def test_a_report_lists_problems_and_notes():
    report = replace(REPORT, problems=(DAMAGE,), notes=("a stray",), lost=3)
    assert not report.is_sound
    assert str(report).splitlines() == [
        "photos: 1 problem: 1,000 records, 4 shards, 2.5 MB read, 3 records lost",
        f"  {DAMAGE}",
        "  note: a stray",
    ]


def test_reports_that_differ_in_time_alone_are_equal():
    assert replace(REPORT, seconds=1.0) == replace(REPORT, seconds=2.0)


def test_a_report_as_json_has_every_field():
    report = replace(REPORT, problems=(DAMAGE,), notes=("a stray",), lost=3, seconds=0.25)
    found = json.loads(json.dumps(report.to_json()))
    assert found == {
        "path": "photos",
        "is_sound": False,
        "records": 1000,
        "lost": 3,
        "bytes": 2_500_000,
        "shards": 4,
        "seconds": 0.25,
        "is_deep": False,
        "images": 0,
        "problems": [
            {
                "split": "train",
                "shard": "a.tfrecord",
                "kind": "payload checksum",
                "text": "expected x, got y",
                "record": 7,
                "offset": 312,
                "end": 400,
                "feature": None,
            }
        ],
        "notes": ["a stray"],
    }
