"""The graph that reads records with TensorFlow's operations."""

import warnings
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import datum
from datum._frameworks.tensorflow import blocks as module
from datum._frameworks.tensorflow.blocks import (
    Stretch,
    cut_blocks,
    find_sound_stretches,
    find_stretches,
    stretches_between,
)
from datum._frameworks.tensorflow.graph_order import GraphOrder
from datum._frameworks.tensorflow.ops import checked
from datum._frameworks.tensorflow.options import TfOptions
from datum._frameworks.tensorflow.steps import (
    apply,
    batch_records,
    check_result,
    make_decoder,
    pad_batches,
    select_supervised,
)
from datum._load.epoch_order import Order
from datum._load.padding import Pad
from datum._read.shards import bytes_of
from datum.configs import BucketConfigs
from datum.errors import CorruptRecordError
from datum.format import RecordFile, RecordWriter, encode
from datum.reader import load
from datum.transforms.graph import leave_as_is
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers


def records(count=6):
    return tf.data.Dataset.range(count).map(
        lambda n: {"x": n, "items": tf.fill([n], n), "name": tf.repeat(["a"], n)}
    )


def test_fixed_shapes_are_stacked():
    batches = batch_records(tf.data.Dataset.range(5), TfOptions(batch_size=2), is_full=False)
    assert [b.tolist() for b in batches.as_numpy_iterator()] == [[0, 1], [2, 3], [4]]
    dropped = batch_records(tf.data.Dataset.range(5), TfOptions(batch_size=2), is_full=True)
    assert dropped.element_spec.shape == (2,)
    assert len(list(dropped)) == 2


def test_lengths_that_differ_stay_ragged():
    (batch,) = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    assert isinstance(batch["items"], tf.RaggedTensor)
    assert batch["items"].to_list() == [[], [1], [2, 2]]


def test_padding_fills_with_zeros_or_what_is_asked_for():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    (zeros,) = pad_batches(batches, TfOptions(pad=True))
    assert zeros["items"].numpy().tolist() == [[0, 0], [1, 0], [2, 2]]
    assert zeros["name"].numpy().tolist() == [[b"", b""], [b"a", b""], [b"a", b"a"]]
    (some,) = pad_batches(batches, TfOptions(pad={"items": -1}))
    assert some["items"].numpy().tolist() == [[-1, -1], [1, -1], [2, 2]]
    assert isinstance(some["name"], tf.RaggedTensor)
    (text,) = pad_batches(batches, TfOptions(pad={"name": "?"}))
    assert text["name"].numpy().tolist() == [[b"?", b"?"], [b"a", b"?"], [b"a", b"a"]]


def pad_one(column, pad):
    (batch,) = pad_batches(tf.data.Dataset.from_tensors({"x": column}), TfOptions(pad=pad))
    return {name: tensor.numpy().tolist() for name, tensor in batch.items()}


def test_multiples_hold_the_longest_row_and_are_at_least_one():
    rows = tf.ragged.constant([[1], [2, 3, 4]])
    made = pad_one(rows, Pad(multiple=2, value=9))
    assert made["x"] == [[1, 9, 9, 9], [2, 3, 4, 9]]
    assert made["x_mask"] == [[True, False, False, False], [True, True, True, False]]
    assert pad_one(tf.ragged.constant([[], []], tf.int32), Pad(multiple=2))["x"] == [[0, 0]] * 2


