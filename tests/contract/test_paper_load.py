"""The paper's reader: run as printed, with the cases of the older library and `input_fn`s."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import datum
import datum.configs
import datum.export
import datum.problem
from datum.configs import BucketConfigs, DatasetConfigs, TFRWriteConfigs
from tests.contract.oracle import tf


def save_image(path: Path, pixels: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(pixels, np.uint8)).save(path, quality=95)


def export(root: Path, out: Path, problem: str, **splits: int) -> Path:
    configs = TFRWriteConfigs(splits={name: {"num_examples": n} for name, n in splits.items()})
    datum.export.export_to_tfrecord(root, out, problem, configs, progress=False)
    return out


def only(made: Any) -> Any:
    (batch,) = made
    return batch


@pytest.fixture
def bright_and_dark(tmp_path: Path) -> Path:
    """Pictures that are bright or dark, and a table that says which."""
    root, rng = tmp_path / "clf", np.random.default_rng(0)
    for split, count in {"train": 64, "val": 16}.items():
        lines = ["filename,label"]
        for i in range(count):
            pixels = rng.integers(0, 90, (20 + i % 3, 24, 3)) + 150 * (i % 2)
            save_image(root / split / f"{split}{i}.jpg", pixels)
            lines.append(f"{split}{i},{i % 2}")
        (root / f"{split}.csv").write_text("\n".join(lines))
    return root


def test_the_example_of_the_paper_runs_as_printed(bright_and_dark: Path, tmp_path: Path) -> None:
    input_path, output_path, N, M = str(bright_and_dark), str(tmp_path / "out"), 64, 16  # noqa: N806

    write_configs = datum.configs.TFRWriteConfigs()
    write_configs.splits = {"train": {"num_examples": N}, "val": {"num_examples": M}}
    datum.export.export_to_tfrecord(input_path, output_path, datum.problem.IMAGE_CLF, write_configs)

    def resize(example: dict[str, Any]) -> dict[str, Any]:
        example["image"] = tf.image.resize(example["image"], [16, 16]) / 255.0
        return example

    def to_pair(batch: dict[str, Any]) -> tuple[Any, Any]:
        return batch["image"], batch["label"]

    dataset = datum.load(output_path)
    configs = dataset.dataset_configs
    configs.pre_batching_callback = resize
    configs.post_batching_callback = to_pair
    train_ds = dataset.train_fn("train", shuffle=True)
    val_ds = dataset.val_fn("val", shuffle=False)
    assert isinstance(train_ds, tf.data.Dataset)

    model = tf.keras.Sequential(
        [
            tf.keras.Input((16, 16, 3)),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.optimizer.learning_rate = 1.0
    model.fit(train_ds, validation_data=val_ds, epochs=12, verbose=0)
    assert model.evaluate(val_ds, verbose=0)[1] == 1.0


def test_the_reader_is_where_the_older_library_has_it(
    bright_and_dark: Path, tmp_path: Path
) -> None:
    import datum.reader

    out = export(bright_and_dark, tmp_path / "out", datum.problem.IMAGE_CLF, train=64, val=16)
    assert len(datum.reader.load(str(out))["val"]) == 16


# The cases of the older library's tests, on data of the same layout.

SIZE = (28, 50)  # height and width of its picture, a tenth
BOXES = {
    "one": [("person", 10, 5, 20, 25), ("dog", 2, 3, 12, 14), ("dog", 26, 1, 50, 28)],
    "two": [("person", 0, 0, 25, 14)],
    "three": [],
}


def annotation(boxes: list[tuple[Any, ...]]) -> str:
    objects = "".join(
        f"<object><name>{name}</name><pose>Left</pose><truncated>0</truncated><difficult>0"
        f"</difficult><bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin><xmax>{xmax}</xmax>"
        f"<ymax>{ymax}</ymax></bndbox></object>"
        for name, xmin, ymin, xmax, ymax in boxes
    )
    size = f"<size><width>{SIZE[1]}</width><height>{SIZE[0]}</height><depth>3</depth></size>"
    return f"<annotation>{size}{objects}</annotation>"


@pytest.fixture
def detection(tmp_path: Path) -> Any:
    root = tmp_path / "det"
    for folder in ("Annotations", "ImageSets"):
        (root / folder).mkdir(parents=True)
    for number, (name, boxes) in enumerate(BOXES.items()):
        save_image(root / f"JPEGImages/{name}.jpg", np.full((*SIZE, 3), 60 * number))
        (root / f"Annotations/{name}.xml").write_text(annotation(boxes))
    (root / "ImageSets/train.txt").write_text("one\ntwo\n")
    (root / "ImageSets/val.txt").write_text("three\n")
    (root / "classes.names").write_text("dog\nperson\n")
    out = export(root, tmp_path / "det_out", datum.problem.IMAGE_DET, train=2, val=1)
    ds = datum.load(out)
    ds.dataset_configs.batch_size_train = ds.dataset_configs.batch_size_val = 1
    return ds


def resize(example: dict[str, Any]) -> dict[str, Any]:
    example["image"] = tf.image.resize(example["image"], [22, 22])
    return example


def of(ds: Any, name: str) -> Any:
    """The batch of one record that has that file name."""
    made = [*ds.train_fn("train", False), *ds.val_fn("val", False)]
    return next(batch for batch in made if batch["filename"][0].numpy().decode() == f"{name}.jpg")


@pytest.mark.parametrize("name", BOXES)
def test_boxes_come_as_they_were_drawn(detection: Any, name: str) -> None:
    batch = of(detection, name)
    boxes = BOXES[name]
    assert batch["image"].shape == (1, *SIZE, 3)
    assert batch["image"].dtype == tf.uint8
    for column, side in enumerate(("xmin", "ymin", "xmax", "ymax")):
        scale = SIZE[1 - column % 2]
        expected = np.array([box[1 + column] / scale for box in boxes], np.float32)
        np.testing.assert_array_equal(batch[side].numpy(), [expected.tolist()])
    labels = [[{"dog": 1, "person": 2}[box[0]] for box in boxes]]
    assert batch["labels"].numpy().tolist() == labels
    assert [len(poses) for poses in batch["pose"].numpy().tolist()] == [len(boxes)]


def test_boxes_of_differing_number_share_a_batch(detection: Any) -> None:
    detection.dataset_configs.batch_size_train = 2
    batch = only(detection.train_fn("train", False))
    assert batch["image"].shape == (2, *SIZE, 3)
    assert sorted(batch["xmin"].row_lengths().numpy()) == [1, 3]


@pytest.mark.parametrize("padding", ["use_tf_padding", "use_datum_padding"])
def test_boxes_are_padded_on_request(detection: Any, padding: str) -> None:
    detection.dataset_configs.batch_size_train = 2
    setattr(detection.dataset_configs, padding, True)
    batch = only(detection.train_fn("train", False))
    assert batch["xmin"].shape == batch["labels"].shape == batch["pose"].shape == (2, 3)
    shorter = int(tf.argmin(tf.reduce_sum(tf.cast(batch["labels"] > 0, tf.int64), axis=1)))
    assert batch["labels"][shorter].numpy().tolist() == [2, 0, 0]
    assert batch["pose"][shorter, 1:].numpy().tolist() == [b"", b""]


@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_callback_before_batching_resizes(detection: Any, batch_size: int) -> None:
    configs = detection.dataset_configs
    configs.pre_batching_callback_train = resize
    configs.use_datum_padding = True
    configs.batch_size_train = batch_size
    made = detection.train_fn("train", False)
    assert made.element_spec["image"].shape.as_list() == [batch_size, 22, 22, 3]
    assert [batch["image"].shape for batch in made] == [(batch_size, 22, 22, 3)] * (2 // batch_size)
    assert only(detection.val_fn("val"))["image"].shape == (1, *SIZE, 3)


def test_a_callback_after_batching_resizes(detection: Any) -> None:
    configs = detection.dataset_configs
    configs.post_batching_callback_train = resize
    configs.use_datum_padding = True
    configs.batch_size_train = 2
    assert only(detection.train_fn("train", False))["image"].shape == (2, 22, 22, 3)


def test_batches_are_echoed_through_callback_and_padding(detection: Any) -> None:
    configs = detection.dataset_configs
    configs.post_batching_callback_train = resize
    configs.use_datum_padding = True
    configs.batch_size_train = 2
    configs.echoing = 2
    made = iter(detection.train_fn("train", False))
    first, second = next(made), next(made)
    assert first["image"].shape == second["image"].shape == (2, 22, 22, 3)
    np.testing.assert_array_equal(first["image"], second["image"])
    with pytest.raises(StopIteration):
        next(made)


def test_a_full_dataset_holds_all_boxes(detection: Any) -> None:
    detection.dataset_configs.full_dataset = True
    made = detection.train_fn("train", False)
    assert made["image"].shape == (2, *SIZE, 3)
    assert sorted(made["labels"].row_lengths().numpy()) == [1, 3]


def test_images_are_bucketed_by_their_number_of_boxes(detection: Any) -> None:
    configs = detection.dataset_configs
    configs.bucket_fn = lambda record: tf.shape(record["xmin"])[0]
    configs.bucket_op = BucketConfigs(bucket_boundaries=[1, 2], bucket_batch_sizes=[4, 2, 1])
    configs.drop_remainder = False
    made = list(detection.train_fn("train+val", False))
    assert sorted(batch["xmin"].shape.as_list() for batch in made) == [[1, 0], [1, 1], [1, 3]]


@pytest.mark.parametrize("args", [("train", False), ("train", True), ("val", False)])
def test_classified_images_come_with_their_labels(
    bright_and_dark: Path, tmp_path: Path, args: tuple[str, bool]
) -> None:
    out = export(bright_and_dark, tmp_path / "out", datum.problem.IMAGE_CLF, train=64, val=16)
    ds = datum.load(out)
    ds.dataset_configs = DatasetConfigs(batch_size_train=1, use_datum_padding=True)
    batches = list(ds.train_fn(*args))
    assert len(batches) == {"train": 64, "val": 16}[args[0]]
    for batch in batches:
        assert (np.mean(batch["image"]) > 100) == batch["label"].numpy().item()
        assert batch["image"].shape[0] == 1
        assert batch["image"].shape[1] in (20, 21, 22)
        assert batch["image"].shape[2:] == (24, 3)


def test_images_of_differing_size_share_a_batch(bright_and_dark: Path, tmp_path: Path) -> None:
    out = export(bright_and_dark, tmp_path / "out", datum.problem.IMAGE_CLF, train=64, val=16)
    ds = datum.load(out)
    ragged = only(ds.val_fn("val"))["image"]
    assert isinstance(ragged, tf.RaggedTensor)
    assert sorted(set(ragged.row_lengths().numpy())) == [20, 21, 22]
    ds.dataset_configs.use_tf_padding = True
    assert only(ds.val_fn("val"))["image"].shape == (16, 22, 24, 3)


def test_masks_come_with_their_images(tmp_path: Path) -> None:
    root = tmp_path / "seg"
    ids = np.random.default_rng(1).integers(0, 3, SIZE).astype(np.uint8)
    mask = Image.fromarray(ids, "P")
    mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    save_image(root / "JPEGImages/a.jpg", np.full((*SIZE, 3), 9))
    (root / "SegmentationClass").mkdir()
    mask.save(root / "SegmentationClass/a.png")
    (root / "train.txt").write_text("a\n")
    ds = datum.load(export(root, tmp_path / "out", datum.problem.IMAGE_SEG, train=1))
    ds.dataset_configs.batch_size_train = 1
    batch = only(ds.train_fn("train", False))
    assert batch["image"].shape == (1, *SIZE, 3)
    assert batch["label"].shape == (1, *SIZE, 1)
    np.testing.assert_array_equal(batch["label"][0, ..., 0], ids)


@pytest.mark.parametrize("files", [1, 2])
def test_texts_come_with_their_labels(tmp_path: Path, files: int) -> None:
    root, rows = tmp_path / "text", {}
    root.mkdir()
    for file in range(files):
        some = {
            str(3 * file + i): {
                "text": f"text {i} of {file}",
                "label": {"polarity": 3 * file + i, "question": f"what of {i}?"},
            }
            for i in range(3)
        }
        (root / f"train_{file}.json").write_text(json.dumps(some))
        rows.update(some)
    ds = datum.load(export(root, tmp_path / "out", datum.problem.TEXT_CLF, train=3 * files))
    ds.dataset_configs.batch_size_train = 3 * files
    batch = only(ds.train_fn("train", False))
    assert batch["text"].shape == batch["polarity"].shape == (3 * files,)
    columns = [batch[name].numpy() for name in ("text", "polarity", "question")]
    found = [
        {"text": text.decode(), "label": {"polarity": polarity, "question": question.decode()}}
        for text, polarity, question in zip(*columns, strict=True)
    ]
    assert sorted(found, key=lambda row: row["label"]["polarity"]) == list(rows.values())


def test_real_blood_cells_are_exported_loaded_and_padded(shared_data: Path, tmp_path: Path) -> None:
    root, out = shared_data / "bccd_voc", tmp_path / "out"
    datum.export.export_to_tfrecord(root, out, datum.problem.IMAGE_DET, progress=False)
    ds = datum.load(out)

    def shrink(example: dict[str, Any]) -> dict[str, Any]:
        image = tf.image.resize(example["image"], [48, 64])
        return {"image": image, "xmin": example["xmin"], "labels": example["labels"]}

    configs = ds.dataset_configs
    configs.pre_batching_callback = shrink
    configs.use_tf_padding = True
    configs.batch_size_train = configs.batch_size_val = 16
    configs.echoing = 2
    split = max(ds.splits, key=lambda name: ds.splits[name].records)
    count, boxes = ds.splits[split].records, 0
    previous, number = None, 0
    for number, batch in enumerate(ds.train_fn(split, shuffle=True), start=1):
        assert batch["image"].shape == (16, 48, 64, 3)
        assert batch["xmin"].shape == batch["labels"].shape
        if number % 2 == 0:
            np.testing.assert_array_equal(batch["labels"], previous)
        previous = batch["labels"]
    assert number == 2 * (count // 16)
    for batch in ds.val_fn(split):
        boxes += int(tf.math.count_nonzero(batch["labels"]))
    assert boxes == sum(len(record["labels"]) for record in ds[split])


def test_real_blood_cells_are_bucketed(shared_data: Path, tmp_path: Path) -> None:
    root, out = shared_data / "bccd_voc", tmp_path / "out"
    datum.export.export_to_tfrecord(root, out, datum.problem.IMAGE_DET, progress=False)
    ds = datum.load(out)
    configs = ds.dataset_configs
    configs.pre_batching_callback = lambda record: {"labels": record["labels"]}
    configs.bucket_fn = lambda record: tf.size(record["labels"])
    configs.bucket_op = BucketConfigs(bucket_boundaries=[8, 16], bucket_batch_sizes=[32, 16, 8])
    configs.drop_remainder = False
    seen = 0
    for batch in ds.train_fn("all", shuffle=True):
        counts = tf.math.count_nonzero(batch["labels"], axis=1).numpy()
        assert len({int(np.searchsorted([8, 16], count, "right")) for count in counts}) == 1
        assert batch["labels"].shape[1] == max(counts)
        seen += len(counts)
    assert seen == sum(info.records for info in ds.splits.values())


# `input_fn`s: a function without arguments for each split.

WORDS = {
    "sky": "blue bright sky with a cloud",
    "sea": "deep blue sea and a ship",
    "sand": "hot sand",
}


@pytest.fixture
def postcards(tmp_path: Path) -> Any:
    """An image, a bag of words and a label in each record, as three encoders make them."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    rng = np.random.default_rng(2)

    def rows(count: int) -> list[dict[str, Any]]:
        names = [list(WORDS)[i % 3] for i in range(count)]
        return [
            {
                "image": rng.integers(0, 256, (8, 8, 3), np.uint8),
                "description": " ".join(rng.permutation(WORDS[name].split())),
                "label": name,
            }
            for name in names
        ]

    datum.write(
        {"train": rows(60), "val": rows(12), "test": rows(6)},
        tmp_path / "cards",
        schema={"image": datum.Feature("uint8", (8, 8, 3), encoding="raw")},
        encoders={
            "description": text.CountVectorizer(),
            "label": preprocessing.LabelBinarizer(),
        },
        progress=False,
    )
    return datum.load(tmp_path / "cards")


