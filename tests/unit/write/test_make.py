"""Making the shards."""

import numpy as np
import pytest

import datum
from datum.format import RecordFile
from tests.unit.write.datasets import digests, rows, values, write


def test_shards_are_filled_evenly(tmp_path):
    report = write(rows(103), tmp_path / "out", shards=4)
    assert report.shards == 4
    counts = [shard.records for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert counts == [25, 26, 26, 26]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["datum.json", "index", *(f"train-0000{n}-of-00004.tfrecord" for n in range(4))]
    indexes = sorted(path.name for path in (tmp_path / "out/index").iterdir())
    assert indexes == [f"of-train-0000{n}-of-00004.index" for n in range(4)]


@pytest.mark.parametrize(
    "make", [rows, lambda count: {"x": np.arange(count)}], ids=["rows", "columns"]
)
@pytest.mark.parametrize(
    ("records", "limit", "expected"),
    [
        (100, 25, [25, 25, 25, 25]),
        (103, 25, [20, 21, 20, 21, 21]),
        (9, 10, [9]),
        (10, 10, [10]),
        (11, 10, [5, 6]),
        (3, 1, [1, 1, 1]),
    ],
)
def test_shards_hold_at_most_as_many_records_as_asked(tmp_path, make, records, limit, expected):
    source = make(records)
    options = {"records_per_shard": limit, "shard_bytes": 1024}
    assert write(source, tmp_path / "out", **options).shards == len(expected)
    counts = [shard.records for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert counts == expected
    assert datum.plan(source, **options).splits["train"].shards == len(expected)


def test_each_split_and_each_addition_is_filled_by_records(tmp_path):
    sources = {"train": rows(50), "val": rows(5)}
    report = write(sources, tmp_path / "out", records_per_shard=20)
    assert {name: split.shards for name, split in report.splits.items()} == {"train": 3, "val": 1}
    report = write({"train": rows(21)}, tmp_path / "out", records_per_shard=20, append=True)
    assert report.splits["train"].shards == 2


def test_more_shards_than_names_can_count_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._write.options.MAX_SHARDS", 10)
    message = (
        "expected at most 10 shards, got 21 by `records_per_shard` 1\nhint: records_per_shard=3"
    )
    for source in (rows(21), {"x": np.arange(21)}):
        with pytest.raises(ValueError, match=message):
            write(source, tmp_path / "out", records_per_shard=1)
        with pytest.raises(ValueError, match=message):
            datum.plan(source, records_per_shard=1)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "make", [rows, lambda count: {"x": np.arange(count)}], ids=["rows", "columns"]
)
def test_shards_become_about_as_large_as_asked(tmp_path, make):
    report = write(make(20_000), tmp_path / "out", shard_bytes=100_000)
    sizes = [shard.bytes for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert report.bytes / len(sizes) == pytest.approx(100_000, rel=0.2)
    assert max(sizes) < 1.1 * min(sizes)


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_shards_may_be_compressed(tmp_path, compression):
    write(rows(500), tmp_path / "out", compression=compression)
    path = tmp_path / "out/train-00000-of-00001.tfrecord"
    assert RecordFile(path).compression == compression
    assert sorted(values(tmp_path / "out")) == list(range(500))


@pytest.mark.parametrize("make", [rows, lambda n: {"x": np.arange(n)}], ids=["rows", "columns"])
def test_the_bytes_do_not_depend_on_the_number_of_workers(tmp_path, make):
    for workers in (1, 2, 8):
        write(make(20_000), tmp_path / str(workers), workers=workers, shards=3)
    assert digests(tmp_path / "1") == digests(tmp_path / "2") == digests(tmp_path / "8")
