"""Records made from files one by one."""

import pickle

import numpy as np

from datum import Schema
from datum.sources import IndexedPart, Reject
from datum.sources.image_files import FilePart, UnusableRecordError


def make_row(number):
    if number == 1:
        raise UnusableRecordError("expected a file, got none", where="list.txt, line 2")
    return {"x": number}


def make_part():
    return FilePart(
        make_row,
        schema=Schema({}),
        keys=["a", "b", "c"],
        fingerprint="f",
        stored_bytes=1,
        metadata={},
    )


def test_it_is_an_indexed_part():
    part = make_part()
    assert isinstance(part, IndexedPart)
    assert len(part) == 3
    assert not part.is_slow_python


def test_records_come_in_the_order_asked_for_and_bad_ones_are_rejected():
    block = make_part().read(np.array([2, 1, 0]))
    assert block.data == [{"x": 2}, {"x": 0}]
    assert block.numbers.tolist() == [2, 0]
    assert block.keys == ["c", "a"]
    assert block.rejects == (Reject(1, "b", "list.txt, line 2", "expected a file, got none"),)


def test_no_numbers_give_an_empty_block():
    block = make_part().read(np.array([], np.int64))
    assert len(block) == 0
    assert block.numbers.dtype == np.int64


def test_it_can_be_sent_to_another_process():
    part = pickle.loads(pickle.dumps(make_part()))
    assert part.read(np.array([0])).data == [{"x": 0}]
