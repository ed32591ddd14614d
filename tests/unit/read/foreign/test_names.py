from pathlib import Path

import pytest

from datum._read.foreign.record_files import (
    check_sets,
    natural_order,
    split_of_file,
    split_of_folder,
    split_order,
)
from datum.errors import ManifestError


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train-00000-of-00004.tfrecord", "train"),
        ("validation-00003-of-00128", "validation"),
        ("train_0.tfrecords", "train"),
        ("valid-1.tfr", "valid"),
        ("128_valid.tfrecords", "valid"),
        ("nsynth-train.tfrecord", "train"),
        ("test.record", "test"),
        ("dmlab-train.tfrecord-00000-of-00001", "train"),
        ("test_set-train.tfrecord", "train"),
        ("golden.training_examples.tfrecord.gz-00001-of-00003", "training"),
        ("val2017.tfrecord", "val"),
        ("Train.tfrecord", "train"),
        ("dev.tfrecord", "dev"),
        ("trainer.tfrecord", "train"),
        ("contest.tfrecord", "train"),
        ("evaluate_me.tfrecord", "train"),
        ("data.tfrecord", "train"),
        ("Split-eval/data_tfrecord-00000-of-00012.gz", "eval"),
        ("Split-extra/data_tfrecord-00000-of-00012.gz", "extra"),
        ("test/a.tfrecord", "test"),
        ("test/train-0.tfrecord", "train"),
        ("test_files/a.tfrecord", "train"),
    ],
)
def test_the_split_of_a_file_is_told_by_a_word_of_its_name(path, split):
    assert split_of_file(Path(path)) == split


def test_a_folder_that_cannot_name_a_split_is_refused():
    with pytest.raises(
        ManifestError,
        match=r"my data: expected a folder named after a split.*hint".replace(".*", "(.|\n)*"),
    ):
        split_of_folder(Path("my data"))
    with pytest.raises(ManifestError, match="'all' stands for every split"):
        split_of_folder(Path("all"))


def test_splits_of_training_come_first():
    names = ["zebra", "test", "aardvark", "validation", "train"]
    assert sorted(names, key=split_order) == ["train", "validation", "test", "aardvark", "zebra"]


def test_numbers_in_names_count_by_their_value():
    names = ["x-10-b", "x-9-b", "x-9-a", "x", "10", "9"]
    assert sorted(names, key=natural_order) == ["9", "10", "x", "x-9-a", "x-9-b", "x-10-b"]


def paths(folder, *names):
    return [folder / name for name in names]


@pytest.mark.parametrize(
    "names",
    [
        [],
        ["a.tfrecord", "b.tfrecord"],
        ["train-00000-of-00002", "train-00001-of-00002", "val-00000-of-00001"],
        ["t-1-of-2.tfrecord", "t-2-of-2.tfrecord"],
        ["t_0-of-2.gz", "t_1-of-2.gz"],
        ["t.tfrecord.gz-00000-of-00001"],
        ["t-5-of-3"],  # of no set: it cannot be
        ["t-00000-of-00002", "t-00001-of-00002.gz"],
        ["a/t-0-of-1", "b/t-0-of-1"],
    ],
)
def test_whole_sets_of_shards_are_fine(tmp_path, names):
    check_sets(paths(tmp_path, *names))


def test_missing_shards_are_named(tmp_path):
    given = paths(tmp_path, "t-00001-of-00004.tfrecord", "t-00003-of-00004.tfrecord")
    with pytest.raises(ManifestError) as caught:
        check_sets(given)
    assert str(caught.value) == (
        f"{tmp_path}: expected all 4 shards of a set, but there is no t-00000-of-00004.tfrecord,"
        " t-00002-of-00004.tfrecord\n"
        "hint: copy them here, or load a list of files to read what is there"
    )


def test_shards_that_were_not_asked_for_are_not_missing(tmp_path):
    (tmp_path / "t-1-of-2").touch()
    check_sets(paths(tmp_path, "t-0-of-2"))
    (tmp_path / "t-1-of-2").unlink()
    with pytest.raises(ManifestError, match="no t-1-of-2\n"):
        check_sets(paths(tmp_path, "t-0-of-2"))


def test_a_set_that_starts_at_one_may_lack_one_too(tmp_path):
    with pytest.raises(ManifestError, match="there is no t-2-of-3\n"):
        check_sets(paths(tmp_path, "t-1-of-3", "t-3-of-3"))


def test_a_huge_count_takes_no_time_to_refuse(tmp_path):
    with pytest.raises(ManifestError, match="expected all 999999999999999999 shards"):
        check_sets(paths(tmp_path, "t-0-of-999999999999999999"))


@pytest.mark.parametrize(
    "names",
    [
        ["t-00000-of-00001", "t-00000-of-00002", "t-00001-of-00002"],
        ["t-00000-of-00001", "t-0-of-1"],
        ["t-00000-of-00001", "t-00000-of-00001.gz"],
    ],
)
def test_shards_of_two_exports_are_refused(tmp_path, names):
    with pytest.raises(
        ManifestError, match=r"expected one set of shards, got t-00000-of-00001 and"
    ):
        check_sets(paths(tmp_path, *names))


def test_missing_shards_may_be_listed_instead(tmp_path):
    paths = [tmp_path / f"x-0000{n}-of-00009" for n in (0, 4)]
    for path in paths:
        path.touch()
    missing = check_sets(paths, may_miss=True)
    assert [path.name[:7] for path in missing] == [f"x-0000{n}" for n in (1, 2, 3, 5, 6, 7, 8)]
    assert check_sets([tmp_path / "plain.tfrecord"], may_miss=True) == []


def test_of_a_huge_set_not_all_that_is_missing_is_listed(tmp_path):
    path = tmp_path / "x-00000-of-999999999999999999"
    path.touch()
    assert len(check_sets([path], may_miss=True)) == 1000
