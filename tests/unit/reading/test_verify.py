import os

import pytest

from datum.format import Index
from datum.reader import load
from datum.reading.adopt import open_dataset
from datum.reading.verify import verify_shards
from tests.unit.reading.written import write_numbered

SHARD = "train-00002-of-00003.tfrecord"


def problems(folder):
    return [(problem.shard, problem.text) for problem in load(folder).verify().problems]


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
    texts = [problem.text for problem in report.problems]
    assert any("CRC" in text for text in texts)
    assert "record 1, bytes 52-104: payload checksum" in texts
    assert "expected 6 records, got 5 sound ones" in texts
    assert f"\n  train: {SHARD}: record 1, bytes 52-104: payload checksum" in str(report)


def test_every_cut_is_told(tmp_path):
    write_numbered(tmp_path)
    path = tmp_path / SHARD
    data = path.read_bytes()
    for cut in range(len(data)):
        path.write_bytes(data[:cut])
        assert (SHARD, f"expected {len(data)} bytes, got {cut}") in problems(tmp_path)


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
    assert problems(tmp_path) == [(SHARD, "expected a file, got none")]


def test_a_folder_in_the_place_of_a_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).unlink()
    (tmp_path / SHARD).mkdir()
    ((shard, text),) = problems(tmp_path)
    assert shard == SHARD
    assert "expected a file to read" in text


def test_an_index_of_another_shard_is_told(tmp_path):
    write_numbered(tmp_path)
    index, other = Index.path_for(tmp_path / SHARD), tmp_path / "val-00000-of-00001.index"
    index.write_bytes(other.read_bytes())
    text = "train-00002-of-00003.index: expected the places of these records, got others"
    assert problems(tmp_path) == [(SHARD, text)]


def test_a_damaged_index_is_told(tmp_path):
    write_numbered(tmp_path)
    change(Index.path_for(tmp_path / SHARD), 50, 1)
    ((shard, text),) = problems(tmp_path)
    assert shard == SHARD
    assert "expected an index of records" in text
    assert "\n" not in text


def test_another_compression_is_told(tmp_path):
    manifest = write_numbered(tmp_path, compression="gzip")
    type(manifest)(manifest.schema, {"val": manifest.splits["val"]}, compression="zlib").save(
        tmp_path
    )
    assert problems(tmp_path) == [
        ("val-00000-of-00001.tfrecord", "expected compression zlib, got gzip")
    ]


def test_much_damage_is_told_in_short(tmp_path, monkeypatch):
    monkeypatch.setattr("datum.reading.verify.MAX_DAMAGES", 2)
    write_numbered(tmp_path)
    for at in (20, 80, 120, 180):
        change(tmp_path / SHARD, at, 0xFF)
    texts = [text for _, text in problems(tmp_path)]
    assert sum("payload checksum" in text for text in texts) == 2
    assert "2 more places of damage" in texts


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may read everything")
def test_a_shard_that_may_not_be_read_is_told(tmp_path):
    write_numbered(tmp_path)
    (tmp_path / SHARD).chmod(0)
    ((_, text),) = problems(tmp_path)
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
    (tmp_path / "train-00000-of-00003.index").write_text("an index of another kind")
    contents = open_dataset(tmp_path)
    report = verify_shards(contents)
    assert (report.is_sound, report.records, report.shards) == (True, 13, 4)
    change(tmp_path / SHARD, 80, 0xFF)
    assert [problem.text for problem in verify_shards(contents).problems] == [
        "record 1, bytes 52-104: payload checksum",
        "expected 6 records, got 5 sound ones",
    ]
    (tmp_path / SHARD).write_bytes(b"")
    assert "expected 312 bytes, got 0" in [p.text for p in verify_shards(contents).problems]
