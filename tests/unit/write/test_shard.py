"""One shard on its way to disk."""

import pytest

from datum import _core
from datum._write.shards import ShardWriter
from datum.format import Index, RecordFile, frame


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
