import warnings

import pytest

from datum.format import RecordFile, RecordWriter, encode
from datum.frameworks.tensorflow.blocks import find_sound_stretches
from datum.reader import load
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers

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
