"""The paper's export: run as printed, read back by TensorFlow alone, right where it went wrong."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import datum
import datum.configs
import datum.export
import datum.problem
from datum.errors import SourceError, WriteError
from datum.format import Manifest
from tests.contract.oracle import tf

TEXT = tf.io.FixedLenFeature([], tf.string)
NUMBER = tf.io.FixedLenFeature([], tf.int64)
FLOATS = tf.io.RaggedFeature(tf.float32)
INTEGERS = tf.io.RaggedFeature(tf.int64)
TEXTS = tf.io.RaggedFeature(tf.string)


def read(out: Path, split: str, spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a split as TensorFlow reads them, without any help of ours."""
    files = sorted(map(str, out.glob(f"{split}-*-of-*.tfrecord")))
    parsed = (tf.io.parse_single_example(one, spec) for one in tf.data.TFRecordDataset(files))
    return [{name: _plain(value) for name, value in record.items()} for record in parsed]


def _plain(tensor: Any) -> Any:
    if isinstance(tensor, tf.SparseTensor):
        tensor = tf.sparse.to_dense(tensor)
    return tensor.numpy()


def by_name(records: list[dict[str, Any]], key: str = "filename") -> dict[str, dict[str, Any]]:
    return {record[key].decode(): record for record in records}


