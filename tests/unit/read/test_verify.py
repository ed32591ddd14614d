import io
import json
import threading

import numpy as np
import pytest
from PIL import Image

import datum
from datum import Feature, Schema
from datum._read.foreign.detect import open_dataset
from datum._read.verify import verify_shards
from datum.format import Index, Manifest
from datum.reader import load
from tests.unit.read.written import NUMBERED, numbered, write_dataset, write_numbered

SHARD = "train-00002-of-00003.tfrecord"


def problems(folder):
    return [(one.shard, one.kind, one.text) for one in load(folder).verify().problems]


def change(path, at, value):
    data = bytearray(path.read_bytes())
    data[at] = value
    path.write_bytes(data)


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("has_index", [True, False])
def test_a_sound_dataset_has_no_problems(tmp_path, compression, has_index):
    manifest = write_numbered(tmp_path, compression=compression, has_index=has_index)
    report = load(tmp_path).verify()
    assert report.is_sound
    assert report.problems == ()
    assert (report.records, report.shards) == (13, 4)
    assert report.bytes == sum(split.bytes for split in manifest.splits.values())
    assert str(report).startswith(f"{tmp_path}: sound: 13 records, 4 shards, ")


def test_a_flipped_bit_is_told_with_its_record(tmp_path):
    write_numbered(tmp_path)
    change(tmp_path / SHARD, 80, 0xFF)
    report = load(tmp_path).verify()
    assert not report.is_sound
    assert report.records == 12
    assert report.lost == 1
    of_file, of_count, of_record = report.problems
    assert of_file.kind == "file checksum"
    assert (of_count.kind, of_count.text) == (
        "record count",
        "expected 6 records, got 5 that are whole",
    )
    assert (of_record.kind, of_record.record) == ("payload checksum", 1)
    assert (of_record.offset, of_record.end) == (52, 104)
    assert {problem.split for problem in report.problems} == {"train"}
    assert f"\n  {SHARD}: record 1 at byte 52: payload checksum: expected" in str(report)


def test_every_cut_is_told(tmp_path):
    write_numbered(tmp_path)
    path = tmp_path / SHARD
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        assert (SHARD, "size", f"expected {len(data)} bytes, got {cut}") in problems(tmp_path)


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
def test_every_changed_byte_is_told(tmp_path, compression):
    write_numbered(tmp_path, compression=compression)
    path = tmp_path / SHARD
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        assert problems(tmp_path)


def test_a_missing_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    assert problems(tmp_path) == [(SHARD, "missing file", "expected a file, got none")]
    assert load(tmp_path).verify().lost == 6


def test_a_folder_in_the_place_of_a_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    (tmp_path / SHARD).mkdir()
    ((shard, kind, text),) = problems(tmp_path)
    assert (shard, kind) == (SHARD, "unreadable file")
    assert "expected a file to read" in text


def test_an_index_of_another_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    index = Index.path_for(tmp_path / SHARD)
    other = Index.path_for(tmp_path / "val-00000-of-00001.tfrecord")
    index.write_bytes(other.read_bytes())
    text = "index/of-train-00002-of-00003.index: expected the places of these records, got others"
    assert problems(tmp_path) == [(SHARD, "index", text)]


def test_a_damaged_index_is_told(tmp_path):
    write_numbered(tmp_path)
    change(Index.path_for(tmp_path / SHARD), 50, 1)
    ((shard, kind, text),) = problems(tmp_path)
    assert (shard, kind) == (SHARD, "index")
    assert text.startswith("index/of-train-00002-of-00003.index: expected an index of records")
    assert "\n" not in text


def test_another_compression_is_told(tmp_path):
    manifest = write_numbered(tmp_path, compression="gzip")
    type(manifest)(manifest.schema, {"val": manifest.splits["val"]}, compression="zlib").save(
        tmp_path
    )
    assert problems(tmp_path) == [
        ("val-00000-of-00001.tfrecord", "compression", "expected zlib, got gzip")
    ]


def test_much_damage_is_told_in_short(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.record_checks.MAX_LISTED", 2)
    write_numbered(tmp_path)
    for at in (20, 80, 120, 180):
        change(tmp_path / SHARD, at, 0xFF)
    found = problems(tmp_path)
    assert sum(kind == "payload checksum" for _, kind, _ in found) == 2
    assert found[-1] == (SHARD, "more", "2 more problems of records")


@pytest.mark.usefixtures("permissions_count")
def test_a_shard_that_may_not_be_read_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).chmod(0)
    ((_, kind, text),) = problems(tmp_path)
    assert kind == "unreadable file"
    assert "Permission denied" in text


def test_the_report_is_the_same_for_any_number_of_threads(tmp_path):
    write_numbered(tmp_path)
    for at in (20, 80):
        change(tmp_path / SHARD, at, 0xFF)
    (tmp_path / "val-00000-of-00001.tfrecord").unlink()
    dataset = load(tmp_path)
    assert dataset.verify(threads=1) == dataset.verify(threads=4)


