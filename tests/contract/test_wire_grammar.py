"""Messages made at random from the grammar of the wire format, and then damaged at random."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datum import CorruptRecordError, DatumError, Feature
from datum.format import discover, parse
from tests.contract import wire
from tests.contract.oracle import (
    Message,
    assert_reads_as_protobuf,
    read_protobuf,
    without_unknown_fields,
)
from tests.contract.strategies import INT64S, examples

SIZES = st.one_of(
    st.just(0), st.integers(0, 5)
)  # bytes of a tag or length: mostly as few as can be
KEYS = st.sampled_from([b"a", b"b", b"", "ä".encode(), b"a\0"])


def _pieces(*options: st.SearchStrategy[bytes], most: int = 4) -> st.SearchStrategy[bytes]:
    return st.lists(st.one_of(*options), max_size=most).map(b"".join)


def _delimited(field: int, content: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    return st.builds(
        lambda content, tag_size, size: (
            wire.tag(field, wire.BYTES, size=tag_size)
            + wire.varint(len(content), size=size)
            + content
        ),
        content,
        SIZES,
        SIZES,
    )


FIELDS = st.sampled_from([4, 15, 16, 2047, 2**29 - 1])
UNKNOWN = st.recursive(
    st.one_of(
        st.builds(lambda f, n: wire.tag(f, wire.VARINT) + wire.signed(n), FIELDS, INT64S),
        st.builds(lambda f: wire.tag(f, wire.FIXED64) + bytes(8), FIELDS),
        st.builds(lambda f: wire.tag(f, wire.FIXED32) + b"abcd", FIELDS),
        st.builds(wire.delimited, FIELDS, st.binary(max_size=4)),
        # Field 1 is known to every message, but not of these types.
        st.just(wire.tag(1, wire.FIXED64) + bytes(8)),
        st.just(wire.group(1, wire.delimited(1, b"x"))),
    ),
    lambda inner: st.builds(wire.group, FIELDS, inner),
    max_leaves=3,
)
NUMBERS = st.builds(wire.signed, INT64S, size=st.one_of(st.just(0), st.integers(0, 10)))
FLOATS = st.binary(min_size=4, max_size=4)
INT64_LISTS = _pieces(
    _delimited(1, _pieces(NUMBERS)),
    NUMBERS.map(lambda number: wire.tag(1, wire.VARINT) + number),
    st.just(wire.tag(1, wire.FIXED32) + bytes(4)),
    UNKNOWN,
)
FLOAT_LISTS = _pieces(
    _delimited(1, _pieces(FLOATS)),
    FLOATS.map(lambda bits: wire.tag(1, wire.FIXED32) + bits),
    st.just(wire.tag(1, wire.VARINT) + b"\x05"),
    UNKNOWN,
)
BYTES_LISTS = _pieces(_delimited(1, st.binary(max_size=5)), UNKNOWN)
FEATURES = _pieces(
    _delimited(1, BYTES_LISTS),
    _delimited(2, FLOAT_LISTS),
    _delimited(3, INT64_LISTS),
    UNKNOWN,
    most=3,
)
FEATURE_LISTS = _pieces(_delimited(1, FEATURES), UNKNOWN)


def _maps(value: st.SearchStrategy[bytes]) -> st.SearchStrategy[bytes]:
    tidy = st.builds(
        lambda key, content: wire.delimited(1, key) + wire.delimited(2, content), KEYS, value
    )
    untidy = _pieces(_delimited(1, KEYS), _delimited(2, value))
    return _pieces(_delimited(1, st.one_of(tidy, tidy, untidy)), UNKNOWN)


MESSAGES = _pieces(
    _delimited(1, _maps(FEATURES)), _delimited(2, _maps(FEATURE_LISTS)), UNKNOWN, most=3
)


@examples(150)
@given(st.lists(MESSAGES, min_size=1, max_size=3))
def test_any_sound_message_reads_as_protobuf_reads_it(payloads: list[bytes]) -> None:
    messages = [read_protobuf(payload, is_sequence=True) for payload in payloads]
    assert None not in messages
    if _has_kinds(messages):
        assert_reads_as_protobuf(payloads, messages)


def _has_kinds(messages: list[Any]) -> bool:
    """Whether there is anything to read; if not, `discover` may take it for another message."""
    features = [feature for message in messages for feature in message.context.values()]
    steps = [step for message in messages for steps in message.lists.values() for step in steps]
    return any(kind for kind, _ in [*features, *steps])


@examples(50)
@given(st.lists(_delimited(1, _maps(FEATURES)), max_size=3).map(b"".join))
def test_examples_read_the_same_without_and_with_feature_lists(payload: bytes) -> None:
    """Field 2 is unknown to an Example: whatever it holds, the features stay the same."""
    message = read_protobuf(payload)
    assert message is not None
    followed = payload + wire.delimited(2, b"\xff\xff")
    assert read_protobuf(followed) == message
    names = {key for key, (kind, _) in message.context.items() if kind == "int64"}
    schema = {name: Feature("int64", (None,)) for name in names}
    ours, theirs = parse([payload], schema), parse([followed], schema)
    for name in names:
        assert ours[name].to_list() == theirs[name].to_list() == [message.context[name][1]]


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    payload = bytearray(draw(MESSAGES.filter(len)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(payload)))
        change = draw(st.sampled_from(["cut", "drop", "add", "set", "flip"]))
        byte = draw(st.integers(0, 255))
        if change == "cut":
            del payload[at:]
        elif change == "drop":
            del payload[at : at + 1]
        elif change == "add":
            payload.insert(at, byte)
        elif at < len(payload):
            payload[at] = byte if change == "set" else payload[at] ^ (1 << byte % 8)
    return bytes(payload)


@examples(300)
@given(_damaged())
def test_damaged_messages_read_as_protobuf_reads_them_or_are_refused(payload: bytes) -> None:
    _parse_blindly(payload)
    message = read_protobuf(payload, is_sequence=True)
    if message is None:
        with pytest.raises(CorruptRecordError):
            discover([payload])
    elif _has_kinds([message]):
        if _is_refused(payload):  # though legal: only ever for the sake of unknown fields
            payload = without_unknown_fields(payload)
        assert_reads_as_protobuf([payload], [message])


def _is_refused(payload: bytes) -> bool:
    try:
        discover([payload])
    except CorruptRecordError:
        return True
    return False


def _parse_blindly(payload: bytes) -> None:
    """Whatever it is, it parses or it is a DatumError."""
    for dtype in ("int64", "float32", "bytes"):
        names = {"a": (None,), "b": (), "": (None, 2)}
        schema = {name: Feature(dtype, shape, optional=True) for name, shape in names.items()}
        schema["ä"] = Feature(dtype, (None, None), sequence=True, optional=True)
        try:
            parse([payload], schema)
        except DatumError as error:
            assert "record 0" in str(error)  # noqa: PT017 - it may also pass


def test_the_grammar_makes_what_it_is_meant_to_make() -> None:
    """A fixed message through the oracle, so that the oracle itself is seen to work."""
    floats = wire.delimited(1, struct.pack("<2f", 1.0, -0.0))
    payload = wire.example(wire.entry(b"a", wire.float_list(floats)))
    payload += wire.feature_lists(wire.entry(b"b", wire.delimited(1), wire.delimited(1, b"")))
    message = read_protobuf(payload, is_sequence=True)
    expected = {"a": ("float", [0x3F800000, 0x80000000])}
    assert message == Message(expected, {"b": [(None, []), (None, [])]})
