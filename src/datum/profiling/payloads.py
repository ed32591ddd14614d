"""Records of which no features are known: what their bytes look like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from datum.format import Records
from datum.images import sniff_format
from datum.profiling.numbers import NumberTally, tally_numbers
from datum.profiling.results import PayloadProfile

__all__ = ["PayloadTally", "read_fields", "tally_payloads"]

LOOKED_AT = 256  # payloads of a piece whose bytes are read: all records of a file are of one kind
LOOKED_BYTES = 2**16  # of each of them
GLIMPSE_BYTES = 64
EXAMPLE_BYTES = 40
MAX_FIELDS = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_NAMES = {_VARINT: "varint", _FIXED64: "64-bit", _BYTES: "bytes", _FIXED32: "32-bit"}


@dataclass(frozen=True, slots=True)
class PayloadTally:
    """What was counted of some payloads.

    Attributes:
        sizes: of all of them, in bytes.
        kinds: how many of those looked at seem to be of a kind.
        fields: of protobuf messages, by number: type, in how many messages, and a value.
        first: the start of the first payload.
    """

    sizes: NumberTally
    kinds: dict[str, int] = field(default_factory=dict)
    fields: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    first: bytes = b""

    def merge(self, other: PayloadTally) -> PayloadTally:
        """Of both; those of `other` come after these."""
        kinds, fields = dict(self.kinds), dict(self.fields)
        for kind, count in other.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
        for number, (kind, count, example) in other.fields.items():
            kept = fields.get(number, (kind, 0, example))
            fields[number] = _wider(kept[0], kind), kept[1] + count, kept[2]
        return PayloadTally(self.sizes.merge(other.sizes), kinds, fields, self.first)

    def result(self, *, is_exact: bool) -> PayloadProfile:
        """What it says."""
        kind = max(self.kinds, key=lambda name: self.kinds[name], default="bytes")
        fields = sorted(self.fields.items())[:MAX_FIELDS] if kind == "protobuf" else []
        return PayloadProfile(
            self.sizes.result(is_exact=is_exact),
            kind,
            tuple((number, *found) for number, found in fields),
            self.first,
            sum(self.kinds.values()),
        )


def tally_payloads(records: Records) -> PayloadTally:
    """Count payloads, and look into the first of them."""
    tally = PayloadTally(tally_numbers(records.lengths))
    for number in range(min(len(records), LOOKED_AT)):
        payload = records[number]
        kind, fields = _look(payload)
        first = payload[:GLIMPSE_BYTES]
        tally = tally.merge(PayloadTally(NumberTally(), {kind: 1}, fields, first))
        if number == 0:
            tally = PayloadTally(tally.sizes, tally.kinds, tally.fields, first)
    return tally


def _look(payload: bytes) -> tuple[str, dict[int, tuple[str, int, str]]]:
    """What kind of bytes they are, and the fields if they are a message."""
    if not payload:
        return "empty", {}
    image = sniff_format(payload)
    if image is not None:
        return image, {}
    text = _as_text(payload)
    if text is not None:
        return "json" if _is_json(text) else "text", {}
    fields = read_fields(payload)
    return ("protobuf", fields) if fields else ("bytes", {})


def _as_text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(letter.isprintable() or letter in "\t\n\r" for letter in text) else None


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def read_fields(payload: bytes) -> dict[int, tuple[str, int, str]]:
    r"""The fields of a protobuf message, by number: type, 1, and a value; empty if it is none.

    >>> read_fields(b"\x08\x96\x01\x12\x02hi")
    {1: ('varint', 1, '150'), 2: ('text', 1, "'hi'")}
    """
    found: dict[int, tuple[str, int, str]] = {}
    try:
        is_cut = len(payload) > LOOKED_BYTES
        for number, wire, value in _walk(payload[:LOOKED_BYTES], is_cut=is_cut):
            kind, example = _describe(wire, value)
            kept = found.get(number, (kind, 1, example))
            found[number] = _wider(kept[0], kind), 1, kept[2]
    except ValueError:
        return {}
    return found


def _field_numbers(data: bytes) -> list[int]:
    """The numbers of the fields of a message, not looking into them; empty if it is none."""
    try:
        return sorted({number for number, _, _ in _walk(data, is_cut=False)})
    except ValueError:
        return []


def _walk(data: bytes, *, is_cut: bool) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and value of each field; ValueError if it is no message."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number or number >= 2**29 or wire not in _NAMES:
            raise ValueError("no tag of a field")
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield number, wire, value
            continue
        size = _FIXED_BYTES.get(wire, 0)
        if wire == _BYTES:
            size, at = _read_varint(data, at)
        if at + size > len(data) and not is_cut:
            raise ValueError("a field that is longer than the message")
        yield number, wire, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number that does not end")


def _describe(wire: int, value: int | bytes) -> tuple[str, str]:
    """A type, and the value as text."""
    if isinstance(value, int):
        return _NAMES[wire], str(value)
    shown = value[:EXAMPLE_BYTES]
    more = "..." if len(value) > EXAMPLE_BYTES else ""
    if wire != _BYTES:
        return _NAMES[wire], shown.hex()
    if not value:
        return "empty", ""
    text = _as_text(value)
    if text is not None:
        return "text", repr(text[:EXAMPLE_BYTES]) + more
    inner = _field_numbers(value)
    if inner:
        return "message", f"fields {', '.join(map(str, inner[:8]))}"
    return "bytes", shown.hex(" ") + more


def _wider(first: str, second: str) -> str:
    """What two values of one field are both of."""
    if first == second or second == "empty":
        return first
    return second if first == "empty" else "bytes" if "varint" not in (first, second) else "mixed"