def test_shards_that_nobody_described_are_verified_by_their_records(tmp_path):
    write_numbered(tmp_path, has_index=False)
    (tmp_path / "datum.json").unlink()
    (tmp_path / "index").mkdir(exist_ok=True)
    (tmp_path / "index/of-train-00000-of-00003.index").write_text("an index of another kind")
    contents = open_dataset(tmp_path)
    report = verify_shards(contents)
    assert (report.is_sound, report.records, report.shards) == (True, 13, 4)
    change(tmp_path / SHARD, 80, 0xFF)
    found = verify_shards(contents)
    assert [(one.kind, one.record) for one in found.problems] == [
        ("record count", None),
        ("payload checksum", 1),
    ]
    assert found.lost == 1
    (tmp_path / SHARD).write_bytes(b"")
    assert "expected 312 bytes, got 0" in [p.text for p in verify_shards(contents).problems]


def test_shards_that_were_swapped_are_told_by_name(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(1, 2), numbered(3, 4), numbered(500)]})
    first, second, third = (tmp_path / f"train-0000{n}-of-00003.tfrecord" for n in range(3))
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(third.read_bytes())
    third.write_bytes(kept)
    found = [one for one in load(tmp_path).verify().problems if "content" in one.text]
    assert [(one.kind, one.text.rpartition(": the content of ")[2]) for one in found] == [
        ("file checksum", second.name),
        ("size", third.name),
        ("size", first.name),
    ]


def test_records_that_are_not_what_the_schema_says_are_told(tmp_path):
    rows = [{"x": 1, "text": "a"}, {"x": 2}, {"x": 3, "text": "c"}, {"text": "d"}]
    schema = Schema({"x": Feature("int64", optional=True), "text": Feature("str", optional=True)})
    written = write_dataset(tmp_path, {"train": [rows]}, schema)
    Manifest(NUMBERED, written.splits).save(tmp_path)
    report = load(tmp_path).verify()
    assert [(one.kind, one.record, one.feature) for one in report.problems] == [
        ("schema", 1, "text"),
        ("schema", 3, "x"),
    ]
    assert report.problems[0].text == "expected a value, got none"
    assert report.problems[0].offset == 45
    assert (report.records, report.lost) == (2, 2)


def test_a_schema_that_contradicts_itself_is_told(tmp_path):
    write_numbered(tmp_path)
    features = {"x": Feature("int64"), "y": Feature("int64", keys="x")}
    report = load(tmp_path, schema=features).verify()
    assert [one.kind for one in report.problems] == ["schema"]
    assert "both lie under the key 'x'" in report.problems[0].text
    assert report.records == 13


def test_images_are_decoded_only_when_asked_for(tmp_path):
    rows = [{"image": png(n)} for n in range(8)]
    rows[5]["image"] = rows[5]["image"][:-40] + bytes(40)
    schema = Schema({"image": Feature("uint8", (None, None, 1), encoding="image")})
    write_dataset(tmp_path, {"train": [rows[:3], rows[3:]]}, schema)
    dataset = load(tmp_path)
    assert dataset.verify().is_sound
    for threads in (1, 3):
        report = dataset.verify(deep=True, threads=threads)
        (problem,) = report.problems
        assert (problem.kind, problem.record, problem.feature) == ("image", 2, "image")
        assert problem.shard == "train-00001-of-00002.tfrecord"
        assert (report.records, report.lost, report.images) == (7, 1, 7)


def test_statistics_of_the_manifest_are_compared_when_asked_for(tmp_path):
    datum.write({"x": [5, 6, 7], "y": ["a", "b", "a"]}, tmp_path / "out", progress=False)
    assert load(tmp_path / "out").verify(deep=True).is_sound
    manifest = Manifest.load(tmp_path / "out")
    told = json.loads(json.dumps(manifest.statistics["train"]))
    told["features"]["x"]["numbers"]["max"] = 8
    changed = Manifest(manifest.schema, manifest.splits, statistics={"train": told})
    changed.save(tmp_path / "out")
    assert load(tmp_path / "out").verify().is_sound
    (problem,) = load(tmp_path / "out").verify(deep=True).problems
    assert (problem.kind, problem.shard, problem.split) == ("statistics", "datum.json", "train")
    assert problem.feature == "x"
    assert problem.text == ("expected greatest of numbers of 8, as the manifest says, got 7")


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_rises_to_all_bytes(tmp_path, threads):
    manifest = write_numbered(tmp_path)
    total = sum(split.bytes for split in manifest.splits.values())
    seen = []
    load(tmp_path).verify(threads=threads, progress=lambda *given: seen.append(given))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)


def test_progress_comes_to_its_end_past_missing_shards(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    seen = []
    load(tmp_path).verify(progress=lambda *given: seen.append(given))
    assert seen[-1][0] == seen[-1][1]


def test_a_verification_that_is_given_up_leaves_no_threads(tmp_path):
    write_dataset(tmp_path, {"train": [numbered(n) for n in range(20)]})

    def refuse(done, total):
        raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        load(tmp_path).verify(threads=2, progress=refuse)
    assert threading.active_count() == before


def test_files_that_are_missing_of_a_set_are_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / "datum.json").unlink()
    (tmp_path / SHARD).unlink()
    report = verify_shards(open_dataset(tmp_path, skips_damage=True))
    assert [(one.kind, one.shard) for one in report.problems] == [
        ("missing file", str(tmp_path / SHARD))
    ]


def png(seed):
    target = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (9, 7), np.uint8)
    Image.fromarray(pixels).save(target, "png")
    return target.getvalue()
