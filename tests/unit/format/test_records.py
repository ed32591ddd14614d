import numpy as np
import pytest

from datum.format import Records, frame

PAYLOADS = [b"one", b"", b"three"]


def test_payloads_come_back_as_they_went_in():
    records = Records.of(PAYLOADS)
    assert len(records) == 3
    assert list(records) == PAYLOADS
    assert [records[i] for i in range(3)] == PAYLOADS
    assert records[-1] == b"three"
    assert records.lengths.tolist() == [3, 0, 5]
    assert records.numbers.tolist() == [0, 1, 2]


def test_payloads_may_come_from_a_generator():
    assert list(Records.of(payload for payload in PAYLOADS)) == PAYLOADS


def test_no_records():
    assert list(Records.of([])) == []
    assert len(Records.join([])) == 0


@pytest.mark.parametrize("at", [3, -4])
def test_a_record_outside_is_an_index_error(at):
    with pytest.raises(IndexError):
        Records.of(PAYLOADS)[at]


def test_one_run_is_joined_without_copying():
    records = Records.of(PAYLOADS)
    assert Records.join([records]) is records


def test_joined_runs_know_where_each_record_came_from():
    first = Records(b"..onetwo", np.array([2, 5]), np.array([3, 3]), np.array([7, 8]), "a", 100)
    second = Records(b"three", np.array([0]), np.array([5]), np.array([0]), "b", None)
    joined = Records.join([first, second])
    assert list(joined) == [b"one", b"two", b"three"]
    assert joined.locate(0) == ("a", 7, 90)  # the header stands 12 bytes before the payload
    assert joined.locate(1) == ("a", 8, 93)
    assert joined.locate(2) == ("b", 0, None)


def test_runs_joined_twice_are_still_located():
    parts = [Records.of([b"x"]), Records.of([b"y", b"z"])]
    again = Records.join([Records.join(parts), Records.of([b"w"])])
    assert list(again) == [b"x", b"y", b"z", b"w"]
    assert [again.locate(i)[1] for i in range(4)] == [0, 0, 1, 0]


def test_records_in_memory_have_no_offset():
    assert Records.of(PAYLOADS).locate(1) == ("<memory>", 1, None)


@pytest.mark.parametrize(
    "make", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint32)]
)
def test_the_buffer_may_have_items_of_any_size(make):
    records = Records(make(b"..oneone"), np.array([2, 5]), np.array([3, 3]), np.array([0, 1]))
    assert records[0] == b"one"
    assert list(records) == [b"one", b"one"]


def test_a_slice_outside_the_buffer_is_refused():
    records = Records(b"abc", np.array([1]), np.array([3]), np.array([0]))
    with pytest.raises(IndexError, match="outside the buffer"):
        list(records)


def test_framed_records_lie_in_the_frames():
    framed = frame(PAYLOADS)
    records = framed.records()
    assert list(records) == PAYLOADS
    assert np.shares_memory(np.asarray(records.buffer), framed.data)
    assert records.locate(1) == ("<memory>", 1, 19)
