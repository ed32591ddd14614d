"""Datasets that TensorFlow Datasets wrote."""

from __future__ import annotations

import io
import json
import wave
import zlib
from typing import Any

import numpy as np
import pytest
import tensorflow_datasets as tfds
from PIL import Image

import datum
import datum._read.foreign.bare as scanning
from datum import Feature, Schema, SchemaError
from datum._read.foreign.detect import open_dataset, save_manifest
from datum._read.foreign.tfds_features import MAX_DEPTH, parse_labels, read_features
from datum._read.tables import iterate_rows
from datum._read.verify import verify_shards
from datum.errors import CorruptRecordError, ManifestError
from datum.format import RecordFile, parse
from tests.unit.read.foreign.files_written import numbers, split_of, write_file
from tests.unit.read.foreign.tfds_cases import EQUAL, EXAMPLES, FEATURES, RANDOM, encoded, pixels
from tests.unit.read.foreign.tfds_written import read_tfds, write_tfds

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
        (train() + train(), "expected each split once, got 'train' twice"),
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


MODULES = {
    "Audio": "audio_feature",
    "BBoxFeature": "bounding_boxes",
    "ClassLabel": "class_label_feature",
    "FeaturesDict": "features_dict",
    "Image": "image_feature",
    "LabeledImage": "labeled_image",
    "Sequence": "sequence_feature",
    "Tensor": "tensor_feature",
    "Text": "text_feature",
    "Translation": "translation_feature",
    "Video": "video_feature",
}


def class_name(kind: str) -> str:
    return f"tensorflow_datasets.core.features.{MODULES[kind]}.{kind}"


def plain(kind: str, content: Any = None) -> dict[str, Any]:
    """A node as 4.0 wrote it."""
    return {"type": class_name(kind), "content": {} if content is None else content}


def message(kind: str, field: str, content: Any = None) -> dict[str, Any]:
    """A node as 4.5 and later write it."""
    return {"pythonClassName": class_name(kind), field: {} if content is None else content}


def of(**nodes: Any) -> dict[str, Any]:
    return message("FeaturesDict", "featuresDict", {"features": nodes})


def tensor(**content: Any) -> dict[str, Any]:
    return message("Tensor", "tensor", {"dtype": "int64", "shape": {}, **content})


def test_plain_json_of_4_0_is_read():
    objects = {
        "label": plain("ClassLabel", {"num_classes": 20}),
        "bbox": plain("BBoxFeature"),
        "is_difficult": plain("Tensor", {"shape": [], "dtype": "bool", "encoding": "none"}),
    }
    image = {"shape": [None, None, 3], "dtype": "uint8", "encoding_format": None}
    video = {"shape": [None, 64, 64, 3], "encoding_format": "png", "ffmpeg_extra_args": []}
    sequence = {"feature": plain("FeaturesDict", objects), "length": None}
    found = read_features(
        plain(
            "FeaturesDict",
            {
                "image": plain("Image", image),
                "image/filename": plain("Text"),
                "objects": plain("Sequence", sequence),
                "pair": plain("Sequence", {"feature": plain("Text"), "length": 2}),
                "features": plain("Translation", {"languages": ["en", "FR"]}),
                "video": plain("Video", video),
            },
        )
    )
    assert dict(found.schema) == {
        "image": Feature("uint8", (None, None, 3), encoding="image"),
        "image/filename": Feature("str"),
        "objects/label": Feature("int64", (None,)),
        "objects/bbox": Feature("float32", (None, 4)),
        "objects/is_difficult": Feature("bool", (None,)),
        "pair": Feature("str", (2,)),
        "features/en": Feature("str"),
        "features/FR": Feature("str"),
        "video": Feature("uint8", (None, 64, 64, 3), encoding="image"),
    }
    assert found.metadata["objects/label"] == {"num_classes": 20}
    assert found.metadata["objects/bbox"] == {"bbox_format": "REL_YXYX"}
    assert found.label_files == {"objects/label": "objects-label.labels.txt"}


@pytest.mark.parametrize("is_text", [True, False])
def test_messages_within_plain_json_of_4_3_are_read(is_text):
    features = {
        "image": message("Image", "image", {"shape": {"dimensions": ["-1", "-1", "1"]}}),
        "label": message("ClassLabel", "classLabel", {"numClasses": "10"}),
    }
    content = {"features": features}
    found = read_features(
        {
            "type": class_name("FeaturesDict"),
            "content": json.dumps(content) if is_text else content,
            "proto_cls": "tensorflow_datasets.FeaturesDict",
        }
    )
    assert dict(found.schema) == {
        "image": Feature("uint8", (None, None, 1), encoding="image"),
        "label": Feature("int64"),
    }
    assert found.metadata == {"label": {"num_classes": 10}}


