"""Patterns and lists that name shards of a dataset of this library: its manifest describes them."""

import warnings

import numpy as np
import pytest

import datum
from datum import CorruptRecordError, Feature
from datum._read.foreign.detect import open_dataset
from datum._read.verify import find_notes
from tests.unit.write.datasets import picture


@pytest.fixture
def photos(tmp_path):
    """A dataset of images with class names, of two splits whose names tell none."""
    for label in ("cat", "dog"):
        for number in range(10):
            picture(tmp_path / "photos" / label / f"{number}.png", 10 * number)
    splits = {"first": 0.5, "second": 0.5}
    options = {"splits": splits, "shards": 3, "shuffle": False, "progress": False}
    datum.write(tmp_path / "photos", tmp_path / "out", **options)
    return tmp_path / "out"


def shards_of(folder, split):
    return sorted(folder.glob(f"{split}-*"))


def labels(split):
    return [int(record["label"]) for record in split]


@pytest.mark.parametrize("pattern", ["*.tfrecord", "first-*", "*", "first-0000[12]-*"])
def test_a_pattern_keeps_what_the_manifest_says(photos, pattern, recwarn):
    whole, found = datum.load(photos), datum.load(photos / pattern)
    assert found.schema == whole.schema
    assert found.schema["image"].encoding == "image"
    assert found.metadata == whole.metadata
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]
    names = {name: [one.name for one in split.shards] for name, split in found.splits.items()}
    expected = {
        name: [shard.name for shard in split.shards if (photos / shard.name).match(pattern)]
        for name, split in whole.splits.items()
    }
    assert names == {name: shards for name, shards in expected.items() if shards}
    assert found.verify().is_sound
    assert not recwarn


def test_only_the_shards_of_a_list_count_in_its_order(photos):
    whole = datum.load(photos)
    files = shards_of(photos, "second")
    sizes = [shard.records for shard in whole.splits["second"].shards]
    found = datum.load([files[2], str(files[0])])
    assert list(found) == ["second"]
    assert found.schema == whole.schema
    records = labels(whole["second"])
    assert labels(found["second"]) == [*records[sum(sizes[:2]) :], *records[: sizes[0]]]
    batch = next(iter(found.to_numpy("second", batch_size=2)))
    assert batch["image"].shape == (2, 6, 8, 3)


def test_one_file_keeps_what_the_manifest_says(photos):
    found = datum.load(shards_of(photos, "first")[1])
    assert list(found) == ["first"]
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]


def test_statistics_are_those_of_splits_that_are_whole(photos):
    whole = open_dataset(photos)
    assert dict(open_dataset(photos / "first-*").statistics) == {"first": whole.statistics["first"]}
    assert not open_dataset(shards_of(photos, "first")[:2]).statistics


def test_other_shards_are_no_strays_of_a_part(photos):
    assert find_notes(open_dataset(shards_of(photos, "first")[0])) == ()
    assert datum.load(photos / "first-*").verify().notes == ()


def test_a_schema_that_is_given_counts(photos):
    found = datum.load(photos / "first-*", schema={"label": Feature("int64")})
    assert list(found.schema) == ["label"]
    assert len(labels(found["first"])) == len(found["first"])


def test_encodings_survive_that_records_alone_do_not_tell(tmp_path):
    values = np.arange(60.0).reshape(10, 3, 2)
    columns = {"x": values, "small": values.astype(np.float16), "flag": np.arange(10) % 2 == 0}
    datum.write(columns, tmp_path / "out", shards=2, shuffle=False, progress=False)
    found = datum.load(str(tmp_path / "out" / "train-*"))
    assert found.schema == datum.load(tmp_path / "out").schema
    assert np.array_equal(np.stack([record["x"] for record in found["train"]]), values)


def test_a_shard_of_another_size_is_told(photos):
    file = shards_of(photos, "first")[0]
    file.write_bytes(file.read_bytes()[:-3])
    message = r"first-00000-of-00003\.tfrecord: expected \d+ bytes, as the manifest says, got"
    for given in (photos / "first-*", [file], file):
        with pytest.raises(CorruptRecordError, match=message):
            datum.load(given)
    assert datum.load(shards_of(photos, "first")[1:]).schema["image"].encoding == "image"


def test_what_is_sound_of_a_damaged_shard_keeps_its_class_names(photos):
    file = shards_of(photos, "first")[0]
    file.write_bytes(file.read_bytes()[:-3])
    before = len(datum.load(photos)["first"])
    with pytest.warns(UserWarning, match="left out"):
        found = datum.load(photos / "first-*", on_error="skip")
    assert len(labels(found["first"])) == before - 1
    assert found.metadata["label"]["class_names"] == ["cat", "dog"]
    assert found.schema == datum.load(photos).schema
    datum.repair(photos / "first-*", photos.parent / "repaired", progress=False)
    repaired = datum.load(photos.parent / "repaired")
    assert repaired.metadata["label"]["class_names"] == ["cat", "dog"]


def test_a_damaged_manifest_is_passed_by_with_a_warning(photos):
    (photos / "datum.json").write_text("{")
    with pytest.warns(UserWarning, match=r"read without their manifest: .*datum\.json"):
        found = datum.load(photos / "first-*")
    assert repr(found).splitlines()[0].endswith("tfrecord files)")
    assert "label" in found.schema


def test_files_that_the_manifest_does_not_name_are_read_as_they_are(photos):
    stray = photos / "more.tfrecord"
    stray.write_bytes(shards_of(photos, "first")[0].read_bytes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = datum.load([stray, *shards_of(photos, "first")])
    assert repr(found).splitlines()[0].endswith("tfrecord files)")


def test_shards_of_several_datasets_are_read_as_they_are(photos, tmp_path):
    datum.write(tmp_path / "photos", tmp_path / "other", progress=False)
    found = datum.load([*shards_of(photos, "first"), *shards_of(tmp_path / "other", "train")])
    assert sum(split.records for split in found.splits.values()) > 20


def test_added_shards_are_described_too(tmp_path):
    for append in (False, True):
        rows = [{"x": number, "text": "a"} for number in range(5)]
        datum.write(rows, tmp_path / "out", append=append, progress=False)
    found = datum.load(tmp_path / "out" / "train*")
    assert len(found["train"]) == 10
    assert find_notes(open_dataset(tmp_path / "out" / "train*")) == ()
