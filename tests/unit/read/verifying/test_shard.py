import numpy as np
import pytest

from datum import _core
from datum._read import shards
from datum._read import verify as verifying
from datum._read.record_checks import Findings, RecordChecks
from datum._read.shards import Checksum
from datum._read.verify import verify_shard
from datum.format import Index, RecordFile, RecordWriter, ShardInfo


def write(path, payloads, compression=None):
    with RecordWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    writer.index.save(Index.path_for(path))
    data = path.read_bytes()
    return ShardInfo(path.name, len(payloads), len(data), _core.crc32c(data), compression)


def verify(path, shard, *, is_published=True):
    findings, done = Findings("train", shard.name), []
    found = verify_shard(
        path,
        shard,
        findings,
        RecordChecks(None, findings),
        is_published=is_published,
        on_bytes=done.append,
    )
    return found, [one.kind for one in findings.problems], done


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("count", [0, 1, 10_000])
def test_a_sound_shard_is_read_to_its_end(tmp_path, compression, count):
    shard = write(tmp_path / "a.tfrecord", [b"x" * (n % 50) for n in range(count)], compression)
    found, kinds, done = verify(tmp_path / "a.tfrecord", shard)
    assert kinds == []
    assert (found.records, found.bytes, found.crc) == (count, shard.bytes, shard.crc32c)
    assert done == sorted(done)
    assert done[-1] == shard.bytes


def test_a_compressed_shard_with_an_index_tells_how_far_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(verifying, "MAX_RUN_RECORDS", 64)
    payloads = [np.random.default_rng(n).bytes(500) for n in range(2000)]
    shard = write(tmp_path / "a.tfrecord", payloads, "gzip")
    _, _, done = verify(tmp_path / "a.tfrecord", shard)
    assert len(set(done)) > 10
    Index.path_for(tmp_path / "a.tfrecord").unlink()
    _, _, done = verify(tmp_path / "a.tfrecord", shard)
    assert done == [shard.bytes]


def test_runs_of_large_records_are_short(tmp_path, monkeypatch):
    monkeypatch.setattr(verifying, "RUN_BYTES", 10_000)
    shard = write(tmp_path / "a.tfrecord", [b"x" * 1000] * 200)
    sizes = []
    seen = RecordFile.runs

    def runs(self, next_size):
        for records in seen(self, next_size):
            sizes.append(len(records))
            yield records

    monkeypatch.setattr(RecordFile, "runs", runs)
    verify(tmp_path / "a.tfrecord", shard)
    assert sizes[0] == verifying.FIRST_RUN_RECORDS
    assert set(sizes[1:-1]) == {10}


def test_an_index_with_the_places_of_other_records_is_told(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc", b"", b"abc"])
    for offsets, end in (([0, 16, 35], 54), ([0, 19], 54), ([], 0), ([0, 19, 35, 54], 100)):
        Index(np.array(offsets, np.int64), end).save(Index.path_for(path))
        assert verify(path, shard)[1] == ["index"]


def test_an_index_of_others_counts_only_if_it_is_one_of_ours(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc", b""])
    Index.path_for(path).write_text("something else")
    assert verify(path, shard)[1] == ["index"]
    assert verify(path, shard, is_published=False)[1] == []
    Index(np.array([0]), 35).save(Index.path_for(path))
    assert verify(path, shard, is_published=False)[1] == ["index"]


def test_of_a_damaged_shard_the_index_is_not_blamed(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abc"] * 5)
    path.write_bytes(path.read_bytes()[:-1])
    assert verify(path, shard)[1] == ["size", "record count", "torn payload"]


def test_much_damage_is_not_kept(tmp_path):
    path = tmp_path / "a.tfrecord"
    shard = write(path, [b"abcd"] * 1000)
    data = bytearray(path.read_bytes())
    data[12::20] = b"?" * 1000
    path.write_bytes(data)
    _, kinds, _ = verify(path, shard)
    assert kinds.count("payload checksum") == 100
    assert kinds[-1] == "more"


def test_a_checksum_is_taken_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "CHECKSUM_BYTES", 7)
    data = bytes(range(256))
    (tmp_path / "a").write_bytes(data)
    checksum = Checksum("a", _core.MappedFile(tmp_path / "a"))
    for to in (0, 5, 100, 100, None):
        checksum.advance(to)
    assert (checksum.nbytes, checksum.crc) == (256, _core.crc32c(data))
