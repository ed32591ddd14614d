import numpy as np
import pytest

from datum.errors import CorruptRecordError
from datum.frameworks.tensorflow import blocks as module
from datum.frameworks.tensorflow.blocks import (
    Stretch,
    bytes_of,
    cut_blocks,
    find_stretches,
    stretches_between,
)
from tests.unit.frameworks.tensorflow.written import write_numbers


def test_the_bytes_of_a_split_are_those_of_its_records(tmp_path):
    dataset = write_numbers(tmp_path, 100)
    whole = sum(path.stat().st_size for path in tmp_path.glob("*.tfrecord"))
    assert bytes_of(dataset["train"]) == whole
    assert abs(bytes_of(dataset["train[:50%]"]) - whole / 2) < whole / 10


def test_the_stretches_of_a_split_are_its_runs(tmp_path):
    split = write_numbers(tmp_path, 100)["train[10:-5]"]
    found = find_stretches(split)
    assert [(s.first, s.records) for s in found] == [(10, 15), (0, 25), (0, 25), (0, 20)]
    for stretch in found:
        assert len(stretch.starts) == stretch.records + 1
        assert stretch.bytes == stretch.starts[-1] - stretch.starts[0]


def test_compressed_shards_are_read_from_their_start(tmp_path):
    split = write_numbers(tmp_path, 100, compression="gzip")["train[10:-5]"]
    first, *_ = find_stretches(split)
    assert (first.compression, first.first, first.records, first.starts) == ("GZIP", 10, 15, None)
    size = min(tmp_path.glob("*.tfrecord")).stat().st_size
    assert first.bytes == size * 15 // 25 * module.INFLATION
    (block, *_) = cut_blocks([first], block_records=4).blocks
    assert (block.offset, block.skipped, block.records) == (0, 10, 15)


def test_shards_too_large_to_look_through_are_read_from_their_start(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_SCANNED_BYTES", 10)
    dataset = write_numbers(tmp_path, 100)
    assert all(s.starts is not None for s in find_stretches(dataset["train"]))
    for index in tmp_path.glob("index/*"):
        index.unlink()
    found = find_stretches(dataset["train"])
    assert [s.starts for s in found] == [None] * 4
    table = cut_blocks(found, block_records=4)
    assert (table.block_records, table.records) == (None, 100)


def test_a_shard_of_another_size_is_refused(tmp_path):
    dataset = write_numbers(tmp_path, 100, compression="gzip")
    path = sorted(tmp_path.glob("*.tfrecord"))[1]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptRecordError, match="bytes, as the manifest says"):
        find_stretches(dataset["train"])


def test_blocks_have_no_more_records_than_asked_for():
    stretch = Stretch("a", "", 3, 10, np.arange(0, 220, 20), 200)
    table = cut_blocks([stretch], block_records=4)
    assert [(b.offset, b.first, b.records, b.bytes) for b in table.blocks] == [
        (0, 3, 4, 80),
        (80, 7, 4, 80),
        (160, 11, 2, 40),
    ]
    assert (table.block_records, table.records, table.record_bytes) == (4, 10, 20)


def test_blocks_grow_where_there_would_be_too_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_BLOCKS", 3)
    stretch = Stretch("a", "", 0, 10, np.arange(0, 220, 20), 200)
    assert [b.records for b in cut_blocks([stretch], block_records=1).blocks] == [4, 4, 2]


def test_no_records_make_no_blocks():
    table = cut_blocks([], block_records=4)
    paths, compressions, rows = table.columns()
    assert (len(paths), len(compressions), rows.shape, table.record_bytes) == (0, 0, (0, 5), 1)


def test_damage_parts_stretches():
    starts, lengths = np.array([0, 20, 60, 80]), np.full(4, 4)
    found = list(stretches_between("a", np.array([0, 1, 3, 4]), starts, lengths))
    assert [(s.first, s.records, s.starts.tolist()) for s in found] == [
        (0, 2, [0, 20, 40]),
        (3, 2, [60, 80, 100]),
    ]
    empty = np.empty(0, np.int64)
    assert list(stretches_between("a", empty, empty, empty)) == []
