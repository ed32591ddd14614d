"""What a repair saved, and what was lost."""

import json
from pathlib import Path

from datum import Damage
from datum._rewrite.salvage import Loss, RepairReport


def loss(record=3, *, records=1, kind="payload checksum", reason=""):
    return Loss("train", Damage("in/a.tfrecord", 10, 52, record, kind), records, reason)


def report(*losses, lost=1, notes=()):
    return RepairReport(
        Path("in"), Path("out"), "dataset", {"train": 7}, {"train": lost}, losses, notes, 0.5
    )


def test_a_loss_tells_where_how_much_and_why():
    assert loss().bytes == 42
    assert str(loss()) == "in/a.tfrecord: record 3, bytes 10-52: payload checksum"
    assert (
        str(loss(records=5)) == "in/a.tfrecord: record 3, bytes 10-52: payload checksum (5 records)"
    )
    assert str(loss(records=None, reason="so it is")).endswith("payload checksum: so it is")
    assert loss(reason="why").to_json() == {
        "split": "train",
        "file": "in/a.tfrecord",
        "offset": 10,
        "bytes": 42,
        "record": 3,
        "records": 1,
        "kind": "payload checksum",
        "reason": "why",
    }


def test_a_summary_counts_and_lists():
    assert str(report(loss(), notes=("take care",))) == (
        "out: 7 records saved, 1 lost\n"
        "  train  7 saved, 1 lost\n"
        "  in/a.tfrecord: record 3, bytes 10-52: payload checksum\n"
        "  note: take care"
    )
    assert (
        repr(report(lost=0)) == "out: 7 records saved, nothing was lost\n  train  7 saved, 0 lost"
    )


def test_a_summary_says_where_nobody_knows_how_many_are_lost():
    text = str(report(loss(), lost=None))
    assert "7 records saved, damage in 1 place" in text
    assert "how many were lost is not known" in text


def test_a_summary_of_many_losses_is_cut():
    many = [loss(record=number) for number in range(25)]
    assert str(report(*many, lost=25)).splitlines()[-1] == "  and 5 places more"


def test_totals():
    assert report(loss()).records == 7
    assert report(loss()).lost_records == 1
    assert report(lost=None).lost_records is None
    assert report(lost=0).is_whole
    assert not report(loss(), lost=None).is_whole


def test_it_can_be_written_as_json():
    found = report(loss(), loss(kind="image")).to_json()
    assert json.loads(json.dumps(found)) == found
    assert found["kinds"] == {"image": 1, "payload checksum": 1}
    assert (found["kept"], found["lost"], found["form"]) == ({"train": 7}, {"train": 1}, "dataset")
