"""Adding to a dataset that is there."""

import pytest

import datum
from datum import Feature, SchemaError, WriteError
from tests.unit.write.datasets import digests, rows, values, write


def test_records_can_be_appended(tmp_path):
    write(rows(10), tmp_path / "out")
    shard = tmp_path / "out/train-00000-of-00001.tfrecord"
    before = shard.stat().st_mtime_ns
    more = [{"x": i, "text": "new", "extra": 1.5} for i in range(10, 15)]
    report = write(more, tmp_path / "out", append=True, shuffle=False)
    assert report.records == 5
    ds = datum.load(tmp_path / "out")
    assert ds.splits["train"].records == 15
    assert ds.schema["extra"] == Feature("float32", optional=True)
    assert shard.stat().st_mtime_ns == before
    assert values(tmp_path / "out")[10:] == [10, 11, 12, 13, 14]
    assert ds.verify().is_sound
    write([{"x": 1}], tmp_path / "out", append=True, splits={"val": 1.0})
    assert datum.load(tmp_path / "out").splits["val"].records == 1


def test_records_that_do_not_fit_are_not_appended(tmp_path):
    write(rows(10), tmp_path / "out")
    before = digests(tmp_path / "out")
    for source in ([{"x": 0.1, "text": "a"}], [{"x": "a", "text": "a"}]):
        with pytest.raises(SchemaError, match="'x'"):
            write(source, tmp_path / "out", append=True)
    assert digests(tmp_path / "out") == before


def test_nothing_to_append_to_is_an_error(tmp_path):
    with pytest.raises(WriteError, match="expected a dataset to append to"):
        write(rows(1), tmp_path / "out", append=True)
