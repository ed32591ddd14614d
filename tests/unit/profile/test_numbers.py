import math

import numpy as np
import pytest

from datum._inspect.profile.sketch import NumberTally, bin_edges, tally_numbers


def result(values):
    return tally_numbers(np.asarray(values)).result(is_exact=True)


def test_numbers_are_told_by_extremes_mean_and_spread():
    values = np.random.default_rng(0).normal(5, 2, 1000)
    found = result(values)
    assert (found.count, found.lowest, found.highest) == (1000, values.min(), values.max())
    assert found.mean == pytest.approx(values.mean())
    assert found.std == pytest.approx(values.std())
    assert found.quantiles[0.5] == pytest.approx(np.median(values))
    assert sum(found.histogram.counts) == 1000


def test_what_is_not_finite_is_counted_apart():
    found = result(np.array([1.0, np.nan, np.inf, -np.inf, 0.0, np.nan]))
    assert (found.count, found.nan, found.infinite, found.zeros) == (2, 2, 2, 1)
    assert (found.lowest, found.highest) == (0.0, 1.0)


def test_nothing_but_nan_has_no_range():
    found = result(np.array([np.nan, np.nan]))
    assert (found.count, found.nan, found.lowest, found.histogram) == (0, 2, None, None)


def test_parts_together_are_as_the_whole():
    values = np.random.default_rng(1).normal(1e6, 1, 3000)
    whole = tally_numbers(values)
    parts = NumberTally()
    for part in np.array_split(values, 11):
        parts = parts.merge(tally_numbers(part))
    assert parts.mean == pytest.approx(whole.mean, rel=1e-12)
    assert parts.squares == pytest.approx(whole.squares, rel=1e-9)
    assert (parts.lowest, parts.highest) == (whole.lowest, whole.highest)


def test_large_arrays_are_counted_in_pieces():
    values = np.arange(2**19 + 5, dtype=np.float32)
    found = result(values)
    assert found.mean == pytest.approx(values.mean(dtype=np.float64))
    assert found.count == len(values)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "float16", "float32", "bool"])
def test_every_type_of_numbers_is_counted(dtype):
    found = result(np.array([0, 1, 1], dtype))
    assert (found.count, found.lowest, found.highest, found.zeros) == (3, 0, 1, 1)
    assert found.mean == pytest.approx(2 / 3)


def test_times_are_counts_of_their_unit_and_no_time_is_no_number():
    found = result(np.array(["1970-01-03", "NaT", "1970-01-01"], "datetime64[D]"))
    assert (found.count, found.lowest, found.highest, found.nan) == (2, 0, 2, 1)


def test_complex_numbers_are_told_by_their_size():
    found = result(np.array([3 + 4j, 0j]))
    assert (found.lowest, found.highest) == (0.0, 5.0)


def test_sums_that_overflow_have_no_mean_and_raise_nothing():
    found = result(np.array([1.7e308, -1.7e308, 1.7e308, 1.7e308]))
    assert found.std is None
    assert all(map(math.isfinite, found.histogram.edges))
    assert sum(found.histogram.counts) == 4


def test_integers_that_no_float_holds_keep_their_extremes():
    found = result(np.array([2**64 - 1, 2**63 + 1], np.uint64))
    assert (found.lowest, found.highest) == (2**63 + 1, 2**64 - 1)


@pytest.mark.parametrize("span", [1, 2, 15, 31, 40, 41, 53, 100, 365, 391, 1000, 1_000_003])
def test_bins_of_integers_hold_equally_many_but_for_the_last(span):
    edges = bin_edges(5, 4 + span, is_integer=True)
    widths = np.diff(edges)
    assert edges[0] == 5
    assert edges[-1] == 5 + span
    assert len(set(widths[:-1].tolist())) <= 1
    assert 0 < widths[-1] <= widths[0]
    assert len(widths) <= 40


def test_floats_that_are_whole_are_binned_as_integers_are():
    found = result(np.tile(np.arange(17.0), 3))
    assert found.histogram.counts == (3,) * 17


def test_one_value_is_one_bin():
    assert result(np.full(5, 2.5)).histogram.counts == (5,)
    assert result(np.full(5, 2)).histogram.counts == (5,)


def test_a_split_that_was_sampled_counts_as_much_as_it_has_records():
    tally = tally_numbers(np.array([0, 10])).scaled(50).merge(tally_numbers(np.full(100, 10)))
    assert tally.count == 200
    assert tally.mean == pytest.approx(7.5)