def test_fields_are_read_in_both_spellings_that_messages_have():
    node = {"python_class_name": class_name("ClassLabel"), "class_label": {"num_classes": "3"}}
    found = read_features(
        {
            "python_class_name": class_name("FeaturesDict"),
            "features_dict": {"features": {"myLabel": node}},
        }
    )
    assert dict(found.schema) == {"myLabel": Feature("int64")}
    assert found.metadata == {"myLabel": {"num_classes": 3}}


@pytest.mark.parametrize(
    "text",
    [
        plain("Text", {"use_encoder": True}),
        message("Text", "jsonFeature", {"json": '{"use_encoder": true}'}),
    ],
)
def test_text_that_was_encoded_comes_as_its_numbers(text):
    found = read_features(of(x=text))
    assert dict(found.schema) == {"x": Feature("int64", (None,))}
    assert found.metadata["x"]["holds"]["encoding"] == "text encoder"


def test_names_of_classes_in_the_settings_are_taken():
    found = read_features(of(x=plain("ClassLabel", {"names": ["cat", "dog"]})))
    assert found.metadata == {"x": {"class_names": ["cat", "dog"]}}


def test_images_without_settings_have_those_that_tfds_gives_them():
    found = read_features(of(x=message("Image", "image"), y=message("Video", "video")))
    assert found.schema["x"] == Feature("uint8", (None, None, 3), encoding="image")
    assert found.schema["y"] == Feature("uint8", (None, None, None, 3), encoding="image")


def test_an_image_of_no_channels_has_those_of_its_file():
    shape = {"dimensions": ["-1", "-1", "0"]}
    found = read_features(of(x=message("Image", "image", {"shape": shape})))
    assert found.schema["x"].shape == (None, None, None)


def test_a_length_that_a_message_leaves_out_is_zero():
    sequence = message("Sequence", "sequence", {"feature": tensor()})
    assert read_features(of(x=sequence)).schema["x"] == Feature("int64", (0,))


@pytest.mark.parametrize("name", ["Tensor", "my.Tensor", "tensorflow_datasets.New", "", "."])
def test_unknown_connectors_are_left_out_whatever_they_hold(name):
    found = read_features(of(x={"pythonClassName": name, "odd": 5}, y=tensor()))
    assert list(found.schema) == ["y"]
    assert found.left_out["x"].startswith(f"{name}: ")


