import warnings

import numpy as np
import pytest

from datum._frameworks.tensorflow import blocks as module
from datum._frameworks.tensorflow.blocks import (
    Stretch,
    bytes_of,
    cut_blocks,
    find_sound_stretches,
    find_stretches,
    stretches_between,
)
from datum.errors import CorruptRecordError
from datum.format import RecordFile, RecordWriter, encode
from datum.reader import load
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers


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
    assert (table.block_records, table.records) == (4, 10)


def test_blocks_grow_where_there_would_be_too_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_BLOCKS", 3)
    stretch = Stretch("a", "", 0, 10, np.arange(0, 220, 20), 200)
    assert [b.records for b in cut_blocks([stretch], block_records=1).blocks] == [4, 4, 2]


def test_no_records_make_no_blocks():
    table = cut_blocks([], block_records=4)
    paths, compressions, rows = table.columns()
    assert (len(paths), len(compressions), rows.shape) == (0, 0, (0, 5))


def test_damage_parts_stretches():
    starts, lengths = np.array([0, 20, 60, 80]), np.full(4, 4)
    found = list(stretches_between("a", np.array([0, 1, 3, 4]), starts, lengths))
    assert [(s.first, s.records, s.starts.tolist()) for s in found] == [
        (0, 2, [0, 20, 40]),
        (3, 2, [60, 80, 100]),
    ]
    empty = np.empty(0, np.int64)
    assert list(stretches_between("a", empty, empty, empty)) == []


HEADER_BYTES = 12


def shard(folder, number=1):
    return sorted(folder.glob("*.tfrecord"))[number]


def test_sound_shards_give_whole_stretches_and_no_warning(tmp_path):
    found = find_sound_stretches(write_numbers(tmp_path)["train[10:-5]"])
    assert [(s.first, s.records) for s in found] == [(10, 15), (0, 25), (0, 25), (0, 20)]


@pytest.mark.parametrize("at", [HEADER_BYTES, HEADER_BYTES - 1, 0])
def test_one_record_is_lost_and_told(tmp_path, at):
    dataset = write_numbers(tmp_path)
    damage_record(shard(tmp_path), 7, at=at)
    with pytest.warns(UserWarning, match=r"1 record of 100 lost") as told:
        found = find_sound_stretches(dataset["train"])
    assert [(s.first, s.records) for s in found] == [(0, 25), (0, 7), (8, 17), (0, 25), (0, 25)]
    assert f"{shard(tmp_path)}: record 7, bytes" in str(told[0].message)


def test_damage_outside_the_range_asked_for_is_none(tmp_path):
    dataset = write_numbers(tmp_path)
    damage_record(shard(tmp_path, 0), 3)
    damage_record(shard(tmp_path, 0), 20)
    assert sum(s.records for s in find_sound_stretches(dataset["train[4:20]"])) == 16


def test_a_shard_that_ends_early_loses_what_it_lacks(tmp_path):
    dataset = write_numbers(tmp_path)
    end = int(RecordFile(shard(tmp_path)).index.offsets[20])
    shard(tmp_path).write_bytes(shard(tmp_path).read_bytes()[:end])
    with pytest.warns(UserWarning, match="5 records of 100 lost"):
        assert sum(s.records for s in find_sound_stretches(dataset["train"])) == 95


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_sound_records_of_a_damaged_compressed_shard_are_copied(tmp_path, compression):
    dataset = write_numbers(tmp_path, compression=compression)
    whole = numbers(dataset.to_tf(batch_size=10))
    path = shard(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.warns(UserWarning, match="lost to damage"):
        left = numbers(dataset.to_tf(batch_size=10, on_error="skip"))
    kept = len(left) - 75
    assert 0 <= kept < 25
    assert left == whole[: 25 + kept] + whole[50:]


def test_many_places_are_summed_up(tmp_path):
    dataset = write_numbers(tmp_path, 100)
    for number in range(0, 20, 2):
        damage_record(shard(tmp_path), number)
    with pytest.warns(UserWarning, match=r"10 records.*\n(.*\n){5}  and 5 places more"):
        find_sound_stretches(dataset["train"])


def test_a_shard_that_is_gone_is_an_error(tmp_path):
    dataset = write_numbers(tmp_path)
    shard(tmp_path).unlink()
    with pytest.raises(FileNotFoundError):
        find_sound_stretches(dataset["train"])


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_damage_that_was_told_before_is_left_out_without_a_word(tmp_path, compression):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path, compression=compression) as writer:
        for n in range(30):
            writer.write(b"\xff" if n == 3 else encode([{"x": n}]).records()[0])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.warns(UserWarning, match="damage"):
        dataset = load(path, on_error="skip")
    kept = [int(row["x"]) for row in dataset["train"]]
    assert 3 not in kept
    assert 28 in kept or compression
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stretches = find_sound_stretches(dataset["train"])
    assert sum(stretch.records for stretch in stretches) == len(kept)


@pytest.mark.parametrize("engine", ["graph", "native"])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_files_opened_around_their_damage_are_read_so(tmp_path, engine, on_error):
    path = tmp_path / "a.tfrecord"
    with RecordWriter(path) as writer:
        for n in range(30):
            writer.write(b"\xff" if n == 3 else encode([{"x": n}]).records()[0])
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    with pytest.warns(UserWarning, match="damage in 2 places"):
        dataset = load(path, on_error="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batches = dataset.to_tf("train", batch_size=7, engine=engine, on_error=on_error)
        found = [int(x) for batch in batches for x in batch["x"].numpy()]
    assert found == [n for n in range(29) if n != 3]
