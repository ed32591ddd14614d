"""Where each record goes."""

import numpy as np
import pytest

from datum import SplitError
from datum._write.order import assign_splits, check_fractions, hash_records, shuffled_places


def numbers(count):
    return np.arange(count, dtype=np.int64)


def test_a_hash_depends_on_the_key_alone():
    first = hash_records(numbers(3), ["a", "b", "c"])
    second = hash_records(np.array([7, 8, 9]), ["c", "b", "a"])
    assert first.tolist() == second[::-1].tolist()


def test_the_hash_of_a_key_never_changes():
    assert hash_records(numbers(2), ["", "train/cat/1.jpg"]).tolist() == [
        17665956581633026203,
        13413280581512293152,
    ]
    assert hash_records(numbers(2), None).tolist() == [
        16294208416658607535,
        7960286522194355700,
    ]


def test_another_seed_gives_another_order():
    hashes = hash_records(numbers(1000), None)
    orders = [np.argsort(shuffled_places(hashes, seed)).tolist() for seed in (0, 1, -1)]
    assert sorted(orders[0]) == list(range(1000))
    assert orders[0] != orders[1] != orders[2]


def test_a_shuffled_order_has_no_trace_of_the_first():
    hashes = hash_records(numbers(100_000), None)
    order = np.argsort(shuffled_places(hashes, 0))
    assert abs(np.corrcoef(order, np.arange(100_000))[0, 1]) < 0.01
    neighbours = np.abs(np.diff(order))
    assert np.median(neighbours) > 20_000


def test_no_record_has_a_place_of_its_own():
    hashes = hash_records(numbers(1000), None)
    firsts = {int(np.argmin(shuffled_places(hashes, seed))) for seed in range(20)}
    assert len(firsts) > 15
    assert 0 not in firsts


def test_a_record_keeps_its_split_when_others_are_added():
    fractions = {"train": 0.8, "val": 0.1, "test": 0.1}
    few = assign_splits(hash_records(numbers(1000), None), fractions)
    many = assign_splits(hash_records(numbers(5000), None), fractions)
    assert many[:1000].tolist() == few.tolist()


def test_fractions_come_out_about_right():
    found = np.bincount(assign_splits(hash_records(numbers(100_000), None), {"a": 0.7, "b": 0.3}))
    assert abs(found[0] - 70_000) < 1000


def test_split_and_order_are_independent():
    hashes = hash_records(numbers(10_000), None)
    is_train = assign_splits(hashes, {"a": 0.5, "b": 0.5}) == 0
    places = shuffled_places(hashes, 0)
    middle = np.median(places[is_train]) / 2.0**64
    assert 0.45 < middle < 0.55


def test_stratified_splits_are_exact_in_every_class():
    labels = ["a"] * 100 + ["b"] * 10 + ["c"] * 1
    hashes = hash_records(numbers(111), None)
    splits = assign_splits(hashes, {"train": 0.8, "val": 0.2}, labels)
    assert np.bincount(splits[:100]).tolist() == [80, 20]
    assert np.bincount(splits[100:110]).tolist() == [8, 2]


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, True, "0.5", None, float("nan")])
def test_a_fraction_that_is_none_is_refused(fraction):
    with pytest.raises(SplitError, match="'val'.*fraction"):
        check_fractions({"train": 0.5, "val": fraction})


def test_fractions_that_do_not_add_up_are_refused():
    with pytest.raises(SplitError, match=r"add up to 1, got 0\.9"):
        check_fractions({"train": 0.7, "val": 0.2})
    assert check_fractions({"a": 1 / 3, "b": 1 / 3, "c": 1 / 3})
