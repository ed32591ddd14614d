import pickle
import shutil

import pytest

from datum.errors import ManifestError, SplitError
from datum.reading import Dataset, load
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


def test_a_dataset_names_its_splits(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    assert list(dataset) == ["train", "val"]
    assert "train" in dataset
    assert "test" not in dataset
    assert [split.records for split in dataset.splits.values()] == [10, 3]


def test_counting_opens_no_shard(tmp_path):
    write_numbered(tmp_path)
    for shard in tmp_path.glob("*-of-*"):
        shard.unlink()
    dataset = load(tmp_path)
    assert len(dataset["train"]) == 10
    assert len(dataset["train[:50%]+val"]) == 8
    assert "10 records" in repr(dataset)


def test_a_dataset_may_be_loaded_by_a_relative_path(tmp_path, monkeypatch):
    write_numbered(tmp_path)
    monkeypatch.chdir(tmp_path)
    for path in (".", "datum.json"):
        assert load(path)["val"][0]["x"] == 10


def test_a_folder_without_a_manifest_was_never_published(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    with pytest.raises(ManifestError, match="never published"):
        load(tmp_path)


def test_parts_of_splits_are_asked_for_by_name(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    assert [row["x"] for row in dataset["val[1:]+train[:20%]"]] == [11, 12, 0, 1]
    assert [row["x"] for row in dataset["all[-4:]"]] == [9, 10, 11, 12]
    with pytest.raises(SplitError, match="did you mean 'val'"):
        dataset["vall[:10%]"]


def test_a_dataset_can_be_pickled(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    dataset["train"][0]
    copy = pickle.loads(pickle.dumps(dataset))
    assert copy["train"][1] == dataset["train"][1]


def test_a_dataset_shows_what_it_holds(tmp_path):
    write_numbered(tmp_path)
    assert repr(load(tmp_path)).splitlines()[:3] == [
        f"Dataset({str(tmp_path)!r})",
        "  splits:",
        "    train  10 records, 3 shards, 520 B",
    ]


def test_a_dataset_verifies_itself(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    assert dataset.verify().is_sound
    shutil.rmtree(tmp_path)
    assert len(dataset.verify().problems) == 4
