import os
from dataclasses import replace

import pytest

import datum
from datum._read.foreign.detect import open_dataset
from datum._read.verify import find_notes
from datum.format import Index
from datum.format.durable import hold_folder
from tests.unit.read.written import write_numbered


@pytest.fixture
def folder(tmp_path):
    write_numbered(tmp_path / "out")
    return tmp_path / "out"


def notes(folder):
    return find_notes(open_dataset(folder))


def test_there_is_nothing_to_tell_of_a_dataset_alone_in_its_folder(folder):
    (folder / "README.md").touch()
    assert notes(folder) == ()


def test_files_that_the_manifest_does_not_name_are_told(folder):
    for n in range(5):
        (folder / f"old-{n}.tfrecord").touch()
    (note,) = notes(folder)
    assert note == (
        "5 TFRecord files that datum.json does not name:"
        " old-0.tfrecord, old-1.tfrecord, old-2.tfrecord, ..."
    )


def test_shards_without_an_index_are_told(folder):
    Index.path_for(folder / "val-00000-of-00001.tfrecord").unlink()
    (note,) = notes(folder)
    assert note.startswith("1 shard without an index")
    assert note.endswith("val-00000-of-00001.tfrecord")


def test_a_quarantine_is_told_with_its_records(tmp_path):
    rows = [{"x": 1}, {"x": "no number"}, {"x": 3}]
    schema = {"x": datum.Feature("int64")}
    datum.write(rows, tmp_path / "out", schema=schema, on_error="quarantine", progress=False)
    assert notes(tmp_path / "out") == ("quarantine.jsonl: 1 record left out when it was written",)


@pytest.mark.parametrize("place", [".out.partial", "out/.datum.partial"])
def test_what_an_interrupted_write_left_is_told(folder, place):
    (folder.parent / place).mkdir()
    assert notes(folder) == ()  # it may be anybody's
    os.close(hold_folder(folder.parent / place))
    (note,) = notes(folder)
    assert note.startswith(str(folder.parent / place))
    assert "did not finish" in note


def test_files_that_were_not_finished_are_told(folder):
    (folder / ".datum.json.12345678.datum-new").touch()
    (folder / "index" / ".of-train.index.12345678.datum-new").touch()
    (folder / "mine.new").touch()
    (note,) = notes(folder)
    names = ".datum.json.12345678.datum-new, index/.of-train.index.12345678.datum-new"
    assert note == f"2 files of an interrupted write: {names}"


def test_a_manifest_that_may_be_lost_is_told(folder):
    (folder / "datum.json").unlink()
    (note,) = notes(folder)
    assert note.startswith("no datum.json: read as plain TFRecord files")
    next(folder.glob("index/*")).unlink()
    assert notes(folder) == ()


def test_a_single_shard_beside_its_manifest_is_none_that_lost_it(folder):
    assert notes(folder / "val-00000-of-00001.tfrecord") == ()


def test_a_folder_that_is_gone_has_no_notes(folder):
    contents = open_dataset(folder)
    assert find_notes(replace(contents, folder=folder / "gone")) == ()
