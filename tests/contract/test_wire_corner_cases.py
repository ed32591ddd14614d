"""Odd and damaged messages, byte by byte: read as protobuf reads them, or refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from datum import CorruptRecordError, DatumError, Feature, Schema
from datum.format import discover, parse
from tests.contract.oracle import (
    Message,
    assert_reads_as_protobuf,
    read_protobuf,
    rows_of,
)
from tests.contract.wire import (
    BYTES,
    FIXED32,
    FIXED64,
    GROUP_END,
    VARINT,
    bytes_list,
    delimited,
    entry,
    example,
    feature_lists,
    float_list,
    group,
    int64_list,
    nested_groups,
    packed,
    signed,
    tag,
    unpacked,
    varint,
)

ONE, TWO = struct.pack("<f", 1.0), struct.pack("<f", 2.0)
TYPES = {"bytes": "bytes", "float": "float32", "int64": "int64"}


def _feature(content: bytes) -> bytes:
    return example(entry(b"a", content))


# Legal, if odd: (payload, what protobuf finds under "a").
READ = {
    "packed": (_feature(int64_list(packed(1, 2))), ("int64", [1, 2])),
    "unpacked": (_feature(int64_list(unpacked(1, 2))), ("int64", [1, 2])),
    "packed in pieces": (_feature(int64_list(packed(1), packed(), packed(2))), ("int64", [1, 2])),
    "packed and unpacked": (
        _feature(int64_list(packed(1), unpacked(2, 3), packed(4))),
        ("int64", [1, 2, 3, 4]),
    ),
    "an empty list": (_feature(int64_list()), ("int64", [])),
    "an empty packed chunk": (_feature(int64_list(packed())), ("int64", [])),
    "floats in pieces": (
        _feature(float_list(delimited(1, ONE), tag(1, FIXED32), TWO)),
        ("float", [0x3F800000, 0x40000000]),
    ),
    "int64 edges": (
        _feature(int64_list(packed(2**63 - 1, -(2**63), -1))),
        ("int64", [2**63 - 1, -(2**63), -1]),
    ),
    "a stretched varint": (
        _feature(int64_list(delimited(1, signed(5, size=10)))),
        ("int64", [5]),
    ),
    "bits beyond the 64th": (
        _feature(int64_list(delimited(1, b"\xff" * 9 + b"\x7f"))),
        ("int64", [-1]),
    ),
    "a length of five bytes": (
        _feature(int64_list(delimited(1, b"\x05", size=5))),
        ("int64", [5]),
    ),
    "a tag of five bytes": (
        _feature(int64_list(tag(1, BYTES, size=5), varint(1), b"\x05")),
        ("int64", [5]),
    ),
    "the list twice": (
        _feature(int64_list(packed(1)) + int64_list(packed(2))),
        ("int64", [1, 2]),
    ),
    "another kind first": (
        _feature(float_list(delimited(1, ONE)) + int64_list(packed(2))),
        ("int64", [2]),
    ),
    "there and back": (
        _feature(int64_list(packed(1)) + bytes_list() + int64_list(packed(2))),
        ("int64", [2]),
    ),
    "an empty kind last": (_feature(int64_list(packed(1)) + float_list()), ("float", [])),
    "no kind": (_feature(b""), (None, [])),
    "no value": (example(delimited(1, delimited(1, b"a"))), (None, [])),
    "value before key": (
        example(delimited(1, delimited(2, int64_list(packed(1))), delimited(1, b"a"))),
        ("int64", [1]),
    ),
    "two keys in an entry": (
        example(
            delimited(
                1, delimited(1, b"b"), delimited(2, int64_list(packed(1))), delimited(1, b"a")
            )
        ),
        ("int64", [1]),
    ),
    "two values in an entry": (
        example(
            delimited(
                1,
                delimited(1, b"a"),
                delimited(2, int64_list(packed(1))),
                delimited(2, int64_list(packed(2))),
            )
        ),
        ("int64", [1, 2]),
    ),
    "a value and then an empty one": (
        example(
            delimited(1, delimited(1, b"a"), delimited(2, int64_list(packed(1))), delimited(2, b""))
        ),
        ("int64", [1]),
    ),
    "the key twice": (
        example(entry(b"a", int64_list(packed(1, 1))), entry(b"a", int64_list(packed(2)))),
        ("int64", [2]),
    ),
    "the key twice, last without kind": (
        example(entry(b"a", int64_list(packed(1))), entry(b"a")),
        (None, []),
    ),
    "the key twice, of two kinds": (
        example(entry(b"a", float_list(delimited(1, ONE))), entry(b"a", int64_list(packed(2)))),
        ("int64", [2]),
    ),
    "features twice": (
        _feature(int64_list(packed(1))) + example(entry(b"b", int64_list(packed(2)))),
        ("int64", [1]),
    ),
    "features twice with the same key": (
        _feature(int64_list(packed(1))) + _feature(int64_list(packed(2))),
        ("int64", [2]),
    ),
    "unknown fields everywhere": (
        tag(9, FIXED64)
        + bytes(8)
        + example(
            tag(7, VARINT) + b"\x01",
            entry(b"a", delimited(4, b"x"), int64_list(delimited(2, b"y"), packed(1)), group(5)),
        )
        + group(3, delimited(1, b"z"), group(4, tag(1, VARINT) + b"\x00")),
        ("int64", [1]),
    ),
    "known fields of other wire types": (
        tag(1, VARINT)
        + b"\x01"
        + example(
            tag(1, FIXED32) + bytes(4),
            entry(
                b"a",
                tag(3, VARINT) + b"\x07",
                int64_list(tag(1, FIXED32) + bytes(4), packed(1), tag(1, FIXED64) + bytes(8)),
            ),
        ),
        ("int64", [1]),
    ),
    "a group of a known field": (
        _feature(int64_list(group(1, tag(1, VARINT) + b"\x05"), packed(1))),
        ("int64", [1]),
    ),
    "the largest field number": (
        _feature(int64_list(packed(1), tag(2**29 - 1, VARINT), b"\x00")),
        ("int64", [1]),
    ),
    "groups that are 32 deep": (
        _feature(int64_list(packed(1), nested_groups(32))) + nested_groups(32),
        ("int64", [1]),
    ),
}


@pytest.mark.parametrize(("payload", "expected"), READ.values(), ids=READ)
def test_odd_encodings_read_as_protobuf_reads_them(payload: bytes, expected: Any) -> None:
    message = read_protobuf(payload)
    assert message is not None
    assert message.context["a"] == expected
    _assert_parsed(payload, message)


def _assert_parsed(payload: bytes, message: Message) -> None:
    schema = Schema(
        {
            key: Feature(TYPES.get(kind or "", "int64"), (None,), optional=True)
            for key, (kind, _) in message.context.items()
        }
    )
    expected = [None if kind is None else values for kind, values in message.context.values()]
    for copies in (1, 3):  # the second record of a kind is read with the keys of the first in mind
        batch = parse([payload] * copies, schema)
        assert [rows_of(batch[key]) for key in schema] == [[row] * copies for row in expected]
    found = discover([payload]).context if any(kind for kind, _ in message.context.values()) else {}
    for key, feature in found.items():
        assert feature.kinds == ((message.context[key][0],) if message.context[key][0] else ())


REFUSED = {
    "a varint of eleven bytes": _feature(int64_list(delimited(1, b"\x80" * 10 + b"\x01"))),
    "an unpacked varint of eleven bytes": _feature(
        int64_list(tag(1, VARINT), b"\x80" * 10 + b"\x01")
    ),
    "a varint without an end": _feature(int64_list(delimited(1, b"\x05\x80"))),
    "an unpacked varint without an end": _feature(int64_list(tag(1, VARINT), b"\x80")),
    "a tag of six bytes": _feature(int64_list(tag(1, BYTES, size=6), varint(1), b"\x05")),
    "a tag above 32 bits": _feature(int64_list(varint(1 << 32 | 0x0A), varint(1), b"\x05")),
    "a length of six bytes": _feature(int64_list(delimited(1, b"\x05", size=6))),
    "a length of ten bytes": _feature(int64_list(delimited(1, b"\x05", size=10))),
    "an unknown field with a length of six bytes": _feature(
        int64_list(packed(5), delimited(9, b"x", size=6))
    ),
    "a length past the end": _feature(int64_list(tag(1, BYTES), varint(9), b"\x05")),
    "a length of 2^63": _feature(int64_list(tag(1, BYTES), varint(2**63), b"\x05")),
    "floats that are no multiple of four bytes": _feature(float_list(delimited(1, ONE + b"\0"))),
    "half a float": _feature(float_list(tag(1, FIXED32), b"\0\0")),
    "a field number of zero": _feature(int64_list(tag(0, BYTES), varint(1), b"\x05")),
    "a wire type of six": _feature(int64_list(tag(1, 6), b"\x05")),
    "a wire type of seven": _feature(int64_list(tag(1, 7), b"\x05")),
    "the end of a group that never began": _feature(int64_list(packed(5), tag(5, GROUP_END))),
    "a group without an end": _feature(int64_list(packed(5), tag(5, 3))),
    "a group with another end": _feature(int64_list(packed(5), tag(5, 3), tag(6, GROUP_END))),
    "groups more than a hundred deep": _feature(int64_list(packed(5))) + nested_groups(101),
    "groups in a list, more than a hundred deep in all": _feature(
        int64_list(packed(5), nested_groups(97))
    ),
    "a key that is not UTF-8": example(entry(b"\xff", int64_list(packed(5)))),
    "a key with a surrogate": example(entry(b"\xed\xa0\x80", int64_list(packed(5)))),
    "an overlong key": example(entry(b"\xc0\x80", int64_list(packed(5)))),
    "a key above U+10FFFF": example(entry(b"\xf4\x90\x80\x80", int64_list(packed(5)))),
    "a bad key replaced by a good one": example(
        delimited(1, delimited(1, b"\xff"), delimited(1, b"a"), delimited(2, b""))
    ),
    "damage in a kind that another replaces": _feature(
        float_list(delimited(1, b"abc")) + int64_list(packed(5))
    ),
    "a bad varint in a kind that another replaces": _feature(
        int64_list(delimited(1, b"\x80" * 10 + b"\x01")) + float_list(delimited(1, ONE))
    ),
    "damage in an entry that another replaces": example(
        entry(b"a", int64_list(delimited(1, b"\x80" * 10 + b"\x01"))),
        entry(b"a", int64_list(packed(5))),
    ),
    "a torn entry": example(delimited(1, delimited(1, b"a"), tag(2, BYTES), varint(50))),
    "a torn message": _feature(int64_list(packed(1, 2, 3)))[:-1],
    "a bare tag": b"\x0a",
}


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("dtype", ["int64", "float32", "bytes"])
def test_what_protobuf_refuses_is_refused(payload: bytes, dtype: str) -> None:
    assert read_protobuf(payload) is None
    with pytest.raises(CorruptRecordError, match="record 0"):
        discover([payload])
    with pytest.raises(DatumError, match="record 0"):
        parse([payload], {"a": Feature(dtype, (None,), optional=True)})


@pytest.mark.parametrize("payload", REFUSED.values(), ids=REFUSED)
def test_the_bad_record_is_named(payload: bytes) -> None:
    good = _feature(int64_list(packed(1)))
    schema = {"a": Feature("int64", (None,), optional=True)}
    with pytest.raises(DatumError, match="record 2"):
        parse([good, good, payload, good], schema)
    with pytest.raises(CorruptRecordError, match="record 2"):
        discover([good, good, payload, good])


# Legal, but refused, as docs/concepts/format.md says: protobuf's own runtimes differ, or nobody
# writes it.
REFUSED_ALTHOUGH_LEGAL = {
    "a third field in an entry": example(
        delimited(1, delimited(1, b"a"), delimited(2, int64_list(packed(5))), tag(3, VARINT), b"\1")
    ),
    "a key of another wire type": example(
        delimited(1, tag(1, VARINT), b"\1", delimited(1, b"a"), delimited(2, b""))
    ),
    "a value of another wire type": example(
        delimited(1, delimited(1, b"a"), tag(2, FIXED32), bytes(4))
    ),
    "a group in an entry": example(delimited(1, delimited(1, b"a"), delimited(2, b""), group(5))),
    "a field number of zero in a group": _feature(int64_list(packed(5), group(5, b"\0\0"))),
    "groups that are 33 deep": _feature(int64_list(packed(5), nested_groups(33))),
    "groups that are 33 deep at the top": _feature(int64_list(packed(5))) + nested_groups(33),
}


@pytest.mark.parametrize("payload", REFUSED_ALTHOUGH_LEGAL.values(), ids=REFUSED_ALTHOUGH_LEGAL)
def test_documented_refusals(payload: bytes) -> None:
    assert read_protobuf(payload) is not None
    with pytest.raises(CorruptRecordError, match="record 0"):
        discover([payload])
    with pytest.raises(CorruptRecordError, match="record 0"):
        parse([payload], {"a": Feature("int64", (None,), optional=True)})


def test_damage_in_features_that_are_not_asked_for_is_not_looked_for() -> None:
    broken = entry(b"b", int64_list(delimited(1, b"\x80")))
    payload = example(entry(b"a", int64_list(packed(1))), broken)
    schema = {"a": Feature("int64"), "b": Feature("int64")}
    assert parse([payload], schema, columns=["a"])["a"].tolist() == [1]
    with pytest.raises(CorruptRecordError):
        parse([payload], schema)


def test_feature_lists_merge_as_protobuf_merges_them() -> None:
    first = delimited(1, int64_list(packed(1)))
    second = delimited(1, int64_list(packed(2), unpacked(3)))
    cases = {
        "two values of an entry": feature_lists(
            delimited(1, delimited(1, b"a"), delimited(2, first), delimited(2, second))
        ),
        "two entries, the last wins": feature_lists(entry(b"a", first), entry(b"a", second)),
        "two maps": feature_lists(entry(b"a", first)) + feature_lists(entry(b"b", second)),
        "steps without kind": feature_lists(entry(b"a", first, delimited(1), second)),
        "unknown fields": feature_lists(entry(b"a", group(4), first, delimited(3, b"x"), second)),
        "lists before context": feature_lists(entry(b"a", first))
        + example(entry(b"c", int64_list(packed(9)))),
    }
    for name, payload in cases.items():
        message = read_protobuf(payload, is_sequence=True)
        assert message is not None, name
        assert_reads_as_protobuf([payload] * 2, [message] * 2)
