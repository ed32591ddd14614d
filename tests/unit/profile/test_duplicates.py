import numpy as np

from datum._inspect.profile.counting import HashedRecords, find_duplicates, hash_payloads
from datum.format import Records


def hashed(*payloads, numbers=None, is_all=True):
    records = Records.of(payloads)
    numbers = np.arange(len(payloads)) if numbers is None else np.array(numbers)
    return HashedRecords(hash_payloads(records), numbers, is_all)


def test_records_that_differ_are_no_duplicates():
    assert find_duplicates({"train": hashed(b"a", b"b"), "val": hashed(b"c")}) == ()


def test_copies_within_a_split_are_counted_without_the_first():
    (found,) = find_duplicates({"train": hashed(b"a", b"b", b"a", b"a")})
    assert (found.split, found.other, found.records) == ("train", "train", 2)
    assert found.examples == ((2, 0), (3, 2))


def test_the_first_copies_of_a_split_are_the_examples():
    payloads = [b"%d" % (n % 50) for n in range(100)]
    (found,) = find_duplicates({"train": hashed(*payloads)})
    assert found.records == 50
    assert found.examples == ((50, 0), (51, 1), (52, 2), (53, 3), (54, 4))


def test_records_of_two_splits_are_found_with_their_twins():
    (found,) = find_duplicates({"train": hashed(b"a", b"b", b"c"), "val": hashed(b"x", b"c")})
    assert (found.split, found.other, found.records) == ("val", "train", 1)
    assert found.examples == ((1, 2),)


def test_numbers_are_those_of_the_records_that_were_looked_at():
    splits = {
        "train": hashed(b"a", numbers=[700], is_all=False),
        "val": hashed(b"a", numbers=[30]),
    }
    (found,) = find_duplicates(splits)
    assert found.examples == ((30, 700),)
    assert not found.is_exact


def test_splits_without_records_share_nothing():
    assert find_duplicates({"train": hashed(), "val": hashed(b"a")}) == ()
    assert find_duplicates({"train": hashed(b"a"), "val": hashed()}) == ()
