import struct

from hypothesis import given
from hypothesis import strategies as st

from datum.cli.record_values import describe_payload, fields_of, fields_to_json


def field(number, kind, content):
    return bytes([number << 3 | kind]) + content


def nested(number, content):
    return field(number, 2, bytes([len(content)]) + content)


def test_the_fields_of_a_message_are_told_with_those_within():
    inner = field(1, 0, b"\xac\x02") + nested(2, b"name")
    message = nested(3, inner) + field(4, 5, struct.pack("<f", 0.5))
    message += field(5, 1, struct.pack("<d", 1.25)) + nested(6, b"\xff\xfe\xfd")
    assert describe_payload(message, 80) == [
        f"a protobuf message of {len(message)} bytes, no tf.train.Example:",
        "  3:",
        "    1: 300",
        '    2: "name"',
        "  4: 0.5",
        "  5: 1.25",
        "  6: 3 B, ff fe fd",
    ]


def test_messages_of_one_field_are_told_in_one_line():
    assert describe_payload(nested(1, nested(2, field(3, 0, b"\x07"))), 80)[1:] == ["  1.2.3: 7"]


def test_lines_of_a_text_are_shown_and_counted():
    text = "\n".join(f"line {i}" for i in range(20)).encode()
    lines = describe_payload(text, 80)
    assert lines[0] == f"text of {len(text)} bytes, 20 lines:"
    assert lines[1] == "  line 0"
    assert lines[-1] == "  … 12 more lines"


def test_many_fields_are_cut():
    lines = describe_payload(b"".join(field(1, 0, bytes([i])) for i in range(40)), 80)
    assert lines[-1] == "  … 16 more"


def test_other_bytes_are_dumped():
    assert describe_payload(b"\xff" * 20, 80)[1].startswith("000000  ff ff")
    assert describe_payload(b"", 80) == ["no bytes"]


def test_what_is_cut_off_is_no_message():
    assert fields_of(nested(1, b"abcd")[:-1]) is None
    assert fields_of(b"\x00\x01") is None
    assert fields_of(b"\xff" * 11) is None


@given(st.binary(max_size=80))
def test_any_bytes_can_be_described(data):
    lines = describe_payload(data, 40)
    assert lines
    assert all(line.isprintable() for line in lines)
    fields_to_json(fields_of(data) or [])
