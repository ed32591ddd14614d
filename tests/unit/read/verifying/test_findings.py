import pytest

from datum._read import record_checks
from datum._read.record_checks import Findings
from datum.errors import Damage


@pytest.fixture
def found():
    return Findings("train", "a.tfrecord")


def test_problems_of_the_file_come_first_and_records_by_number(found):
    found.tell_record("schema", "expected x", (9, 900), feature="y")
    found.tell_damage(Damage("/data/a.tfrecord", 100, 150, 2, "payload checksum"))
    found.tell("size", "expected 5 bytes, got 6")
    assert [(one.kind, one.record) for one in found.problems] == [
        ("size", None),
        ("payload checksum", 2),
        ("schema", 9),
    ]
    assert {(one.split, one.shard) for one in found.problems} == {("train", "a.tfrecord")}
    assert found.problems[2].feature == "y"


def test_damage_says_what_was_expected_and_how_much_is_lost(found):
    found.tell_damage(Damage("a", 100, 150, 2, "torn payload"))
    (problem,) = found.problems
    assert (problem.offset, problem.end) == (100, 150)
    assert problem.text == "expected a whole record, got the end after 50 bytes of it"
    assert found.damaged == 1


def test_damage_after_the_last_record_costs_none(found):
    found.tell_damage(Damage("a", 150, 150, 7, "compressed stream"))
    found.tell_damage(Damage("a", 100, 150, 2, "torn payload"))
    assert (found.damaged, found.lost) == (2, 1)


def test_damage_of_a_kind_yet_unknown_is_told(found):
    found.tell_damage(Damage("a", 0, 1, 0, "something new"))
    assert found.problems[0].kind == "something new"
    assert found.problems[0].text == "expected a sound record, got damage"


def test_what_is_too_much_is_counted(found, monkeypatch):
    monkeypatch.setattr(record_checks, "MAX_LISTED", 2)
    for number in range(5):
        found.tell_damage(Damage("a", number, number + 1, number, "torn header"))
    found.tell_record("image", "expected an image", (7, None))
    found.tell("record count", "expected 9")
    kinds = [one.kind for one in found.problems]
    assert kinds == ["record count", "torn header", "torn header", "more"]
    assert found.problems[-1].text == "4 more problems of records"
    assert found.damaged == 5
