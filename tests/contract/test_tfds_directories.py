"""What TFDS wrote, `datum.load` reads equal to what TFDS itself returns."""

from __future__ import annotations

import io
import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_datasets as tfds
from PIL import Image

import datum
from datum import DatumError, ManifestError, SchemaError
from tests.unit.read.foreign.tfds_cases import EQUAL, EXAMPLES, FEATURES, pixels
from tests.unit.read.foreign.tfds_written import read_tfds, write_tfds

f = tfds.features
CLASSES = ["cat", "dog", "newt"]


def photo(at: int, form: str = "JPEG") -> bytes:
    """A smooth picture of its own size, as JPEG takes it well."""
    height, width = 16 + at % 5, 20 + at % 3
    rows, columns = np.mgrid[:height, :width]
    colours = np.stack([rows * 9 + at, columns * 7, rows + columns * 3], -1) % 256
    stream = io.BytesIO()
    Image.fromarray(colours.astype(np.uint8)).save(stream, form)
    return stream.getvalue()


def example(at: int) -> dict[str, Any]:
    boxes = [
        {"bbox": f.BBox(0.0, 0.1 * k, 0.5, 1.0), "label": CLASSES[k], "parts": list(range(k))}
        for k in range(at % 4)
    ]
    return {
        "id": at,
        "image": io.BytesIO(photo(at)),
        "label": CLASSES[at % 3],
        "text": f"récord {at}",
        "words": f"word {at}".split()[: at % 3],
        "objects": boxes,
        "weights": [at / 3, -at],
    }


PHOTOS = {
    "id": np.int64,
    "image": f.Image(encoding_format="jpeg"),
    "label": f.ClassLabel(names=CLASSES),
    "text": f.Text(),
    "words": f.Sequence(f.Text()),
    "objects": f.Sequence(
        {
            "bbox": f.BBoxFeature(),
            "label": f.ClassLabel(names=CLASSES),
            "parts": f.Sequence(np.int32),
        }
    ),
    "weights": f.Tensor(shape=(2,), dtype=np.float64),
}


def as_lists(value: Any) -> Any:
    """The value of a tensor or an array, of any kind, as nested lists."""
    if hasattr(value, "to_list"):
        return value.to_list()
    value = value.numpy() if isinstance(value, tf.Tensor) else value
    return value.tolist() if hasattr(value, "tolist") else value


def assert_equal(ours: Any, theirs: list[dict[str, Any]]) -> None:
    """Records of a `tf.data.Dataset` against those of TFDS, value by value."""
    ours = list(ours)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.keys() == other.keys()
        for name, value in other.items():
            assert as_lists(mine[name]) == as_lists(value), name


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    splits = {"train": map(example, range(23)), "test": map(example, range(100, 107))}
    return write_tfds(tmp_path_factory.mktemp("photos"), PHOTOS, splits, shards=3)


def test_every_connector_gives_the_tensors_that_tfds_gives(tmp_path: Path) -> None:
    folder = write_tfds(tmp_path, FEATURES, {"train": EXAMPLES})
    records = datum.load(folder).to_tf("train", batch_size=None)
    theirs = read_tfds(folder, "train")
    assert_equal(records, theirs)
    for name, value in theirs[0].items():
        if not hasattr(value, "to_list") and np.asarray(value).dtype.kind != "O":
            assert records.element_spec[name].dtype == np.asarray(value).dtype, name
    assert len(theirs[0]) >= len(EQUAL)


@pytest.mark.parametrize(
    "split", ["train", "test", "train[:40%]", "train[3:-5]", "train[10:12]", "test+train"]
)
def test_splits_and_their_parts_are_those_of_tfds(photos: Path, split: str) -> None:
    records = datum.load(photos).to_tf(split, batch_size=None)
    theirs = read_tfds(photos, split)
    assert int(records.cardinality()) == len(theirs)
    assert_equal(records, theirs)