@pytest.mark.parametrize("dtype", ["", "float8", "resource", "int64\0", "datetime64", "x" * 10**5])
def test_unknown_dtypes_are_left_out(dtype):
    found = read_features(of(x=tensor(dtype=dtype), y=tensor()))
    assert list(found.schema) == ["y"]
    assert "dtype" in found.left_out["x"]
    assert len(found.left_out["x"]) < 500


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (None, "feature 'x': expected a connector as an object, got null"),
        ([], "expected a connector as an object, got a list"),
        ({}, "expected `python_class_name` as text, got null"),
        ({"pythonClassName": 5}, "expected `python_class_name` as text, got 5"),
        ({"type": ["Tensor"]}, "expected `type` as text, got a list"),
        (plain("Tensor", 5), "expected `content` as an object, got 5"),
        (plain("Tensor", "{}"), "expected `content` as an object, got '{}'"),
        ({"pythonClassName": class_name("Tensor")}, "settings of one connector, got none"),
        ({**tensor(), "image": {}}, "settings of one connector, got image, tensor"),
        (message("Tensor", "tensor", []), "expected `tensor` as an object, got a list"),
        (tensor(dtype=5), "expected `dtype` as text, got 5"),
        (tensor(shape=5), "expected `shape` as a list, got 5"),
        (tensor(shape={"dimensions": {}}), "expected `shape` as a list, got an object"),
        (tensor(shape={"dimensions": ["x"]}), "expected `shape` of integers, got 'x'"),
        (tensor(shape={"dimensions": ["٣"]}), "expected `shape` of integers"),
        (tensor(shape={"dimensions": ["9" * 5000]}), "expected `shape` of integers"),
        (tensor(shape={"dimensions": [10**100]}), "of integers, got a huge number"),
        (tensor(shape={"dimensions": [True]}), "expected `shape` of integers, got true"),
        (tensor(shape={"dimensions": [1.0]}), "expected `shape` of integers, got 1.0"),
        (tensor(shape={"dimensions": ["-2"]}), "expected a length of -1 or more, got -2"),
        (tensor(optional="yes"), "expected true or false as `optional`, got 'yes'"),
        (tensor(encoding=5), "expected `encoding` as text, got 5"),
        ({**tensor(), "description": 5}, "expected `description` as text, got 5"),
        (message("Sequence", "sequence"), "expected a connector as an object, got null"),
        (
            message("Sequence", "sequence", {"feature": tensor(), "length": "x"}),
            "expected `length` of integers",
        ),
        (message("FeaturesDict", "featuresDict", {"features": 5}), "expected `features` as an obj"),
        (message("Translation", "translation", {"languages": [5]}), "`languages` as text, got 5"),
        (message("LabeledImage", "image", {"label": 5}), "expected `label` as an object, got 5"),
        (message("Text", "jsonFeature", {"json": "{"}), "expected settings as JSON: line 1"),
        (message("Text", "jsonFeature", {"json": "[" * 10**5}), "expected settings as JSON"),
        (message("Text", "jsonFeature", {"json": "\ud800"}), "expected settings as JSON"),
        (message("Text", "jsonFeature", {"json": "[]"}), "expected `json` as an object"),
    ],
)
def test_what_no_version_wrote_is_a_typed_error_that_names_the_feature(node, problem):
    with pytest.raises(SchemaError) as caught:
        read_features(of(x=node))
    assert problem in str(caught.value)
    assert caught.value.feature == "x"
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("root", [{}, tensor(), plain("Text"), {"pythonClassName": "odd"}, 5, None])
def test_a_root_that_is_no_dict_of_features_is_a_typed_error(root):
    with pytest.raises(SchemaError):
        read_features(root)


def test_two_features_of_one_name_are_a_typed_error():
    node = of(**{"a/b": tensor(), "a": of(b=tensor())})
    with pytest.raises(SchemaError, match="one feature 'a/b', got two"):
        read_features(node)


def test_two_features_under_one_key_are_a_typed_error():
    value = tensor(shape={"dimensions": ["-1", "-1"]}, encoding="bytes")
    with pytest.raises(SchemaError, match="'a/value'"):
        read_features(of(**{"a": value, "a/value": tensor()}))


def nested(depth: int, wrap: Any) -> Any:
    node = tensor()
    for _ in range(depth):
        node = wrap(node)
    return node


@pytest.mark.parametrize(
    "wrap",
    [
        lambda node: of(a=node),
        lambda node: message("Sequence", "sequence", {"feature": node, "length": "-1"}),
    ],
)
def test_nesting_is_read_to_a_limit_and_refused_beyond(wrap):
    assert len(read_features(of(x=nested(MAX_DEPTH - 1, wrap))).schema) == 1
    for depth in (MAX_DEPTH, 10_000):
        with pytest.raises(SchemaError, match=f"at most {MAX_DEPTH} deep"):
            read_features(of(x=nested(depth, wrap)))


def test_a_huge_shape_is_left_out_and_allocates_nothing():
    shape = {"dimensions": ["1000000000000"] * 5}
    found = read_features(of(x=tensor(shape=shape, optional=True), y=tensor()))
    assert list(found.schema) == ["y"]
    assert "values" in found.left_out["x"]


f = tfds.features


def found_in(folder):
    return read_features(json.loads((folder / "features.json").read_text()))


def rows_in(folder, schema):
    rows = []
    for path in sorted(folder.glob("*.tfrecord-*")):
        batch = parse(RecordFile(path), schema)
        numbers = range(len(next(iter(batch.values()))))
        rows += iterate_rows(batch, schema, numbers, where=path.name)
    return rows


def as_lists(value):
    """Values of either reader as nested lists, with texts as TensorFlow has them."""
    if hasattr(value, "to_list"):
        return value.to_list()
    if isinstance(value, (list, np.ndarray)):
        return [as_lists(item) for item in value]
    if isinstance(value, str):
        return value.encode()
    return value.item() if isinstance(value, np.generic) else value


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return write_tfds(tmp_path_factory.mktemp("tfds"), FEATURES, {"train": EXAMPLES})


@pytest.fixture(scope="module")
def theirs(written):
    return read_tfds(written, "train")


