"""Values of a record, one line each."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.cells import cell_len

from datum import BytesColumn, DatumError, Feature, Masked, Ragged, Schema, Sparse, format, images
from datum.errors import Message, count_of, format_bytes, inert, suggest

__all__ = [
    "Cell",
    "Field",
    "cells_of",
    "clean",
    "describe_payload",
    "describe_type",
    "describe_value",
    "fields_of",
    "fields_to_json",
    "hex_dump",
    "look_at",
    "read_image_header",
    "shorten",
    "shorten_name",
    "text_of",
]

_STARTS = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"%PDF", "PDF"),
    (b"OggS", "Ogg"),
    (b"fLaC", "FLAC"),
    (b"ID3", "MP3"),
    (b"\x93NUMPY", "NumPy array"),
    (b"\x89HDF", "HDF5"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"\x80\x04\x95", "pickle"),
    (b"\x80\x05\x95", "pickle"),
)
_RIFF = {b"WAVE": "WAV", b"AVI ": "AVI"}
HEX_BYTES = 16  # in a line


def look_at(data: bytes, room: int, *, is_short: bool = False) -> str:
    r"""Describe a byte string by size and content.

    >>> look_at(b"\x1f\x8b\x08\x00", 80), look_at(b"hello", 80)
    ('4 B, gzip', '5 B, text "hello"')
    """
    size = format_bytes(len(data))
    header = read_image_header(data)
    if header is not None:
        image = f"{header.format.upper()} {header.width} x {header.height}{_colours(header)}"
        return image if is_short else f"{image}, {size}"
    kind = kind_of(data)
    if kind is not None or not data:
        return f"{size}, {kind}" if kind else size
    text = text_of(data)
    if text is not None:
        shown = text[: max(8, room - len(size) - 10)]
        more = "…" if len(shown) < len(text) else ""
        return f'{size}, text "{shown}{more}"'
    start = data[: 4 if is_short else 12].hex(" ")
    return f"{size}, {start}{' …' if len(data) > 12 else ''}"


def _colours(header: images.ImageHeader) -> str:
    if header.has_palette:
        return ", palette"
    names = {1: ", grey", 4: ", with transparency"}
    bits = ", 16 bits" if header.dtype == "uint16" else ""
    return names.get(header.channels, "") + bits


def kind_of(data: bytes) -> str | None:
    """Return the file type that the first bytes show, except images."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return "MP4"
    return next((kind for start, kind in _STARTS if data.startswith(start)), None)


def read_image_header(data: bytes) -> images.ImageHeader | None:
    """Read the header of an image; None for damaged or other data."""
    if images.sniff_format(data) is None:
        return None
    try:
        return images.read_header(data)
    except images.ImageError:
        return None


