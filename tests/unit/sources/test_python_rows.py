import pickle
from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from datum.sources.python import RowReader, is_keyed


class Point(NamedTuple):
    lat: float
    lon: float


@dataclass
class Sample:
    text: str
    label: int


def read(items, *, names=None, keyed=False):
    return RowReader(names, is_keyed=keyed).read(items, np.arange(10, 10 + len(items)))


def test_dicts_are_taken_as_they_are():
    items = [{"x": 1}, {}]
    block = read(items)
    assert block.data is items
    assert block.keys is None


@pytest.mark.parametrize(
    ("item", "row"),
    [
        (OrderedDict(a=1), {"a": 1}),
        (Sample("hi", 3), {"text": "hi", "label": 3}),
        (Point(1.5, 2.5), {"lat": 1.5, "lon": 2.5}),
        ((1, 2), {"x": 1, "y": 2}),
        ((1, 2, 3), {"0": 1, "1": 2, "2": 3}),
        ((5,), {"0": 5}),
        (("text", 5), {"x": "text", "y": 5}),
    ],
)
def test_other_rows_become_dicts(item, row):
    block = read([{"z": 0}, item])
    assert block.data == [{"z": 0}, row]
    assert type(block.data[1]) is dict


def test_tuples_have_the_names_given():
    block = read([(1, 2), (3,)], names=("image", "label"))
    assert block.data == [{"image": 1, "label": 2}]
    assert block.rejects[0].reason == "expected a tuple of 2 values, got 1"


@pytest.mark.parametrize("item", [7, None, "text", [1, 2], np.zeros(2), Sample])
def test_what_is_no_row_is_rejected_and_others_go_on(item):
    block = read([{"x": 0}, item, {"x": 2}])
    assert block.data == [{"x": 0}, {"x": 2}]
    assert block.numbers.tolist() == [10, 12]
    assert [reject.record for reject in block.rejects] == [11]
    assert block.rejects[0].reason.startswith("expected a dict of values, got ")


def test_keys_are_split_off():
    block = read([("a", {"x": 1}), (7, Sample("t", 0))], keyed=True)
    assert block.keys == ["a", "7"]
    assert block.data == [{"x": 1}, {"text": "t", "label": 0}]


def test_rows_without_a_key_among_others_are_rejected():
    block = read([("a", {"x": 1}), {"x": 2}, (1, 2)], keyed=True)
    assert block.keys == ["a"]
    assert [reject.record for reject in block.rejects] == [11, 12]
    assert block.rejects[1].reason == "expected a key and a dict, as before, got a tuple of 2"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (("a", {}), True),
        ((np.int64(3), {}), True),
        (("a", Sample("t", 0)), True),
        ((True, {}), False),
        (("a", 5), False),
        (("a", {}, 1), False),
        ({"a": 1}, False),
        (Point(1, {}), False),
        (["a", {}], False),
    ],
)
def test_a_key_and_a_record_are_a_pair(item, expected):
    assert is_keyed(item) == expected


def test_a_reader_can_be_sent_to_another_process():
    reader = RowReader(("a", "b"), is_keyed=False)
    reader.read([Sample("t", 0), (1, 2)], np.arange(2))
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.read([(1, 2)], np.arange(1)).data == [{"a": 1, "b": 2}]
