"""Batches of the core handed to TensorFlow."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from datum import Feature, Schema
from datum._frameworks.tensorflow import native as module
from datum._frameworks.tensorflow.transfer import (
    BLOCK_BYTES,
    MAX_FREE_BUFFERS,
    Buffers,
    GeneratorDataset,
    Packer,
    Unpacker,
    as_stored,
)
from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import CorruptRecordError
from datum.format import Parser, encode
from datum.format.file import as_records
from tests.contract.strategies import examples
from tests.unit.frameworks.tensorflow.agreement import (
    assert_agrees,
    parse_in_dataset,
    storable,
    tables,
)
from tests.unit.frameworks.tensorflow.written import damage_record, numbers, write_numbers


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_numbers(tmp_path_factory.mktemp("numbers"), 103)


def read(dataset, split="train", **options):
    return dataset.to_tf(split, engine="native", **options)


def order_of(dataset, epoch=0, **options):
    """The order in which `to_numpy` gives the records of an epoch."""
    loader = dataset.to_numpy("train", **options)
    loader.set_epoch(epoch)
    return [n for batch in loader for n in batch["x"].tolist()]


def same(record):
    return record


ORDERS = [
    {},
    {"shuffle": True},
    {"shuffle": True, "seed": 7},
    {"shuffle": 16},
    {"shuffle": True, "reshuffle": False},
]


@pytest.mark.parametrize("options", ORDERS)
@pytest.mark.parametrize("batch_size", [1, 10, 200])
def test_batches_come_in_the_order_of_numpy(dataset, options, batch_size):
    options = {"batch_size": batch_size, **options}
    made = read(dataset, **options)
    for epoch in range(3):
        assert numbers(made) == order_of(dataset, epoch, **options)


@pytest.mark.parametrize("options", ORDERS)
@pytest.mark.parametrize("batch_size", [None, 10, 200])
def test_records_come_in_the_order_of_numpy(dataset, options, batch_size):
    made = read(dataset, batch_size=batch_size, map=same, **options)
    for epoch in range(3):
        assert numbers(made) == order_of(dataset, epoch, **options)


def test_epochs_follow_one_another_without_a_gap(dataset):
    options = {"shuffle": True, "batch_size": 10}
    made = read(dataset, epochs=2, **options)
    for start in (0, 2):
        expected = [order_of(dataset, start + epoch, **options) for epoch in range(2)]
        assert numbers(made) == expected[0] + expected[1]
    endless = read(dataset, epochs=None, **options)
    expected = order_of(dataset, 0, **options) + order_of(dataset, 1, **options)
    assert numbers(endless.take(22)) == expected


@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize(("count", "batch_size"), [(1, 40), (2, 4), (3, 5), (5, 40)])
def test_hosts_take_equal_parts_of_each_batch(dataset, count, drop_remainder, batch_size):
    remainder = "drop" if drop_remainder else "keep"
    options = {"batch_size": batch_size, "shuffle": True, "remainder": remainder}
    made = [read(dataset, host=(index, count), **options) for index in range(count)]
    parts = [[b["x"].numpy().tolist() for b in one] for one in made]
    whole = order_of(dataset, shuffle=True, batch_size=batch_size)
    together = batch_size * count
    full = 103 // together
    for at in range(full):
        batch = [n for part in parts for n in part[at]]
        assert batch == whole[at * together : (at + 1) * together]
    rest = [n for part in parts for batch in part[full:] for n in batch]
    assert rest == ([] if drop_remainder else whole[full * together :])
    for index, part in enumerate(parts):
        mapped = read(dataset, host=(index, count), map=same, **options)
        assert len(made[index]) == len(mapped) == len(part)
        assert numbers(mapped) == [n for batch in part for n in batch]


def test_hosts_without_a_record_give_no_batch(dataset):
    counts = []
    for index in range(5):
        made = read(dataset, "train[:2]", remainder="keep", host=(index, 5))
        counts.append((len(made), len(list(made))))
    assert sorted(counts) == [(0, 0)] * 3 + [(1, 1)] * 2


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_cache_keeps_the_order(tmp_path, shuffle):
    dataset = write_numbers(tmp_path, 53)
    options = {"shuffle": shuffle, "batch_size": 10}
    expected = [order_of(dataset, epoch, **options) for epoch in range(3)]
    made = read(dataset, cache=True, **options)
    next(iter(made))  # which begins an epoch, and keeps some records of it
    assert numbers(made) == expected[1]
    for path in tmp_path.glob("*.tfrecord"):
        path.write_bytes(b"")
    assert numbers(made) == expected[2]


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_are_full_whatever_is_damaged(tmp_path, shuffle):
    dataset = write_numbers(tmp_path, 100)
    lost = {30, 31, 60}
    options = {"shuffle": shuffle, "batch_size": 10}
    whole = order_of(dataset, **options)
    for number in lost:
        damage_record(sorted(tmp_path.glob("*.tfrecord"))[number // 25], number % 25)
    with pytest.warns(UserWarning, match="3 records of 100 lost"):
        made = read(dataset, on_error="skip", **options)
    assert len(made) == 10
    batches = [batch["x"].numpy().tolist() for batch in made]
    assert [len(batch) for batch in batches] == [10] * 9 + [7]
    assert [n for batch in batches for n in batch] == [n for n in whole if n not in lost]


def test_what_an_iterator_opened_is_closed_with_it(dataset, monkeypatch):
    opened = []

    class Spied(module.NumberedRecords):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            opened.append(self)

        def close(self):
            super().close()
            opened.remove(self)

    monkeypatch.setattr(module, "NumberedRecords", Spied)
    made = read(dataset, batch_size=2).prefetch(2)
    one, other = iter(made), iter(made)
    assert [next(each)["x"].numpy()[0] for each in (one, other)] == [0, 0]
    assert len(opened) == 2
    del one
    assert len(opened) == 1
    assert next(other)["x"].numpy()[0] == 2
    del other
    assert opened == []
    assert numbers(made) == list(range(103))
    assert opened == []


def test_sizes_are_known_where_short_batches_are_dropped(dataset):
    spec = read(dataset, batch_size=10, drop_remainder=True).element_spec
    assert spec["x"].shape == (10,)
    assert spec["items"].shape == (10, None)
    spec = read(dataset, batch_size=10).element_spec
    assert spec["x"] == tf.TensorSpec([None], tf.int64)


def test_tensors_that_are_kept_are_not_written_over(dataset):
    batches = list(read(dataset, batch_size=1))
    assert np.concatenate([batch["x"].numpy() for batch in batches]).tolist() == list(range(103))


def test_text_is_parsed_as_bytes():
    schema = as_stored(Schema({"a": Feature("str", (None,)), "b": Feature("str", default="ö")}))
    assert schema["a"] == Feature("bytes", (None,))
    assert schema["b"] == Feature("bytes", default="ö".encode())


def test_columns_that_are_alike_make_one_piece():
    schema = Schema(
        {
            "a": Feature("float32"),
            "b": Feature("int64"),
            "c": Feature("float32", optional=True),
            "d": Feature("float32", (2,)),
            "e": Feature("bool"),
        }
    )
    packer = Packer(schema)
    assert [form.names for form in packer.forms] == [("a", "c"), ("b",), ("c_present", "e"), ("d",)]
    assert packer.names == ["a", "b", "c", "c_present", "d", "e"]
    assert (packer.numeric, packer.strings) == (4, 0)


def test_which_records_have_a_feature_is_a_column():
    packer = Packer(Schema({"a": Feature("int64", optional=True), "b": Feature("int64")}))
    present = np.array([True, False])
    found = packer.unmask({"a": Masked(np.array([1, 0]), present), "b": np.array([1, 2])})
    assert found["a"].tolist() == [1, 0]
    assert found["a_present"] is present
    assert packer.unmask({"a": np.array([1]), "b": np.array([2])})["a_present"].tolist() == [True]


def test_counts_come_first_and_every_piece_begins_with_a_block():
    schema = Schema({"x": Feature("int64"), "y": Feature("uint8"), "l": Feature("int64", (None,))})
    packer = Packer(schema)
    columns = {
        "x": np.array([7, 8, 9]),
        "y": np.array([1, 2, 3], np.uint8),
        "l": Ragged(np.arange(9), np.array([0, 9, 9, 9])),
    }
    flat, strings = packer.pack(columns, 3, Buffers())
    assert len(strings) == 0
    assert flat.ctypes.data % BLOCK_BYTES == 0
    items = [3, 3, 4, 9]  # of x, of y, of the splits, of the values
    blocks = [1, 1, 1, 2]
    assert flat.reshape(-1)[:9].tolist() == [3, *items, *blocks]
    assert packer.header_blocks == 2
    assert flat[2, :3].tolist() == [7, 8, 9]
    assert flat[3].view(np.uint8)[:3].tolist() == [1, 2, 3]
    assert flat[4, :4].tolist() == [0, 9, 9, 9]
    assert flat[5:].reshape(-1)[:9].tolist() == list(range(9))


def test_strings_of_all_columns_come_one_after_the_other():
    schema = Schema({"a": Feature("bytes"), "b": Feature("bytes", (2,))})
    buffer = b"catdogcow"
    columns = {
        "a": BytesColumn(buffer, np.array([0, 3])),
        "b": BytesColumn(buffer, np.array([3, 3, 6, 3]), shape=(1, 2)),
    }
    flat, strings = Packer(schema).pack(columns, 1, Buffers())
    assert strings.tolist() == [b"cat", b"dog", b"cow"]
    assert flat.reshape(-1)[:3].tolist() == [1, 1, 2]
    columns["b"] = BytesColumn.from_values([b"ant", b"bee"])
    assert Packer(schema).pack(columns, 1, Buffers())[1].tolist() == [b"cat", b"ant", b"bee"]


def hand_over(
    schema: Schema, payloads: list[bytes], *, is_static: bool = True
) -> tuple[Any, dict[str, Any]]:
    """The spec of a batch of records, parsed natively and handed over; and the batch."""
    stored = as_stored(schema)
    packer = Packer(stored)
    columns = packer.unmask(Parser(stored).parse(as_records(payloads)))
    unpacker = Unpacker(packer, len(payloads), drop_remainder=is_static)
    packed = packer.pack(columns, len(payloads), Buffers())
    given_arrays = tf.data.Dataset.from_generator(
        lambda: iter([packed]), output_signature=unpacker.spec
    )
    made = given_arrays.map(unpacker.unpack)
    (batch,) = made
    return made.element_spec, batch


@examples(15)
@given(tables(rows=st.integers(1, 4)), st.booleans())
def test_any_columns_come_as_the_graph_parses_them(table, is_static):
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    spec, batch = hand_over(schema, payloads, is_static=is_static)
    assert_agrees(schema, payloads, batch)
    expected, _ = parse_in_dataset(schema, payloads, drop_remainder=is_static)
    assert spec == expected


@examples(15)
@given(tables(rows=st.integers(1, 7)), st.integers(1, 3), st.booleans())
def test_batches_that_were_packed_together_come_one_by_one(table, size, drop_remainder):
    schema, rows = table
    payloads = list(encode(rows, storable(schema)))
    stored = as_stored(schema)
    packer = Packer(stored)
    columns = packer.unmask(Parser(stored).parse(as_records(payloads)))
    packed = [tf.constant(part) for part in packer.pack(columns, len(rows), Buffers())]
    unpacker = Unpacker(packer, size, drop_remainder=drop_remainder)
    short = 0 if drop_remainder else size - 1
    assert int(unpacker.count(packed[0])) == (len(rows) + short) // size
    for at in range((len(rows) + short) // size):
        batch = unpacker.unpack(*packed, tf.constant(at, tf.int64))
        assert_agrees(schema, payloads[at * size : (at + 1) * size], batch)


DTYPES = ["bool", "int8", "uint16", "uint32", "uint64", "float16", "bfloat16", "complex128"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 3])
def test_columns_that_are_alike_keep_their_own_values(dtype, count):
    schema = Schema({f"c{i}": Feature(dtype, (2,)) for i in range(count)})
    rows = [{name: np.arange(2) + at for at, name in enumerate(schema)} for _ in range(5)]
    cast = [{n: v.astype(tf.as_dtype(dtype).as_numpy_dtype) for n, v in r.items()} for r in rows]
    _, batch = hand_over(schema, list(encode(cast, schema)))
    assert list(batch) == list(schema)
    for name in schema:
        assert batch[name].dtype == tf.as_dtype(dtype)
        assert np.array_equal(batch[name].numpy(), [row[name] for row in cast])


def test_what_has_no_values_at_all_is_empty():
    schema = Schema({"none": Feature("int64", (0,)), "words": Feature("str", (None,))})
    rows = [{"none": np.zeros(0, np.int64), "words": []} for _ in range(3)]
    _, batch = hand_over(schema, list(encode(rows, schema)))
    assert batch["none"].shape == (3, 0)
    assert batch["words"].to_list() == [[], [], []]


@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_arrays_are_aligned_and_of_their_shape(rows):
    array = Buffers().take(rows, columns=8)
    assert array.shape == (rows, 8)
    assert array.dtype == np.int64
    assert array.ctypes.data % BLOCK_BYTES == 0


def test_memory_is_used_again_only_once_nobody_holds_it():
    buffers = Buffers()
    held = buffers.take(10, columns=8)
    place = held.ctypes.data
    other = buffers.take(10, columns=8)
    assert other.ctypes.data != place
    del held
    assert buffers.take(10, columns=8).ctypes.data == place


def test_memory_that_is_too_small_is_let_go():
    buffers = Buffers()
    buffers.take(1, columns=8)
    large = buffers.take(1000, columns=8)
    large[:] = 1
    assert large.sum() == 8000


def test_no_more_is_kept_than_is_of_use():
    buffers = Buffers()
    arrays = [buffers.take(1000, columns=8) for _ in range(MAX_FREE_BUFFERS + 5)]
    memories = [weakref.ref(array.base) for array in arrays]
    del arrays
    assert sum(memory() is not None for memory in memories) == MAX_FREE_BUFFERS


def test_arrays_outlive_their_buffers():
    buffers = Buffers()
    array = buffers.take(4, columns=8)
    del buffers
    array[:] = 5
    assert array.sum() == 160


SPEC = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.string))


class Source:
    """Generators, and which of them were closed."""

    def __init__(self, count=3):
        self.count = count
        self.started = 0
        self.closed = []

    def __call__(self):
        number = self.started
        self.started += 1
        try:
            for at in range(self.count):
                yield np.array([number, at]), np.array([b"a", b"\xff\0"], object)
        finally:
            self.closed.append(number)


def firsts(dataset):
    return [numbers.numpy().tolist() for numbers, _ in dataset]


def test_each_iterator_has_a_generator_of_its_own():
    source = Source()
    made = GeneratorDataset(source, SPEC)
    assert made.element_spec == SPEC
    assert isinstance(made, tf.data.Dataset)
    assert firsts(made) == [[0, 0], [0, 1], [0, 2]]
    one, other = iter(made), iter(made)
    mixed = [next(one)[0], next(other)[0], next(one)[0], next(other)[0]]
    assert [n.numpy().tolist() for n in mixed] == [[1, 0], [2, 0], [1, 1], [2, 1]]
    assert firsts(made.repeat(2)) == [[3, 0], [3, 1], [3, 2], [4, 0], [4, 1], [4, 2]]


def test_strings_keep_every_byte():
    (_, strings), *_ = GeneratorDataset(Source(), SPEC)
    assert strings.numpy().tolist() == [b"a", b"\xff\0"]


def test_a_generator_is_closed_with_its_iterator():
    source = Source(1000)
    batches = iter(GeneratorDataset(source, SPEC).prefetch(2))
    next(batches)
    assert source.closed == []
    del batches
    gc.collect()
    assert source.closed == [0]
    list(GeneratorDataset(source, SPEC).take(3))
    assert source.closed == [0, 1]


def test_it_goes_through_functions_of_the_graph():
    made = GeneratorDataset(Source(), SPEC).map(lambda numbers, _: numbers * 2)
    total = made.reduce(np.int64(0), lambda so_far, numbers: so_far + tf.reduce_sum(numbers))
    assert int(total) == 6

    @tf.function
    def count(batches):
        found = 0
        for _ in batches:
            found += 1
        return found

    assert int(count(made)) == 3


@pytest.mark.parametrize("error", [CorruptRecordError, OSError, ValueError])
def test_what_is_wrong_with_the_data_is_told(error):
    def start():
        yield np.array([1]), np.array([b""], object)
        raise error("a/b.tfrecord: record 7 at byte 99: damage")

    batches = iter(GeneratorDataset(start, SPEC))
    next(batches)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a/b.tfrecord: record 7 at byte 99"):
        next(batches)


def test_an_iterator_cannot_be_saved(tmp_path):
    checkpoint = tf.train.Checkpoint(batches=iter(GeneratorDataset(Source(), SPEC)))
    with pytest.raises(tf.errors.UnimplementedError, match="GeneratorDataset"):
        checkpoint.write(str(tmp_path / "saved"))
