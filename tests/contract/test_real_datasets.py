"""Real datasets: exported, read back by TensorFlow alone, compared with the files themselves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import datum
from datum.sources import SegmentationMasks, VocDetection
from tests.contract.source_files import (
    class_of_each,
    read_boxes,
    read_cells,
    read_libsvm,
    read_list,
    read_wave,
    type_of,
    value_of,
)
from tests.contract.tensorflow_alone import (
    CLASSIFICATION,
    DETECTION,
    INTEGER,
    SEGMENTATION,
    TEXT,
    decode_ids,
    decode_raw,
    read_split,
    table_spec,
    tf,
)

DECODED = 40  # images of a split that are also compared as pixels: decoding takes the time
FRACTIONS = {"train": 0.8, "val": 0.2}

Rows = list[dict[str, Any]]


def write(source: Any, out: Path, **options: Any) -> datum.Dataset:
    """The dataset that was written; sound, and as long as the report says."""
    report = datum.write(source, out, progress=False, **options)
    dataset = datum.load(out)
    counts = {name: split.records for name, split in report.splits.items()}
    assert {name: len(dataset[name]) for name in dataset} == counts
    assert dataset.verify().is_sound
    return dataset


def class_names(dataset: datum.Dataset, feature: str) -> list[str]:
    """As the manifest gives them, which is plain JSON."""
    manifest = json.loads((dataset.path / "datum.json").read_text())
    return manifest["metadata"][feature]["class_names"]


def by_name(rows: Rows) -> dict[str, dict[str, Any]]:
    found = {row["filename"].decode(): row for row in rows}
    assert len(found) == len(rows), "a file was written twice"
    return found


def open_rgb(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB"))


def assert_loads(dataset: datum.Dataset, split: str, rows: Rows, images: Path) -> None:
    """`datum.load` gives what TensorFlow gave, and the pixels that Pillow makes of the files."""
    features = dataset.schema.items()
    plain = [name for name, feature in features if feature.encoding != "image"]
    for ours, theirs in zip(dataset[split][:DECODED], rows, strict=False):
        np.testing.assert_array_equal(ours["image"], open_rgb(images / ours["filename"]))
        for name in plain:
            assert same_as_tensorflow(ours[name]) == theirs[name], name


def same_as_tensorflow(value: Any) -> Any:
    """A value of ours in the form in which `read_split` gives it."""
    if isinstance(value, list):
        return [text.encode() for text in value]
    return value.encode() if isinstance(value, str) else value.tolist()


# Class folders.


def assert_classes(dataset: datum.Dataset, root: Path, expected: dict[str, str]) -> None:
    """Every image once, as it is in its file, under the class of its folder."""
    rows: Rows = []
    for split in dataset:
        found = read_split(dataset.path, split, CLASSIFICATION)
        assert_loads(dataset, split, found, root)
        rows += found
    names = class_names(dataset, "label")
    assert names == sorted(set(expected.values()))
    assert {name: names[row["label"]] for name, row in by_name(rows).items()} == expected
    for row in rows:
        assert row["image"] == (root / row["filename"].decode()).read_bytes()


def test_folders_of_splits_and_classes(shared_data, tmp_path):
    root = shared_data / "clothing"
    dataset = write(root, tmp_path / "out")
    expected = {name: name.split("/")[1] for name in class_of_each(root)}
    assert_classes(dataset, root, expected)
    assert sorted(dataset) == ["train", "validation"]
    for split in dataset:
        rows = read_split(dataset.path, split, {"filename": TEXT})
        assert sorted(by_name(rows)) == sorted(name for name in expected if name.startswith(split))


def test_folders_of_classes_divided_by_fractions(shared_data, tmp_path):
    root = shared_data / "clothing" / "train"
    expected = class_of_each(root)
    dataset = write(root, tmp_path / "out", splits=FRACTIONS, stratify="label", shards=3)
    assert_classes(dataset, root, expected)
    rows = read_split(dataset.path, "val", {"filename": TEXT})
    taken = Counter(expected[name] for name in by_name(rows))
    assert taken == {name: round(0.2 * of) for name, of in Counter(expected.values()).items()}


def test_images_beside_the_folders_of_classes_are_told_of(shared_data, tmp_path):
    root = shared_data / "formats" / "imagenet_dataset"
    report = datum.write(root, tmp_path / "out", progress=False)
    (warning,) = report.warnings
    assert "label_0_2.jpg" in warning
    assert_classes(datum.load(tmp_path / "out"), root, class_of_each(root))


# Boxes.


def assert_boxes(dataset: datum.Dataset, split: str, images: Path, annotations: Path) -> list[str]:
    """Every image has the boxes of its XML file, in order; returns the names of the images."""
    rows = read_split(dataset.path, split, DETECTION)
    assert_loads(dataset, split, rows, images)
    classes = class_names(dataset, "labels")
    for name, row in by_name(rows).items():
        boxes = read_boxes((annotations / name).with_suffix(".xml"))
        assert row["image"] == (images / name).read_bytes()
        assert [classes[label] for label in row["labels"]] == boxes.names
        assert [pose.decode() for pose in row["pose"]] == boxes.poses
        assert row["is_truncated"] == boxes.truncated
        assert row["labels_difficult"] == boxes.difficult
        for side in ("xmin", "xmax", "ymin", "ymax"):
            assert row[side] == getattr(boxes, side), (name, side)
        area = np.subtract(row["xmax"], row["xmin"]) * np.subtract(row["ymax"], row["ymin"])
        np.testing.assert_allclose(row["area"], area, rtol=1e-4, atol=1e-7)
    return sorted(Path(name).stem for name in by_name(rows))


@pytest.mark.parametrize(
    "folder", ["bccd_voc", "formats/voc_dataset/voc_dataset1", "formats/voc_dataset/voc_dataset3"]
)
def test_boxes_of_listed_images(shared_data, tmp_path, folder):
    root = shared_data / folder
    dataset = write(root, tmp_path / "out", problem="image_det")
    lists = {path.stem: read_list(path) for path in (root / "ImageSets/Main").glob("*.txt")}
    assert set(dataset) == set(lists) & {"train", "val", "test"}
    for split in dataset:
        names = assert_boxes(dataset, split, root / "JPEGImages", root / "Annotations")
        assert names == sorted(lists[split])


def test_boxes_under_other_names_divided_by_fractions(shared_data, tmp_path):
    root = shared_data / "pets"
    options = {"image_dir": "images", "annotation_dir": "annotations/xmls", "set_path": "ids.txt"}
    source = VocDetection(root, splits={"train": options})
    dataset = write(source, tmp_path / "out", splits=FRACTIONS)
    found = [
        assert_boxes(dataset, split, root / "images", root / options["annotation_dir"])
        for split in ("train", "val")
    ]
    assert sorted(found[0] + found[1]) == sorted(read_list(root / "ids.txt"))
    assert len(found[1]) == pytest.approx(0.2 * len(found[0] + found[1]), rel=0.35)


# Masks.


def assert_masks(dataset: datum.Dataset, split: str, images: Path, find_ids: Any) -> list[str]:
    """Every pixel has the id that `find_ids` gives for the name of the image."""
    rows = read_split(dataset.path, split, SEGMENTATION)
    assert_loads(dataset, split, rows, images)
    for name, row in by_name(rows).items():
        assert row["image"] == (images / name).read_bytes()
        np.testing.assert_array_equal(decode_ids(row["label"]), find_ids(name))
    for ours, theirs in zip(dataset[split][:DECODED], rows, strict=False):
        np.testing.assert_array_equal(ours["label"][..., 0], decode_ids(theirs["label"]))
    return sorted(by_name(rows))


def test_grey_masks_are_kept_as_they_are(shared_data, tmp_path):
    root = shared_data / "pets"
    masks = root / "annotations" / "trimaps"
    options = {"image_dir": "images", "label_dir": "annotations/trimaps"}
    dataset = write(SegmentationMasks(root, splits={"train": options}), tmp_path / "out")

    def find_ids(name: str) -> np.ndarray:
        with Image.open((masks / name).with_suffix(".png")) as mask:
            return np.asarray(mask)

    names = assert_masks(dataset, "train", root / "images", find_ids)
    assert names == sorted(path.name for path in (root / "images").iterdir())
    for name, row in by_name(read_split(dataset.path, "train", SEGMENTATION)).items():
        assert row["label"] == (masks / name).with_suffix(".png").read_bytes()


def test_masks_in_colours_through_a_map(shared_data, tmp_path):
    root = shared_data / "formats" / "camvid_dataset"
    pairs = {
        split: dict(line.split() for line in (root / f"{split}.txt").read_text().splitlines())
        for split in ("train", "val", "test")
    }
    masks = {
        image[1:]: root / mask[1:] for split in pairs.values() for image, mask in split.items()
    }
    colours = sorted(
        {tuple(one) for mask in masks.values() for one in open_rgb(mask).reshape(-1, 3).tolist()}
    )
    colour_map = {colour: number for number, colour in enumerate(colours)}

    def find_ids(name: str) -> list[list[int]]:
        return [[colour_map[tuple(one)] for one in row] for row in open_rgb(masks[name]).tolist()]

    dataset = write(SegmentationMasks(root, colour_map=colour_map), tmp_path / "out")
    assert set(dataset) == set(pairs)
    for split in dataset:
        names = assert_masks(dataset, split, root, find_ids)
        assert names == sorted(name[1:] for name in pairs[split])


# Texts and tables.


@pytest.mark.parametrize("name", ["data_small.json", "data_full.json"])
def test_texts_in_json(shared_data, tmp_path, name):
    path = shared_data / "clinc_oos" / name
    expected = json.loads(path.read_text())
    dataset = write(path, tmp_path / "out", shards={"train": 4})
    assert sorted(dataset) == sorted(expected)
    for split, pairs in expected.items():
        rows = read_split(dataset.path, split, {"text": TEXT, "label": TEXT})
        found = [(row["text"].decode(), row["label"].decode()) for row in rows]
        assert Counter(found) == Counter(map(tuple, pairs))
        assert found != [tuple(pair) for pair in pairs], "they were to be shuffled"
        assert found == [(row["text"], row["label"]) for row in dataset[split]]


def table_values(rows: Rows, name: str, dtype: str) -> list[Any]:
    """A column of scalars as TensorFlow gave them; None for those that are absent."""
    values = [row[name].get(0) if isinstance(row[name], dict) else row[name] for row in rows]
    if dtype == "float64":
        there = decode_raw([value for value in values if value is not None], dtype)[:, 0].tolist()
        return [None if value is None else there.pop(0) for value in values]
    read = bytes.decode if dtype == "str" else np.generic.item
    return [None if value is None else read(value) for value in values]


def assert_table(path: Path, out: Path) -> None:
    """Every cell of a CSV file, in order, of the type that its column has."""
    names, cells = read_cells(path)
    dataset = write(path, out, shuffle=False, floats="float64")
    rows, loaded = read_split(out, "train", table_spec(out)), list(dataset["train"])
    assert len(rows) == len(loaded) == len(cells)
    for place, name in enumerate(names):
        column = [row[place] for row in cells]
        dtype = type_of(column)
        if dtype is None:
            assert name not in dataset.schema
            continue
        expected = [value_of(cell, dtype) for cell in column]
        assert dataset.schema[name].dtype == dtype, name
        assert dataset.schema[name].optional == (None in expected), name
        assert table_values(rows, name, dtype) == expected, name
        assert [row[name] for row in loaded] == expected, name


def test_a_table_that_is_not_in_utf8(shared_data, tmp_path):
    assert_table(shared_data / "sms_spam" / "spam.csv", tmp_path / "out")


@pytest.mark.parametrize("part", range(3))
def test_tables_in_csv(shared_data, tmp_path, part):
    files = sorted((shared_data / "csv").glob("*.csv"))
    odd = [path for path in files if not path.read_bytes().isascii()]
    plain = [path for path in files if path not in odd]
    for path in (odd + plain[::3])[part::3]:
        assert_table(path, tmp_path / path.stem)


# Sparse rows and sound.


@pytest.mark.parametrize("as_rows", [False, True], ids=["columns", "rows"])
@pytest.mark.parametrize("name", ["agaricus.txt.test", "heart_scale", "sample_libsvm_data.txt"])
def test_sparse_rows_of_scipy(shared_data, tmp_path, name, as_rows):
    datasets = pytest.importorskip("sklearn.datasets")
    path = shared_data / "sparse_libsvm" / name
    x, y = datasets.load_svmlight_file(str(path), dtype=np.float32)
    rows = ({"x": row, "y": int(label)} for row, label in zip(x, y, strict=True))
    source = rows if as_rows else {"x": x, "y": y.astype(np.int64)}
    dataset = write(source, tmp_path / "out", shuffle=False)
    size = x.shape[1]
    spec = {"x": tf.io.SparseFeature("x_index", "x_value", tf.float32, size), "y": INTEGER}
    expected = [
        (label, {place: np.float32(value) for place, value in values.items() if value})
        for label, values in read_libsvm(path)
    ]
    assert [(row["y"], row["x"]) for row in read_split(dataset.path, "train", spec)] == expected
    for row, (label, values) in zip(dataset["train"], expected, strict=True):
        places = row["x"].indices[:, 0].tolist()
        assert row["y"] == label
        assert row["x"].dense_shape == (size,)
        assert dict(zip(places, row["x"].values.tolist(), strict=True)) == values


def test_sound_in_arrays_of_any_length(shared_data, tmp_path):
    files = {path.stem: path for path in sorted((shared_data / "spoken_digits").glob("*.wav"))}
    rows = (
        (name, {"name": name, "sound": read_wave(path), "digit": int(name[0])})
        for name, path in files.items()
    )
    dataset = write(rows, tmp_path / "out", splits=FRACTIONS)
    assert dataset.schema["sound"].dtype == "int16"
    spec = {"name": TEXT, "sound": TEXT, "digit": INTEGER}
    found = [row for split in dataset for row in read_split(dataset.path, split, spec)]
    assert sorted(row["name"].decode() for row in found) == sorted(files)
    for row in found:
        name = row["name"].decode()
        np.testing.assert_array_equal(decode_raw(row["sound"], "int16"), read_wave(files[name]))
        assert row["digit"] == int(name[0])
    for row in dataset["all"]:
        assert row["sound"].dtype == np.int16
        np.testing.assert_array_equal(row["sound"], read_wave(files[row["name"]]))
