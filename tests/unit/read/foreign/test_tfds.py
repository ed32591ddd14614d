import json

import numpy as np
import pytest

import datum._read.foreign.bare as scanning
from datum import Feature, Schema
from datum._read.foreign.detect import open_dataset, save_manifest
from datum._read.verify import verify_shards
from datum.errors import CorruptRecordError, ManifestError, SchemaError
from tests.unit.read.foreign.files_written import numbers, split_of, write_file
from tests.unit.read.foreign.tfds_written import read_tfds, tfds, write_tfds

SHARD = "d-train.tfrecord-00000-of-00001"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A dataset that TFDS wrote: two splits, of several shards."""
    features = {
        "image": tfds.features.Image(shape=(None, None, 3)),
        "label": tfds.features.ClassLabel(names=["cat", "dog"]),
        "title": tfds.features.Text(),
        "boxes": tfds.features.Sequence(tfds.features.BBoxFeature()),
    }
    splits = {
        name: [
            {
                "image": np.full((2, 3 + x % 2, 3), x, np.uint8),
                "label": x % 2,
                "title": f"{name} {x}",
                "boxes": [tfds.features.BBox(0.0, 0.25, 0.5, 1.0)] * (x % 3),
            }
            for x in range(count)
        ]
        for name, count in (("train", 25), ("test", 5))
    }
    return write_tfds(tmp_path_factory.mktemp("tfds"), features, splits, shards=4)


def test_records_are_those_that_tfds_reads(prepared):
    contents = open_dataset(prepared)
    assert contents.writer == "tfds"
    assert {name: split.records for name, split in contents.splits.items()} == {
        "train": 25,
        "test": 5,
    }
    assert len(contents.splits["train"].shards) == 4
    assert contents.metadata["label"]["class_names"] == ["cat", "dog"]
    for name in contents.splits:
        expected = read_tfds(prepared, name)
        for row, other in zip(split_of(contents, name), expected, strict=True):
            assert (row["image"] == other["image"]).all()
            assert row["label"] == other["label"]
            assert row["title"].encode() == other["title"]
            assert np.array_equal(row["boxes"].reshape(-1, 4), other["boxes"].reshape(-1, 4))


def test_no_shard_is_read_to_open_it(prepared, monkeypatch):
    def refuse(*_args, **_options):
        raise AssertionError("a shard was opened")

    monkeypatch.setattr(scanning, "WatchedFile", refuse)
    monkeypatch.setattr("datum._read.foreign.record_files.sniff", refuse)
    monkeypatch.setattr("datum._read.shards.RecordFile", refuse)
    assert open_dataset(prepared).splits["train"].records == 25
    assert open_dataset(prepared.parent).splits["train"].records == 25


def test_a_dataset_of_tfds_can_be_verified_and_published(prepared, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in prepared.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    found = open_dataset(folder)
    assert verify_shards(found).is_sound
    save_manifest(found)
    saved = open_dataset(folder)
    assert saved.is_published
    assert saved.metadata["label"]["class_names"] == ["cat", "dog"]
    assert (saved.schema, verify_shards(saved).is_sound) == (found.schema, True)


def write_info(folder, *, splits=None, **fields):
    """A shard of three records, and a `dataset_info.json` that tells of it."""
    write_file(folder / SHARD, [{"x": x} for x in range(3)])
    splits = [{"name": "train", "shardLengths": ["3"]}] if splits is None else splits
    info = {"name": "d", "splits": splits, **fields}
    (folder / "dataset_info.json").write_text(json.dumps(info))
    return folder


def train(**fields):
    return [{"name": "train", "shardLengths": ["3"], **fields}]


def test_a_dataset_without_features_is_looked_through(tmp_path):
    contents = open_dataset(write_info(tmp_path))
    assert contents.schema == Schema({"x": Feature("int64")})
    assert numbers(contents) == {"train": [0, 1, 2]}


def test_versions_that_told_no_lengths_are_counted(tmp_path):
    write_info(tmp_path, splits=[{"name": "train", "numShards": "1"}])
    assert open_dataset(tmp_path).splits["train"].records == 3
    assert open_dataset(tmp_path, schema={"x": Feature("int64")}).splits["train"].records == 3


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("{SPLIT}-{SHARD_INDEX}.{FILEFORMAT}", "train-00000.tfrecord"),
        ("{SPLIT}/{DATASET}-{SHARD_INDEX}of{NUM_SHARDS}", "train/d-00000of00001"),
        ("all-of-it", "all-of-it"),
    ],
)
def test_shards_are_named_by_their_template(tmp_path, template, name):
    write_file(tmp_path / name, [{"x": 7}])
    write_info(tmp_path, splits=[{**train(filepathTemplate=template)[0], "shardLengths": [1]}])
    contents = open_dataset(tmp_path)
    assert contents.splits["train"].shards[0].name == name
    assert numbers(contents) == {"train": [7]}


def test_a_shard_of_no_records_need_not_be_there(tmp_path):
    write_file(tmp_path / "d-train.tfrecord-00001-of-00002", [{"x": 1}])
    write_info(tmp_path, splits=[{"name": "train", "shardLengths": ["0", "1"]}])
    assert numbers(open_dataset(tmp_path)) == {"train": [1]}


def test_a_split_of_no_shards_is_empty(tmp_path):
    write_info(tmp_path, splits=[*train(), {"name": "test"}])
    assert open_dataset(tmp_path).splits["test"].records == 0


@pytest.mark.parametrize(
    ("splits", "problem"),
    [
        ([], "expected splits, got none"),
        ("train", "expected a list"),
        ({"train": {}}, "got one of Hugging Face\nhint: datum.write"),
        ([5], "expected an object"),
        ([{"shardLengths": ["3"]}], r"splits\[0\]\.name: expected a text, got null"),
        ([{"name": "a b", "shardLengths": ["3"]}], "expected letters"),
        ([{"name": "all", "shardLengths": ["3"]}], "stands for every split"),
        (train() + train(), "expected a split of its own, got 'train' again"),
        (train(shardLengths="3"), "expected a list"),
        (train(shardLengths=["-3"]), "expected a number"),
        (train(shardLengths=["3", True]), "expected a number"),
        (train(shardLengths=["9" * 30]), "expected a number"),
        (
            train(shardLengths=["3", "3"]),
            "expected a shard 'd-train.tfrecord-00000-of-00002', got no",
        ),
        (train(filepathTemplate=7), "expected a text"),
        (train(filepathTemplate="x" * 5000), "got no such file"),
        (train(filepathTemplate="../{SPLIT}"), "expected the name of a file in this folder"),
        (train(filepathTemplate="/etc/passwd"), "expected the name of a file in this folder"),
        (train(filepathTemplate="{SPLIT.__class__}"), "got no such file"),
        (train(filepathTemplate="{SPLIT:>99999999999}"), "expected the name of a file"),
        (
            [*train(filepathTemplate=SHARD), {**train(filepathTemplate=SHARD)[0], "name": "b"}],
            "expected each shard once",
        ),
        ([{"name": "train", "numShards": str(10**18 - 1)}], "got no such file"),
        ([{"name": "train", "numShards": [1]}], "expected a number"),
        (
            [{"name": "train", "numShards": 10**17, "filepathTemplate": SHARD}],
            "expected the number of each shard",
        ),
    ],
)
def test_splits_that_cannot_be_are_refused(tmp_path, splits, problem):
    write_info(tmp_path, splits=splits)
    with pytest.raises(ManifestError, match=rf"dataset_info\.json: (.|\n)*{problem}"):
        open_dataset(tmp_path)


def test_names_of_datasets_cannot_lead_elsewhere(tmp_path):
    write_info(tmp_path, name="../../d")
    with pytest.raises(ManifestError, match="expected the name of a file in this folder"):
        open_dataset(tmp_path)


@pytest.mark.parametrize("form", ["riegeli", "parquet", 5])
def test_files_of_other_formats_are_refused(tmp_path, form):
    write_info(tmp_path, fileFormat=form)
    with pytest.raises(
        ManifestError, match="expected files of format 'tfrecord' or 'array_record'"
    ):
        open_dataset(tmp_path)


def test_lengths_that_are_not_those_of_the_files_are_noticed(tmp_path):
    schema = {"x": Feature("int64")}
    write_info(tmp_path, splits=train(shardLengths=["2"]))
    with pytest.raises(CorruptRecordError, match=r"expected 2 records, as dataset_info.json says"):
        open_dataset(tmp_path)
    contents = open_dataset(tmp_path, schema=schema)
    with pytest.raises(CorruptRecordError, match=r"expected 2 records, as dataset_info.json says"):
        list(split_of(contents, "train"))
    write_info(tmp_path, splits=train(shardLengths=["1000"]))
    with pytest.raises(ManifestError, match=r"expected 1000 records, got \d+ bytes"):
        open_dataset(tmp_path, schema=schema)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"featuresDict": 5}', '{"a": 1, "a": 2}'])
def test_features_that_cannot_be_are_refused(tmp_path, text):
    write_info(tmp_path)
    (tmp_path / "features.json").write_text(text)
    with pytest.raises((ManifestError, SchemaError), match=r"features\.json"):
        open_dataset(tmp_path)


def test_labels_that_are_not_text_are_refused(prepared, tmp_path):
    for path in prepared.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    labels = tmp_path / "label.labels.txt"
    labels.write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match=r"label\.labels\.txt: expected names of classes"):
        open_dataset(tmp_path)
    labels.unlink()
    assert "class_names" not in open_dataset(tmp_path).metadata.get("label", {})
