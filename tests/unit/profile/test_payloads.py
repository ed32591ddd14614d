import pytest

from datum._inspect.profile.tally import LOOKED_AT, read_fields, tally_payloads
from datum.format import Records


def look(*payloads):
    return tally_payloads(Records.of(payloads)).result(is_exact=True)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"a line of text", "text"),
        ("große Töne\n".encode(), "text"),
        (b'{"a": [1, 2]}', "json"),
        (b"{not json", "text"),
        (b"\xff\xd8\xff\xe0rest", "jpeg"),
        (b"\x08\x96\x01\x12\x02hi", "protobuf"),
        (bytes(range(256)), "bytes"),
        (b"", "empty"),
    ],
)
def test_payloads_are_told_by_their_bytes(payload, kind):
    assert look(payload, payload).kind == kind


def test_fields_of_messages_are_counted():
    found = look(b"\x08\x01\x12\x02hi", b"\x08\x02\x1d\x00\x00\x80\x3f")
    assert found.fields == (
        (1, "varint", 2, "1"),
        (2, "text", 1, "'hi'"),
        (3, "32-bit", 1, "0000803f"),
    )
    assert found.seen == 2


def test_every_type_of_field_is_known():
    message = b"\x08\x05" + b"\x11" + bytes(8) + b"\x1d" + bytes(4) + b"\x22\x02\x08\x01\x2a\x00"
    kinds = {number: kind for number, (kind, _, _) in read_fields(message).items()}
    assert kinds == {1: "varint", 2: "64-bit", 3: "32-bit", 4: "message", 5: "empty"}


@pytest.mark.parametrize("payload", [b"\x12\x7f", b"\x08", b"\x0b", b"\x00\x01", b"\xff" * 12])
def test_what_is_no_message_has_no_fields(payload):
    assert read_fields(payload) == {}


def test_messages_nested_without_end_do_no_harm():
    payload = b"\x08\x01"
    for _ in range(3000):
        payload = b"\x0a" + varint(len(payload)) + payload
    assert read_fields(payload)[1][0] == "message"


def varint(number):
    data = b""
    while number >= 128:
        data += bytes([number & 127 | 128])
        number >>= 7
    return data + bytes([number])


def test_only_some_payloads_are_looked_into_and_all_are_measured():
    found = look(*[b"text"] * (LOOKED_AT + 10), b"a longer text")
    assert found.seen == LOOKED_AT
    assert (found.sizes.count, found.sizes.highest) == (LOOKED_AT + 11, 13)


def test_the_first_payload_is_glimpsed_at():
    assert look(b"first", b"second").first == b"first"
    assert len(look(b"x" * 1000).first) == 64
