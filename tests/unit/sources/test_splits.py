"""Names and options of splits."""

from dataclasses import dataclass

import pytest

from datum.errors import SourceError
from datum.sources.options import is_split_name, read_split_options, split_of_file


@dataclass(frozen=True, kw_only=True)
class Options:
    extension: str | None = None
    image_dir: str = "images"


@pytest.mark.parametrize("name", ["train", "Train", "val", "valid", "validation", "dev", "test"])
def test_splits_have_customary_names(name):
    assert is_split_name(name)


@pytest.mark.parametrize("name", ["train2017", "test_1", "trainval", "val-2"])
def test_splits_may_be_numbered(name):
    assert is_split_name(name)


@pytest.mark.parametrize("name", ["cat", "trains", "testament", "", "training_set"])
def test_other_names_are_no_splits(name):
    assert not is_split_name(name)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train.csv", "train"),
        ("Train.csv", "train"),
        ("train-00000-of-00002.parquet", "train"),
        ("validation_1.jsonl.gz", "validation"),
        ("val2017.csv", "val2017"),
        ("test", "test"),
        ("tests.csv", None),
        ("labels.csv", None),
        ("my_train.csv", None),
    ],
)
def test_files_belong_to_the_split_that_they_are_named_after(name, split):
    assert split_of_file(name) == split


def test_options_of_a_split_win_over_the_defaults():
    found = read_split_options(
        Options,
        {"train": {"extension": ".png"}, "val": {}, "test": Options(image_dir="x")},
        Options(image_dir="photos"),
    )
    assert found == {
        "train": Options(extension=".png", image_dir="photos"),
        "val": Options(image_dir="photos"),
        "test": Options(image_dir="x"),
    }


def test_a_misspelt_option_names_the_nearest():
    with pytest.raises(SourceError, match="'train': unknown option 'imagedir'\nhint: did you"):
        read_split_options(Options, {"train": {"imagedir": "x"}}, Options())
    with pytest.raises(SourceError, match="hint: there are extension, image_dir"):
        read_split_options(Options, {"train": {"zzz": "x"}}, Options())


def test_options_that_are_no_dict_are_refused():
    with pytest.raises(SourceError, match="split 'train': expected a dict of extension, image_dir"):
        read_split_options(Options, {"train": 5}, Options())
