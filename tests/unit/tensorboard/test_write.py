"""Event files that are read back, and looked at."""

import io
import os

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

import datum
from datum.errors import MissingDependencyError, SchemaError, SourceError, WriteError
from datum.tensorboard import write_images
from datum.tensorboard.drawing import colour_of


def read_events(folder):
    """Each picture of a log directory, by step and tag."""
    found = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                assert value.metadata.plugin_data.plugin_name == "images"
                width, height, png = tf.make_ndarray(value.tensor).tolist()
                image = Image.open(io.BytesIO(png))
                assert (image.format, image.size) == ("PNG", (int(width), int(height)))
                found[event.step, value.tag] = np.asarray(image)
    return found


def records(count, size=300):
    return [
        {"image": np.full((size, size, 3), 10 * at, np.uint8), "label": at} for at in range(count)
    ]


def test_every_image_is_written_and_all_of_them_together(tmp_path):
    assert write_images(records(3), tmp_path) == 3
    events = read_events(tmp_path)
    assert list(events) == [(0, "images"), (0, "images/00"), (0, "images/01"), (0, "images/02")]
    for at in range(3):
        assert (events[0, f"images/{at:02}"][:300] == 10 * at).all()
    assert {0, 10, 20} <= set(np.unique(events[0, "images"]))


def test_only_so_many_are_read_and_written(tmp_path):
    read = []
    rows = (read.append(at) or row for at, row in enumerate(records(9)))
    assert write_images(rows, tmp_path, count=4) == 4
    assert len(read) == 4
    assert len(read_events(tmp_path)) == 5


def test_a_dataset_without_end_is_stopped(tmp_path):
    data = tf.data.Dataset.from_tensors(records(1)[0]).repeat().batch(3)
    assert write_images(data, tmp_path, count=4) == 4


def test_later_steps_are_added_under_their_tag(tmp_path):
    for step in (0, np.int64(500), tf.Variable(900)):
        write_images(records(1), tmp_path / "logs", step=step, tag="val/images")
    steps = [step for step, tag in read_events(tmp_path / "logs") if tag == "val/images/00"]
    assert steps == [0, 500, 900]


def test_nothing_is_written_of_nothing(tmp_path):
    assert write_images([], tmp_path / "logs") == 0
    empty = tf.data.Dataset.from_tensor_slices({"image": np.zeros((0, 4, 4, 3))})
    assert write_images(empty.batch(2), tmp_path / "logs") == 0
    assert not (tmp_path / "logs").exists()


def test_a_condition_of_the_caller_does_not_hold_them_back(tmp_path):
    with tf.summary.record_if(False):
        write_images(records(1), tmp_path)
    assert read_events(tmp_path)


@pytest.mark.parametrize("batch", [None, 2, 5])
def test_tuples_for_keras_are_shown_with_their_class(tmp_path, batch):
    images = np.stack([row["image"] for row in records(5)]).astype(np.float32) / 127.5 - 1
    data = tf.data.Dataset.from_tensor_slices((images, tf.one_hot(range(5), 5)))
    data = data if batch is None else data.batch(batch)
    metadata = {"label": {"class_names": ["a", "b", "c", "d", "e"]}}
    assert write_images(data, tmp_path / "named", class_names=metadata) == 5
    assert write_images(data, tmp_path / "plain", class_names=["1", "2", "3", "4", "5"]) == 5
    named, plain = read_events(tmp_path / "named"), read_events(tmp_path / "plain")
    for at in range(5):
        card = named[0, f"images/{at:02}"]
        assert np.abs(card[:300].astype(int) - 10 * at).max() <= 1
        assert (card[300:] != plain[0, f"images/{at:02}"][300:]).any()


def test_names_change_the_caption_and_nothing_else(tmp_path):
    write_images(records(1), tmp_path / "a", class_names=["cat"])
    write_images(records(1), tmp_path / "b", class_names={"other": ["cat"]})
    first, second = (read_events(tmp_path / name)[0, "images/00"] for name in "ab")
    assert (first[:300] == second[:300]).all()
    assert (first[300:, :60] != second[300:, :60]).any()