@pytest.fixture(scope="module")
def ours(written):
    return rows_in(written, found_in(written).schema)


def test_every_feature_is_found_by_the_name_that_nesting_gives_it(ours, theirs):
    assert len(ours) == len(theirs) == 3
    assert ours[0].keys() == theirs[0].keys()


@pytest.mark.parametrize("name", EQUAL)
def test_the_values_of_a_connector_are_those_that_tfds_reads(name, ours, theirs):
    parts = [part for part in theirs[0] if part == name or part.startswith(f"{name}/")]
    assert parts
    for part in parts:
        assert [as_lists(row[part]) for row in ours] == [as_lists(row[part]) for row in theirs]


def test_numbers_keep_the_dtype_that_tfds_gives_them(ours, theirs):
    for name, value in theirs[0].items():
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype != object:
            assert ours[0][name].dtype == value.dtype, name


# What the schema has in another form than TFDS.
def written_alone(tmp_path, connector, values):
    """The rows of a dataset of one feature "x", its records by TFDS, and what was found."""
    folder = write_tfds(tmp_path, {"x": connector}, {"train": [{"x": value} for value in values]})
    found = found_in(folder)
    assert not found.left_out
    return rows_in(folder, found.schema), folder, found


def test_float64_lists_are_float32_as_they_were_stored(tmp_path):
    rows, folder, found = written_alone(tmp_path, np.float64, [0.1, 2.0])
    assert dict(found.schema) == {"x": Feature("float32")}
    assert [row["x"] for row in rows] == [row["x"] for row in read_tfds(folder, "train")]
    assert rows[0]["x"] == np.float32(0.1)


def test_a_float_image_comes_as_the_bytes_of_its_floats(tmp_path):
    values = [RANDOM.normal(size=(2, 3, 1)).astype(np.float32) for _ in range(2)]
    rows, folder, found = written_alone(
        tmp_path, f.Image(shape=(None, None, 1), dtype=np.float32), values
    )
    assert dict(found.schema) == {"x": Feature("uint8", (None, None, 4), encoding="image")}
    holds = {"encoding": "bits", "dtype": "float32", "shape": [None, None, 1]}
    assert found.metadata == {"x": {"holds": holds}}
    for row, theirs, value in zip(rows, read_tfds(folder, "train"), values, strict=True):
        np.testing.assert_array_equal(row["x"].view(np.float32), theirs["x"])
        np.testing.assert_array_equal(theirs["x"], value)


@pytest.mark.parametrize(
    ("connector", "shape"),
    [
        (f.Video(shape=(None, 4, 5, 3)), (None, 4, 5, 3)),
        (f.Video(), (None, None, None, 3)),
        (f.Video(shape=(2, 4, 5, 3)), (2, 4, 5, 3)),
        (f.Sequence(f.Image(shape=(4, 5, 3))), (None, 4, 5, 3)),
        (f.Sequence(f.Image(shape=(4, 5, 3)), length=2), (2, 4, 5, 3)),
        (f.Dataset(f.Image(shape=(4, 5, 3))), (None, 4, 5, 3)),
    ],
)
def test_several_images_come_decoded(connector, shape, tmp_path):
    rows, folder, found = written_alone(tmp_path, connector, list(pixels(2, 2, 4, 5, 3)))
    assert dict(found.schema) == {"x": Feature("uint8", shape, encoding="image")}
    assert found.metadata == {}
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(row["x"], theirs["x"])
        assert row["x"].dtype == np.uint8
    (batch,) = datum.load(folder).to_numpy("train", batch_size=2)
    for found_images, row in zip(batch["x"], rows, strict=True):
        np.testing.assert_array_equal(found_images, row["x"])


def test_images_in_nested_sequences_come_as_ragged_files(tmp_path):
    frames = list(pixels(3, 2, 2, 3))
    connector = f.Sequence(f.Sequence(f.Image(shape=(2, 2, 3))))
    rows, _, found = written_alone(tmp_path, connector, [[frames[:1], [], frames[1:]], []])
    keys = ("x/ragged_flat_values", "x/ragged_row_lengths_0")
    assert dict(found.schema) == {"x": Feature("bytes", (None, None), keys=keys)}
    assert [len(row) for row in rows[0]["x"]] == [1, 0, 2]
    assert len(rows[1]["x"]) == 0
    opened = Image.open(io.BytesIO(rows[0]["x"][2][1]))
    np.testing.assert_array_equal(np.asarray(opened), frames[2])


