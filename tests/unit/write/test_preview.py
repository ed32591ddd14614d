"""A source looked at before it is written."""

import gzip
import json

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from datum._write import preview
from datum._write.preview import Beginning, KnownSource, look_at


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(preview, "_HEAD_BYTES", 400)
    monkeypatch.setattr(preview, "LARGE_BYTES", 0)


def write_csv(path, count):
    path.write_text("number,name\n" + "".join(f"{10_000 + i},row\n" for i in range(count)))
    return path


def estimate(part):
    seen = sum(len(block) for block in part.held)
    return part.total or round(seen / part.share)


def test_parts_are_made_once_and_only_when_asked_for():
    calls = []
    source = KnownSource(lambda: calls.append(1) or {})
    assert calls == []
    assert source.parts() == source.parts() == {}
    assert calls == [1]


def test_a_large_csv_file_is_read_at_its_beginning(tmp_path):
    found = look_at(write_csv(tmp_path / "a.csv", 5000), None)
    part = found.parts["train"]
    assert isinstance(part, Beginning)
    assert list(part.schema) == ["number", "name"]
    assert part.total is None
    assert abs(estimate(part) - 5000) < 100
    assert len(found.source.parts()["train"]) == 5000


def test_a_column_that_is_blank_at_the_beginning_may_not_be_later(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("number,late\n" + "1,\n" * 2000 + "1,2\n")
    part = look_at(path, None).parts["train"]
    assert list(part.schema) == ["number"]
    assert part.metadata == {"late": {"left_out": "no sampled record has a value"}}


def test_other_files_of_a_folder_are_told(tmp_path):
    write_csv(tmp_path / "a.csv", 10)
    (tmp_path / "notes.md").write_text("x")
    (tmp_path / "more").mkdir()
    assert look_at(tmp_path, None).unread == ["more/", "notes.md"]
    assert look_at(tmp_path / "a.csv", None).unread == []


def test_a_packed_csv_file_does_not_tell_how_much_there_is(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(write_csv(tmp_path / "a.csv", 5000).read_bytes()))
    part = look_at(path, None).parts["train"]
    assert part.share is None
    assert list(part.schema) == ["number", "name"]


def test_each_split_of_a_folder_has_its_own_beginning(tmp_path):
    write_csv(tmp_path / "train.csv", 1000)
    write_csv(tmp_path / "test.csv", 500)
    found = look_at(tmp_path, None)
    assert {name: round(estimate(part), -2) for name, part in found.parts.items()} == {
        "test": 500,
        "train": 1000,
    }


def test_parquet_tells_how_many_rows_there_are(tmp_path):
    table = pa.table({"x": list(range(3000)), "tags": [["a"]] * 3000})
    pq.write_table(table, tmp_path / "a.parquet")
    part = look_at(tmp_path / "a.parquet", None).parts["train"]
    assert part.total == 3000
    assert sum(map(len, part.held)) == 1000
    assert list(part.schema) == ["x", "tags"]


def test_arrow_files_are_estimated(tmp_path):
    table = pa.table({"x": list(range(100_000))})
    pyarrow.feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    part = look_at(tmp_path / "a.arrow", None).parts["train"]
    assert part.total is None
    assert 50_000 < estimate(part) < 200_000


def test_json_lines_are_estimated_or_counted(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps({"x": i}) + "\n" for i in range(10_000)))
    monkeypatch.setattr("datum._write.preview.COUNT_SECONDS", 1e9)  # however busy the machine is
    part = look_at(path, None).parts["train"]
    assert (part.total, part.share) == (10_000, None)
    monkeypatch.setattr("datum._write.preview.COUNT_SECONDS", -1.0)
    part = look_at(path, None).parts["train"]
    assert part.total is None
    assert abs(estimate(part) - 10_000) < 500
    monkeypatch.undo()
    path.write_text('{"x": 1}\n\nno json\n')
    part = look_at(path, None).parts["train"]
    assert part.total == 2  # with the one that is none


def test_a_function_that_gives_no_rows_says_so():
    from datum import SourceError

    with pytest.raises(SourceError, match="expected an iterable of rows, got <class 'int'>"):
        look_at(lambda: 7, None)


def test_objects_are_taken_as_they_are():
    found = look_at({"x": [1, 2]}, None)
    assert found.layout == "columns in memory"
    assert found.origins == {"train": ""}
    assert found.parts["train"] is found.source.parts()["train"]
