import numpy as np
import pytest
import tensorflow as tf

from datum._frameworks.tensorflow import windowed as module
from datum._frameworks.tensorflow.blocks import cut_blocks, find_stretches, refuse_marks
from datum._frameworks.tensorflow.ops import shuffle
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.readers import ReadRequest, RecordSteps
from datum._frameworks.tensorflow.windowed import (
    Reading,
    Shuffling,
    WindowedReader,
    make_plan,
    permute,
    read_chunks,
    shuffle_chunks,
)
from datum.configs import TFRReadConfigs
from datum.format import RecordFile
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("numbers"), 103)["train"]


def reader(split, host=(0, 1), **options):
    request = ReadRequest(split=split, schema=split.schema, options=TfOptions(**options), host=host)
    return WindowedReader(request)


def same(records):
    return records


AS_READ = RecordSteps(decode=None, finish=same)


def test_a_host_reads_its_stretch_of_the_split(split):
    parts = [reader(split, (index, 3), batch_size=10) for index in range(3)]
    assert [part.batches_per_epoch for part in parts] == [4, 4, 4]
    assert [n for part in parts for n in numbers(part.batches())] == list(range(103))
    assert [n for part in parts for n in numbers(part.records(AS_READ))] == list(range(103))


def test_batches_are_those_of_all_epochs(split):
    made = reader(split, epochs=2, batch_size=50).batches()
    assert [len(batch["x"]) for batch in made] == [50, 50, 3] * 2
    assert len(numbers(reader(split, epochs=2).records(AS_READ))) == 206


def test_records_are_decoded_before_they_are_kept(split):
    calls = []

    def decode(record):
        calls.append(record)
        return {"x": record["x"] + 1}

    kept = reader(split, cache=True, shuffle=True).records(RecordSteps(decode=decode, finish=same))
    first, second = numbers(kept), numbers(kept)
    assert sorted(first) == sorted(second) == list(range(1, 104))
    assert first != second


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("plan"), 1000)["train"]


def test_records_in_order_are_read_as_whole_batches(part):
    plan = make_plan(part, TfOptions(batch_size=32))
    assert plan.shuffling is None
    assert (plan.reading.chunk, plan.table.block_records) == (512, 2048)
    assert make_plan(part, TfOptions(batch_size=500)).reading.chunk == 500
    assert make_plan(part, TfOptions(batch_size=1000)).reading.chunk == 1000
    assert make_plan(part, TfOptions(batch_size=None)).reading.chunk == 512


def test_a_window_is_bounded_by_records_and_by_bytes(part, monkeypatch):
    assert make_plan(part, TfOptions(shuffle=True)).shuffling.window == module.WINDOW_RECORDS
    monkeypatch.setattr(module, "WINDOW_BYTES", 50 * 100)
    assert 10 < make_plan(part, TfOptions(shuffle=True)).shuffling.window < 200
    assert make_plan(part, TfOptions(shuffle=77)).shuffling.window == 77
    assert make_plan(part, TfOptions(shuffle=0)).shuffling is None


def test_a_window_is_made_of_many_places(part):
    plan = make_plan(part, TfOptions(shuffle=320))
    assert plan.reading.chunk == 320 // module.CYCLE
    assert plan.reading.cycle == module.CYCLE


def test_what_is_cached_is_read_in_order(part):
    plan = make_plan(part, TfOptions(shuffle=True, cache=True), is_cached=True)
    assert plan.table.block_records == plan.reading.chunk * module.ORDERED_BLOCK_CHUNKS


def test_large_records_are_told(part, monkeypatch):
    assert not make_plan(part, TfOptions()).has_large_records
    monkeypatch.setattr(module, "LARGE_RECORD_BYTES", 10)
    assert make_plan(part, TfOptions()).has_large_records


def test_seeds_are_those_given_or_new_ones(part):
    plans = [make_plan(part, TfOptions(shuffle=True, seed=None)) for _ in range(2)]
    assert plans[0].shuffling.seed != plans[1].shuffling.seed
    fixed = make_plan(part, TfOptions(shuffle=True, seed=7)).shuffling
    assert (fixed.seed, fixed.block_seed) == (7, 7)
    own = make_plan(part, TfOptions(shuffle=True, seed=7, read=TFRReadConfigs(seed=9))).shuffling
    assert (own.seed, own.block_seed) == (7, 9)
    assert (
        make_plan(part, TfOptions(shuffle=True, shuffle_files=False)).shuffling.block_seed is None
    )


def test_files_come_in_the_order_asked_for(part):
    read = TFRReadConfigs(experimental_interleave_sort_fn=lambda files: files[::-1])
    plan = make_plan(part, TfOptions(batch_size=250, read=read))
    paths = [block.path for block in plan.table.blocks]
    assert paths == sorted(paths, reverse=True)
    assert plan.table.records == 1000


def test_files_that_are_none_of_the_split_are_refused(part):
    read = TFRReadConfigs(
        experimental_interleave_sort_fn=lambda files: [{"filename": "x", "skip": 0}]
    )
    with pytest.raises(ValueError, match="return the files it was given"):
        make_plan(part, TfOptions(read=read))


def test_files_are_interleaved_to_the_record_where_asked(part):
    read = TFRReadConfigs(interleave_cycle_length=2, interleave_block_length=3)
    plan = make_plan(part, TfOptions(read=read))
    assert (plan.reading.cycle, plan.reading.chunk, plan.reading.run) == (2, 3, 1)
    assert len(plan.table.blocks) == 4


def test_chunks_and_blocks_are_bounded_by_bytes(part, monkeypatch):
    table = make_plan(part, TfOptions()).table
    record_bytes = sum(block.bytes for block in table.blocks) // table.records
    monkeypatch.setattr(module, "CHUNK_BYTES", record_bytes * 10)
    plan = make_plan(part, TfOptions(batch_size=32))
    assert plan.reading.chunk == plan.table.block_records == 10
    plan = make_plan(part, TfOptions(batch_size=4))
    assert (plan.reading.chunk, plan.table.block_records) == (8, 8)


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
    table = table_of(tmp_path, count=2000)  # damage at its end would make it another file
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    offset = int(RecordFile(path).index.offsets[11])
    damage_record(path, 11, at=at)
    with pytest.raises(tf.errors.InvalidArgumentError) as told:
        records(read_chunks(table, Reading(chunk=4, cycle=2), None).map(refuse_marks))
    assert f"{path}: record 11 at byte {offset}: expected an intact record" in str(told.value)
    assert "on_error=skip leaves it out" in str(told.value)


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_a_file_that_ends_early_is_told(tmp_path, compression):
    table = table_of(tmp_path, compression=compression)
    path = sorted(tmp_path.glob("*.tfrecord"))[2]
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match=f'input file "{path}" has'):
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