def test_batches_hold_the_records_of_tfds(photos: Path) -> None:
    theirs = read_tfds(photos, "train")
    batches = list(datum.load(photos).to_tf("train", batch_size=5, decode={"image": False}))
    assert [len(batch["id"]) for batch in batches] == [5, 5, 5, 5, 3]
    for name in set(theirs[0]) - {"image"}:
        found = [row for batch in batches for row in as_lists(batch[name])]
        assert found == [as_lists(row[name]) for row in theirs], name
    files = [file for batch in batches for file in batch["image"].numpy()]
    assert files == [photo(at) for at in range(23)]


def test_shuffled_records_are_those_of_tfds(photos: Path) -> None:
    theirs = read_tfds(photos, "train")
    found = list(datum.load(photos).to_tf("train", batch_size=None, shuffle=True, seed=5))
    found.sort(key=lambda record: int(record["id"]))
    assert_equal(found, theirs)


def test_counts_and_shards_are_those_of_tfds(photos: Path) -> None:
    dataset = datum.load(photos)
    info = tfds.builder_from_directory(photos).info
    assert list(dataset.splits) == list(info.splits)
    for name, split in info.splits.items():
        lengths = [shard.records for shard in dataset.splits[name].shards]
        assert [length for length in split.shard_lengths if length] == lengths
        assert len(dataset[name]) == split.num_examples
    assert dataset.verify().is_sound


def test_class_names_are_in_the_metadata(photos: Path) -> None:
    metadata = datum.load(photos).metadata
    features = tfds.builder_from_directory(photos).info.features
    assert metadata["label"]["class_names"] == features["label"].names == CLASSES
    assert metadata["objects/label"]["class_names"] == CLASSES
    assert metadata["label"]["num_classes"] == 3


def test_rows_without_tensorflow_are_those_of_tfds(photos: Path) -> None:
    test = datum.load(photos)["test"]
    for at, theirs in enumerate(read_tfds(photos, "test")):
        row = test[at]
        assert row["text"].encode() == theirs["text"]
        assert row["objects/bbox"].tolist() == theirs["objects/bbox"].tolist()
        assert [part.tolist() for part in row["objects/parts"]] == as_lists(theirs["objects/parts"])
        assert row["image"].shape == theirs["image"].shape
        difference = np.abs(row["image"].astype(int) - theirs["image"])
        assert difference.mean() < 2  # another decoder of JPEG, which rounds in its own way


def test_pairs_for_keras_are_those_of_tfds(photos: Path) -> None:
    ours = datum.load(photos).to_tf("test", batch_size=None, supervised=("image", "label"))
    for (image, label), theirs in zip(ours, read_tfds(photos, "test"), strict=True):
        np.testing.assert_array_equal(image, theirs["image"])
        assert int(label) == theirs["label"]


def test_what_the_schema_has_in_another_form_is_made_theirs_in_a_map(tmp_path: Path) -> None:
    features = {
        "video": f.Video(shape=(None, 4, 5, 3)),
        "depth": f.Image(shape=(3, 4, 1), dtype=np.float32),
        "packed": f.Tensor(shape=(2, 3), dtype=np.float32, encoding="zlib"),
    }
    random = np.random.default_rng(1)
    examples = [
        {
            "video": pixels(count, 4, 5, 3),
            "depth": random.normal(size=(3, 4, 1)).astype(np.float32),
            "packed": random.normal(size=(2, 3)).astype(np.float32),
        }
        for count in (2, 1, 3)
    ]
    folder = write_tfds(tmp_path, features, {"train": examples})

    def as_theirs(record: dict[str, Any]) -> dict[str, Any]:
        packed = tf.io.decode_compressed(record["packed"], compression_type="ZLIB")
        return {
            "video": record["video"],
            "depth": tf.bitcast(record["depth"], tf.float32)[..., None],
            "packed": tf.reshape(tf.io.decode_raw(packed, tf.float32), (2, 3)),
        }

    dataset = datum.load(folder)
    assert_equal(dataset.to_tf(batch_size=None, map=as_theirs), read_tfds(folder, "train"))
    raw = zlib.decompress(dataset["train"][0]["packed"])
    np.testing.assert_array_equal(
        np.frombuffer(raw, np.float32).reshape(2, 3), examples[0]["packed"]
    )