def text_of(data: bytes) -> str | None:
    """Decode bytes that look like UTF-8 text, with its line breaks; else None."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    odd = sum(not one.isprintable() and one not in "\n\r\t" for one in text[:4096])
    return text if odd == 0 else None


def hex_dump(data: bytes, *, lines: int = 4) -> list[str]:
    """Dump the first bytes, sixteen per line: offset, hexadecimal, text."""
    shown = []
    for at in range(0, min(len(data), lines * HEX_BYTES), HEX_BYTES):
        part = data[at : at + HEX_BYTES]
        letters = "".join(chr(one) if 32 <= one < 127 else "." for one in part)
        shown.append(f"{at:06x}  {part.hex(' '):<{3 * HEX_BYTES - 1}}  {letters}")
    return shown


@dataclass(frozen=True, slots=True)
class Cell:
    """A feature of one record.

    Attributes:
        value: Array, NumPy scalar, `str`, `bytes` (also of images), `Sparse`, a list of these, or
            None if absent.
        class_names: Class names, if the integers are ids.
        metadata: Metadata of the feature.
    """

    name: str
    feature: Feature
    value: Any
    class_names: Sequence[str] = ()
    metadata: Mapping[str, Any] | None = None


def cells_of(
    payload: bytes,
    schema: Schema | None,
    *,
    columns: Sequence[str] | None = None,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """Parse the features of a serialized record, inferred without a schema.

    Selected features that it lacks are then absent, unless it lacks all of them. Raises DatumError
    for a record that is no Example or does not match the schema.
    """
    is_guess = schema is None
    if schema is None:
        found = format.discover([payload])
        if not any(feature.kinds for feature in found.features.values()):
            raise DatumError("expected a tf.train.Example with features, got a record without")
        schema = found.schema(text=True)
    lacking = [name for name in columns or () if is_guess and name not in schema]
    if columns is not None and len(lacking) < len(columns):
        schema = schema.select(name for name in columns if name not in lacking)
    elif columns is not None:
        hint = suggest("".join(columns[:1]), schema, f"there are {', '.join(schema)}")
        got = ", ".join(map(repr, columns))
        raise ValueError(
            Message(f"--columns: expected features of the records, got {got}", hint=hint)
        )
    batch = format.parse([payload], schema, threads=1)
    known = metadata or {}
    cells = []
    for name, feature in schema.items():
        about = known.get(name, {})
        value = _only(batch[name])
        names = [str(one) for one in about.get("class_names") or ()]
        if is_guess and isinstance(value, str) and text_of(value.encode()) is None:
            value, feature = value.encode(), Feature("bytes")  # bytes that are valid UTF-8
        cells.append(Cell(name, feature, value, names, about))
    return cells + [Cell(name, Feature("bytes", optional=True), None) for name in lacking]


def _only(column: Any) -> Any:
    """Return the only value of a column."""
    if isinstance(column, Masked):
        return _only(column.values) if column.present[0] else None
    if isinstance(column, Ragged):
        return _plain(column[0])
    if isinstance(column, Sparse):
        return column[0]
    return column.to_list()[0] if isinstance(column, BytesColumn) else column[0]


def _plain(rows: Any) -> Any:
    """Convert rows to an array, or to lists if they are strings or differ in length."""
    if isinstance(rows, Ragged):
        return [_plain(row) for row in rows]
    return rows.to_list() if isinstance(rows, BytesColumn) else np.asarray(rows)


FEW_VALUES = 8  # shown without their range
WHOLE_VALUES = 32  # shown completely if there is room
EDGE_VALUES = 3
UNLIMITED = 1 << 30
DOTS = "…"  # mark of omission


def describe_type(cell: Cell) -> str:
    """Describe the type of a feature: `float32 (2, 3)`, `str`, `image`."""
    feature = cell.feature
    if feature.encoding == "image":
        word = "images" if feature.holds_images else "image"
        return word if feature.dtype == "uint8" else f"{word} {feature.dtype}"
    shape = ", ".join("?" if n is None else str(n) for n in feature.shape)
    text = f"{feature.dtype} ({shape})" if feature.shape else feature.dtype
    if feature.encoding == "sparse":
        return f"sparse {text}"
    return f"{text} steps" if feature.sequence else text


def describe_value(cell: Cell, room: int = UNLIMITED, *, has_shape: bool = False) -> str:
    """Describe a value in a line of about `room` characters.

    With `has_shape`, the size is left out because the type beside it includes it.

    >>> from datum import Feature
    >>> describe_value(Cell("label", Feature("int64"), np.int64(1), ["cat", "dog"]))
    '1 (dog)'
    """
    value = cell.value
    if value is None:
        return "absent"
    if isinstance(value, bytes):
        return shorten(look_at(value, room), room)
    if isinstance(value, str):
        return _describe_text(value, room)
    if isinstance(value, Sparse):
        return _describe_sparse(value, room)
    if isinstance(value, list):
        return _describe_list(cell, value, room)
    array = np.asarray(value)
    if array.ndim == 0:
        return shorten(_describe_number(array[()], cell.class_names), room)
    is_told = has_shape and None not in cell.feature.shape
    return _describe_array(cell, array, room, is_told)


def clean(text: str) -> str:
    r"""Put a text on one line, without control characters.

    >>> clean("a\n\x1b[31mb")
    'a⏎\\x1b[31mb'
    """
    text = text.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", " ")
    return inert(text)


def shorten_name(name: str, room: int) -> str:
    """Cut a name to `room` characters, keeping its end."""
    return name if len(name) <= room else DOTS + name[len(name) + len(DOTS) - room :]


def shorten(text: str, room: int) -> str:
    """Cut a text to `room` columns, with dots at the cut.

    >>> shorten("abcdef", 4), shorten("日本語", 5)
    ('abc…', '日本…')
    """
    if len(text) * 2 <= room or (len(text) <= room and cell_len(text) <= room):
        return text
    left = max(0, room - len(DOTS))
    kept = text[:left]  # most characters take at least a column
    while cell_len(kept) > left:
        kept = kept[:-1]
    return kept + DOTS


def _describe_text(text: str, room: int) -> str:
    shown = clean(text[: 4 * room])  # the rest of a long text is never shown
    if cell_len(shown) + 2 <= room and len(text) <= 4 * room:
        return f'"{shown}"'
    count = f" ({count_of(len(text), 'character')})"
    left = room - len(count) - 2
    return f'"{shorten(shown, left)}"{count}' if left >= 8 else f'"{shorten(shown, room - 2)}"'


def _describe_number(value: Any, names: Sequence[str] = ()) -> str:
    if isinstance(value, np.datetime64):
        return "no time" if np.isnat(value) else str(value).replace("T", " ")
    if isinstance(value, np.timedelta64):
        return "no time" if np.isnat(value) else str(value)
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer) and 0 <= value < len(names):
        return f"{value} ({clean(names[int(value)])})"
    if isinstance(value, np.integer):
        return str(int(value))
    return str(value)


def _describe_array(cell: Cell, array: Any, room: int, is_told: bool) -> str:
    size = " x ".join(f"{n:,}" for n in array.shape)
    if array.size == 0:
        return "no values" if array.ndim == 1 else f"no values, {size}"
    more = _describe_names(array, cell.class_names) or _describe_range(array)
    is_large = array.ndim > 1 or array.size > FEW_VALUES
    lead = f"{size}: " if is_large and not is_told else ""
    left = room - len(lead) - len(more)
    if left < 12 and more:
        return shorten(f"{lead}{more.lstrip()}", room)
    return lead + _fit(array, left) + more


def _describe_names(array: Any, names: Sequence[str]) -> str:
    """Class names of ids, or their counts if there are many."""
    if not names or array.dtype.kind not in "iu" or array.ndim != 1:
        return ""
    words = [clean(names[one]) if 0 <= one < len(names) else "?" for one in array.tolist()]
    if len(words) > FEW_VALUES:
        common = Counter(words).most_common()
        words = [f"{count:,} {word}" for word, count in common]
    more = f", {DOTS}" if len(words) > FEW_VALUES else ""
    return f"  {', '.join(words[:FEW_VALUES])}{more}"


def _describe_range(array: Any) -> str:
    """Range of many numbers, and the count of non-finite ones."""
    is_number = array.dtype.kind in "iufmM" or array.dtype.name == "bfloat16"
    if array.size <= FEW_VALUES or not is_number:
        return ""
    if array.dtype.kind in "mM":
        is_there = ~np.isnat(array)
    else:
        array = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        is_there = np.isfinite(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
    if not is_there.any():
        return "  no finite number"
    low, high = array[is_there].min(), array[is_there].max()
    odd = array.size - int(is_there.sum())
    lost = f", {odd:,} not finite" if odd else ""
    if low == high:
        return f"  all {_short_number(low)}{lost}"
    return f"  {_short_number(low)}..{_short_number(high)}{lost}"


def _short_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else _describe_number(value)


def _fit(array: Any, room: int) -> str:
    """Format all values, or as many from start and end as there is room for."""
    if array.size <= WHOLE_VALUES:
        shown = "[" + " ".join(_nested(array)) + "]"
        if len(shown) <= room:
            return shown
    for edge in (EDGE_VALUES, 2, 1):
        text = _print_array(array, edge)
        if len(text) <= room:
            return text
    return shorten(text, room)


def _nested(array: Any) -> Iterator[str]:
    for item in array:
        yield "[" + " ".join(_nested(item)) + "]" if np.ndim(item) else _item(item)


def _item(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, np.floating) else _describe_number(value)


def _print_array(array: Any, edge: int) -> str:
    if array.ndim == 0:
        return _item(array[()])
    count = len(array)
    if count <= 2 * edge + 1:
        return "[" + " ".join(_print_array(one, edge) for one in array) + "]"
    first = [_print_array(one, edge) for one in array[:edge]]
    last = [_print_array(one, edge) for one in array[-edge:]]
    return "[" + " ".join([*first, DOTS, *last]) + "]"


def _describe_sparse(value: Sparse, room: int) -> str:
    count, total = len(value.values), math.prod(value.dense_shape)
    lead = f"{count:,} of {total:,}"
    if not count:
        return f"{lead} values"
    pairs = []
    for place, item in zip(value.indices.tolist(), value.values, strict=False):
        where = str(place[0]) if len(place) == 1 else f"({', '.join(map(str, place))})"
        pairs.append(f"{where}: {clean(item) if isinstance(item, str) else _item(item)}")
        if sum(map(len, pairs)) > room:
            break
    text = ", ".join(pairs)
    return shorten(f"{lead}: {text}", room)


def _describe_list(cell: Cell, value: list[Any], room: int) -> str:
    """Describe a list of strings or of rows of different lengths."""
    noun = "step" if cell.feature.sequence else ("row" if _has_rows(value) else "item")
    lead = count_of(len(value), noun)
    if not value:
        return "no values"
    if isinstance(value[0], bytes):
        return shorten(f"{lead}{_describe_strings(value)}", room)
    texts = []
    for item in value:
        texts.append(_list_item(item))
        if sum(map(len, texts)) + len(texts) > room:
            break
    return shorten(f"{lead}: [{' '.join(texts)}]", room)


def _describe_strings(value: list[bytes]) -> str:
    """Describe byte strings: their sizes and the kinds of the first ones."""
    sizes = {len(one) for one in value}
    if len(sizes) == 1 and max(sizes) <= 4:
        more = f" {DOTS}" if len(value) > FEW_VALUES else ""
        return f" of {max(sizes)} B: {' '.join(one.hex() for one in value[:FEW_VALUES])}{more}"
    kinds = dict.fromkeys(look_at(one, UNLIMITED, is_short=True) for one in value[:EDGE_VALUES])
    more = f", {DOTS}" if len(value) > EDGE_VALUES and len(kinds) > 1 else ""
    return f", {format_bytes(sum(map(len, value)))}: {', '.join(kinds)}{more}"


def _has_rows(value: list[Any]) -> bool:
    return any(isinstance(item, (list, np.ndarray)) for item in value)


def _list_item(item: Any) -> str:
    if isinstance(item, str):
        return f'"{clean(item)}"'
    if isinstance(item, bytes):
        return look_at(item, UNLIMITED, is_short=True)
    if isinstance(item, list):
        return "[" + " ".join(_list_item(one) for one in item) + "]"
    return _print_array(np.asarray(item), EDGE_VALUES)


MAX_DEPTH = 6  # of nested messages shown
MAX_FIELDS = 24  # shown
MAX_TEXT_LINES = 8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its number, and an integer, bytes, or nested fields."""

    number: int
    kind: int
    value: Any


