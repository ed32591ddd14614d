"""The order of records, found without reading one of them."""

import numpy as np
import pytest

from datum import SourceError
from datum._write.options import check_options
from datum._write.order import divide_part, order_part
from tests.unit.write.parts import Numbers

DEFAULTS = {
    "schema": None,
    "floats": "float32",
    "shuffle": True,
    "seed": 0,
    "shard_bytes": 2**20,
    "shards": None,
    "records_per_shard": None,
    "compression": None,
    "workers": 1,
    "executor": "local",
    "on_error": "raise",
    "stratify": None,
    "sidecars": (),
    "keys": None,
}


def options(**given):
    return check_options(**{**DEFAULTS, **given})


def test_no_record_is_read():
    part = Numbers(1000)
    ((name, order, duplicates),) = order_part(part, "train", None, options())
    assert part.read_numbers == []
    assert (name, sorted(order.tolist()), duplicates) == ("train", list(range(1000)), [])
    assert order.tolist() != list(range(1000))


def test_the_order_goes_by_keys_not_by_listing():
    keys = [f"k{i}" for i in range(100)]
    orders = []
    for listed in (keys, keys[::-1]):
        ((_, order, _),) = order_part(Numbers(100, keys=listed), "train", None, options())
        orders.append([listed[n] for n in order])
    assert orders[0] == orders[1]


def test_fractions_share_out_all_records():
    part = Numbers(1000)
    division = divide_part(part, {"a": 0.5, "b": 0.5}, stratify=None)
    found = list(order_part(part, "train", division, options(shuffle=False)))
    assert [name for name, _, _ in found] == ["a", "b"]
    assert sorted(np.concatenate([order for _, order, _ in found]).tolist()) == list(range(1000))
    assert all((np.diff(order) > 0).all() for _, order, _ in found)


def test_a_key_that_comes_twice():
    part = Numbers(3, keys=["a", "b", "a"])
    with pytest.raises(SourceError, match=r"record 2 \(a\)"):
        list(order_part(part, "train", None, options()))
    ((_, order, duplicates),) = order_part(part, "train", None, options(on_error="skip"))
    assert sorted(order.tolist()) == [0, 1]
    assert [reject.record for reject in duplicates] == [2]
    division = divide_part(part, {"a": 0.5, "b": 0.5}, stratify=None)
    found = list(order_part(part, "train", division, options(on_error="skip")))
    assert sum(len(order) for _, order, _ in found) == 2
    assert sum(len(duplicates) for _, _, duplicates in found) == 1
