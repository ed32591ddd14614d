"""The order of an epoch: complete, mixed, and the same however it is asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum._load.epoch_order import BLOCKS_PER_WINDOW, Order, key_of

MODES = ["none", "full", "blocks"]
KEY = 5533503609948066460
FULL = [0, 1, 3, 2, 5, 6, 4, 7]
BLOCKS = [7, 4, 2, 3, 1, 6, 5, 0]


def all_of(order: Order, epoch: int = 0) -> list[int]:
    return order.numbers(epoch, np.arange(order.records)).tolist()


@pytest.mark.parametrize("mode", MODES)
@given(
    records=st.integers(1, 700),
    seed=st.integers(0, 2**70),
    epoch=st.integers(0, 5),
    window=st.integers(1, 300),
)
def test_every_record_comes_exactly_once(mode, records, seed, epoch, window):
    assert sorted(all_of(Order(records, mode, seed, window), epoch)) == list(range(records))


@pytest.mark.parametrize("mode", MODES)
@given(data=st.data())
def test_a_part_of_the_order_is_what_the_whole_has_there(mode, data):
    records = data.draw(st.integers(1, 3000))
    order = Order(records, mode, 7, window=data.draw(st.integers(64, 1000)))
    positions = np.array(data.draw(st.lists(st.integers(0, records - 1))), np.int64)
    whole = np.array(all_of(order, 2))
    assert order.numbers(2, positions).tolist() == whole[positions].tolist()


def test_without_a_shuffle_records_come_as_they_were_written():
    assert all_of(Order(9)) == list(range(9))


@pytest.mark.parametrize("mode", ["full", "blocks"])
def test_another_seed_or_epoch_gives_another_order(mode):
    orders = [all_of(Order(500, mode, seed), epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert len({tuple(order) for order in orders}) == 4
    assert all_of(Order(500, mode, 3), 1) == all_of(Order(500, mode, 3), 1)


@pytest.mark.parametrize("mode", ["full", "blocks"])
def test_an_order_that_is_not_reshuffled_is_that_of_the_first_epoch(mode):
    order = Order(500, mode, 3, reshuffles=False)
    assert all_of(order, 4) == all_of(Order(500, mode, 3), 0)


def test_a_billion_records_need_no_table():
    order = Order(10**9, "full", 1)
    found = order.numbers(0, np.arange(10**9 - 1000, 10**9))
    assert len(set(found.tolist())) == 1000
    assert found.min() >= 0
    assert found.max() < 10**9


def test_full_order_mixes_like_chance():
    found = np.array(all_of(Order(20_000, "full", 5)))
    correlation = np.corrcoef(found, np.arange(20_000))[0, 1]
    assert abs(correlation) < 0.05
    assert (np.abs(np.diff(found)) == 1).sum() < 20


def test_blocks_come_as_runs_of_neighbours_within_a_window():
    order = Order(100_000, "blocks", 5, window=6400)
    size = 6400 // BLOCKS_PER_WINDOW
    found = order.numbers(0, np.arange(6400 - size))
    assert len(np.unique(found // size)) <= BLOCKS_PER_WINDOW
    assert (np.diff(found) == 1).mean() < 0.1


def test_blocks_of_a_window_come_from_all_over_the_split():
    found = Order(100_000, "blocks", 5, window=6400).numbers(0, np.arange(6400))
    assert found.min() < 10_000
    assert found.max() > 90_000


def test_the_order_of_released_versions_stays_the_same():
    """A state that was saved must go on in the same order after an upgrade."""
    assert key_of(0, 0, "order") == KEY
    assert all_of(Order(8, "full", 0)) == FULL
    assert all_of(Order(8, "blocks", 0, window=4)) == BLOCKS


@pytest.mark.parametrize("records", [2, 50, 1003])
def test_a_window_of_any_size_can_be_asked_for(records):
    positions = np.arange(records)
    whole = Order(records, "blocks", 1, BLOCKS_PER_WINDOW * records).numbers(3, positions)
    for window in (BLOCKS_PER_WINDOW * records + 1, 10**9, 2**63, 10**30):
        found = Order(records, "blocks", 1, window).numbers(3, positions)
        np.testing.assert_array_equal(found, whole)


def test_orders_that_differ_are_described_differently():
    described = {Order(9, mode, 0, window).description for mode in MODES for window in (64, 128)}
    assert described == {"none", "full", "blocks of 64", "blocks of 128"}
    assert Order(9, "full", reshuffles=False).description == "full, once"