def test_input_fns_train_on_images_bags_of_words_and_labels(postcards: Any) -> None:
    words = postcards.metadata["description"]["size"]
    classes = postcards.metadata["label"]["size"]

    def to_caffe(record: dict[str, Any]) -> dict[str, Any]:
        image = tf.cast(record["image"], tf.float32)[..., ::-1] - [103.939, 116.779, 123.68]
        return {**record, "image": image}

    def to_pair(batch: dict[str, Any]) -> tuple[Any, Any]:
        description = tf.sparse.to_dense(batch["description"])
        inputs = {"image": batch["image"], "description": tf.cast(description, tf.float32)}
        return inputs, batch["label"]

    configs = postcards.dataset_configs
    configs.pre_batching_callback = to_caffe
    configs.post_batching_callback = to_pair
    configs.batch_size_train = 12

    train_input_fn = lambda: postcards.train_fn("train", repeat=None)  # noqa: E731
    eval_input_fn = functools.partial(postcards.val_fn, "val", repeat=None)
    test_input_fn = postcards.test_fn
    inputs, label = next(iter(train_input_fn()))
    assert inputs["image"].shape == (12, 8, 8, 3)
    assert inputs["description"].shape == (12, words)
    assert label.shape == (12, classes)

    image = tf.keras.Input((8, 8, 3), name="image")
    description = tf.keras.Input((words,), name="description")
    pooled = tf.keras.layers.GlobalAveragePooling2D()(image / 255.0)
    joined = tf.keras.layers.Concatenate()([pooled, description])
    output = tf.keras.layers.Dense(classes, activation="softmax")(joined)
    model = tf.keras.Model({"image": image, "description": description}, output)
    model.compile("adam", "categorical_crossentropy", metrics=["accuracy"])
    model.optimizer.learning_rate = 0.1
    model.fit(train_input_fn(), validation_data=eval_input_fn(), epochs=8, verbose=0)
    assert model.evaluate(test_input_fn(), verbose=0)[1] == 1.0


def test_an_input_fn_without_end_is_cut_by_steps(postcards: Any) -> None:
    postcards.dataset_configs.post_batching_callback = lambda batch: (
        tf.cast(batch["image"], tf.float32),
        batch["label"],
    )
    model = tf.keras.Sequential(
        [tf.keras.Input((8, 8, 3)), tf.keras.layers.Flatten(), tf.keras.layers.Dense(3)]
    )
    model.compile("sgd", "mse")
    history = model.fit(
        postcards.train_fn("train", repeat=-1), steps_per_epoch=7, epochs=3, verbose=0
    )
    assert len(history.history["loss"]) == 3


def test_every_call_of_an_input_fn_gives_a_dataset_of_its_own(postcards: Any) -> None:
    input_fn = functools.partial(postcards.val_fn, "val")
    first, second = input_fn(), input_fn()
    assert first is not second
    assert first.element_spec == second.element_spec
    np.testing.assert_array_equal(only(first)["label"], only(second)["label"])