# Descriptions that were damaged, or made to harm.


def damaged(folder: Path, change: Any) -> Path:
    """The dataset, with the features of its description changed in place."""
    path = folder / "features.json"
    found = json.loads(path.read_text())
    change(found["featuresDict"]["features"])
    path.write_text(json.dumps(found))
    return folder


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    features = {"x": np.int64, "label": f.ClassLabel(names=CLASSES), "text": f.Text()}
    examples = [{"x": at, "label": at, "text": str(at)} for at in range(3)]
    return write_tfds(tmp_path_factory.mktemp("sound"), features, {"train": examples})


@pytest.fixture
def small(sound: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(sound, tmp_path / "1.0.0"))


def test_a_connector_that_is_not_known_leaves_the_rest_readable(small: Path) -> None:
    def change(features: Any) -> None:
        features["text"]["pythonClassName"] = "my.lab.Molecule"

    dataset = datum.load(damaged(small, change))
    assert [row["x"].numpy().tolist() for row in dataset.to_tf()] == [[0, 1, 2]]
    assert sorted(dataset.schema) == ["label", "x"]
    assert "my.lab.Molecule" in dataset.metadata["text"]["left_out"]


@pytest.mark.parametrize(
    "change",
    [
        lambda features: features.update(x=None),
        lambda features: features.update(x=[]),
        lambda features: features["x"].update(tensor={"dtype": 5, "shape": {}}),
        lambda features: features["x"]["tensor"].update(shape={"dimensions": ["-7"]}),
        lambda features: features["x"]["tensor"].update(shape={"dimensions": "9"}),
        lambda features: features["label"].update(classLabel={"numClasses": "many"}),
        lambda features: features["text"].pop("text"),
        lambda features: features.update({"a/b": features["x"], "a": nest(features["x"], "b")}),
    ],
)
def test_a_description_that_no_version_wrote_is_a_typed_error(small: Path, change: Any) -> None:
    with pytest.raises(SchemaError, match="features.json") as caught:
        datum.load(damaged(small, change))
    assert len(str(caught.value)) < 1000


def nest(node: Any, key: str) -> Any:
    name = "tensorflow_datasets.core.features.features_dict.FeaturesDict"
    return {"pythonClassName": name, "featuresDict": {"features": {key: node}}}


@pytest.mark.parametrize("depth", [100, 300, 100_000])
def test_deep_nesting_is_a_typed_error(small: Path, depth: int) -> None:
    start = json.dumps(nest(5, "a")).removesuffix("5}}}")
    (small / "features.json").write_text(start * depth + "5" + "}}}" * depth)
    with pytest.raises(DatumError, match="features.json"):
        datum.load(small)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"pythonClassName": 5}', "\udcff", '{"a": 1, "a": 2}']
)
def test_a_description_that_is_no_object_of_features_is_a_typed_error(
    small: Path, text: str
) -> None:
    (small / "features.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises((ManifestError, SchemaError), match="features.json"):
        datum.load(small)


def test_a_description_of_other_records_names_shard_record_and_feature(small: Path) -> None:
    def change(features: Any) -> None:
        features["x"]["tensor"]["dtype"] = "float32"

    dataset = datum.load(damaged(small, change))
    with pytest.raises(SchemaError, match="record 0.*'x'.*expected float values, got int64"):
        dataset["train"][0]


def test_a_file_of_class_names_that_is_damaged_is_a_typed_error(small: Path) -> None:
    (small / "label.labels.txt").write_bytes(b"cat\n\xff\xfe")
    with pytest.raises(ManifestError, match="label.labels.txt"):
        datum.load(small)


def test_class_names_that_are_not_there_leave_their_number(small: Path) -> None:
    (small / "label.labels.txt").unlink()
    assert datum.load(small).metadata["label"] == {"num_classes": 3}