@pytest.mark.parametrize(
    ("connector", "value"),
    [
        (f.Image(shape=(2, 4, 5, 3)), pixels(4, 5, 3)),
        (f.Image(shape=(None, None, 2)), pixels(4, 5, 2)),
    ],
)
def test_images_that_have_no_three_usual_dimensions_stay_files(connector, value, tmp_path):
    file = encoded(value[..., 0], "GIF")
    rows, _, found = written_alone(tmp_path, connector, [file])
    assert dict(found.schema) == {"x": Feature("bytes")}
    assert found.metadata["x"]["holds"]["encoding"] == "image"
    assert rows == [{"x": file}]


def test_zlib_tensors_stay_compressed(tmp_path):
    values = [np.array([0.1, 1e300]), np.array([1.0, -1.0])]
    connector = f.Tensor(shape=(2,), dtype=np.float64, encoding="zlib")
    rows, folder, found = written_alone(tmp_path, connector, values)
    holds = {"encoding": "zlib", "dtype": "float64", "shape": [2]}
    assert dict(found.schema) == {"x": Feature("bytes")}
    assert found.metadata == {"x": {"holds": holds}}
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(np.frombuffer(zlib.decompress(row["x"])), theirs["x"])


def test_the_shapes_of_zlib_tensors_are_a_feature_where_they_differ(tmp_path):
    values = [pixels(2, 3), pixels(1, 4)]
    connector = f.Tensor(shape=(None, None), dtype=np.uint8, encoding="zlib")
    rows, _, found = written_alone(tmp_path, connector, values)
    assert dict(found.schema) == {
        "x": Feature("bytes", keys="x/value"),
        "x/shape": Feature("int32", (2,)),
    }
    for row, value in zip(rows, values, strict=True):
        flat = np.frombuffer(zlib.decompress(row["x"]), np.uint8)
        np.testing.assert_array_equal(flat.reshape(row["x/shape"]), value)


