import itertools
from dataclasses import replace

import pytest

from datum._read.shards import RangeBatches, ShardRange, Shards
from datum.errors import CorruptRecordError
from datum.format import Parser, ShardInfo, frame
from tests.unit.read.written import NUMBERED, write_numbered


def batches(folder, runs, batch_size, **options):
    return RangeBatches(
        Shards(folder), runs, parser=Parser(NUMBERED), batch_size=batch_size, **options
    )


def numbers(reader):
    return [batch["x"].tolist() for batch in reader]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("has_index", [True, False])
def test_every_part_of_every_shard_is_read(tmp_path, compression, has_index):
    splits = write_numbered(tmp_path, compression=compression, has_index=has_index).splits
    first, _, third = splits["train"].shards
    for start, stop in itertools.combinations(range(7), 2):
        runs = [
            ShardRange(first, min(start, 3), 4),
            ShardRange(third, start, stop),
            ShardRange(third, 0, 6),
        ]
        reader = batches(tmp_path, runs, 100)
        expected = [*range(min(start, 3), 4), *range(4 + start, 4 + stop), *range(4, 10)]
        assert numbers(reader) == [expected]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("batch_size", [1, 2, 3, 7, 13, 100])
def test_batches_go_over_the_ends_of_shards(tmp_path, batch_size, threads):
    splits = write_numbered(tmp_path).splits
    runs = [ShardRange(s, 0, s.records) for split in splits.values() for s in split.shards]
    reader = batches(tmp_path, runs, batch_size, threads=threads)
    expected = [list(range(13))[at : at + batch_size] for at in range(0, 13, batch_size)]
    assert numbers(reader) == expected
    assert numbers(reader) == expected
    reader = batches(tmp_path, runs, batch_size, threads=threads, drop_remainder=True)
    assert numbers(reader) == [batch for batch in expected if len(batch) == batch_size]


def test_many_records_of_a_compressed_shard_are_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr("datum._read.shards.SKIPPED_RECORDS", 2)
    shard = write_numbered(tmp_path, compression="gzip").splits["train"].shards[2]
    assert numbers(batches(tmp_path, [ShardRange(shard, 5, 6)], 4)) == [[9]]


@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("told", [2, 4, 5])
def test_a_shard_of_another_number_of_records_is_noticed(tmp_path, compression, told):
    (shard,) = write_numbered(tmp_path, compression=compression).splits["val"].shards
    wrong = replace(shard, records=told)
    got = "more" if told < 3 else "3"
    for batch_size in (1, 2, 3, 100):
        reader = batches(tmp_path, [ShardRange(wrong, 0, told)], batch_size)
        with pytest.raises(CorruptRecordError, match=f"expected {told} records, .*, got {got}"):
            list(reader)


def test_a_compressed_shard_that_ends_within_a_run_is_noticed(tmp_path):
    (shard,) = write_numbered(tmp_path, compression="gzip").splits["val"].shards
    wrong = replace(shard, records=9)
    reader = batches(tmp_path, [ShardRange(wrong, 1, 5)], 10)
    with pytest.raises(CorruptRecordError, match="expected 9 records, .*, got 3"):
        list(reader)


def test_damage_is_raised_after_what_is_whole(tmp_path):
    (shard,) = write_numbered(tmp_path).splits["val"].shards
    path = tmp_path / shard.name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    found = []
    with pytest.raises(CorruptRecordError, match="record 2"):
        found.extend(
            batch["x"].tolist() for batch in batches(tmp_path, [ShardRange(shard, 0, 3)], 1)
        )
    assert found == [[10], [11]]


def test_a_batch_needs_a_record(tmp_path):
    with pytest.raises(ValueError, match="batch_size"):
        batches(tmp_path, [], 0)


def test_no_runs_make_no_batches(tmp_path):
    assert numbers(batches(tmp_path, [], 3)) == []


def test_a_run_knows_its_length():
    shard = ShardInfo("a", 10, frame([b""] * 10).nbytes, 0)
    assert len(ShardRange(shard, 3, 7)) == 4
