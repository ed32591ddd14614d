"""The keyed permutation of the core against its definition, written down a second time."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datum import _core

WORD = 2**64 - 1


def mix(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & WORD
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & WORD
    return z ^ z >> 31


def record_at(position, records, key):
    """As the comment in native/permutation.h defines it."""
    rounds = 32 if records < 65536 else 8
    keys = [mix(mix(key) + (i + 1) * 0x9E3779B97F4A7C15 & WORD) for i in range(rounds)]
    a = math.isqrt(records - 1) + 1
    b = -(-records // a)
    x = position
    while True:
        left, right = divmod(x, b)
        for i in range(0, rounds, 2):
            left = (left + ((mix(right ^ keys[i]) >> 32) * a >> 32)) % a
            right = (right + ((mix(left ^ keys[i + 1]) >> 32) * b >> 32)) % b
        x = left * b + right
        if x < records:
            return x


def permuted(records, key):
    return _core.permute(np.arange(records), records, key)


def test_every_size_up_to_two_thousand_is_permuted():
    for records in range(1, 2001):
        order = permuted(records, records * 7919)
        assert np.array_equal(np.sort(order), np.arange(records)), records
        assert np.array_equal(
            _core.permute(order, records, records * 7919, True), np.arange(records)
        )


@pytest.mark.parametrize("near", [2**10, 2**15, 2**16, 2**17, 255**2, 256**2, 300**2, 300 * 301])
def test_sizes_near_powers_and_squares_are_permuted(near):
    for records in range(near - 2, near + 3):
        order = permuted(records, 5)
        assert np.array_equal(np.sort(order), np.arange(records)), records
        assert np.array_equal(_core.permute(order, records, 5, inverse=True), np.arange(records))


@pytest.mark.parametrize("records", [1, 2, 3, 4, 5, 24, 25, 26, 255, 1000, 65535, 65536, 65537])
@pytest.mark.parametrize("key", [0, 1, WORD])
def test_the_order_is_that_of_the_definition(records, key):
    positions = np.unique(np.linspace(0, records - 1, 200).astype(np.int64))
    expected = [record_at(int(position), records, key) for position in positions]
    assert _core.permute(positions, records, key).tolist() == expected


@settings(max_examples=200, deadline=None)
@given(
    records=st.one_of(
        st.integers(1, 2**63 - 1),
        st.sampled_from([10**9, 2**40, 2**62, 2**63 - 1, (2**31) ** 2, 3037000499**2]),
    ),
    key=st.integers(0, WORD),
    data=st.data(),
)
def test_any_place_of_any_size_is_found_and_found_back(records, key, data):
    positions = np.array(data.draw(st.lists(st.integers(0, records - 1), max_size=9)), np.int64)
    found = _core.permute(positions, records, key)
    assert found.tolist() == [record_at(int(position), records, key) for position in positions]
    assert _core.permute(found, records, key, True).tolist() == positions.tolist()


@pytest.mark.parametrize("records", range(2, 13))
def test_few_records_come_at_each_place_about_equally_often(records):
    keys = 3000
    places = np.stack([permuted(records, key) for key in range(keys)])
    expected = keys / records
    for position in range(records):
        counts = np.bincount(places[:, position], minlength=records)
        chi_squared = ((counts - expected) ** 2 / expected).sum()
        assert chi_squared < records - 1 + 6 * math.sqrt(2 * (records - 1))
    # Every pair of neighbours, too: 8 rounds leave some of six records a sixth more likely.
    pairs = Counter(zip(places[:, 0].tolist(), places[:, 1].tolist(), strict=True))
    expected = keys / (records * (records - 1))
    chi_squared = sum((pairs[a, b] - expected) ** 2 / expected for a in range(records)
                      for b in range(records) if a != b)  # fmt: skip
    freedom = records * (records - 1) - 1
    assert chi_squared < freedom + 6 * math.sqrt(2 * freedom)


def test_keys_give_orders_of_their_own():
    orders = {tuple(permuted(50, key).tolist()) for key in range(500)}
    assert len(orders) == 500


@pytest.mark.parametrize("positions", [[-1], [5], [0, 9]])
def test_positions_outside_are_refused(positions):
    with pytest.raises(IndexError):
        _core.permute(np.array(positions), 5, 0)


def test_no_positions_of_no_records_are_fine():
    assert _core.permute(np.empty(0, np.int64), 0, 0).tolist() == []
    assert _core.permute(np.empty(0, np.int64), 5, 0).dtype == np.int64
