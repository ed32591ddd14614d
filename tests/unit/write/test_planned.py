"""What a write would do, as it is told."""

from datum import Feature, Schema
from datum._write.preview import KnownSource
from datum._write.report import PlannedSplit, WritePlan, describe_split


def make(**splits):
    return WritePlan(
        "CSV table",
        splits,
        Schema({"x": Feature("int64"), "label": Feature("int64")}),
        ("x",),
        1000,
        {"label": {"class_names": list("abcdefg")}, "x": {"encoding": "cp1252"}},
        None,
        ("a.md",) * 7,
        ("look here",),
        KnownSource(dict),
    )


def test_sums_are_known_only_if_every_split_is():
    known = PlannedSplit("a.csv", 10, 10, 1000, 2)
    guessed = PlannedSplit("b.csv", None, 20, 2000, 2)
    unknown = PlannedSplit("c.csv", None, None, None, None)
    plan = make(a=known, b=guessed)
    assert (plan.records, plan.estimated_records, plan.estimated_bytes) == (None, 30, 3000)
    assert make(a=known).records == 10
    assert make(a=known, c=unknown).estimated_records is None


def test_a_split_is_told_in_one_line():
    assert describe_split(PlannedSplit("a.csv", 1, 1, 1000, 1)) == (
        "1 record, 1 shard, about 1.0 kB, from a.csv"
    )
    assert describe_split(PlannedSplit("", None, 1200, None, 3)) == "about 1,200 records, 3 shards"
    assert describe_split(PlannedSplit("", None, None, None, None)) == "records not counted yet"


def test_the_size_of_a_shard_is_that_of_all_by_their_number():
    assert PlannedSplit("", 10, 10, 1000, 4).shard_bytes == 250
    assert PlannedSplit("", None, None, None, 4).shard_bytes is None


def test_a_plan_shows_marks_classes_files_and_warnings():
    text = str(make(train=PlannedSplit("a.csv", 10, 10, 1000, 2)))
    assert "x      'int64' *" in text
    assert "label  'int64', 7 classes: a, b, c, d, e, ..." in text
    assert "7 files without records: a.md, a.md, a.md, a.md, a.md, ..." in text
    assert text.endswith("warning: look here")


def test_json_holds_plain_values():
    found = make(train=PlannedSplit("a.csv", 10, 10, 1000, 2)).to_json()
    assert found["class_names"] == {"label": list("abcdefg")}
    assert found["splits"]["train"] == {
        "origin": "a.csv",
        "records": 10,
        "estimated_records": 10,
        "estimated_bytes": 1000,
        "shards": 2,
        "shard_bytes": 500,
    }
    assert found["guessed"] == ["x"]
