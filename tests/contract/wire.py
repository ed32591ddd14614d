"""Protocol-buffer wire format by hand, sound or not: bytes that no serializer would write."""

from __future__ import annotations

VARINT, FIXED64, BYTES, GROUP_START, GROUP_END, FIXED32 = range(6)


def varint(value: int, *, size: int = 0) -> bytes:
    """An unsigned varint, stretched to `size` bytes with zeros if it needs fewer."""
    groups = []
    while value or len(groups) < max(size, 1):
        groups.append(value & 0x7F)
        value >>= 7
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def signed(value: int, *, size: int = 0) -> bytes:
    """An int64 as protobuf writes it: two's complement, so ten bytes if negative."""
    return varint(value & (2**64 - 1), size=size)


def tag(field: int, wire_type: int, *, size: int = 0) -> bytes:
    """The tag of a field."""
    return varint(field << 3 | wire_type, size=size)


def delimited(field: int, *content: bytes, size: int = 0) -> bytes:
    """A length-delimited field; the length takes `size` bytes."""
    joined = b"".join(content)
    return tag(field, BYTES) + varint(len(joined), size=size) + joined


def group(field: int, *content: bytes) -> bytes:
    """A group, which neither message has: an unknown field to be stepped over."""
    return tag(field, GROUP_START) + b"".join(content) + tag(field, GROUP_END)


def nested_groups(depth: int) -> bytes:
    """An unknown field of groups, one in the other."""
    return tag(15, GROUP_START) * depth + tag(15, GROUP_END) * depth


def packed(*values: int) -> bytes:
    """The packed values of an Int64List."""
    return delimited(1, *map(signed, values))


def unpacked(*values: int) -> bytes:
    """The same values, each with a tag of its own."""
    return b"".join(tag(1, VARINT) + signed(value) for value in values)


def bytes_list(*content: bytes) -> bytes:
    """The bytes_list member of a Feature."""
    return delimited(1, *content)


def float_list(*content: bytes) -> bytes:
    """The float_list member of a Feature."""
    return delimited(2, *content)


def int64_list(*content: bytes) -> bytes:
    """The int64_list member of a Feature."""
    return delimited(3, *content)


def entry(key: bytes, *value: bytes) -> bytes:
    """A map entry: key, then one value, all as a field of Features or FeatureLists."""
    return delimited(1, delimited(1, key), delimited(2, *value))


def example(*features: bytes) -> bytes:
    """An Example of map entries; the same bytes are the context of a SequenceExample."""
    return delimited(1, *features)


def feature_lists(*lists: bytes) -> bytes:
    """The feature_lists of a SequenceExample, of map entries."""
    return delimited(2, *lists)
