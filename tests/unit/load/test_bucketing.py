"""Bucketing: records of one length together, each still once an epoch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datum
from datum._load.buckets import WINDOW_BATCHES, Bucketed, LengthReader
from datum._load.epoch_order import Order
from datum._load.options import LoadOptions
from datum._load.stream import order_split


def bucketed(records, batch, *, shuffle=True, reshuffle=True, seed=0, lengths=None):
    mode = "none" if shuffle is False else "full"
    order = Order(records, mode, seed, reshuffles=reshuffle)
    options = LoadOptions(shuffle=shuffle, seed=seed, reshuffle=reshuffle)
    return Bucketed(order, lengths or (lambda numbers: numbers % 17), batch, options)


def all_of(order, epoch=0) -> np.ndarray:
    return order.numbers(epoch, np.arange(order.records))


@given(
    records=st.integers(1, 900),
    batch=st.integers(1, 20),
    epoch=st.integers(0, 3),
    shuffle=st.booleans(),
)
def test_every_record_comes_once(records, batch, epoch, shuffle):
    order = bucketed(records, batch, shuffle=shuffle)
    assert sorted(all_of(order, epoch).tolist()) == list(range(records))


@given(data=st.data())
def test_a_part_of_the_order_is_what_the_whole_has_there(data):
    records = data.draw(st.integers(1, 900))
    order = bucketed(records, 3)
    positions = np.array(data.draw(st.lists(st.integers(0, records - 1))), np.int64)
    whole = all_of(bucketed(records, 3), 1)
    assert order.numbers(1, positions).tolist() == whole[positions].tolist()


def test_a_batch_has_about_one_length():
    batch = 16
    lengths = all_of(bucketed(batch * WINDOW_BATCHES * 2, batch)).reshape(-1, batch) % 17
    spread = lengths.max(axis=1) - lengths.min(axis=1)
    assert spread.max() <= 1


def test_batches_of_each_length_come_throughout_the_epoch():
    batch = 16
    lengths = all_of(bucketed(batch * WINDOW_BATCHES, batch)).reshape(-1, batch)[:, 0] % 17
    assert np.abs(np.corrcoef(lengths, np.arange(len(lengths)))[0, 1]) < 0.4
    assert (np.diff(lengths) < 0).any()


def test_without_a_shuffle_batches_come_by_length():
    lengths = all_of(bucketed(64, 4, shuffle=False)) % 17
    assert (np.diff(lengths) >= 0).all()


def test_the_last_batch_of_an_epoch_is_the_short_one():
    order = bucketed(70, 16)
    longest = sorted(number % 17 for number in range(70))[-6:]
    assert sorted(order.numbers(0, np.arange(64, 70)) % 17) == longest


def test_epochs_and_seeds_differ_unless_told_not_to():
    assert all_of(bucketed(500, 4), 0).tolist() != all_of(bucketed(500, 4), 1).tolist()
    assert all_of(bucketed(500, 4, seed=1)).tolist() != all_of(bucketed(500, 4)).tolist()
    once = bucketed(500, 4, reshuffle=False)
    assert all_of(once, 0).tolist() == all_of(once, 1).tolist()


def test_lengths_of_a_window_are_read_once_for_all_its_batches():
    asked = []

    def lengths(numbers):
        asked.append(len(numbers))
        return numbers % 17

    order = bucketed(4 * WINDOW_BATCHES + 10, 4, lengths=lengths)
    for first in range(0, order.records, 4):
        order.numbers(0, np.arange(first, min(first + 4, order.records)))
    assert asked == [4 * WINDOW_BATCHES, 10]


@pytest.fixture
def ordered(tmp_path):
    rows = [
        {
            "items": list(range(i % 4)),
            "nested": [[1.0] * k for k in range(i % 3)],
            "text": "é" * i,
            "maybe": "x" * i if i % 2 else None,
            "fixed": [1, 2],
            "number": i,
        }
        for i in range(10)
    ]
    datum.write(rows, tmp_path / "d", shuffle=False, progress=False)
    return order_split(datum.load(tmp_path / "d")["train"], LoadOptions())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("items", [i % 4 for i in range(10)]),
        ("nested", [i % 3 for i in range(10)]),
        ("text", [2 * i for i in range(10)]),
        ("maybe", [i if i % 2 else 0 for i in range(10)]),
    ],
)
def test_lengths_are_items_or_bytes(ordered, name, expected):
    reader = LengthReader(ordered, name, "raise")
    numbers = np.array([7, 0, 3, 9, 9])
    assert reader(numbers).tolist() == [expected[number] for number in numbers]


@pytest.mark.parametrize("name", ["fixed", "number"])
def test_what_has_one_length_is_refused(ordered, name):
    with pytest.raises(ValueError, match=f"`bucket_by` to name a feature that differs.*{name!r}"):
        LengthReader(ordered, name, "raise")


def test_a_damaged_record_has_no_length(ordered):
    (shards, run), *_ = ordered.parts
    path = shards.folder / run.shard.name
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    reader = LengthReader(ordered, "items", "skip")
    assert reader(np.array([3, 0, 2])).tolist() == [3, 0, 2]
    with pytest.raises(datum.CorruptRecordError):
        LengthReader(ordered, "items", "raise")(np.array([0]))
