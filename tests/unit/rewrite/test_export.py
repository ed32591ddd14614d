"""Datasets exported to files of others."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datum
from datum import (
    BytesColumn,
    Feature,
    Masked,
    Ragged,
    Schema,
    SchemaError,
    Sparse,
    SplitError,
    WriteError,
)
from datum._rewrite import export
from datum._rewrite.export import (
    ExportedSplit,
    ExportReport,
    JsonSplit,
    Names,
    ParquetSplit,
    create,
    json_rows,
    open_target,
    safe_name,
)
from datum._rewrite.export_images import find_label
from tests.unit.images.samples import encoded, pixels, save


def write(source, out, **options):
    return datum.write(source, out, progress=False, **options)


def records(path, split="train"):
    """Records as values that compare, by what tells them apart."""
    found = [
        {name: np.asarray(value).tolist() for name, value in row.items()}
        for row in datum.load(path)[split]
    ]
    return sorted(found, key=lambda row: json.dumps(row, default=str))


@pytest.fixture
def photos(tmp_path):
    for name in ("train/cat/one.png", "train/dog/two.png", "val/cat/three.png"):
        save(tmp_path / "photos" / name, pixels(4, 6), "PNG")
    save(tmp_path / "photos/train/dog/four.jpg", pixels(8, 8), "JPEG")
    return tmp_path / "photos"


def test_class_folders_come_back_byte_for_byte_and_are_the_same_dataset_again(tmp_path, photos):
    write(photos, tmp_path / "a")
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    files = {str(path.relative_to(photos)): path.read_bytes() for path in photos.rglob("*.*")}
    again = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*.*")
    }
    assert files == again
    assert (report.records, report.files) == (4, 4)
    write(tmp_path / "out", tmp_path / "b")
    for split in ("train", "val"):
        assert records(tmp_path / "a", split) == records(tmp_path / "b", split)
    assert datum.load(tmp_path / "a").metadata == datum.load(tmp_path / "b").metadata


def test_a_table_comes_back_as_it_was(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "i": rng.integers(-5, 5, 50),
            "small": rng.integers(0, 200, 50).astype(np.uint8),
            "f": rng.random(50),
            "half": rng.random(50).astype(np.float32),
            "flag": rng.random(50) > 0.5,
            "name": [f"näme {i}" for i in range(50)],
            "when": pd.date_range("2020-01-01", periods=50, freq="h"),
        }
    )
    write(frame, tmp_path / "a", shuffle=False, floats="float64")
    datum.export_to(tmp_path / "a", tmp_path / "out")
    back = pq.read_table(tmp_path / "out" / "train.parquet").to_pandas()
    pd.testing.assert_frame_equal(frame, back, check_dtype=False)
    assert [str(kind) for kind in back.dtypes][:5] == [str(kind) for kind in frame.dtypes][:5]
    write(tmp_path / "out", tmp_path / "b", shuffle=False, floats="float64")
    assert datum.load(tmp_path / "a").schema == datum.load(tmp_path / "b").schema
    assert records(tmp_path / "a") == records(tmp_path / "b")


def test_all_kinds_of_features_come_back_from_parquet(tmp_path):
    rows = [
        {
            "vector": np.arange(3, dtype=np.float32) + i,
            "matrix": np.full((2, 3), i, np.int16),
            "large": np.arange(400, dtype=np.uint8),
            "ragged": list(range(i % 4)),
            "nested": [[1.5] * (i % 3), [2.5]],
            "words": ["a", "b"][: i % 3],
            "raw": bytes([i, 255]),
            "maybe": i if i % 2 else None,
            "maybe_text": str(i) if i % 3 else None,
        }
        for i in range(20)
    ]
    write(rows, tmp_path / "a", shuffle=False)
    datum.export_to(tmp_path / "a", tmp_path / "out")
    write(tmp_path / "out", tmp_path / "b", shuffle=False)
    a, b = datum.load(tmp_path / "a"), datum.load(tmp_path / "b")
    assert {name: one.dtype for name, one in a.schema.items()} == {
        name: one.dtype for name, one in b.schema.items()
    }
    for ours, theirs in zip(a["train"], b["train"], strict=True):
        for name in a.schema:
            if name == "nested":
                assert [list(x) for x in ours[name]] == [list(x) for x in theirs[name]]
            else:
                np.testing.assert_array_equal(ours[name], theirs[name])


def test_json_lines_come_back(tmp_path):
    rows = [{"x": i / 8, "tags": ["a"] * (i % 3), "n": None if i == 2 else i} for i in range(9)]
    write(rows, tmp_path / "a", shuffle=False)
    datum.export_to(tmp_path / "a", tmp_path / "out", format="jsonl")
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    write(tmp_path / "out", tmp_path / "b", shuffle=False)
    assert records(tmp_path / "a") == records(tmp_path / "b")


def test_masks_come_back_beside_their_images(tmp_path):
    for name in ("a", "b"):
        save(tmp_path / "in" / "JPEGImages" / f"{name}.jpg", pixels(8, 9), "JPEG")
        save(tmp_path / "in" / "SegmentationClass" / f"{name}.png", pixels(8, 9, 1, most=3), "PNG")
    write(tmp_path / "in", tmp_path / "a")
    datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "train",
        "train.txt",
        "train_label",
    ]
    write(tmp_path / "out", tmp_path / "b")
    ours, theirs = records(tmp_path / "a"), records(tmp_path / "b")
    assert [row["label"] for row in ours] == [row["label"] for row in theirs]
    assert [row["image"] for row in ours] == [row["image"] for row in theirs]


def test_boxes_come_back_by_way_of_a_table(tmp_path):
    save(tmp_path / "in" / "a.png", pixels(4, 4), "PNG")
    row = {"image": tmp_path / "in" / "a.png", "xmin": [0.25, 0.5], "labels": [1, 2]}
    write([row, {**row, "xmin": [], "labels": []}], tmp_path / "a", shuffle=False)
    datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    lines = [json.loads(line) for line in (tmp_path / "out/train.jsonl").read_text().splitlines()]
    assert lines[0] == {"file": "train/000000.png", "xmin": [0.25, 0.5], "labels": [1, 2]}
    assert lines[1]["xmin"] == []
    write({"train": tmp_path / "out" / "train.parquet"}, tmp_path / "b", shuffle=False)
    again = datum.load(tmp_path / "b")["train"]
    assert again[0]["xmin"].tolist() == [0.25, 0.5]
    assert again[0]["filename"] == "train/000000.png"
    np.testing.assert_array_equal(again[1]["image"], pixels(4, 4))


def test_a_part_of_a_split_and_some_columns(tmp_path):
    write({"x": np.arange(10), "y": np.arange(10)}, tmp_path / "a", shuffle=False)
    dataset = datum.load(tmp_path / "a")
    datum.export_to(dataset, tmp_path / "out", split="train[:30%]", columns=["y"])
    table = pq.read_table(tmp_path / "out" / "train_30.parquet")
    assert table.to_pydict() == {"y": [0, 1, 2]}
    with pytest.raises(SplitError, match="'val'"):
        datum.export_to(dataset, tmp_path / "no", split="val")
    with pytest.raises(SchemaError, match=r"got 'z'"):
        datum.export_to(dataset, tmp_path / "no", columns=["z"])
    assert not (tmp_path / "no").exists()


def test_one_split_may_become_one_file(tmp_path):
    write({"x": [1, 2]}, tmp_path / "a", shuffle=False)
    datum.export_to(tmp_path / "a", tmp_path / "x.jsonl", format="jsonl")
    assert (tmp_path / "x.jsonl").read_text() == '{"x": 1}\n{"x": 2}\n'


def test_records_are_written_a_part_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.tables.BATCH_RECORDS", 10)
    write({"x": np.arange(95)}, tmp_path / "a", shuffle=False)
    seen = []
    report = datum.export_to(
        tmp_path / "a", tmp_path / "out", progress=lambda done, total: seen.append((done, total))
    )
    assert seen[0] == (10, 95)
    assert seen[-1] == (95, 95)
    assert pq.ParquetFile(tmp_path / "out/train.parquet").num_row_groups == 10
    assert report.records == 95


def test_records_that_others_wrote(tmp_path):
    from datum.format import encode

    schema = datum.Schema({"image/encoded": datum.Feature("bytes"), "n": datum.Feature("int64")})
    data = encoded(pixels(4, 4), "PNG")
    framed = encode([{"image/encoded": data, "n": 5}], schema)
    (tmp_path / "logs.tfrecord").write_bytes(framed.to_bytes())
    datum.export_to(tmp_path / "logs.tfrecord", tmp_path / "out", format="images")
    assert [path.read_bytes() for path in (tmp_path / "out").rglob("*.png")] == [data]


def test_the_format_must_be_known_and_fit(tmp_path):
    write({"x": [1, 2]}, tmp_path / "a")
    with pytest.raises(ValueError, match=r"got 'parket'\nhint: did you mean 'parquet'"):
        datum.export_to(tmp_path / "a", tmp_path / "out", format="parket")
    with pytest.raises(SchemaError, match=r"holds images, got x\nhint: format='parquet'"):
        datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_a_misspelt_option_names_the_nearest(tmp_path):
    with pytest.raises(
        TypeError, match=r"export_to: got an unknown option `colums`\nhint: did you mean"
    ):
        datum.export_to(tmp_path, tmp_path / "out", colums=["x"])


def test_real_photos_and_a_real_table_come_back(tmp_path, shared_data):
    write(shared_data / "clothing", tmp_path / "a")
    datum.export_to(tmp_path / "a", tmp_path / "photos", format="images")
    write(tmp_path / "photos", tmp_path / "b")
    for shard in (tmp_path / "a").glob("*.tfrecord"):
        assert shard.read_bytes() == (tmp_path / "b" / shard.name).read_bytes()
    write(shared_data / "sms_spam", tmp_path / "c")
    datum.export_to(tmp_path / "c", tmp_path / "table")
    write(tmp_path / "table", tmp_path / "d", shuffle=False)
    ours, theirs = (list(datum.load(tmp_path / name)["train"]) for name in "cd")
    assert ours == theirs


def test_nothing_is_left_where_an_export_fails(tmp_path, monkeypatch):
    write({"x": [1, 2]}, tmp_path / "a")
    monkeypatch.setattr("datum._rewrite.export.to_arrow", _fail)
    with pytest.raises(WriteError, match="nothing was exported: disk full"):
        datum.export_to(tmp_path / "a", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def _fail(column, feature):
    raise OSError("disk full")


def test_an_empty_split_is_an_empty_file(tmp_path):
    write({"train": [{"x": 1}], "val": []}, tmp_path / "a")
    datum.export_to(tmp_path / "a", tmp_path / "out")
    table = pq.read_table(tmp_path / "out" / "val.parquet")
    assert (table.num_rows, table.schema.field("x").type) == (0, pa.int64())


def test_parts_of_one_split_get_names_of_their_own(tmp_path):
    datum.write({"x": range(10)}, tmp_path / "ten", shuffle=False, progress=False)
    halves = ["train[:50%]", "train[50%:]"]
    report = datum.export_to(tmp_path / "ten", tmp_path / "out", format="jsonl", split=halves)
    assert {name: one.records for name, one in report.splits.items()} == {
        "train_50": 5,
        "train_50_2": 5,
    }
    assert (tmp_path / "out/train_50_2.jsonl").read_text().startswith('{"x": 5}')
    with pytest.raises(ValueError, match=r"got 'train\[:50%\]' twice"):
        datum.export_to(tmp_path / "ten", tmp_path / "no", format="jsonl", split=halves[:1] * 2)


def test_a_time_that_is_none_comes_back(tmp_path):
    times = np.array(["2020-01-31T12:00", "NaT"], "datetime64[us]")
    spans = np.array([5, "NaT"], "timedelta64[s]")
    datum.write({"at": times, "for": spans}, tmp_path / "in", shuffle=False, progress=False)
    datum.export_to(tmp_path / "in", tmp_path / "out.parquet")
    datum.write(tmp_path / "out.parquet", tmp_path / "back", shuffle=False, progress=False)
    first, second = datum.load(tmp_path / "back")["train"]
    assert (first["at"], first["for"]) == (times[0], spans[0])
    assert (second["at"], second["for"]) == (None, None)


IMAGE = Feature("uint8", (None, None, 3), encoding="image")


def export_images(tmp_path, rows, metadata=None, schema=None):
    source = rows
    if metadata is not None:
        source = _Named(rows, metadata)
    fixed = {"image": IMAGE} if schema is None else schema
    datum.write(source, tmp_path / "a", shuffle=False, schema=fixed, progress=False)
    datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    return sorted(
        str(path.relative_to(tmp_path / "out"))
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    )


class _Named:
    """Rows with what is known of their features."""

    def __init__(self, rows, metadata):
        self._rows, self._metadata = rows, metadata

    def parts(self):
        part = datum.sources.as_source(self._rows).parts()["train"]
        part.metadata = self._metadata
        return {"train": part}


PNG = encoded(pixels(4, 4), "PNG")
JPEG = encoded(pixels(4, 4), "JPEG")


def test_images_without_names_or_classes_are_numbered(tmp_path):
    rows = [{"image": PNG}, {"image": JPEG}]
    assert export_images(tmp_path, rows) == ["train/000000.png", "train/000001.jpg"]


def test_classes_are_folders_by_their_names(tmp_path):
    rows = [{"image": PNG, "label": number} for number in (0, 1, 2, 3, 9)]
    names = {"label": {"class_names": ["cat", "a/b", "a\\b", ".hid"]}}
    assert export_images(tmp_path, rows, names) == [
        "train.classes.json",
        "train/9/000004.png",
        "train/_hid/000003.png",
        "train/a_b/000001.png",
        "train/a_b_2/000002.png",
        "train/cat/000000.png",
    ]


def test_texts_are_classes_and_absent_ones_are_unlabelled(tmp_path):
    rows = [{"image": PNG, "label": "red"}, {"image": PNG, "label": None}]
    assert export_images(tmp_path, rows) == ["train/red/000000.png", "train/unlabelled/000001.png"]


@pytest.mark.parametrize(
    "name", ["../../etc/x.png", "a b.png", ".hidden.png", "noextension", "a\0.png"]
)
def test_names_that_are_not_safe_are_replaced_or_cut(tmp_path, name):
    found = export_images(tmp_path, [{"image": PNG, "filename": name}])
    assert found == (["train/x.png"] if name.startswith("..") else ["train/000000.png"])


def test_a_name_that_is_taken_is_replaced(tmp_path):
    rows = [{"image": PNG, "filename": name} for name in ("a/x.png", "b/x.png", "b/X.jpg")]
    assert export_images(tmp_path, rows) == ["train/000001.png", "train/000002.png", "train/x.png"]


def test_an_image_that_is_absent_has_a_line_but_no_file(tmp_path):
    rows = [{"image": PNG, "n": 1}, {"image": None, "n": 2}]
    fixed = {"image": Feature("uint8", (None, None, 3), encoding="image", optional=True)}
    found = export_images(tmp_path, rows, schema=fixed)
    assert found == ["train.jsonl", "train.parquet", "train/000000.png"]
    lines = (tmp_path / "out" / "train.jsonl").read_text().splitlines()
    assert lines[1] == '{"file": null, "n": 2}'


def test_a_feature_that_is_called_file_stays(tmp_path):
    export_images(tmp_path, [{"image": PNG, "file": "mine"}])
    line = (tmp_path / "out" / "train.jsonl").read_text()
    assert line == '{"image_file": "train/000000.png", "file": "mine"}\n'


def test_bytes_are_those_of_all_files(tmp_path):
    datum.write([{"image": PNG, "n": 1}], tmp_path / "a", schema={"image": IMAGE}, progress=False)
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert report.bytes == sum(path.stat().st_size for path in files)
    assert report.files == len(files) == 3


def test_bytes_of_other_formats_keep_their_content(tmp_path):
    rows = [{"image": PNG, "thumb": b"???"}]
    found = export_images(tmp_path, rows)
    assert "train/000000.png" in found
    assert (tmp_path / "out" / "train" / "000000.png").read_bytes() == PNG


def test_the_label_is_found_by_its_name_or_its_classes():
    names = {"kind": {"class_names": ["a"]}, "other": {"class_names": ["a"]}}
    kinds = Schema({"kind": Feature("int64"), "x": Feature("int64")})
    assert find_label(kinds, names) == "kind"
    assert find_label(kinds, {}) is None
    assert find_label(Schema({**kinds, "other": Feature("int64")}), names) is None
    assert find_label(Schema({**kinds, "label": Feature("int64")}), names) == "label"
    assert find_label(Schema({"label": IMAGE}), {}) is None
    assert find_label(Schema({"label": Feature("int64", (None,))}), {}) is None


def test_pixels_are_as_they_were(tmp_path):
    export_images(tmp_path, [{"image": pixels(5, 6), "label": 1}])
    from PIL import Image

    with Image.open(tmp_path / "out/train/1/000000.png") as image:
        np.testing.assert_array_equal(np.asarray(image), pixels(5, 6))


def test_a_table_of_classes_does_not_outlive_its_folders(tmp_path):
    from PIL import Image

    for at, name in enumerate(["a/b", "plain"]):
        row = {"image": Image.new("RGB", (2, 2)), "label": name}
        datum.write([row], tmp_path / str(at), progress=False)
        datum.export_to(tmp_path / str(at), tmp_path / "out", format="images", overwrite=True)
        assert (tmp_path / "out/train.classes.json").exists() == (name == "a/b")


def test_classes_that_look_alike_keep_folders_of_their_own(tmp_path):
    shades = {
        name: encoded(np.full((2, 2, 3), shade, np.uint8), "PNG")
        for shade, name in enumerate(["A", "A_2", "a", "dog", "zebra", "a/b", "a_b", "a:b"])
    }
    names = list(shades)
    rows = [{"image": data, "label": names.index(name)} for name, data in shades.items()]
    export_images(tmp_path, rows, {"label": {"class_names": names}})
    table = json.loads((tmp_path / "out" / "train.classes.json").read_text())
    assert sorted(table.values()) == sorted(names)
    assert len({folder.casefold() for folder in table}) == len(names)
    assert table["dog"] == "dog"
    for folder, name in table.items():
        (file,) = (tmp_path / "out" / "train" / folder).iterdir()
        assert file.read_bytes() == shades[name]


def test_texts_that_look_alike_keep_folders_of_their_own_in_every_split(tmp_path):
    texts = ["a/b", "a_b", "a:b", "unlabelled", None, "x" * 300, "x" * 301]
    rows = [{"image": PNG, "label": text} for text in texts]
    datum.write(
        None,
        tmp_path / "a",
        splits={"train": rows, "val": rows[::-1]},
        schema={"image": IMAGE},
        progress=False,
    )
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    folders = {
        split: {path.name for path in (tmp_path / "out" / split).iterdir()}
        for split in ("train", "val")
    }
    assert len(folders["train"]) == len(texts)
    assert folders["train"] == folders["val"]
    tables = [
        json.loads((tmp_path / "out" / f"{split}.classes.json").read_text()) for split in folders
    ]
    assert tables[0] == tables[1]
    assert sorted(tables[0].values()) == sorted(filter(None, texts))
    assert report.files == 2 * len(texts) + 2


def test_a_number_gives_way_to_a_file_that_is_called_like_it(tmp_path):
    rows = [
        {"image": PNG, "filename": name}
        for name in ("000002.png", "x y.png", "b c.png", "000002_2.png")
    ]
    assert len(export_images(tmp_path, rows)) == len(rows)


def test_a_folder_of_masks_gives_way_to_a_split_of_its_name(tmp_path):
    rows = [{"image": PNG, "mask": PNG}] * 3
    datum.write(
        None,
        tmp_path / "a",
        splits={"train": rows, "train_mask": rows},
        schema={"image": IMAGE, "mask": IMAGE},
        progress=False,
    )
    report = datum.export_to(tmp_path / "a", tmp_path / "out", format="images")
    images = list((tmp_path / "out").rglob("*.png"))
    assert len(images) == 12
    assert report.files == 14
    pairs = (tmp_path / "out" / "train.txt").read_text().splitlines()
    assert pairs[0] == "train/000000.png train_mask_2/000000.png"


def only(column, records=2):
    return [row["x"] for row in json_rows({"x": column}, records)]


def test_numbers_and_arrays():
    assert only(np.array([1, 2], np.uint8)) == [1, 2]
    assert only(np.array([[1.5, np.nan], [np.inf, 2]])) == [[1.5, "NaN"], ["Infinity", 2.0]]
    assert only(np.array([-np.inf], np.float16), 1) == ["-Infinity"]
    assert only(np.array([1 + 2j, 3j])) == [[1.0, 2.0], [0.0, 3.0]]


def test_floats_are_told_exactly_so_that_they_come_back_as_they_were():
    (value,) = only(np.array([0.1], np.float32), 1)
    assert np.float32(value) == np.float32(0.1)
    assert value != 0.1


def test_texts_and_bytes():
    assert only(BytesColumn.from_values(["a", "ä"])) == ["a", "ä"]
    assert only(BytesColumn.from_values([b"\xff", b""])) == ["/w==", ""]
    two = BytesColumn(b"ab", np.array([[0, 1], [1, 1]]), shape=(1, 2))
    assert only(two, 1) == [["YQ==", "Yg=="]]


def test_times_are_iso_and_spans_are_counts():
    assert only(np.array(["2020-01-02T03:04:05", "NaT"], "M8[s]")) == ["2020-01-02T03:04:05", None]
    assert only(np.array([90, -1], "m8[s]")) == [90, -1]


def test_ragged_masked_sparse_and_odd_shapes():
    assert only(Ragged(np.array([1, 2, 3]), np.array([0, 2, 3]))) == [[1, 2], [3]]
    words = Ragged(BytesColumn.from_values([b"a"]), np.array([0, 0, 1]))
    assert only(words) == [[], ["YQ=="]]
    assert only(Masked(np.array([1, 0]), np.array([True, False]))) == [1, None]
    sparse = Sparse(np.array([[0, 3], [1, 1]]), np.array([2.0, 4.0]), (2, 5))
    assert only(sparse) == [
        {"indices": [3], "values": [2.0], "shape": [5]},
        {"indices": [1], "values": [4.0], "shape": [5]},
    ]
    tensors = np.empty(2, object)
    tensors[:] = [np.ones((1, 2)), None]
    assert only(tensors) == [[[1.0, 1.0]], None]


def test_lines_are_written_in_the_order_of_the_schema(tmp_path):
    schema = Schema({"b": Feature("str"), "a": Feature("int64")})
    split = JsonSplit(tmp_path / "x.jsonl", schema)
    split.write({"a": np.array([1]), "b": BytesColumn.from_values(["ü\n"])}, 1)
    split.close()
    text = (tmp_path / "x.jsonl").read_text(encoding="utf-8")
    assert text == '{"b": "ü\\n", "a": 1}\n'
    assert json.loads(text) == {"b": "ü\n", "a": 1}


def test_each_batch_is_a_row_group_and_what_was_known_is_kept(tmp_path):
    schema = Schema({"x": Feature("int64"), "y": Feature("float32", optional=True)})
    split = ParquetSplit(tmp_path / "a.parquet", schema, {"x": {"class_names": ["a"]}, "z": {}})
    for start in (0, 3):
        numbers = np.arange(start, start + 3)
        split.write({"x": numbers, "y": numbers.astype(np.float32), "other": numbers}, 3)
    split.close()
    file = pq.ParquetFile(tmp_path / "a.parquet")
    assert file.num_row_groups == 2
    assert file.read()["x"].to_pylist() == list(range(6))
    found = file.schema_arrow
    assert (found.field("x").nullable, found.field("y").nullable) == (False, True)
    told = json.loads(found.metadata[b"datum"])
    assert Schema.from_json(told["schema"]) == schema
    assert told["metadata"] == {"x": {"class_names": ["a"]}}
    assert split.files == 1


REPORT = ExportReport(
    Path("out"),
    "images",
    {"train": ExportedSplit(1200, 3_000_000, 1201), "val": ExportedSplit(1, 10, 1)},
    1.23456,
)


def test_a_report_sums_its_splits():
    assert (REPORT.records, REPORT.bytes, REPORT.files) == (1201, 3_000_010, 1202)


def test_a_report_is_a_summary():
    assert str(REPORT) == (
        "out: 1,201 records as images in 1.2 s\n"
        "  train  1,200 records, 1,201 files, 3.0 MB\n"
        "  val    1 record, 1 file, 10 B"
    )


def test_a_report_is_plain_values():
    assert REPORT.to_json() == {
        "path": "out",
        "format": "images",
        "records": 1201,
        "bytes": 3_000_010,
        "files": 1202,
        "seconds": 1.235,
        "splits": {
            "train": {"records": 1200, "bytes": 3_000_000, "files": 1201},
            "val": {"records": 1, "bytes": 10, "files": 1},
        },
    }


def make_files(out, *names, format="jsonl", overwrite=False, text="new"):
    with open_target(out, format, list(names), overwrite=overwrite) as folder:
        for name in names:
            if format == "images":
                (folder / name).mkdir()
                (folder / name / "a.png").write_text(text)
            else:
                (folder / f"{name}.{format}").write_text(text)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_files_appear_in_a_new_folder_and_nothing_else_does(tmp_path):
    make_files(tmp_path / "deep" / "out", "train", "val")
    assert names_in(tmp_path / "deep") == ["out"]
    assert names_in(tmp_path / "deep" / "out") == ["train.jsonl", "val.jsonl"]


def test_files_of_other_names_stay(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.md").write_text("mine")
    make_files(out, "train")
    make_files(out, "train", format="parquet")
    assert names_in(out) == ["notes.md", "train.jsonl", "train.parquet"]


def test_nothing_is_replaced_unasked(tmp_path):
    out = tmp_path / "out"
    make_files(out, "train")
    with pytest.raises(WriteError, match=r"train.jsonl: expected nothing.*\nhint: overwrite=True"):
        make_files(out, "train", text="newer")
    assert (out / "train.jsonl").read_text() == "new"
    make_files(out, "train", overwrite=True, text="newer")
    assert (out / "train.jsonl").read_text() == "newer"


def test_folders_are_replaced_as_a_whole(tmp_path):
    out = tmp_path / "out"
    make_files(out, "train", format="images")
    (out / "train" / "old.png").write_text("old")
    with pytest.raises(WriteError, match="expected nothing of that name"):
        make_files(out, "train", format="images")
    make_files(out, "train", format="images", overwrite=True)
    assert names_in(out / "train") == ["a.png"]


def test_a_dataset_is_never_written_into(tmp_path):
    (tmp_path / "datum.json").write_text("{}")
    with pytest.raises(WriteError, match="got a dataset of Datum"):
        make_files(tmp_path, "train", overwrite=True)


def test_a_file_is_one_split(tmp_path):
    make_files(tmp_path / "x.jsonl", "train")
    assert (tmp_path / "x.jsonl").read_text() == "new"
    with pytest.raises(WriteError, match="expected nothing of that name"):
        make_files(tmp_path / "x.jsonl", "train")
    with pytest.raises(WriteError, match=r"for 2 splits.*\nhint: give split='train'"):
        make_files(tmp_path / "y.jsonl", "train", "val")
    with pytest.raises(WriteError, match="expected a folder, got a file"):
        make_files(tmp_path / "x.jsonl", "train", format="parquet")
    (tmp_path / "z.jsonl").mkdir()
    with pytest.raises(WriteError, match="expected a file, got a folder"):
        make_files(tmp_path / "z.jsonl", "train", overwrite=True)


def test_an_error_leaves_nothing(tmp_path):
    with pytest.raises(WriteError, match="nothing was exported"):
        make_files(tmp_path / "out", "no/such/folder")
    assert names_in(tmp_path) == []


def test_what_was_made_meanwhile_stays(tmp_path):
    out = tmp_path / "out"
    with (
        pytest.raises(WriteError, match="train_label: expected nothing of that name"),
        open_target(out, "images", ["train"], overwrite=False) as folder,
    ):
        (folder / "train_label").mkdir(), (out / "train_label" / "mine").mkdir(parents=True)
    assert names_in(out / "train_label") == ["mine"]
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize("name", ["val.csv", "val.jsonl.gz", "val.jsonl"])
def test_a_folder_is_not_named_like_another_kind_of_file(tmp_path, name):
    wanted = "expected a folder for parquet, got the name of another kind of file"
    with (
        pytest.raises(WriteError, match=wanted),
        open_target(tmp_path / name, "parquet", ["val"], overwrite=False),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, pathlib, signal, sys
from datum._rewrite.export import open_target

with open_target(pathlib.Path(sys.argv[1]), "jsonl", ["train"], overwrite=False) as folder:
    (folder / "train.jsonl").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def kill_export(out):
    ran = subprocess.run([sys.executable, "-c", KILLED, out], check=False)
    assert ran.returncode < 0


@pytest.mark.parametrize("name", ["out", "out.jsonl"])
def test_what_a_killed_export_left_is_removed_by_the_next(tmp_path, name):
    kill_export(tmp_path / name)
    assert len(names_in(tmp_path)) == 1
    make_files(tmp_path / name, "train")
    assert names_in(tmp_path) == [name]


def test_what_is_left_of_other_targets_and_what_is_under_way_stays(tmp_path):
    for name in ("out.b", "other"):
        kill_export(tmp_path / name)
    (tmp_path / ".out.abcdefgh.datum-export").mkdir()
    (tmp_path / ".out.abcdefgh.datum-export" / "mine").touch()
    (tmp_path / ".out.partial").mkdir()
    before = names_in(tmp_path)
    with open_target(tmp_path / "out", "jsonl", ["train"], overwrite=False) as folder:
        (folder / "train.jsonl").write_text("first")
        make_files(tmp_path / "out", "val")
    assert names_in(tmp_path) == sorted([*before, "out"])
    assert names_in(tmp_path / "out") == ["train.jsonl", "val.jsonl"]


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    target = open_target(tmp_path / "out.jsonl", "jsonl", ["train"], overwrite=False)
    folder = target.__enter__()
    (folder / "train.jsonl").write_text("new")
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(WriteError, match=r"out.jsonl: expected nothing of that name"):
        target.__exit__(None, None, None)
    assert (tmp_path / "out.jsonl").read_text() == "mine"


@pytest.mark.parametrize("has_failed", [False, True])
def test_what_is_replaced_comes_back_if_nothing_was_put_in_its_place(
    tmp_path, monkeypatch, has_failed
):
    out = tmp_path / "out"
    make_files(out, "train", format="images", text="old")
    monkeypatch.setattr(export, "exchange", lambda *_: False)
    rename = Path.rename

    def fail_second(self, place):
        if has_failed and self.parent.name == "new":
            raise OSError("the disk went away")
        return rename(self, place)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", fail_second)
        if has_failed:
            with pytest.raises(WriteError, match="went away"):
                make_files(out, "train", format="images", overwrite=True)
        else:
            make_files(out, "train", format="images", overwrite=True)
    assert (out / "train" / "a.png").read_text() == ("old" if has_failed else "new")
    assert names_in(tmp_path) == ["out"]


def test_nothing_that_exists_is_opened_for_writing(tmp_path):
    with create(tmp_path / "a") as file:
        file.write(b"first")
    with pytest.raises(WriteError, match="a: expected nothing of that name"):
        create(tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"first"


def test_many_things_of_one_name_get_names_of_their_own():
    names = Names()
    found = [names.choose("?" * number) for number in range(1, 20_000)]
    assert len({name.lower() for name in found}) == len(found)


@pytest.mark.parametrize(
    ("first", "second"),
    [("a", "A"), ("a/b", "a:b"), ("a.", "a_"), ("e\u0301", "\u00e9"), ("a_2", "a_2"), ("ß", "SS")],
)
def test_names_that_some_file_system_takes_for_one_are_told_apart(first, second):
    names = Names()
    found = [names.choose(first, meaning=1), names.choose(second, meaning=2)]
    assert len({name.casefold() for name in found}) == 2
    assert all(name == safe_name(name) for name in found)
    assert found == [names.choose(first, meaning=1), names.choose(second, meaning=2)]
