"""Paths as datasets."""

from types import SimpleNamespace

import pytest

import datum
from datum.cli.arguments import complete_split, complete_words, open_any


@pytest.fixture
def numbers(tmp_path):
    out = tmp_path / "numbers"
    splits = {"train": 0.5, "val": 0.5}
    datum.write([{"x": i} for i in range(20)], out, splits=splits, progress=False)
    return out


def test_a_dataset_is_opened(numbers):
    opened = open_any(numbers)
    assert opened.unknown is None
    assert list(opened.dataset.schema) == ["x"]


def test_records_that_are_no_examples_are_opened_without_features(tmp_path):
    path = tmp_path / "notes.tfrecord"
    path.write_bytes(datum.format.frame([b"first", b"second"]).to_bytes())
    opened = open_any(path)
    assert isinstance(opened.unknown, datum.DatumError)
    assert list(opened.dataset.schema) == []
    assert len(opened.dataset["all"]) == 2


def test_what_is_no_dataset_says_what_load_says(tmp_path):
    with pytest.raises(datum.ManifestError, match="expected a dataset, got no such folder"):
        open_any(tmp_path / "none")


def test_of_a_damaged_description_it_is_told_how_to_save_the_records(numbers):
    (numbers / "datum.json").write_text("{")
    with pytest.raises(datum.ManifestError, match=f"hint: datum repair {numbers} OUT saves"):
        open_any(numbers)


def test_an_empty_path_is_a_mistake_in_the_call():
    with pytest.raises(ValueError, match="expected the path of a dataset"):
        open_any("")


def test_splits_complete_from_the_dataset_that_is_named(numbers):
    ctx = SimpleNamespace(params={"path": str(numbers)})
    assert complete_split(ctx, "") == ["train", "val"]
    assert complete_split(ctx, "v") == ["val"]


@pytest.mark.parametrize("path", [None, "", "nowhere"])
def test_nothing_completes_without_a_dataset(path):
    assert complete_split(SimpleNamespace(params={"path": path}), "") == []


def test_nothing_completes_from_a_broken_manifest(tmp_path):
    (tmp_path / "datum.json").write_text("{")
    assert complete_split(SimpleNamespace(params={"path": str(tmp_path)}), "") == []


def test_splits_complete_while_their_option_lacks_its_value(numbers):
    words = SimpleNamespace(params={"path": None}, args=["--json", str(numbers)])
    assert complete_split(words, "t") == ["train"]


def test_words_complete_where_a_value_is_one_of_some():
    assert complete_words("gzip|zlib|none")("") == ["gzip", "zlib", "none"]
    assert complete_words("gzip|zlib|none")("z") == ["zlib"]
    for other in (None, "N", "SPLIT=PATH", "FILE.toml"):
        assert complete_words(other) is None
