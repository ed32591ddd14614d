"""Counting of one feature, its images, and payloads of unknown features."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from datum._inspect.profile.results import (
    Distribution,
    FeatureProfile,
    ImageProfile,
    PayloadProfile,
)
from datum._inspect.profile.sketch import (
    MAX_COUNTED_BYTES,
    NumberTally,
    ValueTally,
    tally_numbers,
    tally_strings,
    tally_values,
)
from datum.columns import BytesColumn, Masked, Ragged, Sparse
from datum.errors import Message
from datum.format import Records
from datum.images import ImageError, ImageHeader, sniff_format
from datum.images.header import parse_header
from datum.schema import Feature

__all__ = [
    "FeatureTally",
    "ImageTally",
    "PayloadTally",
    "holds_images",
    "read_fields",
    "tally_column",
    "tally_images",
    "tally_payloads",
]

HEADER_BYTES = 4096  # holds most headers; else the whole image is parsed
SNIFFED_BYTES = 16


@dataclass(frozen=True, slots=True)
class ImageTally:
    """Counts of some images."""

    formats: Counter[str] = field(default_factory=Counter)
    channels: Counter[int] = field(default_factory=Counter)
    width: NumberTally = field(default_factory=NumberTally)
    height: NumberTally = field(default_factory=NumberTally)
    pixels: NumberTally = field(default_factory=NumberTally)
    unreadable: float = 0

    def merge(self, other: ImageTally) -> ImageTally:
        """Return the sum of both."""
        return ImageTally(
            self.formats + other.formats,
            self.channels + other.channels,
            self.width.merge(other.width),
            self.height.merge(other.height),
            self.pixels.merge(other.pixels),
            self.unreadable + other.unreadable,
        )

    def scaled(self, factor: float) -> ImageTally:
        """Return a copy that counts each image `factor` times."""
        return replace(
            self,
            formats=_scaled(self.formats, factor),
            channels=_scaled(self.channels, factor),
            width=self.width.scaled(factor),
            height=self.height.scaled(factor),
            pixels=self.pixels.scaled(factor),
            unreadable=self.unreadable * factor,
        )

    def result(self, *, is_exact: bool) -> ImageProfile:
        """Return the result."""
        return ImageProfile(
            {name: round(count) for name, count in self.formats.most_common()},
            {number: round(count) for number, count in self.channels.most_common()},
            self.width.result(is_exact=is_exact),
            self.height.result(is_exact=is_exact),
            self.pixels.result(is_exact=is_exact),
            round(self.unreadable),
        )


def _scaled(counts: Counter[Any], factor: float) -> Counter[Any]:
    scaled: Counter[Any] = Counter()
    for key, count in counts.items():
        scaled[key] = count * factor  # type: ignore[assignment]  # rounded in the end
    return scaled


def holds_images(strings: BytesColumn) -> bool:
    """Return whether the first non-empty byte string starts like an image."""
    filled = np.flatnonzero(strings.slices[:, 1])
    starts = _starts(strings, filled[:1], SNIFFED_BYTES)
    return any(sniff_format(start) is not None for start in starts)


def tally_images(strings: BytesColumn) -> ImageTally:
    """Count byte strings that should be images."""
    everything = np.arange(len(strings.slices))
    found: list[ImageHeader] = []
    for number, start in enumerate(_starts(strings, everything, HEADER_BYTES)):
        header = _read_header(strings, number, start)
        if header is not None:
            found.append(header)
    return ImageTally(
        Counter(header.format for header in found),
        Counter(header.channels for header in found),
        _tally(header.width for header in found),
        _tally(header.height for header in found),
        _tally(header.width * header.height for header in found),
        len(everything) - len(found),
    )


def _read_header(strings: BytesColumn, number: int, start: bytes) -> ImageHeader | None:
    try:
        return parse_header(start)
    except ImageError:
        pass
    if len(start) == strings.slices[number, 1]:
        return None
    try:
        return parse_header(_starts(strings, np.array([number]), None)[0])
    except ImageError:
        return None


def _starts(strings: BytesColumn, numbers: NDArray[np.int64], limit: int | None) -> list[bytes]:
    slices = strings.slices[numbers]
    if limit is not None:
        slices[:, 1] = np.minimum(slices[:, 1], limit)
    found: list[bytes] = BytesColumn(strings.buffer, slices).to_list()
    return found


def _tally(numbers: Iterable[int]) -> NumberTally:
    return tally_numbers(np.fromiter(numbers, np.int64))


SHOWN_EXAMPLES = 3
SHOWN_BYTES = 256  # of an example, more than a line
MANY_A_RECORD = 16  # values in a record; more are pixels or tokens, not labels

_Part = TypeVar("_Part", NumberTally, ValueTally, ImageTally)


@dataclass(frozen=True, slots=True)
class FeatureTally:
    """Counts of a feature; None for what does not apply.

    Attributes:
        present, missing: Number of records with and without it.
        numbers, lengths, sizes: Counts of elements, of row lengths, and of string sizes in bytes.
        empty: Number of empty strings.
        values: Counts of elements that may be classes.
        images: Counts of image files.
        cells: Number of elements of a sparse feature if it were dense.
        examples: Some strings.
    """

    present: float = 0
    missing: float = 0
    numbers: NumberTally | None = None
    lengths: NumberTally | None = None
    sizes: NumberTally | None = None
    empty: float = 0
    values: ValueTally | None = None
    images: ImageTally | None = None
    cells: float = 0
    examples: tuple[str | bytes, ...] = ()

    def merge(self, other: FeatureTally) -> FeatureTally:
        """Return the sum of both; the records of `other` come later."""
        if not self.present and not self.missing:
            return other
        return FeatureTally(
            self.present + other.present,
            self.missing + other.missing,
            _merge_present(self.numbers, other.numbers),
            _merge_present(self.lengths, other.lengths),
            _merge_present(self.sizes, other.sizes),
            self.empty + other.empty,
            _merge_all(self, other, "values"),
            _merge_present(self.images, other.images),
            self.cells + other.cells,
            tuple(dict.fromkeys(self.examples + other.examples))[:SHOWN_EXAMPLES],
        )

    def scaled(self, factor: float) -> FeatureTally:
        """Return a copy that counts each record `factor` times."""
        return FeatureTally(
            self.present * factor,
            self.missing * factor,
            self.numbers and self.numbers.scaled(factor),
            self.lengths and self.lengths.scaled(factor),
            self.sizes and self.sizes.scaled(factor),
            self.empty * factor,
            self.values and self.values.scaled(factor),
            self.images and self.images.scaled(factor),
            self.cells * factor,
            self.examples,
        )

    def result(
        self, feature: Feature, names: Mapping[Any, str], *, is_exact: bool
    ) -> FeatureProfile:
        """Return the profile of the feature, with these class names."""
        lengths, values, images = self.lengths, self.values, self.images
        filled = lengths.mean * lengths.count if lengths is not None else 0.0
        return FeatureProfile(
            feature,
            round(self.present),
            round(self.missing),
            is_exact,
            _distribution(self.numbers, is_exact=is_exact),
            _distribution(lengths, is_exact=is_exact),
            _distribution(self.sizes, is_exact=is_exact),
            round(self.empty),
            None if values is None else values.result(names, is_exact=is_exact),
            None if images is None else images.result(is_exact=is_exact),
            filled / self.cells if self.cells else None,
            self.examples,
            None if values is None else values.repeated,
        )


def _distribution(tally: NumberTally | None, *, is_exact: bool) -> Distribution | None:
    return None if tally is None else tally.result(is_exact=is_exact)


def _merge_present(first: _Part | None, second: _Part | None) -> _Part | None:
    return first.merge(second) if first and second else first or second


def _merge_all(first: FeatureTally, second: FeatureTally, name: str) -> Any:
    """Merge two counts; None if either has records that were not counted."""
    parts = [getattr(one, name) for one in (first, second) if one.present]
    if not parts or None in parts:
        return None
    return parts[0].merge(parts[1]) if len(parts) == 2 else parts[0]


def tally_column(feature: Feature, column: Any, *, has_classes: bool) -> FeatureTally:
    """Count a column of `datum.format.parse`.

    With `has_classes`, elements are class numbers, counted even if there are many.
    """
    count, missing = len(column), 0
    if isinstance(column, Masked):
        missing = count - int(np.count_nonzero(column.present))
        column = column.values if not missing else column.values[column.present]
    present = count - missing
    if not present:
        return FeatureTally(0, missing)
    lengths, values = _flattened(column)
    found: dict[str, Any] = {"lengths": None if lengths is None else tally_numbers(lengths)}
    if isinstance(column, Sparse):
        found["cells"] = present * math.prod(n or 0 for n in feature.shape)
    is_scalar = not feature.shape
    if isinstance(values, BytesColumn):
        found |= _tally_bytes(feature, values, is_scalar=is_scalar)
    else:
        found["numbers"] = tally_numbers(values)
        if _is_counted(feature, values, present=present, has_classes=has_classes):
            found["values"] = tally_values(_plain(values), is_scalar=is_scalar)
    return FeatureTally(present, missing, **found)


def _flattened(column: Any) -> tuple[NDArray[np.int64] | None, Any]:
    """Return the lengths of records, if they differ, and all elements flattened."""
    if isinstance(column, Sparse):
        return np.bincount(column.indices[:, 0], minlength=len(column)), column.values
    lengths = None
    if isinstance(column, Ragged):
        lengths = column.row_lengths
        while isinstance(column, Ragged):
            column = column.values
    elif isinstance(column, np.ndarray) and column.dtype == object:  # tensors of several shapes
        lengths = np.array([len(tensor) for tensor in column], np.int64)
        column = np.concatenate([tensor.reshape(-1) for tensor in column])
    return lengths, column


def _is_counted(feature: Feature, values: NDArray[Any], *, present: int, has_classes: bool) -> bool:
    """Return whether elements may be classes: scalars, or few integers per record."""
    if not feature.shape:
        return values.dtype.kind != "c"
    if values.dtype.kind not in "iub":
        return False
    is_list = feature.encoding == "values" and len(feature.shape) == 1
    return has_classes or (is_list and values.size <= MANY_A_RECORD * present)


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    """Convert times to counts of their unit, which NumPy can sort."""
    flat = values.reshape(-1)
    if flat.dtype.kind in "mM":
        return flat.astype(np.int64)
    is_small_float = flat.dtype.kind == "V" or (flat.dtype.kind == "f" and flat.itemsize < 4)
    return flat.astype(np.float32) if is_small_float else flat


def _tally_bytes(feature: Feature, strings: BytesColumn, *, is_scalar: bool) -> dict[str, Any]:
    flat = BytesColumn(strings.buffer, strings.slices, is_text=strings.is_text)
    sizes = flat.lengths
    found: dict[str, Any] = {
        "sizes": tally_numbers(sizes),
        "empty": len(sizes) - int(np.count_nonzero(sizes)),
    }
    if feature.encoding == "image" or (feature.dtype == "bytes" and holds_images(flat)):
        return found | {"images": tally_images(flat)}
    found["examples"] = _examples(flat)
    if sizes.max(initial=0) <= MAX_COUNTED_BYTES:
        found["values"] = tally_strings(flat.to_list(), is_scalar=is_scalar)
    return found


def _examples(strings: BytesColumn) -> tuple[str | bytes, ...]:
    """First few distinct strings, shortened."""
    found: dict[str | bytes, None] = {}
    slices = strings.slices[strings.slices[:, 1] > 0][: 8 * SHOWN_EXAMPLES]
    slices[:, 1] = np.minimum(slices[:, 1], SHOWN_BYTES)
    for start in BytesColumn(strings.buffer, slices):
        # Cut bytes may end within a character.
        found[start.decode(errors="ignore") if strings.is_text else start] = None
    return tuple(found)[:SHOWN_EXAMPLES]


LOOKED_AT = 256  # payloads examined per piece; records of a file are of one kind
LOOKED_BYTES = 2**16  # of each of them
GLIMPSE_BYTES = 64
EXAMPLE_BYTES = 40
MAX_FIELDS = 64
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_BYTES = {_FIXED64: 8, _FIXED32: 4}
_NAMES = {_VARINT: "varint", _FIXED64: "64-bit", _BYTES: "bytes", _FIXED32: "32-bit"}


@dataclass(frozen=True, slots=True)
class PayloadTally:
    """Counts of some payloads.

    Attributes:
        sizes: Sizes in bytes.
        kinds: Count of examined payloads by apparent kind.
        fields: Fields of protobuf messages by number: type, number of messages, and a value.
        first: Start of the first payload.
    """

    sizes: NumberTally
    kinds: dict[str, int] = field(default_factory=dict)
    fields: dict[int, tuple[str, int, str]] = field(default_factory=dict)
    first: bytes = b""

    def merge(self, other: PayloadTally) -> PayloadTally:
        """Return the sum of both; those of `other` come later."""
        kinds, fields = dict(self.kinds), dict(self.fields)
        for kind, count in other.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
        for number, (kind, count, example) in other.fields.items():
            kept = fields.get(number, (kind, 0, example))
            fields[number] = _wider(kept[0], kind), kept[1] + count, kept[2]
        return PayloadTally(self.sizes.merge(other.sizes), kinds, fields, self.first)

    def result(self, *, is_exact: bool) -> PayloadProfile:
        """Return the result."""
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
    """Count payloads, and examine the first ones."""
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
    """Return the kind of some bytes, and their fields if they are a message."""
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
    r"""Parse the fields of a protobuf message: type, 1 and a value by number; empty for others.

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
    """Field numbers of a message, without nested ones; empty for other bytes."""
    try:
        return sorted({number for number, _, _ in _walk(data, is_cut=False)})
    except ValueError:
        return []


def _walk(data: bytes, *, is_cut: bool) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield number, wire type and value of each field; raise ValueError for other bytes."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        number, wire = tag >> 3, tag & 7
        if not number or number >= 2**29 or wire not in _NAMES:
            raise ValueError(Message("no tag of a field"))
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield number, wire, value
            continue
        size = _FIXED_BYTES.get(wire, 0)
        if wire == _BYTES:
            size, at = _read_varint(data, at)
        if at + size > len(data) and not is_cut:
            raise ValueError(Message("a field that is longer than the message"))
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
    raise ValueError(Message("a number that does not end"))


def _describe(wire: int, value: int | bytes) -> tuple[str, str]:
    """Return the type of a field and its value as text."""
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
    """Common type of two values of a field."""
    if first == second or second == "empty":
        return first
    return second if first == "empty" else "bytes" if "varint" not in (first, second) else "mixed"
