"""Records that cannot be written are put aside."""

import json

import numpy as np
import pytest

from datum import Feature, Schema, SchemaError, SourceError
from tests.unit.write.datasets import values, write


def bad_rows():
    return [{"x": "bad" if i % 100 == 7 else i} for i in range(10_000)]


def test_a_bad_record_stops_the_write(tmp_path):
    with pytest.raises(SchemaError, match=r"record 7.*'x'.*\n.*hint: on_error='quarantine'"):
        write(bad_rows(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("schema", [None, Schema({"x": Feature("int64")})])
@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_bad_records_are_left_out_and_counted(tmp_path, on_error, schema):
    report = write(bad_rows(), tmp_path / "out", on_error=on_error, schema=schema)
    assert report.records == 9900
    assert report.quarantined == {"train": 100}
    path = tmp_path / "out/quarantine.jsonl"
    assert path.exists() == (on_error == "quarantine")
    if on_error == "quarantine":
        listed = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["record"] for line in listed] == list(range(7, 10_000, 100))
        assert all("expected" in line["reason"] for line in listed)
        assert report.quarantine == path


def test_bad_records_of_columns_are_left_out_too(tmp_path):
    source = {"x": np.array([1, 300, 2])}
    options = {"schema": Schema({"x": Feature("uint8")}), "shuffle": False}
    report = write(source, tmp_path / "out", on_error="quarantine", **options)
    assert report.quarantined == {"train": 1}
    assert values(tmp_path / "out") == [1, 2]


@pytest.mark.parametrize("shuffle", [True, False])
def test_two_records_of_one_key(tmp_path, shuffle):
    source = [("a", {"x": 1}), ("b", {"x": 2}), ("a", {"x": 3})]
    with pytest.raises(SourceError, match=r"record 2 \(a\).*key of record 0 again"):
        write(source, tmp_path / "out", shuffle=shuffle)
    report = write(source, tmp_path / "out", shuffle=shuffle, on_error="quarantine")
    assert report.quarantined == {"train": 1}
    assert sorted(values(tmp_path / "out")) == [1, 2]
