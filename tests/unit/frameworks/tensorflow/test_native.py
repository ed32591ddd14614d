import numpy as np
import pytest
import tensorflow as tf

from datum._frameworks.tensorflow import native as module
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


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("drop_remainder", [False, True])
@pytest.mark.parametrize("batch_size", [4, 5, 40])
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
