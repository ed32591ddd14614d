import pytest

from datum.dataset import Dataset
from datum.errors import ManifestError
from datum.reader import load
from datum.schema import Feature
from tests.unit.reading.written import NUMBERED, write_numbered


def test_a_dataset_is_loaded_from_its_folder_or_its_manifest(tmp_path):
    written = write_numbered(
        tmp_path,
        metadata={"x": {"class_names": ["a"]}},
        statistics={"train": {"x": {"min": 0}}},
    )
    for path in (tmp_path, str(tmp_path), tmp_path / "datum.json"):
        dataset = load(path)
        assert isinstance(dataset, Dataset)
        assert dataset.path == tmp_path
        assert dataset.schema == NUMBERED
        assert dataset.splits == written.splits
        assert dataset.metadata == {"x": {"class_names": ["a"]}}
        assert dataset.statistics == {"train": {"x": {"min": 0}}}
        assert dataset.compression is None
        assert dataset["train"][0]["x"] == 0


def test_a_dataset_may_be_loaded_by_a_relative_path(tmp_path, monkeypatch):
    write_numbered(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (".", "datum.json"):
        assert load(path)["val"][0]["x"] == 10


def test_shards_that_lost_their_manifest_are_plain_files(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    dataset = load(tmp_path)
    assert {name: split.records for name, split in dataset.splits.items()} == {
        "train": 10,
        "val": 3,
    }
    assert "tfrecord files" in repr(dataset)


def test_a_schema_says_what_to_read_of_plain_files(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    dataset = load(tmp_path, schema={"x": Feature("int32")})
    assert dataset["train"][3]["x"].dtype == "int32"


def test_a_list_of_files_is_read(tmp_path):
    write_numbered(tmp_path)
    files = sorted(tmp_path.glob("val*.tfrecord"))
    assert len(load(files)["val"]) == 3


def test_a_folder_with_nothing_to_read_is_told(tmp_path):
    with pytest.raises(ManifestError, match="hint"):
        load(tmp_path)
