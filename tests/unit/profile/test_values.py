import numpy as np
import pytest

from datum._inspect.profile.sketch import (
    MAX_COUNTED,
    MAX_LISTED,
    ValueTally,
    tally_strings,
    tally_values,
)


def counted(values, names=None):
    return tally_values(np.asarray(values), is_scalar=True).result(names or {}, is_exact=True)


def test_values_come_by_frequency_and_then_by_size():
    found = counted([3, 1, 3, 2, 10])
    assert found.values == ((3, 2), (1, 1), (2, 1), (10, 1))
    assert (found.distinct, found.total) == (4, 5)
    assert found.is_complete
    assert found.is_exact


def test_classes_have_their_names():
    found = counted([0, 1, 1], {0: "cat", 1: "dog", 2: "emu"})
    assert [found.name_of(value) for value, _ in found.values] == ["dog", "cat"]


def test_parts_together_are_as_the_whole():
    values = np.random.default_rng(0).integers(0, 50, 3000)
    parts = ValueTally()
    for part in np.array_split(values, 7):
        parts = parts.merge(tally_values(part, is_scalar=True))
    assert parts.result({}, is_exact=True).values == counted(values).values


def test_many_values_are_estimated():
    values = np.arange(200_000).reshape(20, -1)
    tally = ValueTally()
    for part in values:
        tally = tally.merge(tally_values(part, is_scalar=True))
    found = tally.result({}, is_exact=True)
    assert not found.is_counted
    assert not found.is_complete
    assert found.distinct == pytest.approx(200_000, rel=0.12)
    assert len(tally.counts) <= MAX_COUNTED


def test_of_many_texts_the_frequent_ones_are_kept():
    texts = [f"rare {n}" for n in range(30_000)]
    texts[::10] = ["often"] * len(texts[::10])
    tally = ValueTally()
    for start in range(0, len(texts), 5000):
        tally = tally.merge(tally_strings(texts[start : start + 5000], is_scalar=True))
    found = tally.result({}, is_exact=True)
    assert found.values[0][0] == "often"
    assert 3000 - 10 <= found.values[0][1] <= 3000
    assert found.distinct == pytest.approx(27_001, rel=0.12)


def test_ids_are_not_listed():
    tally = tally_values(np.arange(MAX_COUNTED + 1), is_scalar=True)
    tally = tally.merge(tally_values(np.arange(10), is_scalar=True))
    assert tally.is_abandoned
    assert tally.result({}, is_exact=True).values == ()


def test_a_result_lists_only_so_many():
    found = counted(np.arange(MAX_LISTED + 5))
    assert len(found.values) == MAX_LISTED
    assert found.distinct == MAX_LISTED + 5
    assert not found.is_complete


def test_measured_floats_are_not_counted_and_chosen_ones_are():
    measured = np.random.default_rng(0).normal(size=1000)
    assert tally_values(measured, is_scalar=True) is None
    found = counted(np.array([0.5, 1.0, np.nan, 0.5]))
    assert found.values == ((0.5, 2), (1.0, 1))
    assert found.total == 3


def test_neighbours_that_are_equal_are_counted():
    assert tally_values(np.array([1, 1, 1, 2, 2]), is_scalar=True).repeated == 0.75
    assert tally_strings(["a", "b", "b"], is_scalar=True).repeated == 0.5
    assert tally_values(np.array([1, 1]), is_scalar=False).repeated is None
    assert tally_values(np.array([1]), is_scalar=True).repeated is None


def test_bytes_are_counted_as_they_are():
    found = tally_strings([b"\xff", b"\xff", b"a"], is_scalar=True).result({}, is_exact=True)
    assert found.values == ((b"\xff", 2), (b"a", 1))
    assert found.name_of(b"\xff") == "\\xff"


def test_truth_values_stay_such():
    assert counted(np.array([True, False, True])).values == ((True, 2), (False, 1))