def test_raw_tensors_in_sequences_are_byte_strings(tmp_path):
    connector = f.Sequence(f.Tensor(shape=(2,), dtype=np.int16, encoding="bytes"))
    rows, folder, found = written_alone(tmp_path, connector, [[[1, 2], [3, 4]], []])
    assert dict(found.schema) == {"x": Feature("bytes", (None,))}
    assert found.metadata["x"]["holds"] == {"encoding": "raw", "dtype": "int16", "shape": [2]}
    theirs = read_tfds(folder, "train")
    assert [np.frombuffer(item, np.int16).tolist() for item in rows[0]["x"]] == [[1, 2], [3, 4]]
    assert theirs[0]["x"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("encoding", ["none", "bytes"])
def test_an_inner_dimension_that_differs_makes_a_flat_list(encoding, tmp_path):
    values = [np.arange(6, dtype=np.int64).reshape(3, 2), np.zeros((3, 1), np.int64)]
    connector = f.Tensor(shape=(3, None), dtype=np.int64, encoding=encoding)
    rows, folder, found = written_alone(tmp_path, connector, values)
    assert found.schema["x"].shape == (None,)
    assert found.metadata["x"]["holds"]["shape"] == [3, None]
    for row, theirs in zip(rows, read_tfds(folder, "train"), strict=True):
        np.testing.assert_array_equal(row["x"].reshape(3, -1), theirs["x"])


def test_audio_that_is_decoded_when_read_stays_a_file(tmp_path):
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", "NONE"))
        file.writeframes(bytes(range(10)))
    (tmp_path / "a.wav").write_bytes(stream.getvalue())
    connector = f.Audio(file_format="wav", sample_rate=8000, lazy_decode=True)
    rows, _, found = written_alone(tmp_path, connector, [tmp_path / "a.wav"])
    assert rows == [{"x": stream.getvalue()}]
    holds = {"encoding": "audio", "dtype": "int64", "shape": [None]}
    assert found.metadata == {"x": {"file_format": "wav", "sample_rate": 8000, "holds": holds}}


def test_optional_values_are_absent_where_tfds_fills_in_the_smallest_number(tmp_path):
    rows, folder, found = written_alone(tmp_path, f.Scalar(np.int64, optional=True), [5, None])
    assert dict(found.schema) == {"x": Feature("int64", optional=True)}
    assert rows == [{"x": 5}, {"x": None}]
    assert [row["x"] for row in read_tfds(folder, "train")] == [5, np.iinfo(np.int64).min]


@pytest.mark.parametrize(
    ("connector", "shape", "lengths"),
    [
        (f.Sequence(f.Sequence(np.int64, length=2)), (None, 2), 0),
        (f.Sequence(f.Sequence(np.int64), length=2), (None, None), 1),
        (f.Sequence(f.Sequence(np.int64, length=2), length=2), (2, 2), 0),
    ],
)
def test_nested_sequences_of_known_length_are_read_though_tfds_cannot(
    connector, shape, lengths, tmp_path
):
    rows, folder, found = written_alone(tmp_path, connector, [[[1, 2], [3, 4]], [[5, 6], [7, 8]]])
    assert found.schema["x"].shape == shape
    assert len(found.schema["x"].keys) == 1 + lengths
    assert [as_lists(row["x"]) for row in rows] == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    with pytest.raises(Exception, match="ragged|indices|subscriptable"):
        read_tfds(folder, "train")


# What is said of features, and which cannot be read.
def test_names_and_numbers_of_classes_are_found(written):
    found = found_in(written)
    assert found.metadata["label"] == {"num_classes": 2}
    assert found.metadata["bare label"] == {"num_classes": 7}
    assert found.metadata["mask"] == {"num_classes": 2}
    assert found.metadata["list labels"] == {"num_classes": 2}
    assert found.metadata["box"] == {"bbox_format": "REL_YXYX"}
    assert found.metadata["audio"] == {"sample_rate": 16000}
    assert "image" not in found.metadata


def test_the_files_of_class_names_are_those_that_tfds_wrote(tmp_path):
    label = f.ClassLabel(names=["cat", "dog"])
    features = {
        "y": label,
        "a/b": {"c/d": label},
        "objects": f.Sequence({"id": label, "deep": f.Sequence({"id": label})}),
        "mask": f.LabeledImage(labels=["cat", "dog"]),
        "steps": f.Dataset({"action": label}),
    }
    tfds.features.FeaturesDict(features).save_config(tmp_path)
    files = found_in(tmp_path).label_files
    assert sorted(files) == [
        "a/b/c/d",
        "mask",
        "objects/deep/id",
        "objects/id",
        "steps/action",
        "y",
    ]
    for file in files.values():
        assert parse_labels((tmp_path / file).read_text()) == ["cat", "dog"]
    assert len(files) == len(list(tmp_path.glob("*.labels.txt")))


def test_what_the_author_said_of_a_feature_is_kept(tmp_path):
    doc = tfds.features.Documentation(desc="in metres", value_range="0 to 9")
    features = {"x": f.Scalar(np.int64, doc=doc), "list": f.Sequence(np.int64, doc="all of them")}
    tfds.features.FeaturesDict(features).save_config(tmp_path)
    assert found_in(tmp_path).metadata == {
        "x": {"description": "in metres", "value_range": "0 to 9"},
        "list": {"description": "all of them"},
    }


@pytest.mark.parametrize(
    ("connector", "why"),
    [
        (f.Sequence(f.Tensor(shape=(None,), dtype=np.int64)), "several variable"),
        (f.Tensor(shape=(None, None), dtype=np.int64), "several variable"),
        (
            f.Sequence(f.Sequence(f.Tensor(shape=(None,), dtype=np.int64))),
            "several variable",
        ),
        (f.Tensor(shape=(2,), dtype=np.complex64), "no exact list type"),
        (f.Sequence(f.Tensor(shape=(0,), dtype=np.int64)), "rows of no values"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_a_reason(connector, why, tmp_path):
    tfds.features.FeaturesDict({"x": connector, "y": np.int64}).save_config(tmp_path)
    found = found_in(tmp_path)
    assert dict(found.schema) == {"y": Feature("int64")}
    assert list(found.left_out) == ["x"]
    assert "tensor_feature.Tensor" in found.left_out["x"]
    assert why in found.left_out["x"]


def test_connectors_that_others_made_are_left_out_with_their_names(tmp_path):
    class Image(f.Image):
        pass

    tfds.features.FeaturesDict({"x": {"y": f.Sequence(Image())}, "z": f.Text()}).save_config(
        tmp_path
    )
    found = found_in(tmp_path)
    assert dict(found.schema) == {"z": Feature("str")}
    assert list(found.left_out) == ["x/y"]
    assert "Image: expected a connector of TFDS" in found.left_out["x/y"]