def save_image(path: Path, *, number: int = 0, mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(number).integers(0, 256, (6, 5, 3), np.uint8)
    Image.fromarray(pixels).convert(mode).save(path)
    return path


def export(root: Path, out: Path, kind: str, **settings: Any) -> Any:
    configs = datum.configs.TFRWriteConfigs(**settings)
    return datum.export.export_to_tfrecord(root, out, kind, configs, progress=False)


def export_rows(out: Path, rows: list[dict[str, Any]], **settings: Any) -> Any:
    """Export rows as a generator of the user's own gives them."""

    def generator(path: str) -> Callable[..., Iterator[Any]]:
        return lambda split, **options: iter(list(enumerate(rows)))

    settings = {"splits": {"train": {"num_examples": len(rows)}}, **settings}
    return export(out.parent, out, datum.problem.TEXT_CLF, generator=generator, **settings)


@pytest.fixture
def classified(tmp_path: Path) -> Path:
    """`<split>/` and `<split>.csv`, as the paper has them."""
    root = tmp_path / "clf"
    for split, count in (("train", 5), ("val", 2)):
        lines = [["filename", "label", "score"]]
        for number in range(count):
            save_image(root / split / f"{split}_{number}.jpg", number=number)
            lines.append([f"{split}_{number}", str(number % 3), str(number / 2)])
        with open(root / f"{split}.csv", "w", newline="") as file:
            csv.writer(file).writerows(lines)
    return root


def test_the_example_of_the_paper_runs_as_printed(classified: Path, tmp_path: Path) -> None:
    input_path, output_path, N, M = str(classified), str(tmp_path / "out"), 5, 2  # noqa: N806
    write_configs = datum.configs.TFRWriteConfigs()
    write_configs.splits = {"train": {"num_examples": N}, "val": {"num_examples": M}}
    datum.export.export_to_tfrecord(input_path, output_path, datum.problem.IMAGE_CLF, write_configs)
    score = tf.io.FixedLenFeature([], tf.float32)
    spec = {"image": TEXT, "filename": TEXT, "label": NUMBER, "score": score}
    for split, count in (("train", N), ("val", M)):
        records = by_name(read(Path(output_path), split, spec))
        assert len(records) == count
        for number in range(count):
            record = records[f"{split}_{number}"]
            assert record["label"] == number % 3
            assert record["score"] == number / 2
            file = classified / split / f"{split}_{number}.jpg"
            assert record["image"] == file.read_bytes()
            assert tf.io.decode_jpeg(record["image"]).shape == (6, 5, 3)


def test_floats_may_be_stored_to_the_last_bit(classified: Path, tmp_path: Path) -> None:
    datum.export.export_to_tfrecord(
        classified,
        tmp_path / "out",
        datum.problem.IMAGE_CLF,
        floats="float64",
        progress=False,
    )
    found = read(tmp_path / "out", "train", {"score": TEXT})
    scores = [float(tf.io.decode_raw(record["score"], tf.float64)[0]) for record in found]
    assert sorted(scores) == [0.0, 0.5, 1.0, 1.5, 2.0]


def test_the_problems_are_also_reached_as_the_older_library_has_them(
    classified: Path, tmp_path: Path
) -> None:
    report = export(classified, tmp_path / "out", datum.problem.types.IMAGE_CLF)
    assert report.records == 7


BOXES = {
    "one": [("cat", 0, 0, 5, 3), ("dog", 1, 2, 3, 6)],
    "two": [("dog", 0, 3, 5, 6)],
    "none": [],
}


@pytest.fixture
def detection(tmp_path: Path) -> Path:
    root = tmp_path / "voc"
    for folder in ("Annotations", "ImageSets"):
        (root / folder).mkdir(parents=True)
    for number, (name, boxes) in enumerate(BOXES.items()):
        save_image(root / "JPEGImages" / f"{name}.jpg", number=number)
        objects = "".join(
            f"<object><name>{label}</name><pose>Left</pose><truncated>1</truncated>"
            f"<difficult>0</difficult><bndbox><xmin>{xmin}</xmin><ymin>{ymin}</ymin>"
            f"<xmax>{xmax}</xmax><ymax>{ymax}</ymax></bndbox></object>"
            for label, xmin, ymin, xmax, ymax in boxes
        )
        size = "<size><width>5</width><height>6</height><depth>3</depth></size>"
        text = f"<annotation>{size}{objects}</annotation>"
        (root / "Annotations" / f"{name}.xml").write_text(text)
    (root / "ImageSets" / "train.txt").write_text("one\ntwo\nnone\n")
    (root / "classes.names").write_text("cat\ndog\n")
    return root


DETECTION = {
    "image": TEXT,
    "filename": TEXT,
    **dict.fromkeys(("xmin", "xmax", "ymin", "ymax", "area"), FLOATS),
    **dict.fromkeys(("labels", "is_truncated", "labels_difficult"), INTEGERS),
    "pose": TEXTS,
}


def test_images_with_differing_numbers_of_boxes_are_read(detection: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(detection, out, datum.problem.IMAGE_DET, splits={"train": {"num_examples": 3}})
    records = by_name(read(out, "train", DETECTION))
    for name, boxes in BOXES.items():
        record = records[f"{name}.jpg"]
        assert record["image"] == (detection / "JPEGImages" / f"{name}.jpg").read_bytes()
        expected = np.array([box[1:] for box in boxes], np.float64).reshape(-1, 4) / (5, 6, 5, 6)
        for column, side in enumerate(("xmin", "ymin", "xmax", "ymax")):
            assert record[side].tolist() == expected[:, column].astype(np.float32).tolist()
        areas = (expected[:, 2] - expected[:, 0]) * (expected[:, 3] - expected[:, 1])
        np.testing.assert_allclose(record["area"], areas, rtol=1e-6)
        assert record["labels"].tolist() == [{"cat": 1, "dog": 2}[box[0]] for box in boxes]
        assert [pose.lower() for pose in record["pose"].tolist()] == [b"left"] * len(boxes)
        assert record["is_truncated"].tolist() == [1] * len(boxes)
        assert record["labels_difficult"].tolist() == [0] * len(boxes)


def test_class_names_are_kept(detection: Path, tmp_path: Path) -> None:
    export(detection, tmp_path / "out", datum.problem.IMAGE_DET)
    metadata = Manifest.load(tmp_path / "out").metadata
    assert list(metadata["labels"]["class_names"]) == ["background", "cat", "dog"]


@pytest.mark.parametrize("mode", ["L", "P"])
def test_masks_hold_class_ids_whatever_their_colours(tmp_path: Path, mode: str) -> None:
    root, out = tmp_path / "seg", tmp_path / "out"
    save_image(root / "JPEGImages" / "a.jpg")
    ids = np.random.default_rng(1).integers(0, 3, (6, 5), np.uint8)
    mask = Image.fromarray(ids)
    if mode == "P":
        mask = Image.new("P", (5, 6))
        mask.putdata(ids.reshape(-1).tolist())
        mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    (root / "SegmentationClass").mkdir()
    mask.save(root / "SegmentationClass" / "a.png")
    (root / "train.txt").write_text("a\n")
    export(root, out, datum.problem.IMAGE_SEG, splits={"train": {"num_examples": 1}})
    (record,) = read(out, "train", {"image": TEXT, "label": TEXT, "filename": TEXT})
    assert record["image"] == (root / "JPEGImages" / "a.jpg").read_bytes()
    assert (tf.io.decode_png(record["label"], channels=1)[..., 0].numpy() == ids).all()


def test_texts_with_their_labels_are_read(tmp_path: Path) -> None:
    root, out = tmp_path / "text", tmp_path / "out"
    root.mkdir()
    rows = {
        str(number): {"text": f"text {number} é", "label": {"polarity": number, "topic": "x"}}
        for number in range(4)
    }
    (root / "train.json").write_text(json.dumps(dict(list(rows.items())[:2])))
    (root / "train_more.json").write_text(json.dumps(dict(list(rows.items())[2:])))
    export(root, out, datum.problem.TEXT_CLF, splits={"train": {"num_examples": 4}})
    records = by_name(read(out, "train", {"text": TEXT, "polarity": NUMBER, "topic": TEXT}), "text")
    assert {text: record["polarity"] for text, record in records.items()} == {
        row["text"]: row["label"]["polarity"] for row in rows.values()
    }
    assert {record["topic"] for record in records.values()} == {b"x"}


def test_types_and_shapes_are_those_of_all_records(tmp_path: Path) -> None:
    rows = [{"x": 0.5, "y": [1, 2, 3]}, {"x": 2, "y": [4]}, {"x": 3, "y": []}]
    export_rows(tmp_path / "out", rows)
    schema = Manifest.load(tmp_path / "out").schema
    assert schema["y"] == datum.Feature("int64", (None,))
    is_raw = schema["x"].dtype == "float64"
    spec = {"x": TEXT if is_raw else tf.io.FixedLenFeature([], tf.float32), "y": INTEGERS}
    records = read(tmp_path / "out", "train", spec)
    found = {
        float(tf.io.decode_raw(record["x"], tf.float64)[0]) if is_raw else float(record["x"]): (
            record["y"].tolist()
        )
        for record in records
    }
    assert found == {0.5: [1, 2, 3], 2.0: [4], 3.0: []}


def test_a_second_export_keeps_nothing_of_the_first(classified: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    configs = datum.configs.TFRWriteConfigs(splits={"train": {"num_examples": 5}, "val": {}})
    datum.export.export_to_tfrecord(
        classified, out, datum.problem.IMAGE_CLF, configs, sidecars=["older"], shards=2
    )
    configs.splits = {"train": {"num_examples": 2}}
    with pytest.raises(WriteError, match="overwrite"):
        datum.export.export_to_tfrecord(classified, out, datum.problem.IMAGE_CLF, configs)
    assert Manifest.load(out).splits["train"].records == 5
    datum.export.export_to_tfrecord(
        classified,
        out,
        datum.problem.IMAGE_CLF,
        configs,
        sidecars=["older"],
        overwrite=True,
        progress=False,
    )
    assert json.loads((out / "shard_info.json").read_text()) == {
        "train": {"train-00000-of-00001.tfrecord": 2}
    }
    assert list(Manifest.load(out).splits) == ["train"]
    assert sorted(path.name for path in out.glob("*.tfrecord")) == ["train-00000-of-00001.tfrecord"]
    assert len(read(out, "train", {"filename": TEXT})) == 2


def test_nothing_is_left_beside_the_output(classified: Path, tmp_path: Path) -> None:
    export(classified, tmp_path / "here" / "out", datum.problem.IMAGE_CLF)
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["out"]


def test_values_of_every_kind_are_taken(tmp_path: Path) -> None:
    rows = [
        {
            "array": np.arange(3, dtype=np.int16),
            "number": np.int64(7),
            "data": b"\xff\0",
            "maybe": None,
            "empty": [],
            "words": ["ab", "c"],
            "flag": True,
        },
        {
            "array": np.arange(3, 6, dtype=np.int16),
            "number": np.int64(-8),
            "data": b"",
            "maybe": 1,
            "empty": [2],
            "words": [],
            "flag": False,
        },
    ]
    export_rows(tmp_path / "out", rows)
    spec = {
        "array": tf.io.FixedLenFeature([3], tf.int64),
        "number": NUMBER,
        "data": TEXT,
        "maybe": INTEGERS,
        "empty": INTEGERS,
        "words": TEXTS,
        "flag": NUMBER,
    }
    first, second = sorted(read(tmp_path / "out", "train", spec), key=lambda r: -r["number"])
    assert first["array"].tolist() == [0, 1, 2]
    assert (first["number"], second["number"]) == (7, -8)
    assert (first["data"], second["data"]) == (b"\xff\0", b"")
    assert (first["maybe"].tolist(), second["maybe"].tolist()) == ([], [1])
    assert (first["empty"].tolist(), second["empty"].tolist()) == ([], [2])
    assert (first["words"].tolist(), second["words"].tolist()) == ([b"ab", b"c"], [])
    assert (first["flag"], second["flag"]) == (1, 0)
    schema = Manifest.load(tmp_path / "out").schema
    assert schema["flag"].dtype == "bool"
    assert schema["array"].dtype == "int16"
    assert schema["maybe"].optional


def test_a_float64_is_not_narrowed(tmp_path: Path) -> None:
    export_rows(tmp_path / "out", [{"x": 1e300}, {"x": 0.1}])
    assert Manifest.load(tmp_path / "out").schema["x"].dtype == "float64"
    records = read(tmp_path / "out", "train", {"x": TEXT})
    found = sorted(float(tf.io.decode_raw(record["x"], tf.float64)[0]) for record in records)
    assert found == [0.1, 1e300]


def test_labels_in_a_table_may_be_text_or_missing(tmp_path: Path) -> None:
    root, out = tmp_path / "clf", tmp_path / "out"
    for name in "abc":
        save_image(root / "train" / f"{name}.jpg")
    table = "filename,name,code,note\na,cat,01,x\nb,dog,02,\nc,cat,10,\n"
    (root / "train.csv").write_text(table)
    export(root, out, datum.problem.IMAGE_CLF, splits={"train": {"num_examples": 3}})
    spec = {"filename": TEXT, "name": TEXT, "code": TEXT, "note": TEXTS}
    records = by_name(read(out, "train", spec))
    assert [records[name]["name"] for name in "abc"] == [b"cat", b"dog", b"cat"]
    assert [records[name]["code"] for name in "abc"] == [b"01", b"02", b"10"]
    assert [records[name]["note"].tolist() for name in "abc"] == [[b"x"], [], []]


@pytest.mark.parametrize("ending", [".jpeg", ".JPG", ".bmp", ".webp", ".png", ".gif"])
def test_images_may_end_in_anything_that_images_end_in(tmp_path: Path, ending: str) -> None:
    root, out = tmp_path / "clf", tmp_path / "out"
    file = save_image(root / "train" / f"a{ending}")
    (root / "train.csv").write_text("filename,label\na,1\n")
    export(root, out, datum.problem.IMAGE_CLF, splits={"train": {"extension": ending}})
    (record,) = read(out, "train", {"image": TEXT})
    assert record["image"] == file.read_bytes()


def test_a_misspelt_option_is_an_error_that_names_the_right_one(
    classified: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="did you mean 'extension'"):
        export(
            classified,
            tmp_path / "out",
            datum.problem.IMAGE_CLF,
            splits={"train": {"extention": ".png"}},
        )
    with pytest.raises(AttributeError, match="did you mean 'splits'"):
        datum.configs.TFRWriteConfigs().split = {}
    assert not (tmp_path / "out").exists()


def test_too_few_records_are_an_error_that_names_both_numbers(
    classified: Path, tmp_path: Path
) -> None:
    with pytest.raises(SourceError, match="split 'train': expected 9 records, got 5"):
        export(
            classified,
            tmp_path / "out",
            datum.problem.IMAGE_CLF,
            splits={"train": {"num_examples": 9}},
        )
    assert not (tmp_path / "out").exists()


def test_sparse_features_are_read_by_tensorflow_as_such(tmp_path: Path) -> None:
    rows = [{"n": i, "words": [0, i, 0, 2 * i]} for i in range(3)]
    export_rows(tmp_path / "out", rows, sparse_features=["words"])
    spec = {
        "n": NUMBER,
        "words": tf.io.SparseFeature("words_index", "words_value", tf.int64, size=4),
    }
    for record in read(tmp_path / "out", "train", spec):
        assert record["words"].tolist() == rows[record["n"]]["words"]


def test_a_serializer_of_the_users_own_decides_what_is_in_a_record(tmp_path: Path) -> None:
    def serialize(row: dict[str, Any]) -> bytes:
        feature = {
            "twice": tf.train.Feature(int64_list=tf.train.Int64List(value=[2 * row["n"]])),
            "name": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a", b"b"])),
        }
        features = tf.train.Features(feature=feature)
        made: bytes = tf.train.Example(features=features).SerializeToString()
        return made

    export_rows(tmp_path / "out", [{"n": i} for i in range(3)], serializer=serialize)
    spec = {"twice": NUMBER, "name": tf.io.FixedLenFeature([2], tf.string)}
    records = read(tmp_path / "out", "train", spec)
    assert sorted(record["twice"] for record in records) == [0, 2, 4]
    assert records[0]["name"].tolist() == [b"a", b"b"]


def test_the_files_of_the_older_library_describe_the_records(
    detection: Path, tmp_path: Path
) -> None:
    """Read as that library does: a spec made of its mapping."""
    out = tmp_path / "out"
    datum.export.export_to_tfrecord(
        detection, out, datum.problem.IMAGE_DET, sidecars=["older"], progress=False
    )
    assert json.loads((out / "shard_info.json").read_text()) == {
        "train": {"train-00000-of-00001.tfrecord": 3}
    }
    mapping = json.loads((out / "datum_to_type_and_shape_mapping.json").read_text())
    types = {"int": tf.int64, "float": tf.float32, "string": tf.string}
    spec: dict[str, Any] = {}
    for key, found in mapping.items():
        kind = types[found["type"]]
        if not found["dense"]:
            spec[key] = tf.io.VarLenFeature(kind)
        else:
            shape = [] if found["type"] == "string" else found["shape"]
            spec[key] = tf.io.FixedLenFeature(shape, kind)
    counts = [len(record["labels"]) for record in read(out, "train", spec)]
    assert sorted(counts) == [0, 1, 2]
    assert len(mapping["image"]["shape"]) == 3
