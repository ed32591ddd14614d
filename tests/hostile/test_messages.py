"""Payloads with right checksums whose content is hostile: a typed error, never a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptRecordError, DatumError, Feature, Schema, SchemaError
from datum.format import Records, discover, encode, frame, parse
from tests.contract import wire
from tests.hostile.shards import MIB, flipped, run_measured

SCHEMA = Schema(
    {
        "number": Feature("int64"),
        "small": Feature("uint8", (3,)),
        "floats": Feature("float32", (None,)),
        "names": Feature("str", (None,)),
        "image": Feature("uint8", (2, 2), encoding="raw"),
        "tensor": Feature("float64", (None, None), encoding="raw"),
        "nested": Feature("int64", (None, None)),
        "vector": Feature("float32", (100,), encoding="sparse"),
        "steps": Feature("float32", (None, 2), sequence=True),
        "words": Feature("bytes", (None, None), sequence=True),
        "maybe": Feature("bool", optional=True),
    }
)
ROW = {
    "number": 300,
    "small": [1, 2, 3],
    "floats": [0.5, -1.0],
    "names": ["one", "zwei"],
    "image": np.arange(4, dtype=np.uint8).reshape(2, 2),
    "tensor": np.ones((1, 2)),
    "nested": [[1], [], [2, 3]],
    "vector": ([5, 50], [1.0, 2.0]),
    "steps": [[1.0, 2.0], [3.0, 4.0]],
    "words": [[b"a", b"b"], []],
    "maybe": True,
}
RECORD = bytes(next(iter(encode([ROW], SCHEMA))))
ALL_OPTIONAL = Schema(
    {
        "a": Feature("int64", (None,), optional=True),
        "b": Feature("float32", (2,), optional=True),
        "c": Feature("str", optional=True),
        "d": Feature("bytes", (None, None), sequence=True, optional=True),
    }
)


def outcome(use: Callable[[], Any]) -> str:
    """What came of it; anything but a result or an error of ours fails the test."""
    try:
        use()
    except DatumError as error:
        return type(error).__name__
    return "read"


def test_the_record_reads_as_it_was_written():
    batch = parse([RECORD], SCHEMA)
    assert batch["nested"].to_list() == [[[1], [], [2, 3]]]
    assert batch["words"].to_list() == [[[b"a", b"b"], []]]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_record_cut_at_any_byte_is_refused(threads):
    for cut in range(len(RECORD)):
        assert outcome(lambda cut=cut: parse([RECORD[:cut]], SCHEMA, threads=threads)) != "read"
        outcome(lambda cut=cut: discover([RECORD[:cut]]))


def test_a_record_with_any_bit_flipped_is_read_or_refused():
    sound = [RECORD] * 3
    for bit in range(8 * len(RECORD)):
        damaged = flipped(RECORD, bit)
        alone = outcome(lambda damaged=damaged: parse([damaged], SCHEMA))
        among = outcome(lambda damaged=damaged: parse([*sound, damaged, *sound], SCHEMA))
        assert alone == among, bit
        outcome(lambda damaged=damaged: discover([damaged]))
        outcome(lambda damaged=damaged: discover([damaged]).schema())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data):
    outcome(lambda: parse([data], ALL_OPTIONAL))
    outcome(lambda: parse([data, data], SCHEMA))
    outcome(lambda: discover([data]).schema())


def wrapped(content: bytes) -> Iterator[bytes]:
    """A field inside each of the messages, from the outermost in, sound but for it."""
    yield content
    yield wire.example(content)
    yield wire.example(wire.delimited(1, content))
    yield wire.example(wire.entry(b"a", content))
    yield wire.example(wire.entry(b"a", wire.int64_list(content)))
    yield wire.example(wire.entry(b"b", wire.float_list(content)))
    yield wire.example(wire.entry(b"c", wire.bytes_list(content)))
    yield wire.feature_lists(content)
    yield wire.feature_lists(wire.entry(b"d", content))
    yield wire.feature_lists(wire.entry(b"d", wire.delimited(1, content)))
    yield wire.feature_lists(wire.entry(b"d", wire.delimited(1, wire.bytes_list(content))))


@pytest.mark.parametrize("depth", [101, 1000, 1_000_000])
def test_groups_nested_too_deep_are_refused_in_every_message(depth):
    for payload in wrapped(wire.nested_groups(depth)):
        assert outcome(lambda payload=payload: parse([payload], ALL_OPTIONAL)) == (
            "CorruptRecordError"
        )
        assert outcome(lambda payload=payload: discover([payload])) == "CorruptRecordError"


def test_groups_that_never_end_are_refused_in_every_message():
    for payload in wrapped(wire.tag(15, wire.GROUP_START) * 90):
        assert outcome(lambda payload=payload: parse([payload], ALL_OPTIONAL)) == (
            "CorruptRecordError"
        )
        assert outcome(lambda payload=payload: discover([payload])) == "CorruptRecordError"


@pytest.mark.parametrize("length", [2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
@pytest.mark.parametrize("field", [1, 2, 3, 15])
def test_lengths_that_no_record_can_hold_are_refused_in_every_message(length, field):
    content = wire.tag(field, wire.BYTES) + wire.varint(length) + b"rest"
    for payload in wrapped(content):
        assert outcome(lambda payload=payload: parse([payload], ALL_OPTIONAL)) == (
            "CorruptRecordError"
        )
        assert outcome(lambda payload=payload: discover([payload])) == "CorruptRecordError"


@pytest.mark.parametrize("values", [0, 1, 3, 1_000_000])
def test_another_number_of_values_names_both_numbers(values):
    payload = wire.example(wire.entry(b"x", wire.int64_list(wire.delimited(1, b"\1" * values))))
    with pytest.raises(SchemaError, match=rf"record 0.*'x'.*expected 2 values, got {values}"):
        parse([payload], Schema({"x": Feature("int64", (2,))}))


def test_numbers_that_do_not_fit_are_refused_wherever_they_stand():
    for dtype, bad in (("bool", 2), ("int8", 128), ("uint8", -1), ("int16", 2**15), ("uint32", -1)):
        for place in range(9):
            values = [0] * place + [bad] + [1] * (8 - place)
            payload = wire.example(wire.entry(b"x", wire.int64_list(wire.packed(*values))))
            with pytest.raises(SchemaError, match=f"expected {dtype}, got {bad}"):
                parse([payload], Schema({"x": Feature(dtype, (9,))}))


def test_text_that_is_not_utf8_names_record_and_feature():
    good, bad = (wire.bytes_list(wire.delimited(1, text)) for text in (b"fine", b"\xff\xfe"))
    records = [wire.example(wire.entry(b"x", value)) for value in (good, good, bad)]
    with pytest.raises(SchemaError, match="record 2.*'x'"):
        parse(records, Schema({"x": Feature("str")})).get("x").to_list()


def test_keys_that_are_not_utf8_are_refused():
    payload = wire.example(wire.entry(b"\xff", wire.int64_list(wire.packed(1))))
    for use in (lambda: parse([payload], ALL_OPTIONAL), lambda: discover([payload])):
        with pytest.raises(CorruptRecordError, match="record 0"):
            use()


def test_surrogates_and_overlong_keys_are_refused():
    for key in (b"\xed\xa0\x80", b"\xc0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
        payload = wire.example(wire.entry(key, wire.int64_list(wire.packed(1))))
        with pytest.raises(CorruptRecordError):
            discover([payload])


def test_raw_bytes_of_another_size_are_refused():
    for size in (0, 1, 7, 9, 1000):
        payload = wire.example(wire.entry(b"x", wire.bytes_list(wire.delimited(1, bytes(size)))))
        with pytest.raises(SchemaError, match=f"expected 8 bytes.*got {size}"):
            parse([payload], Schema({"x": Feature("float64")}))


# Records that lie elsewhere than they say.


@pytest.mark.parametrize(
    ("start", "length"),
    [(0, 4), (4, 0), (-1, 1), (1, -1), (2**63 - 1, 1), (1, 2**63 - 1), (-(2**63), 3), (3, 1)],
)
def test_records_outside_their_buffer_are_refused(start, length):
    records = Records(b"abc", np.array([start]), np.array([length]), np.array([0]))
    for use in (
        lambda: parse(records, ALL_OPTIONAL),
        lambda: discover(records),
        lambda: list(records),
    ):
        with pytest.raises((IndexError, ValueError)):
            use()


def test_records_with_other_numbers_of_starts_and_lengths_are_refused():
    records = Records(b"abc", np.array([0, 1]), np.array([1]), np.array([0]))
    with pytest.raises((IndexError, ValueError)):
        parse(records, ALL_OPTIONAL)


# Memory: no more than a small multiple of the records, however they are filled.


def ints(count: int) -> bytes:
    return wire.example(wire.entry(b"x", wire.int64_list(wire.delimited(1, b"\1" * count))))


def floats(count: int) -> bytes:
    return wire.example(wire.entry(b"x", wire.float_list(wire.delimited(1, bytes(4 * count)))))


@pytest.mark.parametrize(("dtype", "make"), [("int64", ints), ("float32", floats)])
def test_a_few_long_records_say_nothing_about_the_others(dtype, make):
    schema = Schema({"x": Feature(dtype, (None,))})
    counts = [1_000_000] * 9 + [1] * 100_000 + [1_000_000]
    found = parse([make(count) for count in counts], schema, threads=1)["x"]
    assert found.row_lengths.tolist() == counts


def test_one_long_record_among_short_ones_does_not_make_room_for_all():
    schema = Schema({"x": Feature("int64", (1_000_000,))})
    with pytest.raises(SchemaError, match=r"record 0.*expected 1000000 values, got 1"):
        parse([ints(1)] * 100_000 + [ints(1_000_000)], schema)


_HOSTILE_RECORDS = {
    "empty entries": lambda n: wire.example(wire.delimited(1) * (n // 2)),
    "one key, empty values": lambda n: wire.example(wire.entry(b"a") * (n // 7)),
    "empty pieces of a value": lambda n: wire.example(
        wire.delimited(1, wire.delimited(1, b"a"), wire.delimited(2) * (n // 2))
    ),
    "empty pieces of a list": lambda n: wire.example(
        wire.entry(b"a", wire.int64_list() * (n // 2))
    ),
    "empty steps": lambda n: wire.feature_lists(wire.entry(b"d", wire.delimited(1) * (n // 2))),
    "unknown fields": lambda n: wire.tag(15, wire.VARINT) * (n // 2),
    "empty maps": lambda n: wire.example() * (n // 2),
    "keys of their own": lambda n: wire.example(*(wire.entry(b"%05x" % i) for i in range(n // 11))),
}


@pytest.mark.parametrize("name", _HOSTILE_RECORDS)
def test_memory_stays_in_proportion_to_the_record(name, tmp_path):
    path = tmp_path / "hostile.tfrecord"
    payload = _HOSTILE_RECORDS[name](2 * MIB)
    path.write_bytes(frame([payload]).to_bytes())
    body = """
from tests.hostile.test_messages import ALL_OPTIONAL, outcome
return [
    outcome(lambda: discover(args[0])),
    outcome(lambda: list(read_batches(args[0], ALL_OPTIONAL, threads=1))),
]"""
    found, growth = run_measured(body, path)
    assert set(found) <= {"read", "SchemaError"}
    # Keys of their own are what discovery returns: an object each, larger than the key.
    factor = 100 if name == "keys of their own" else 16
    assert growth < factor * len(payload) + 32 * MIB
