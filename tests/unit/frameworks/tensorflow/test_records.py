import numpy as np
import pytest
import tensorflow as tf

from datum.format import RecordFile
from datum.frameworks.tensorflow.blocks import cut_blocks, find_stretches, refuse_marks
from datum.frameworks.tensorflow.ops import shuffle
from datum.frameworks.tensorflow.windowed import (
    Reading,
    Shuffling,
    permute,
    read_chunks,
    shuffle_chunks,
)
from tests.unit.frameworks.tensorflow.written import damage_record, write_numbers

SHUFFLING = Shuffling(window=32, seed=1, block_seed=2, reshuffle=True, reshuffle_blocks=True)


def payloads(folder):
    return [bytes(p) for path in sorted(folder.glob("*.tfrecord")) for p in RecordFile(path)]


def table_of(folder, split="train", *, block=8, **options):
    return cut_blocks(find_stretches(write_numbers(folder, **options)[split]), block_records=block)


def records(chunks):
    return [record for chunk in chunks.as_numpy_iterator() for record in chunk]


@pytest.mark.parametrize("compression", [None, "gzip", "zlib"])
@pytest.mark.parametrize("chunk", [1, 4, 8, 100])
def test_records_come_in_order(tmp_path, compression, chunk):
    table = table_of(tmp_path, compression=compression)
    found = records(read_chunks(table, Reading(chunk=chunk, cycle=3), None))
    assert found == payloads(tmp_path)


def test_chunks_have_no_more_records_than_asked_for(tmp_path):
    table = table_of(tmp_path, block=10)
    chunks = read_chunks(table, Reading(chunk=4, cycle=3), None)
    assert max(len(chunk) for chunk in chunks.as_numpy_iterator()) == 4


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_part_of_a_split_is_read_alone(tmp_path, compression):
    table = table_of(tmp_path, "train[10:-5]", compression=compression)
    found = records(read_chunks(table, Reading(chunk=8, cycle=3), None))
    assert found == payloads(tmp_path)[10:-5]


def test_shuffled_blocks_come_from_all_over_and_differ_by_epoch(tmp_path):
    table = table_of(tmp_path, block=4)
    chunks = read_chunks(table, Reading(chunk=4, cycle=4), SHUFFLING)
    first, second = records(chunks), records(chunks)
    assert first != second
    assert sorted(first) == sorted(second) == sorted(payloads(tmp_path))


def test_blocks_that_are_not_reshuffled_keep_their_order(tmp_path):
    table = table_of(tmp_path, block=4)
    same = Shuffling(window=32, seed=1, block_seed=2, reshuffle=True, reshuffle_blocks=False)
    chunks = read_chunks(table, Reading(chunk=4, cycle=4), same)
    assert records(chunks) == records(chunks)


def test_files_take_turns_where_asked(tmp_path):
    table = table_of(tmp_path, count=8, block=100)
    reading = Reading(chunk=1, cycle=2, is_interleaved=True)
    order = [payloads(tmp_path).index(r) for r in records(read_chunks(table, reading, None))]
    assert order == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.parametrize("at", [3, 13])
def test_damage_is_told_with_file_record_and_byte(tmp_path, at):
    table = table_of(tmp_path)
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    offset = int(RecordFile(path).index.offsets[11])
    damage_record(path, 11, at=at)
    with pytest.raises(tf.errors.InvalidArgumentError) as told:
        records(read_chunks(table, Reading(chunk=4, cycle=2), None).map(refuse_marks))
    assert f"{path}: record 11 at byte {offset}: expected a sound record" in str(told.value)
    assert "on_error=skip leaves it out" in str(told.value)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_that_ends_early_is_told(tmp_path, compression):
    table = table_of(tmp_path, compression=compression)
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{path}: record"):
        records(read_chunks(table, Reading(chunk=4, cycle=2), None).map(refuse_marks))


def test_a_file_that_is_gone_is_told(tmp_path):
    table = table_of(tmp_path)
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    path.unlink()
    with pytest.raises(tf.errors.NotFoundError, match=str(path)):
        records(read_chunks(table, Reading(chunk=4, cycle=2), None).map(refuse_marks))


def test_windows_are_shuffled_and_nothing_is_lost():
    chunks = tf.data.Dataset.range(100).map(tf.strings.as_string).batch(7)
    mixed = shuffle_chunks(chunks, SHUFFLING, deterministic=True)
    first, second = records(mixed), records(mixed)
    assert first != second
    for begin in (0, 32, 64, 96):
        window = {str(n).encode() for n in range(begin, min(begin + 32, 100))}
        assert set(first[begin : begin + 32]) == window
    again = shuffle_chunks(chunks, SHUFFLING, deterministic=True)
    assert records(again) == first


def test_large_windows_are_mixed_with_the_next():
    chunks = tf.data.Dataset.range(10_000).map(tf.strings.as_string).batch(77)
    large = Shuffling(window=2048, seed=1, block_seed=2, reshuffle=True, reshuffle_blocks=True)
    found = records(shuffle_chunks(chunks, large, deterministic=True))
    assert sorted(found) == sorted(records(chunks))
    assert 0 < sum(int(number) >= 2048 for number in found[:2048]) < 2048


def test_windows_that_are_not_reshuffled_keep_their_order():
    chunks = tf.data.Dataset.range(100).map(tf.strings.as_string).batch(7)
    same = Shuffling(window=32, seed=1, block_seed=None, reshuffle=False, reshuffle_blocks=False)
    mixed = shuffle_chunks(chunks, same, deterministic=True)
    assert records(mixed) == records(mixed) != records(chunks)


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_a_permutation_has_every_record_once(count):
    names = tf.strings.as_string(tf.range(count))
    found = permute(names, tf.constant(2**40 + 5, tf.int64)).numpy()
    assert sorted(found) == sorted(names.numpy())


def test_permutations_are_even():
    sums = np.zeros(8)
    for seed in range(2000):
        sums += permute(tf.range(8), tf.constant(seed * 7919, tf.int64)).numpy()
    assert np.all(np.abs(sums / 2000 - 3.5) < 0.25)


def test_the_seed_of_the_program_is_not_that_of_the_order():
    chunks = tf.data.Dataset.range(100).map(tf.strings.as_string).batch(7)

    def order():
        mixed = shuffle(chunks, 10, seed=3, reshuffle=True)
        return records(shuffle_chunks(mixed, SHUFFLING, deterministic=True))

    first = order()
    try:
        tf.random.set_seed(5)
        assert order() == first
    finally:
        tf.random.set_seed(None)


@pytest.mark.parametrize("seed", [0, 1, 0x5EED, 2**63 - 1])
def test_every_seed_gives_one_order(seed):
    numbers = tf.data.Dataset.range(50)
    orders = [
        list(shuffle(numbers, 50, seed=seed, reshuffle=True).as_numpy_iterator()) for _ in range(2)
    ]
    assert orders[0] == orders[1] != sorted(orders[0])


def test_elements_of_any_structure_are_shuffled():
    ragged = tf.ragged.constant([[n] * n for n in range(20)])
    mixed = shuffle(tf.data.Dataset.from_tensor_slices({"r": ragged}), 20, seed=1, reshuffle=True)
    sizes = [int(tf.size(element["r"])) for element in mixed]
    assert sorted(sizes) == list(range(20))
    assert sizes != sorted(sizes)
