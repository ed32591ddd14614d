"""Records that are no Examples: as text, as the fields of a protobuf message, or as bytes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from datum.cli.records.bytes import hex_dump, look_at, text_of
from datum.cli.records.values import clean, shorten
from datum.cli.words.wording import count_of

__all__ = ["Field", "describe_payload", "fields_of", "fields_to_json"]

MAX_DEPTH = 6  # of messages in messages that are told
MAX_FIELDS = 24  # that are told
MAX_TEXT_LINES = 8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its number, and an integer, bytes, or the fields of a message."""

    number: int
    kind: int
    value: Any


def fields_of(data: bytes, depth: int = MAX_DEPTH) -> list[Field] | None:
    """The fields of a protobuf message; None for what is none."""
    try:
        return list(_read_fields(data, depth)) if data else None
    except (IndexError, ValueError, struct.error):
        return None


def _read_fields(data: bytes, depth: int) -> Iterator[Field]:
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise ValueError("expected a field number above 0")
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield Field(number, kind, value)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
            yield Field(number, kind, struct.unpack_from("<q" if size == 8 else "<i", data, at)[0])
            at += size
        elif kind == _BYTES:
            size, at = _read_varint(data, at)
            part = data[at : at + size]
            if len(part) != size:
                raise ValueError("expected as many bytes as the length says")
            at += size
            yield Field(number, kind, _inside(part, depth))
        else:
            raise ValueError("expected a wire type of today")


def _inside(part: bytes, depth: int) -> Any:
    """What bytes are: a text, else a message, else bytes."""
    if text_of(part) is not None or depth <= 1 or len(part) < 2:
        return part
    inner = fields_of(part, depth - 1)
    return part if inner is None else inner


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("expected a number of at most ten bytes")


def describe_payload(payload: bytes, room: int) -> list[str]:
    """What a record is that is no Example, in a few lines."""
    size = count_of(len(payload), "byte")
    if not payload:
        return ["no bytes"]
    text = text_of(payload)
    if text is not None:
        lines = text.splitlines() or [""]
        if len(lines) == 1:
            return [shorten(f'text of {size}: "{clean(text)}"', room)]
        more = len(lines) - MAX_TEXT_LINES
        shown = [shorten(f"  {clean(line)}", room) for line in lines[:MAX_TEXT_LINES]]
        rest = [f"  … {more:,} more lines"] if more > 0 else []
        return [f"text of {size}, {len(lines):,} lines:", *shown, *rest]
    fields = fields_of(payload)
    if fields is not None and _is_likely(fields):
        told = list(_tell_fields(fields, room, "  "))
        more = len(told) - MAX_FIELDS
        rest = [f"  … {more:,} more"] if more > 0 else []
        title = f"a protobuf message of {size}, no tf.train.Example:"
        return [title, *told[:MAX_FIELDS], *rest]
    return [look_at(payload, room), *hex_dump(payload)]


def _is_likely(fields: list[Field]) -> bool:
    """Whether bytes are a message, and do not only happen to read as one."""
    return bool(fields) and max(field.number for field in fields) < 1000


def _tell_fields(fields: list[Field], room: int, indent: str) -> Iterator[str]:
    for field in fields:
        numbers = [str(field.number)]
        while isinstance(field.value, list) and len(field.value) == 1:
            field = field.value[0]
            numbers.append(str(field.number))
        lead = f"{indent}{'.'.join(numbers)}"
        if isinstance(field.value, list):
            yield f"{lead}:"
            yield from _tell_fields(field.value, room, indent + "  ")
        else:
            yield shorten(f"{lead}: {_tell_value(field, room - len(lead))}", room)


def _tell_value(field: Field, room: int) -> str:
    if isinstance(field.value, int):
        if field.kind == _FIXED32:
            return f"{struct.unpack('<f', struct.pack('<i', field.value))[0]:.6g}"
        if field.kind == _FIXED64:
            return f"{struct.unpack('<d', struct.pack('<q', field.value))[0]:.6g}"
        return str(field.value)
    text = text_of(field.value)
    return f'"{clean(text)}"' if text is not None else look_at(field.value, room)


def fields_to_json(fields: list[Field]) -> list[dict[str, Any]]:
    """The fields of a message as plain values: number, and an integer, text, size or fields."""
    found = []
    for field in fields:
        if isinstance(field.value, list):
            found.append({"field": field.number, "fields": fields_to_json(field.value)})
        elif isinstance(field.value, int):
            found.append({"field": field.number, "value": field.value})
        else:
            text = text_of(field.value)
            told = {"text": text} if text is not None else {"bytes": len(field.value)}
            found.append({"field": field.number, **told})
    return found
