"""What should be at a path that may be damaged."""

import json

import pytest

import datum
from datum._rewrite.salvage import survey_path
from datum.format import RecordWriter, encode
from tests.unit.rewrite.damaged import flip, shard_of, write_numbers


@pytest.fixture
def folder(tmp_path):
    write_numbers(tmp_path / "in")
    return tmp_path / "in"


def test_a_manifest_tells_files_splits_counts_and_schema(folder):
    found = survey_path(folder)
    assert [(file.split, file.name, file.records) for file in found.files] == [
        ("train", f"train-0000{number}-of-00003.tfrecord", 30) for number in range(3)
    ]
    assert found.schema == datum.load(folder).schema
    assert found.is_certain
    assert found.splits == ["train"]
    assert survey_path(folder / "datum.json").files == found.files


def test_a_manifest_with_a_wrong_checksum_is_doubted(folder):
    path = folder / "datum.json"
    path.write_text(path.read_text().replace('"x"', '"y"', 1))
    found = survey_path(folder)
    assert not found.is_certain
    assert "y" in found.schema
    believed = survey_path(folder, trusts_damaged=False)
    assert believed.is_certain
    assert "x" in believed.schema
    assert [file.records for file in believed.files] == [30, 30, 30]  # as their indexes say


def test_a_manifest_that_cannot_be_read_leaves_the_files(folder):
    (folder / "datum.json").write_text("{")
    shard_of(folder, 1).unlink()
    found = survey_path(folder)
    assert [(file.name[:11], file.path.exists()) for file in found.files] == [
        ("train-00000", True),
        ("train-00002", True),
        ("train-00001", False),
    ]
    assert found.notes[0].startswith("datum.json is damaged")


def test_a_newer_manifest_is_left_to_whoever_can_read_it(folder):
    path = folder / "datum.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 2}))
    with pytest.raises(datum.ManifestError, match="newer"):
        survey_path(folder)


def test_files_that_nobody_described_are_found_by_what_they_hold(folder):
    (folder / "datum.json").unlink()
    flip(shard_of(folder), 0)
    (folder / "notes.txt").write_text("not records")
    found = survey_path(folder)
    assert [file.name for file in found.files] == [shard_of(folder, n).name for n in range(3)]
    assert sorted(found.schema) == ["text", "x"]


def test_a_given_schema_wins(folder):
    schema = datum.Schema({"x": datum.Feature("int64")})
    assert survey_path(folder, schema=schema).schema == schema
    (folder / "datum.json").unlink()
    assert survey_path(folder, schema=schema).schema == schema


def test_records_that_are_no_examples_have_no_schema(tmp_path):
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xff")
    found = survey_path(tmp_path / "a.tfrecord")
    assert found.schema is None
    assert "expected a tf.train.Example" in found.notes[0]


def test_records_that_contradict_one_another_have_no_schema(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(
        encode([{"x": 1}]).to_bytes() + encode([{"x": "one"}]).to_bytes()
    )
    found = survey_path(tmp_path / "a.tfrecord")
    assert found.schema is None
    assert "expected one kind" in found.notes[0]


def test_a_description_of_others_that_cannot_be_used_leaves_the_files(folder):
    (folder / "datum.json").unlink()
    (folder / "dataset_info.json").write_text("{}")
    found = survey_path(folder)
    assert len(found.files) == 3
    assert sorted(found.schema) == ["text", "x"]
    assert found.notes
