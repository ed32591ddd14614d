"""`datum.export_to`: datasets back as files, and from those the same datasets again."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import datum
from datum import SchemaError, SplitError, WriteError
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
        TypeError, match=r"export_to\(\) has no option 'colums'\nhint: did you mean"
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
