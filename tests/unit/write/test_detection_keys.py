"""Boxes under the keys of the TF Object Detection API, read as its decoder reads them."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum import Feature

SIDES = ("ymin", "xmin", "ymax", "xmax")
# As the decoder of the API and that of Model Garden ask for them.
KEYS_TO_FEATURES = {
    "image/encoded": tf.io.FixedLenFeature((), tf.string),
    "image/format": tf.io.FixedLenFeature((), tf.string, default_value="jpeg"),
    "image/filename": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/source_id": tf.io.FixedLenFeature((), tf.string, default_value=""),
    "image/height": tf.io.FixedLenFeature((), tf.int64, default_value=1),
    "image/width": tf.io.FixedLenFeature((), tf.int64, default_value=1),
    **{f"image/object/bbox/{side}": tf.io.VarLenFeature(tf.float32) for side in SIDES},
    "image/object/class/label": tf.io.VarLenFeature(tf.int64),
    "image/object/class/text": tf.io.VarLenFeature(tf.string),
    "image/object/area": tf.io.VarLenFeature(tf.float32),
    "image/object/is_crowd": tf.io.VarLenFeature(tf.int64),
    "image/object/difficult": tf.io.VarLenFeature(tf.int64),
    "image/object/truncated": tf.io.VarLenFeature(tf.int64),
    "image/object/view": tf.io.VarLenFeature(tf.string),
}


def decode(record):
    """A record as their decoders make it: boxes as (ymin, xmin, ymax, xmax)."""
    parsed = tf.io.parse_single_example(record, KEYS_TO_FEATURES)
    dense = {
        key: tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
        for key, value in parsed.items()
    }
    boxes = [dense[f"image/object/bbox/{side}"].numpy() for side in SIDES]
    found = {key.removeprefix("image/"): value.numpy() for key, value in dense.items()}
    return found | {
        "image": tf.io.decode_image(dense["image/encoded"], channels=3).numpy(),
        "boxes": np.stack(boxes, axis=1),
    }


def records_of(out, split):
    files = sorted(str(path) for path in out.glob(f"{split}-*.tfrecord"))
    return [decode(record) for record in tf.data.TFRecordDataset(files)]


@pytest.fixture(scope="module")
def bccd(shared_data, tmp_path_factory):
    out = tmp_path_factory.mktemp("bccd") / "out"
    report = datum.write(
        shared_data / "bccd_voc", out, keys="tf_object_detection", shuffle=False, progress=False
    )
    return out, report


def test_a_detection_dataset_is_read_by_their_keys(bccd, shared_data, tmp_path):
    out, report = bccd
    assert report.notes == ()
    plain = tmp_path / "plain"
    datum.write(shared_data / "bccd_voc", plain, shuffle=False, progress=False)
    ours, theirs = datum.load(plain)["val"], records_of(out, "val")
    names = datum.load(plain).metadata["labels"]["class_names"]
    assert len(ours) == len(theirs) > 0
    for mine, found in zip(ours, theirs, strict=True):
        height, width = mine["image"].shape[:2]
        assert (found["height"], found["width"]) == (height, width)
        assert found["image"].shape == mine["image"].shape
        assert found["format"] == b"jpeg"
        assert found["filename"].decode() == found["source_id"].decode() == mine["filename"]
        np.testing.assert_array_equal(found["boxes"], np.stack([mine[s] for s in SIDES], axis=1))
        assert found["object/class/label"].tolist() == mine["labels"].tolist()
        assert min(found["object/class/label"], default=1) >= 1
        assert [text.decode() for text in found["object/class/text"]] == [
            names[label] for label in mine["labels"]
        ]
        assert found["object/truncated"].tolist() == mine["is_truncated"].tolist()
        assert found["object/difficult"].tolist() == mine["labels_difficult"].tolist()
        assert [text.decode() for text in found["object/view"]] == mine["pose"]
        np.testing.assert_allclose(found["object/area"], mine["area"] * height * width, rtol=1e-6)


def test_features_keep_their_names(bccd):
    ds = datum.load(bccd[0])
    record = ds["val"][0]
    assert record["image"].ndim == 3
    assert len(record["xmin"]) == len(record["labels"]) == len(record["class_text"])
    assert ds.schema["xmin"].keys == ("image/object/bbox/xmin",)
    (batch,) = ds.to_numpy("val[:2]", batch_size=2, columns=["labels"])
    assert len(batch["labels"]) == 2
    assert ds.verify().is_sound


def test_a_label_map_stands_beside(bccd):
    out, _ = bccd
    names = datum.load(out).metadata["labels"]["class_names"]
    mark, _, text = (out / "label_map.pbtxt").read_text().partition("\n")
    assert mark.startswith("# Datum wrote this")
    assert text == "".join(
        f'item {{\n  id: {number}\n  name: "{name}"\n}}\n'
        for number, name in enumerate(names[1:], 1)
    )


def rows(tmp_path, count=3):
    for i in range(count):
        Image.new("RGB", (40, 20), (i, i, i)).save(tmp_path / f"{i}.png")
    side = np.array([0.25, 0.5], np.float32)
    return [
        {
            "image": tmp_path / f"{i}.png",
            "xmin": side[:i],
            "xmax": side[:i] + 0.25,
            "ymin": side[:i],
            "ymax": side[:i] + 0.5,
            "area": np.full(i, 0.125, np.float32),
            "labels": list(range(1, i + 1)),
            "is_crowd": [False] * i,
        }
        for i in range(count)
    ]


def test_rows_of_python_with_boxes_are_written_so_too(tmp_path):
    out = tmp_path / "out"
    report = datum.write(
        rows(tmp_path), out, keys="tf_object_detection", shuffle=False, progress=False
    )
    assert report.notes == ("label_map: not written, as no feature has class names",)
    found = records_of(out, "train")
    assert [len(one["boxes"]) for one in found] == [0, 1, 2]
    assert found[2]["object/class/label"].tolist() == [1, 2]
    assert found[2]["object/is_crowd"].tolist() == [0, 0]
    assert found[2]["object/area"].tolist() == [100, 100]
    assert (found[0]["format"], found[0]["height"], found[0]["width"]) == (b"png", 20, 40)


def test_sizes_are_those_of_the_images_as_they_are_stored(tmp_path):
    out = tmp_path / "out"
    options = {"keys": "tf_object_detection", "max_side": 10, "shuffle": False, "progress": False}
    datum.write(rows(tmp_path), out, **options)
    found = records_of(out, "train")
    assert [(one["height"], one["width"]) for one in found] == [(5, 10)] * 3
    assert found[1]["object/area"].tolist() == [0.125 * 50]
    assert found[1]["boxes"].tolist() == [[0.25, 0.25, 0.75, 0.5]]


def test_a_dataset_of_datum_gets_their_keys(bccd, shared_data, tmp_path):
    datum.write(shared_data / "bccd_voc", tmp_path / "plain", shuffle=False, progress=False)
    source = datum.load(tmp_path / "plain")
    out = tmp_path / "out"
    datum.write(source, out, keys="tf_object_detection", shuffle=False, progress=False)
    for name in ("val", "train"):
        assert [path.read_bytes() for path in sorted(out.glob(f"{name}-*.tfrecord"))] == [
            path.read_bytes() for path in sorted(bccd[0].glob(f"{name}-*.tfrecord"))
        ]


def test_a_plan_shows_what_is_added(shared_data):
    plan = datum.plan(shared_data / "bccd_voc", keys="tf_object_detection")
    assert plan.schema["image"].keys == ("image/encoded",)
    assert "class_text" in plan.schema


@pytest.mark.parametrize("source", ["rows", "folder"])
def test_sources_without_boxes_are_refused(tmp_path, source):
    Image.new("RGB", (4, 4)).save(tmp_path / "0.png")
    for name in "ab":
        (tmp_path / "folder" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "folder" / name / "x.png")
    given = [{"image": tmp_path / "0.png"}] if source == "rows" else tmp_path / "folder"
    with pytest.raises(datum.SchemaError, match="expected records with an image and boxes"):
        datum.write(given, tmp_path / "out", keys="tf_object_detection", progress=False)
    with pytest.raises(datum.SchemaError, match="expected records with an image and boxes"):
        datum.plan(given, keys="tf_object_detection")
    assert not (tmp_path / "out").exists()


def test_bytes_are_told_to_be_images_by_the_schema(tmp_path):
    given = [{**row, "image": row["image"].read_bytes()} for row in rows(tmp_path)]
    options = {"keys": "tf_object_detection", "progress": False}
    with pytest.raises(datum.SchemaError, match="expected feature 'image' to be an image"):
        datum.write(given, tmp_path / "out", **options)
    image = Feature("uint8", (None, None, 3), encoding="image")
    datum.write(given, tmp_path / "out", schema={"image": image}, **options)
    assert len(records_of(tmp_path / "out", "train")) == 3


def test_records_are_added_under_the_same_keys(tmp_path):
    given, out = rows(tmp_path), tmp_path / "out"
    options = {"keys": "tf_object_detection", "shuffle": False, "progress": False}
    datum.write(given[1:], out, **options)
    datum.write(given[2:], out, append=True, **options)
    assert [row["labels"].tolist() for row in datum.load(out)["train"]] == [[1], [1, 2], [1, 2]]


def test_class_ids_from_0_make_no_label_map(tmp_path):
    for name in ("a", "b"):
        (tmp_path / "in" / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / "in" / name / "x.png")
    out = tmp_path / "out"
    report = datum.write(tmp_path / "in", out, sidecars=["label_map"], progress=False)
    assert report.notes == (
        "label_map: not written, as ids of 'label' start at 0, but a label map starts at 1",
    )
    assert not (out / "label_map.pbtxt").exists()
