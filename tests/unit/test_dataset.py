import pickle
import shutil

import pytest

from datum.configs import DatasetConfigs
from datum.errors import SplitError
from datum.reader import load
from tests.unit.read.written import write_numbered


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


def test_records_of_others_get_a_manifest(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    dataset = load(tmp_path)
    assert dataset.save_manifest() == tmp_path / "datum.json"
    assert load(tmp_path).schema == dataset.schema
    assert load(tmp_path).verify().is_sound


def test_configs_are_of_their_class(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    configs = DatasetConfigs(batch_size_train=7)
    dataset.dataset_configs = configs
    assert dataset.dataset_configs is configs
    with pytest.raises(TypeError, match="expected a DatasetConfigs, got 7"):
        dataset.dataset_configs = 7


def test_each_role_reads_with_its_own_configs(tmp_path):
    write_numbered(tmp_path)
    dataset = load(tmp_path)
    dataset.dataset_configs = DatasetConfigs(
        batch_size_train=4, batch_size_val=2, drop_remainder=True, batch_size_test=5
    )

    def sizes(made):
        return [len(batch["x"]) for batch in made]

    assert sizes(dataset.train_fn("train", shuffle=True)) == [4, 4]
    assert sizes(dataset.val_fn()) == [2, 1]
    assert sizes(dataset.test_fn("train", 2)) == [5, 5, 5, 5]
    dataset.dataset_configs.full_dataset = True
    assert dataset.val_fn()["x"].numpy().tolist() == [10, 11, 12]


def test_misspelt_options_are_refused(tmp_path):
    write_numbered(tmp_path)
    with pytest.raises(TypeError, match="batchsize"):
        load(tmp_path).to_tf("train", batchsize=3)
    for option in ("batch_tokens", "buckets"):
        with pytest.raises(TypeError, match=f"`{option}`\nhint: `bucket_fn` and `bucket_op` set"):
            load(tmp_path).to_tf("train", **{option: 64})
    with pytest.raises(SplitError, match="did you mean 'train'"):
        load(tmp_path).to_tf("trian")