def test_longer_rows_are_cut_only_where_asked():
    rows = tf.ragged.constant([[1], [2, 3, 4]])
    assert pad_one(rows, Pad(length=2, truncate=True, mask=False)) == {"x": [[1, 0], [2, 3]]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`x`: expected at most 2 values"):
        pad_one(rows, Pad(length=2))


def test_every_dimension_that_differs_has_a_length():
    images = tf.ragged.constant([[[[1], [1]]], [[[2]], [[2]]]], ragged_rank=2)
    made = pad_one(images, Pad(length=(2, 3)))
    assert made["x"] == [[[[1], [1], [0]], [[0]] * 3], [[[2], [0], [0]]] * 2]
    assert made["x_mask"] == [[[True, True, False], [False] * 3], [[True, False, False]] * 2]
    assert tf.constant(pad_one(images, Pad(multiple=(1, 4)))["x"]).shape == (2, 2, 4, 1)
    with pytest.raises(ValueError, match=r"`length` of 2 number\(s\).*got 3"):
        pad_one(images, 3)


def test_masks_need_names_that_are_free():
    rows = tf.ragged.constant([[1], [2, 3]])
    batches = tf.data.Dataset.from_tensors({"x": rows, "x_mask": 1})
    with pytest.raises(ValueError, match="expected no column 'x_mask' beside 'x'"):
        pad_batches(batches, TfOptions(pad=3))
    assert (
        pad_batches(batches, TfOptions(pad=Pad(length=3, mask=False))).element_spec["x"].shape[1:]
        == 3
    )
    pairs = tf.data.Dataset.from_tensors((rows, rows))
    with pytest.raises(ValueError, match="a `pad` that adds masks"):
        pad_batches(pairs, TfOptions(pad=3))
    assert (
        pad_batches(pairs, TfOptions(pad=Pad(length=3, mask=False))).element_spec[0].shape[1:] == 3
    )


def test_sparse_columns_are_filled_too():
    sparse = tf.sparse.from_dense([[0, 5], [6, 0]])
    batches = tf.data.Dataset.from_tensors({"s": sparse})
    (dense,) = pad_batches(batches, TfOptions(pad=True))
    assert dense["s"].numpy().tolist() == [[0, 5], [6, 0]]


def test_tuples_are_padded_whole():
    batches = batch_records(
        records(3).map(lambda r: (r["items"], r["x"])), TfOptions(batch_size=3), is_full=False
    )
    ((items, x),) = pad_batches(batches, TfOptions(pad=True))
    assert items.shape == (3, 2)
    assert x.shape == (3,)


def test_buckets_hold_records_of_about_a_length():
    buckets = BucketConfigs(bucket_boundaries=[2, 4], bucket_batch_sizes=[2, 2, 1])
    options = TfOptions(bucket_fn=lambda r: tf.size(r["items"]), bucket_op=buckets, pad=True)
    batches = pad_batches(batch_records(records(6), options, is_full=False), options)
    found = sorted(batch["x"].tolist() for batch in batches.as_numpy_iterator())
    assert found == [[0, 1], [2, 3], [4], [5]]
    dropped = TfOptions(
        bucket_fn=lambda r: tf.size(r["items"]),
        bucket_op=BucketConfigs(bucket_boundaries=[2], bucket_batch_sizes=[2, 3]),
        drop_remainder=True,
    )
    found = [b["x"].numpy().tolist() for b in batch_records(records(6), dropped, is_full=False)]
    assert sorted(found) == [[0, 1], [2, 3, 4]]


def test_inputs_and_targets_are_picked():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    ((inputs, target),) = select_supervised(batches, TfOptions(supervised=("items", "x")))
    assert isinstance(inputs, tf.RaggedTensor)
    assert target.shape == (3,)
    options = TfOptions(supervised=(["items", "name"], "x", "x"))
    ((inputs, target, weights),) = select_supervised(batches, options)
    assert sorted(inputs) == ["items", "name"]
    assert target.shape == weights.shape


def test_inputs_that_are_not_there_are_told():
    batches = batch_records(records(3), TfOptions(batch_size=3), is_full=False)
    with pytest.raises(ValueError, match="expected batches with pixels, x"):
        select_supervised(batches, TfOptions(supervised=("pixels", "x")))


def test_the_bytes_of_a_split_are_those_of_its_records(tmp_path):
    dataset = write_numbers(tmp_path, 100)
    whole = sum(path.stat().st_size for path in tmp_path.glob("*.tfrecord"))
    assert bytes_of(dataset["train"].runs) == whole
    assert abs(bytes_of(dataset["train[:50%]"].runs) - whole / 2) < whole / 10


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
    stretch = Stretch("a", "", 3, 10, np.arange(0, 220, 20), 200, (200, 0))
    table = cut_blocks([stretch], block_records=4)
    assert [(b.offset, b.first, b.records, b.bytes) for b in table.blocks] == [
        (0, 3, 4, 80),
        (80, 7, 4, 80),
        (160, 11, 2, 40),
    ]
    assert (table.block_records, table.records) == (4, 10)


def test_blocks_grow_where_there_would_be_too_many(monkeypatch):
    monkeypatch.setattr(module, "MAX_BLOCKS", 3)
    stretch = Stretch("a", "", 0, 10, np.arange(0, 220, 20), 200, (200, 0))
    assert [b.records for b in cut_blocks([stretch], block_records=1).blocks] == [4, 4, 2]


def test_no_records_make_no_blocks():
    table = cut_blocks([], block_records=4)
    paths, compressions, rows, ends = table.columns()
    assert (len(paths), len(compressions), rows.shape, ends.shape) == (0, 0, (0, 5), (0, 2))


def test_damage_parts_stretches():
    starts, lengths = np.array([0, 20, 60, 80]), np.full(4, 4)
    found = list(stretches_between("a", np.array([0, 1, 3, 4]), starts, lengths, file_end=(100, 0)))
    assert [(s.first, s.records, s.starts.tolist()) for s in found] == [
        (0, 2, [0, 20, 40]),
        (3, 2, [60, 80, 100]),
    ]
    empty = np.empty(0, np.int64)
    assert list(stretches_between("a", empty, empty, empty, file_end=(0, 0))) == []


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


@pytest.mark.parametrize(
    ("records", "mode", "window"),
    [
        (2, "full", 1),
        (1003, "full", 1),
        (70001, "full", 1),
        (65, "blocks", 64),
        (1003, "blocks", 200),
        (70001, "blocks", 66000),
    ],
)
def test_a_graph_computes_the_order_of_any_epoch(records, mode, window):
    order = Order(records, mode, 10**30, window)
    positions = np.random.default_rng(0).permutation(records)[:3000]
    traced = tf.function(lambda epoch, at: GraphOrder(order, epoch).numbers_at(at), autograph=False)
    for epoch in (0, 3):
        found = traced(tf.constant(epoch, tf.int64), tf.constant(positions))
        np.testing.assert_array_equal(found, order.numbers(epoch, positions))


def _half(number: Any) -> Any:
    return checked(number // 2, tf.equal(number % 2, 0), "expected an even number")


def test_a_value_comes_back_if_its_condition_holds() -> None:
    assert _half(tf.constant([2, 4])).numpy().tolist() == [1, 2]


@pytest.mark.parametrize("number", [3, [2, 3]])
def test_a_condition_that_does_not_hold_everywhere_is_an_error(number: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an even number"):
        _half(tf.constant(number))


def test_a_check_runs_in_a_dataset_even_if_its_value_is_not_used() -> None:
    def check_and_forget(number: Any) -> Any:
        _half(number)
        return tf.zeros([])

    with pytest.raises(tf.errors.InvalidArgumentError, match="expected an even number"):
        list(tf.data.Dataset.range(1, 2).map(check_and_forget))


DRAW = leave_as_is(
    lambda x, seed: tf.random.stateless_uniform([], seed, maxval=10**6, dtype=tf.int32),
    takes_seed=True,
)


def values(dataset):
    return [tf.nest.map_structure(int, element) for element in dataset.as_numpy_iterator()]


def test_no_function_leaves_the_dataset():
    numbers = tf.data.Dataset.range(3)
    assert apply(numbers, None, TfOptions()) is numbers


def test_a_function_that_takes_a_seed_gets_another_each_time():
    numbers = tf.data.Dataset.range(50)
    drawn = apply(numbers, DRAW, TfOptions(seed=0))
    first, second = values(drawn), values(drawn)
    assert len(set(first)) > 45
    assert first != second
    assert values(apply(numbers, DRAW, TfOptions(seed=0))) == first
    assert values(apply(numbers, DRAW, TfOptions(seed=1))) != first
    same = apply(numbers, DRAW, TfOptions(seed=0, reshuffle=False))
    assert values(same) == values(same)
    other = [values(apply(numbers, DRAW, TfOptions(seed=None))) for _ in range(2)]
    assert other[0] != other[1]


def test_tuples_are_unpacked():
    pairs = tf.data.Dataset.range(3).map(lambda n: (n, n))
    add = leave_as_is(lambda a, b, seed: a + b, takes_seed=True)
    assert values(apply(pairs, add, TfOptions())) == [0, 2, 4]


def test_decoders_get_seeds_of_their_own():
    record = {"a": tf.constant(1), "b": tf.constant(2), "c": tf.constant(3)}
    decode = make_decoder({"a": DRAW, "b": DRAW, "c": lambda c: c * 2})
    assert decode.takes_seed
    made = decode(record, seed=tf.constant([1, 2], tf.int64))
    assert int(made["a"]) != int(made["b"])
    assert int(made["c"]) == 6
    plain = make_decoder({"c": lambda c: c * 2})
    assert not plain.takes_seed
    assert sorted(plain(record)) == ["a", "b", "c"]
    assert make_decoder({}) is None


def test_a_result_that_is_forgotten_is_told():
    with pytest.raises(ValueError, match="expected `map` to return"):
        check_result("map", lambda record: None)({})
    assert check_result("map", None) is None
    assert check_result("map", DRAW).takes_seed


def test_random_decoders_leave_no_word_of_autograph_in_the_log(tmp_path, caplog):
    pixels = np.zeros((4, 8, 8, 3), np.uint8)
    schema = {"image": datum.Feature("uint8", (8, 8, 3), encoding="image")}
    datum.write({"image": pixels}, tmp_path / "d", schema=schema, progress=False)
    crop = datum.transforms.random_crop(4, 4)
    logger = tf.get_logger()
    logger.addHandler(caplog.handler)
    try:
        batches = datum.load(tmp_path / "d").to_tf("train", decode={"image": crop})
        assert [tuple(batch["image"].shape) for batch in batches] == [(4, 4, 4, 3)]
    finally:
        logger.removeHandler(caplog.handler)
    assert "AutoGraph" not in caplog.text
