"""Blocks of records on their way into shards."""

import io
import json

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import datum
from datum import Feature, Schema, SchemaError, SourceError, _core
from datum._write.shards import ShardWriter
from datum.format import Index, RecordFile, frame
from tests.unit.write.datasets import picture, read, values, write


def bad_rows():
    return [{"x": "bad" if i % 100 == 7 else i} for i in range(10_000)]


def test_a_bad_record_stops_the_write(tmp_path):
    with pytest.raises(SchemaError, match=r"record 7.*'x'.*\n.*hint: on_error='quarantine'"):
        write(bad_rows(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("schema", [None, Schema({"x": Feature("int64")})])
@pytest.mark.parametrize("on_error", ["skip", "quarantine"])
def test_bad_records_are_left_out_and_counted(tmp_path, on_error, schema):
    report = write(bad_rows(), tmp_path / "out", on_error=on_error, schema=schema)
    assert report.records == 9900
    assert report.quarantined == {"train": 100}
    path = tmp_path / "out/quarantine.jsonl"
    assert path.exists() == (on_error == "quarantine")
    if on_error == "quarantine":
        listed = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["record"] for line in listed] == list(range(7, 10_000, 100))
        assert all("expected" in line["reason"] for line in listed)
        assert report.quarantine == path


def test_bad_records_of_columns_are_left_out_too(tmp_path):
    source = {"x": np.array([1, 300, 2])}
    options = {"schema": Schema({"x": Feature("uint8")}), "shuffle": False}
    report = write(source, tmp_path / "out", on_error="quarantine", **options)
    assert report.quarantined == {"train": 1}
    assert values(tmp_path / "out") == [1, 2]


@pytest.mark.parametrize("shuffle", [True, False])
def test_two_records_of_one_key(tmp_path, shuffle):
    source = [("a", {"x": 1}), ("b", {"x": 2}), ("a", {"x": 3})]
    with pytest.raises(SourceError, match=r"record 2 \(a\).*key of record 0 again"):
        write(source, tmp_path / "out", shuffle=shuffle)
    report = write(source, tmp_path / "out", shuffle=shuffle, on_error="quarantine")
    assert report.quarantined == {"train": 1}
    assert sorted(values(tmp_path / "out")) == [1, 2]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_a_shard_knows_its_records_size_and_checksum(tmp_path, compression):
    path = tmp_path / "train-00000-of-00001.tfrecord"
    writer = ShardWriter(path, compression=compression)
    writer.write(frame([b"one", b"two"]))
    writer.write(frame([b"three"]))
    shard = writer.finish()
    content = path.read_bytes()
    assert (shard.name, shard.records, shard.bytes) == (path.name, 3, len(content))
    assert shard.crc32c == _core.crc32c(content)
    assert list(RecordFile(path)) == [b"one", b"two", b"three"]
    assert len(Index.load(tmp_path / "index/of-train-00000-of-00001.index")) == 3


def test_a_shard_without_records_is_a_file_all_the_same(tmp_path):
    shard = ShardWriter(tmp_path / "a.tfrecord", compression=None).finish()
    assert (shard.records, shard.bytes, shard.crc32c) == (0, 0, 0)
    assert (tmp_path / "a.tfrecord").exists()


def test_images_of_rows_are_stored_as_their_files_are(tmp_path):
    path = picture(tmp_path / "a.png", 100)
    array = np.arange(48, dtype=np.uint8).reshape(6, 8)
    source = [
        {"image": path, "x": 0},
        {"image": Image.fromarray(np.full((6, 8, 3), 7, np.uint8)), "x": 1},
    ]
    write(source, tmp_path / "out", shuffle=False)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["image"] == Feature("uint8", (6, 8, 3), encoding="image")
    assert ds.metadata["image"]["formats"] == {"png": 2} or ds.metadata["image"]["formats"] == {
        "PNG": 2
    }
    assert read(tmp_path / "out")[0]["image"].tolist() == np.full((6, 8, 3), 100).tolist()
    schema = {"image": Feature("uint8", (None, None, 1), encoding="image")}
    write([{"image": array}], tmp_path / "b", schema=schema)
    assert read(tmp_path / "b")[0]["image"][:, :, 0].tolist() == array.tolist()


def test_an_image_that_comes_late_is_seen(tmp_path):
    path = picture(tmp_path / "a.png", 100)
    source = [{"x": 0}, {"x": 1, "image": path}]
    write(source, tmp_path / "out", shuffle=False)
    found = read(tmp_path / "out")
    assert found[0]["image"] is None
    assert found[1]["image"].shape == (6, 8, 3)


def test_class_folders_are_written_with_their_names(tmp_path):
    for label, shade in [("cat", 1), ("dog", 2)]:
        for i in range(3):
            picture(tmp_path / "photos" / label / f"{i}.png", 10 * shade + i)
    write(tmp_path / "photos", tmp_path / "out")
    ds = datum.load(tmp_path / "out")
    assert ds.metadata["label"]["class_names"] == ["cat", "dog"]
    assert sorted((row["label"], row["image"][0, 0, 0]) for row in read(tmp_path / "out")) == [
        (0, 10),
        (0, 11),
        (0, 12),
        (1, 20),
        (1, 21),
        (1, 22),
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_broken_image_is_put_aside(tmp_path, workers):
    for i in range(5):
        picture(tmp_path / "photos" / ("cat" if i else "dog") / f"{i}.png", i)
    (tmp_path / "photos/cat/5.png").write_bytes(b"no image")
    with pytest.raises(SourceError, match=r"5\.png"):
        write(tmp_path / "photos", tmp_path / "out", workers=workers)
    report = write(tmp_path / "photos", tmp_path / "out", on_error="quarantine", workers=workers)
    assert (report.records, report.quarantined) == (5, {"train": 1})
    assert "5.png" in (tmp_path / "out/quarantine.jsonl").read_text()


def test_images_can_be_shrunk(tmp_path):
    for label in ("cat", "dog"):
        picture(tmp_path / "photos" / label / "1.png", 1, size=(64, 32))
    write(tmp_path / "photos", tmp_path / "out", max_side=16)
    assert read(tmp_path / "out")[0]["image"].shape == (8, 16, 3)


def test_images_that_are_appended_widen_the_shape_of_all(tmp_path):
    write([{"image": Image.new("RGB", (4, 3))}], tmp_path / "out")
    write([{"image": Image.new("L", (5, 3))}], tmp_path / "out", append=True)
    ds = datum.load(tmp_path / "out")
    assert ds.schema["image"].shape == (3, None, 3)
    assert [row["image"].shape for row in ds["train"]] == [(3, 4, 3), (3, 5, 3)]


def test_a_column_of_images_may_lack_some(tmp_path):
    file = io.BytesIO()
    Image.new("RGB", (3, 3), (1, 2, 3)).save(file, "png")
    images = [file.getvalue(), None, file.getvalue(), None]
    feature = Feature("uint8", (3, 3, 3), encoding="image", optional=True)
    table = pa.table({"image": pa.array(images, pa.binary()), "n": [0, 1, 2, 3]})
    datum.write(table, tmp_path / "d", schema={"image": feature}, shuffle=False, progress=False)
    found = [record["image"] for record in datum.load(tmp_path / "d")["train"]]
    assert [image is None for image in found] == [False, True, False, True]
    assert found[0].tolist() == [[[1, 2, 3]] * 3] * 3


def test_what_became_of_images_is_told(tmp_path):
    photos = tmp_path / "photos" / "cat"
    photos.mkdir(parents=True)
    deep = np.full((6, 8), 40000, np.uint16)
    Image.fromarray(deep).save(photos / "0.tif")
    Image.fromarray(deep).save(photos / "1.png")
    Image.fromarray(np.full((6, 8, 3), 7, np.uint8)).save(photos / "2.tiff")
    Image.fromarray(np.full((6, 8, 3), 255, np.uint8)).save(photos / "3.jpg")
    source = datum.sources.ClassFolders(tmp_path / "photos")
    report = write(source, tmp_path / "out", shuffle=False)
    assert report.notes == (
        "'image': 2 TIFF images are stored as PNG, with the same pixels",
        "'image': 8-bit and 16-bit images are decoded to uint16, 8-bit values times 257",
    )
    assert report.notes[0] in str(report)
    found = datum.load(tmp_path / "out")
    assert found.metadata["image"]["formats"] == {"jpeg": 1, "png": 3}
    assert found.metadata["image"]["converted"] == {"tiff": 2}
    values = [row["image"][0, 0].tolist() for row in read(tmp_path / "out")]
    assert values == [[40000] * 3, [40000] * 3, [7 * 257] * 3, [65535] * 3]
    masks = [{"mask": np.full((6, 8), 7, np.uint8)}, {"mask": np.full((6, 8), 700, np.uint16)}]
    schema = {"mask": Feature("uint8", (None, None, 1), encoding="image")}
    report = write(masks, tmp_path / "masks", schema=schema, shuffle=False)
    assert report.notes == (
        "'mask': 8-bit and 16-bit images are decoded to uint16, values unchanged",
    )
    assert [row["mask"][0, 0, 0] for row in read(tmp_path / "masks")] == [7, 700]


def test_converted_images_add_up_where_more_are_appended(tmp_path):
    Image.fromarray(np.full((6, 8, 3), 7, np.uint8)).save(tmp_path / "a.tif")
    rows = [{"image": tmp_path / "a.tif"}]
    write(rows, tmp_path / "out")
    assert len(write(rows, tmp_path / "out", append=True).notes) == 1
    assert datum.load(tmp_path / "out").metadata["image"]["converted"] == {"tiff": 2}