def fields_of(data: bytes, depth: int = MAX_DEPTH) -> list[Field] | None:
    """Parse the fields of a protobuf message; None for other data."""
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
            raise ValueError(Message("expected a field number above 0"))
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
                raise ValueError(Message("expected as many bytes as the length"))
            at += size
            yield Field(number, kind, _inside(part, depth))
        else:
            raise ValueError(Message("expected a known wire type"))


def _inside(part: bytes, depth: int) -> Any:
    """Interpret bytes as text, else as a message, else as bytes."""
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
            raise ValueError(Message("expected a number of at most ten bytes"))


def describe_payload(payload: bytes, room: int) -> list[str]:
    """Describe a record that is no Example in a few lines."""
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
        shown = list(_field_lines(fields, room, "  "))
        more = len(shown) - MAX_FIELDS
        rest = [f"  … {more:,} more"] if more > 0 else []
        title = f"a protobuf message of {size}, no tf.train.Example:"
        return [title, *shown[:MAX_FIELDS], *rest]
    return [look_at(payload, room), *hex_dump(payload)]


def _is_likely(fields: list[Field]) -> bool:
    """Return whether the fields are likely those of a real message."""
    return bool(fields) and max(field.number for field in fields) < 1000


def _field_lines(fields: list[Field], room: int, indent: str) -> Iterator[str]:
    for field in fields:
        numbers = [str(field.number)]
        while isinstance(field.value, list) and len(field.value) == 1:
            field = field.value[0]
            numbers.append(str(field.number))
        lead = f"{indent}{'.'.join(numbers)}"
        if isinstance(field.value, list):
            yield f"{lead}:"
            yield from _field_lines(field.value, room, indent + "  ")
        else:
            yield shorten(f"{lead}: {_field_value(field, room - len(lead))}", room)


def _field_value(field: Field, room: int) -> str:
    if isinstance(field.value, int):
        if field.kind == _FIXED32:
            return f"{struct.unpack('<f', struct.pack('<i', field.value))[0]:.6g}"
        if field.kind == _FIXED64:
            return f"{struct.unpack('<d', struct.pack('<q', field.value))[0]:.6g}"
        return str(field.value)
    text = text_of(field.value)
    return f'"{clean(text)}"' if text is not None else look_at(field.value, room)


def fields_to_json(fields: list[Field]) -> list[dict[str, Any]]:
    """Return fields as plain values: number, and an integer, text, size or fields."""
    found = []
    for field in fields:
        if isinstance(field.value, list):
            found.append({"field": field.number, "fields": fields_to_json(field.value)})
        elif isinstance(field.value, int):
            found.append({"field": field.number, "value": field.value})
        else:
            text = text_of(field.value)
            content = {"text": text} if text is not None else {"bytes": len(field.value)}
            found.append({"field": field.number, **content})
    return found
