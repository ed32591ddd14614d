"""Making the shards."""

import numpy as np
import pytest

import datum
from datum.format import RecordFile
from tests.unit.writing.datasets import digests, rows, values, write


def test_shards_are_filled_evenly(tmp_path):
    report = write(rows(103), tmp_path / "out", shards=4)
    assert report.shards == 4
    counts = [shard.records for shard in datum.load(tmp_path / "out").splits["train"].shards]
    assert counts == [25, 26, 26, 26]
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names[1] == "train-00000-of-00004.index"
    assert names[-1] == "train-00003-of-00004.tfrecord"


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