def test_boxes_and_masks_are_where_they_should_be(tmp_path):
    mask = np.zeros((300, 400, 1), np.uint8)
    mask[150:, :200] = 3
    row = {
        "image": np.full((300, 400, 3), 100, np.uint8),
        "mask": mask,
        "bbox": np.array([[0.1, 0.6, 0.4, 0.9]], np.float32),
        "labels": np.array([2]),
    }
    data = tf.data.Dataset.from_tensors(row).batch(1)
    write_images(data, tmp_path, class_names={"mask": ["", "", "", "road"]})
    card = read_events(tmp_path)[0, "images/00"]
    frame = (card[:300] == colour_of(2)).all(-1)
    assert frame[30:120, 240:360].any()
    assert frame[119, 241:359].all()
    assert frame[31:119, 359].all()
    assert not frame[:, :240].any()
    blended = np.rint(0.55 * 100 + 0.45 * np.array(colour_of(3)))
    assert (card[160:290, 10:190] == blended).all()
    assert (card[300:] == colour_of(3)).all(-1).any()


def test_a_split_of_a_dataset_is_shown(tmp_path):
    rows = [{"image": row["image"], "label": row["label"]} for row in records(3, size=40)]
    datum.write(rows, tmp_path / "data", shuffle=False, progress=False)
    ds = datum.load(tmp_path / "data")
    assert write_images(ds["train"], tmp_path / "logs", class_names=ds.metadata) == 3
    events = read_events(tmp_path / "logs")
    assert (events[0, "images/02"][:240] == 20).all()


@pytest.mark.parametrize("batch_size", [None, 2])
def test_what_a_callback_makes_of_records_is_shown(tmp_path, batch_size):
    rows = [
        {
            "image": np.full((40 + at, 60, 3), 10 * at, np.uint8),
            "bbox": np.array([[0.5, 0.5, 1, 1]] * at, np.float32).reshape(-1, 4),
            "labels": [3] * at,
            "label": None if at == 1 else at,
        }
        for at in range(3)
    ]
    datum.write(rows, tmp_path / "data", shuffle=False, progress=False)

    def brighten(record):
        return {**record, "image": tf.cast(record["image"] + 50, tf.float32) / 255}

    data = datum.load(tmp_path / "data").to_tf("train", batch_size=batch_size, map=brighten)
    assert write_images(data, tmp_path / "logs") == 3
    events = read_events(tmp_path / "logs")
    for at in range(3):
        card = events[0, f"images/{at:02}"]
        assert (card[:50, :50] == 50 + 10 * at).all()
        assert (card == colour_of(3)).all(-1).any() == (at > 0)


def test_a_dataset_is_not_a_split(tmp_path):
    datum.write(records(1, size=4), tmp_path / "data", progress=False)
    with pytest.raises(SourceError, match="pass a split"):
        write_images(datum.load(tmp_path / "data"), tmp_path / "logs")


def test_a_record_that_cannot_be_shown_leaves_no_file(tmp_path):
    rows = [*records(2), {"image": b"\xff\xd8\xff broken"}]
    with pytest.raises(SourceError, match="record 2, feature 'image': expected a"):
        write_images(rows, tmp_path / "logs")
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize("count", [0, -1, 257])
def test_a_count_out_of_range_is_told(tmp_path, count):
    with pytest.raises(SourceError, match="`count`: expected a number from 1 to 256"):
        write_images(records(1), tmp_path, count=count)


def test_a_misspelt_feature_is_told(tmp_path):
    with pytest.raises(SchemaError, match="did you mean 'label'"):
        write_images(records(1), tmp_path, label="lable")


def test_a_file_in_the_place_of_the_directory_is_told(tmp_path):
    (tmp_path / "file").write_text("here")
    with pytest.raises(WriteError, match="file.*: expected a directory to write events to"):
        write_images(records(1), tmp_path / "file")


def test_without_tensorflow_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tensorflow", None)
    with pytest.raises(MissingDependencyError, match="pip install tensorflow"):
        write_images(records(1), tmp_path)


def test_real_boxes_are_drawn_on_real_photos(tmp_path, shared_data):
    datum.write(shared_data / "bccd_voc", tmp_path / "data", progress=False)
    ds = datum.load(tmp_path / "data")
    assert write_images(ds["train"], tmp_path / "logs", count=6, class_names=ds.metadata) == 6
    events = read_events(tmp_path / "logs")
    classes = ds.metadata["labels"]["class_names"]
    for at, record in enumerate(ds["train[:6]"]):
        card = events[0, f"images/{at:02}"]
        assert card.shape[:2] >= (384, 512)
        for id in set(record["labels"].tolist()):
            assert classes[id] != "background"
            assert (card == colour_of(id)).all(-1).any()


def test_one_call_writes_one_file(tmp_path):
    write_images(records(1), os.fspath(tmp_path / "logs"))
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]
    assert len(list((tmp_path / "logs").iterdir())) == 1
