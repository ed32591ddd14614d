"""Folders of TFDS whose files are of ArrayRecord."""

import shutil
import sys
import warnings

import numpy as np
import pytest
import tensorflow_datasets as tfds

import datum
from tests.unit.read.foreign.tfds_written import write_tfds

f = tfds.features


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache directory of its own."""
    monkeypatch.setenv("DATUM_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    features = {"x": np.int64, "text": f.Text(), "image": f.Image(shape=(2, 3, 3))}
    rows = [
        {"x": i, "text": f"t{i}", "image": np.full((2, 3, 3), i % 256, np.uint8)}
        for i in range(2500)
    ]
    splits = {"train": rows, "test": rows[:7]}
    place = tmp_path_factory.mktemp("written")
    return write_tfds(place, features, splits, shards=3, file_format="array_record")


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "data")


def load(folder):
    with pytest.warns(UserWarning, match="of ArrayRecord, .*, copied as TFRecord to .*cache"):
        return datum.load(folder)


def test_records_are_those_of_the_files(folder):
    ds = load(folder)
    source = tfds.builder_from_directory(folder).as_data_source(split="train")
    assert len(ds["train"]) == len(source) == 2500
    for at in (0, 1, 1249, 2499):
        assert ds["train"][at]["x"] == source[at]["x"]
        assert ds["train"][at]["text"].encode() == source[at]["text"]
        np.testing.assert_array_equal(ds["train"][at]["image"], source[at]["image"])
    assert [row["x"] for row in ds["test"]] == list(range(7))


def test_all_loaders_read_them(folder):
    ds = load(folder)
    for loader in (ds.to_numpy, ds.to_torch, ds.to_jax, ds.to_tf):
        found = [int(x) for batch in loader("train", batch_size=500) for x in batch["x"]]
        assert found == list(range(2500))
    found = [x for batch in ds.to_numpy("train", shuffle=True, batch_size=100) for x in batch["x"]]
    assert sorted(found) == list(range(2500))


def test_they_are_copied_once(folder, cache):
    load(folder)
    made = {path.name: path.stat().st_mtime_ns for path in cache.iterdir()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(datum.load(folder)["train"]) == 2500
    assert {path.name: path.stat().st_mtime_ns for path in cache.iterdir()} == made


def test_a_copy_that_is_not_whole_is_made_again(folder, cache):
    load(folder)
    copy = max(cache.glob("*.tfrecord"), key=lambda path: path.stat().st_size)
    copy.write_bytes(copy.read_bytes()[:-5])
    assert sum(row["x"] for row in load(folder)["train"]) == sum(range(2500))


def test_they_become_a_dataset_of_datum(folder, tmp_path):
    datum.reshard(load(folder), tmp_path / "out", progress=False)
    assert datum.load(tmp_path / "out").verify().is_sound


def test_without_the_package_the_error_tells_how_to_get_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "array_record.python.array_record_module", None)
    with (
        pytest.warns(UserWarning, match="ArrayRecord"),
        pytest.raises(datum.MissingDependencyError, match="hint: pip install array_record"),
    ):
        datum.load(folder)


def test_files_that_are_cut_are_damage(folder):
    file = next(folder.glob("*train*array_record*"))
    file.write_bytes(file.read_bytes()[:-100])
    with (
        pytest.warns(UserWarning, match="ArrayRecord"),
        pytest.raises(datum.CorruptRecordError, match="expected a whole file of ArrayRecord"),
    ):
        datum.load(folder)


def test_files_of_tfrecord_are_read_where_there_are_such_too(folder, tmp_path):
    other = write_tfds(
        tmp_path / "other", {"x": np.int64}, {"train": [{"x": 5}]}, file_format="tfrecord"
    )
    info = (other / "dataset_info.json").read_text()
    told = info.replace(
        '"fileFormat": "tfrecord"',
        '"fileFormat": "array_record", "alternativeFileFormats": ["tfrecord"]',
    )
    assert told != info
    (other / "dataset_info.json").write_text(told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [row["x"] for row in datum.load(other)["train"]] == [5]
