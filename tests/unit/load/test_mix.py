"""A mix: each split has its share everywhere, and its records in its own order."""

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import datum
from datum import SchemaError
from datum._load.epoch_order import Order
from datum._load.mix import ROUND, MixedOrder, mix_shares, order_mix
from datum._load.options import LoadOptions
from datum._load.stream import order_split


def mixed(sizes, weights, *, mode="full", seed=0) -> MixedOrder:
    orders = tuple(Order(size, mode, 1) for size in sizes)
    firsts = tuple(np.cumsum([0, *sizes[:-1]]).tolist())
    return MixedOrder(orders, firsts, tuple(mix_shares(weights)), seed)


@given(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=9))
def test_shares_fill_a_round_in_proportion(weights):
    shares = mix_shares(weights)
    assert sum(shares) == ROUND
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - ROUND * weight / sum(weights)) <= len(weights)


def test_the_least_weight_has_a_place():
    assert mix_shares([1e-12, 1]) == [1, ROUND - 1]
    assert mix_shares([1.0, *[1e-12] * 100])[1:] == [1] * 100


def test_weights_are_any_numbers_of_any_size():
    halves = [ROUND // 2, ROUND // 2]
    assert mix_shares([np.float32(0.5), np.int64(1)]) == mix_shares([0.5, 1])
    assert mix_shares([1e308, 1e308]) == mix_shares([5e-324, 5e-324]) == halves


@pytest.mark.parametrize("weight", [0, -1, nan, inf, "1", None, True, np.True_, 1j])
def test_what_is_no_weight_is_refused(weight):
    with pytest.raises(ValueError, match="expected weights above 0, got"):
        mix_shares([1, weight])


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    seed=st.integers(0, 9),
    epoch=st.integers(0, 3),
)
def test_records_of_a_split_come_in_its_own_order_epoch_after_epoch(sizes, seed, epoch):
    order = mixed(sizes, [i + 1 for i in range(len(sizes))], mode="none", seed=seed)
    places = np.arange(epoch * order.records + order.records)
    all_numbers = np.concatenate(
        [order.numbers(e, np.arange(order.records)) for e in range(epoch + 1)]
    )
    assert len(places) == len(all_numbers)
    for first, size in zip(order.firsts, sizes, strict=True):
        inside = (all_numbers >= first) & (all_numbers < first + size)
        got = all_numbers[inside] - first
        assert got.tolist() == (np.arange(len(got)) % size).tolist()


def test_a_split_that_starts_anew_has_the_order_of_its_next_epoch():
    order = mixed([50, 5000], [1, 1])
    numbers = order.numbers(0, np.arange(order.records))
    small = numbers[numbers < 50]
    epochs = [small[i : i + 50] for i in range(0, len(small) - 49, 50)]
    assert len(epochs) > 40
    for epoch, got in enumerate(epochs):
        assert got.tolist() == order.orders[0].numbers(epoch, np.arange(50)).tolist()


def test_every_round_has_the_exact_shares_and_a_batch_nearly():
    order = mixed([ROUND, ROUND, ROUND], [0.7, 0.2, 0.1])
    numbers = order.numbers(0, np.arange(2 * ROUND))
    sources = (numbers // ROUND).reshape(2, ROUND)
    assert [np.bincount(row).tolist() for row in sources] == [list(order.shares)] * 2
    batches = sources[0].reshape(-1, 1024)
    assert np.abs((batches == 0).mean(axis=1) - 0.7).max() < 0.06
    assert sources[0].tolist() != sources[1].tolist()


@given(data=st.data())
def test_a_part_of_the_order_is_what_the_whole_has_there(data):
    order = mixed([700, 30], [0.4, 0.6])
    whole = order.numbers(1, np.arange(730))
    positions = np.array(data.draw(st.lists(st.integers(0, 729))), np.int64)
    assert order.numbers(1, positions).tolist() == whole[positions].tolist()


def test_positions_on_both_sides_of_a_round_are_found():
    order = mixed([ROUND, 7], [0.5, 0.5])
    around = np.arange(ROUND - 5, ROUND + 5)
    one_by_one = [order.numbers(0, around[i : i + 1])[0] for i in range(10)]
    assert order.numbers(0, around).tolist() == one_by_one


def test_another_seed_mixes_differently():
    positions = np.arange(100)
    orders = [mixed([100, 100], [1, 1], seed=seed).numbers(0, positions) for seed in (0, 1)]
    assert orders[0].tolist() != orders[1].tolist()


@pytest.fixture
def parts(tmp_path):
    def make(name, rows, **options):
        datum.write(rows, tmp_path / name, progress=False)
        return order_split(datum.load(tmp_path / name)["train"], LoadOptions(**options))

    return make


def test_a_mix_knows_its_records_and_what_a_state_must_agree_with(parts):
    small, large = parts("small", {"x": [1, 2]}), parts("large", {"x": [1, 2, 3]})
    both = order_mix([small, large], [1, 3], seed=5, options=LoadOptions())
    assert both.order.records == 5
    assert both.name == "train+train"
    assert len(both.parts) == 2
    assert both.identity["order"] == f"mix 5: {ROUND // 4} none, {ROUND * 3 // 4} none"
    others = [
        order_mix([small, large], [1, 2], seed=5, options=LoadOptions()),
        order_mix([small, large], [1, 3], seed=6, options=LoadOptions()),
        order_mix([large, small], [1, 3], seed=5, options=LoadOptions()),
    ]
    assert all(other.identity != both.identity for other in others)


def test_splits_without_records_are_refused(parts):
    part = parts("a", {"x": [1]})
    empty = replace(part, name="val", order=Order(0), parts=())
    with pytest.raises(ValueError, match="splits with records to mix, got the empty split 'val'"):
        order_mix([part, empty], [1, 1], seed=0, options=LoadOptions())


def test_features_that_differ_are_told_with_both(parts):
    numbers, words = parts("numbers", {"x": [1], "y": [1]}), parts("words", {"x": ["a"], "y": [1]})
    with pytest.raises(SchemaError, match="same feature 'x'.*'int64'.*'str'.*\nhint: .*`columns`"):
        order_mix([numbers, words], [1, 1], seed=0, options=LoadOptions())
    order_mix([numbers, words], [1, 1], seed=0, options=LoadOptions(columns=["y"]))
