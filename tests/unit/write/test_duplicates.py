"""Keys that two records share."""

import numpy as np
import pytest

from datum._write import order
from datum._write.order import KeyLedger, find_duplicates, hash_records


def hashes_of(keys):
    return hash_records(np.arange(len(keys)), keys)


@pytest.mark.parametrize("at_once", [2**24, 2])
def test_every_record_after_the_first_of_a_key_is_rejected(monkeypatch, at_once):
    monkeypatch.setattr(order, "_PASS_RECORDS", at_once)
    keys = ["a", "b", "a", "c", "b", "a"]
    found = find_duplicates(hashes_of(keys), keys.__getitem__)
    assert [(reject.record, reject.key) for reject in found] == [(2, "a"), (4, "b"), (5, "a")]
    assert "key of record 0 again" in found[0].reason


def test_keys_of_one_hash_that_differ_are_fine():
    assert find_duplicates(np.zeros(2, np.uint64), ["a", "b"].__getitem__) == []


@pytest.mark.parametrize("held", [2**20, 1])
def test_a_ledger_tells_keys_that_came_long_ago(tmp_path, monkeypatch, held):
    monkeypatch.setattr(order, "_HELD_RECORDS", held)
    ledger = KeyLedger(tmp_path / "deep/keys")
    for numbers, keys in [([0, 1], ["ä", "b"]), ([5, 6], ["", "c"]), ([8, 9], ["d", "ä"])]:
        ledger.add(hashes_of(keys), np.array(numbers), keys)
    found = ledger.find_duplicates()
    assert [(reject.record, reject.key) for reject in found] == [(9, "ä")]
    assert "key of record 0 again" in found[0].reason


def test_an_empty_ledger_has_no_duplicates(tmp_path):
    assert KeyLedger(tmp_path / "keys").find_duplicates() == []
