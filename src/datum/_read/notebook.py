"""HTML views of datasets and splits for notebooks, of bounded size and with escaped text."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from datum._read.contents import Contents
from datum._read.tables import row_values
from datum.columns import Ragged, Sparse
from datum.errors import DatumError, Message, count_of, format_bytes, inert
from datum.schema import Feature, Schema

if TYPE_CHECKING:
    from datum._read.split import Split

__all__ = [
    "dataset_html",
    "split_html",
]

MAX_SPLITS = 20
MAX_FEATURES = 50
MAX_RECORDS = 4
MAX_PICTURES = 8
MAX_LETTERS = 80
MAX_VALUES = 6  # shown of an array
MAX_CLASSES = 3  # shown of a feature
PICTURE_PIXELS = 96  # longer side of a thumbnail
MAX_DECODED_PIXELS = 50_000_000  # largest image that a thumbnail is made of

_HIDDEN = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")  # controls, marks of direction, ends of lines
_JOINERS = "\u200c\u200d"  # of letters and emoji: they hide nothing
_BOX = "max-width:100%;overflow-x:auto;margin:0.3em 0"
_TABLE = "border-collapse:collapse;margin:0.4em 0;width:auto;color:inherit;font-size:inherit"
_CELL = (
    "text-align:left;vertical-align:top;max-width:20em;overflow-wrap:break-word;"
    "padding:0.15em 0.8em 0.15em 0;border-bottom:1px solid rgba(128,128,128,0.35)"
)
_TIMES = " \u00d7 "
_FAINT = "opacity:0.65"


def dataset_html(contents: Contents) -> str:
    """HTML of a dataset: its splits and features."""
    about = [contents.compression or "", "" if contents.is_published else contents.writer]
    if contents.damage:
        about.append(f"{count_of(len(contents.damage), 'damaged place')} left out")
    splits = [
        [
            _text(name),
            f"{split.records:,}",
            f"{len(split.shards):,}",
            _text(format_bytes(split.bytes)),
        ]
        for name, split in list(contents.splits.items())[:MAX_SPLITS]
    ]
    return _box(
        _heading("Dataset", contents.place, about),
        _table(["split", "records", "shards", "size"], splits),
        _rest(len(contents.splits), MAX_SPLITS, "split"),
        *_features(contents.schema, contents.metadata, {}),
    )


def split_html(split: Split) -> str:
    """HTML of a split: its features, with the values of its first records."""
    about = [count_of(len(split), "record")]
    samples, problem = _read_samples(split)
    note = _note(problem) if problem else ""
    features = _features(split.schema, split.metadata, samples)
    return _box(_heading("Split", split.name, about), note, *features)


# The first records.


def _read_samples(split: Split) -> tuple[dict[str, list[str]], str]:
    """The cells of the first records by feature, and the error if they cannot be read."""
    if not len(split) or not split.schema:
        return {}, ""
    first = split.runs[0]
    if first.start and first.shard.compression is not None:
        return {}, "no records are shown: all compressed records before them would have to be read"
    names = list(split.schema)[:MAX_FEATURES]
    try:
        # In order, since access by number may need an index or a copy first.
        batch = next(iter(split.batches(MAX_RECORDS, columns=names, threads=1)))
    except (DatumError, OSError) as error:
        return {}, f"the first records cannot be read: {Message.of(error).line}"
    left = MAX_PICTURES
    cells: dict[str, list[str]] = {}
    for name in names:
        feature = split.schema[name]
        values = list(row_values(batch[name]))
        if feature.encoding == "image":
            show, count = (_pictures, _count) if feature.holds_images else (_picture, _size)
            cells[name] = [show(v, feature) if n < left else count(v) for n, v in enumerate(values)]
            left -= len(values)
        else:
            classes = _class_names(split.metadata.get(name, {}))
            cells[name] = [_value(value, classes) for value in values]
    return cells, ""


def _value(value: Any, classes: Sequence[Any]) -> str:
    if value is None:
        return _faint("absent")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bytes):
        return f"<code>{_text(repr(value[:MAX_LETTERS]), 40)}</code> {_size(value)}"
    if isinstance(value, Sparse):
        return _text(f"{count_of(len(value.values), 'value')} of {_sides(value.dense_shape)}")
    if isinstance(value, np.ndarray) and value.ndim:
        return _array(value)
    if isinstance(value, (list, Ragged)):
        shown = ", ".join(_plain(item) for item in list(value[:MAX_VALUES]))
        return f"{_text(shown + _more(len(value)))} {_faint(count_of(len(value), 'item'))}"
    if classes and isinstance(value, np.integer) and 0 <= value < len(classes):
        return f"{_text(str(value))} {_text(str(classes[int(value)]))}"
    return _text(_plain(value))


def _array(value: NDArray[Any]) -> str:
    flat = value.reshape(-1)[:MAX_VALUES]
    shown = ", ".join(map(_plain, flat))
    size = "" if value.ndim == 1 and len(value) <= MAX_VALUES else _faint(_sides(value.shape))
    return f"{_text(shown + _more(value.size))} {size}"


def _plain(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"[{', '.join(map(_plain, value.reshape(-1)[:MAX_VALUES]))}{_more(value.size)}]"
    if isinstance(value, (bytes, list)):
        return repr(value[:MAX_VALUES])
    if isinstance(value, (np.floating, float)):
        return f"{float(value):.4g}"
    return str(value[:MAX_LETTERS]) if isinstance(value, str) else str(value)


def _more(count: int) -> str:
    return ", …" if count > MAX_VALUES else ""


def _sides(shape: Iterable[int | None]) -> str:
    return _TIMES.join("?" if n is None else f"{n:,}" for n in shape)


def _size(data: bytes | None) -> str:
    return _faint("absent" if data is None else format_bytes(len(data)))


# Pictures.


def _picture(data: bytes | None, feature: Feature) -> str:
    """A thumbnail of an image, or its error."""
    if data is None:
        return _faint("absent")
    try:
        media, small, shape = _shrink(data, feature)
    except (DatumError, OSError, ValueError, MemoryError) as error:
        return f"{_text(Message.of(error).line)} {_size(data)}"
    source = f"data:image/{media};base64,{base64.b64encode(small).decode()}"
    sides = _sides(shape)
    look = "max-width:96px;max-height:96px;min-height:32px;image-rendering:pixelated;margin:0"
    return f'<img src="{source}" alt="{sides}" title="{sides}" style="{look}">'


def _pictures(data: list[bytes] | None, feature: Feature) -> str:
    """The first image of a list, and the number of images."""
    first = _picture(data[0], feature.single_image) if data else ""
    return f"{first} {_count(data)}"


def _count(data: list[bytes] | None) -> str:
    return _faint("absent" if data is None else count_of(len(data), "image"))


def _shrink(data: bytes, feature: Feature) -> tuple[str, bytes, tuple[int, ...]]:
    from PIL import Image

    from datum.images import decode
    from datum.images.header import parse_header

    header = parse_header(data)
    if header.height * header.width > MAX_DECODED_PIXELS:
        raise ValueError(
            Message(f"{_sides((header.height, header.width))} pixels: too large to show here")
        )
    pixels = decode(data, feature)
    if not pixels.size:
        raise ValueError(Message("an image without pixels"))
    step = max(1, max(pixels.shape[:2]) // (4 * PICTURE_PIXELS))  # the rest is averaged
    photo = Image.fromarray(_as_bytes(pixels[::step, ::step]))
    is_grey = pixels.shape[-1] == 1
    method = Image.Resampling.NEAREST if is_grey else Image.Resampling.BILINEAR
    photo.thumbnail((PICTURE_PIXELS, PICTURE_PIXELS), method)
    kind = "jpeg" if photo.mode == "RGB" and min(photo.size) > 32 else "png"
    held = io.BytesIO()
    photo.save(held, kind)
    return kind, held.getvalue(), pixels.shape


def _as_bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """Pixels of 8 bits; the small ids of a mask are spread so that they look different."""
    if pixels.dtype == np.uint16:
        pixels = pixels // 257
    if pixels.shape[-1] > 1:
        return pixels.astype(np.uint8)
    highest = int(pixels.max(initial=0))
    factor = 255 // highest if 0 < highest < 64 else 1
    return (pixels[..., 0] * factor).astype(np.uint8)


# Features.


def _features(
    schema: Schema, metadata: Mapping[str, Mapping[str, Any]], samples: Mapping[str, list[str]]
) -> list[str]:
    """The table of features, each with the cells of some records."""
    count = max(map(len, samples.values()), default=0)
    rows = []
    for name, feature in list(schema.items())[:MAX_FEATURES]:
        cells = [
            f"<b>{_text(name)}</b>",
            _text(feature.dtype),
            f'<span style="white-space:nowrap">{_text(_sides(feature.shape))}</span>',
            _text("" if feature.encoding == "values" else feature.encoding),
            _about(feature, metadata.get(name, {})),
        ]
        rows.append(cells + samples.get(name, [""] * count))
    heads = ["feature", "type", "shape", "encoding", "notes", *(f"[{n}]" for n in range(count))]
    return [_table(heads, rows), _rest(len(schema), MAX_FEATURES, "feature")]


def _about(feature: Feature, metadata: Mapping[str, Any]) -> str:
    parts = [word for word in ("sequence", "optional") if getattr(feature, word)]
    if feature.default is not None:
        parts.append(f"default {_plain(np.asarray(feature.default)[()])}")
    names = _class_names(metadata)
    if names:
        shown = ", ".join(_cut(str(name), 24) for name in names[:MAX_CLASSES])
        more = ", …" if len(names) > MAX_CLASSES else ""
        parts.append(f"{count_of(len(names), 'class', 'classes')}: {shown}{more}")
    return _text("; ".join(parts), 2 * MAX_LETTERS)


def _class_names(metadata: Mapping[str, Any]) -> Sequence[Any]:
    names = metadata.get("class_names")
    return names if isinstance(names, (list, tuple)) else ()


# HTML.


def _box(*parts: str) -> str:
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def _heading(kind: str, name: str, about: Iterable[str]) -> str:
    facts = "".join(f" {_faint('· ' + part)}" for part in about if part)
    return f"<div><b>{kind}</b> <code>{_text(name, 2 * MAX_LETTERS)}</code>{facts}</div>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f'<th style="{_CELL};font-weight:normal">{_faint(one)}</th>' for one in heads)
    lines = ("".join(f'<td style="{_CELL}">{cell}</td>' for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def _rest(count: int, shown: int, what: str) -> str:
    return _note(f"and {count_of(count - shown, what)} more") if count > shown else ""


def _note(text: str) -> str:
    return f'<div style="{_FAINT}">{_text(text, 4 * MAX_LETTERS)}</div>'


def _faint(text: str) -> str:
    return f'<span style="{_FAINT}">{_text(text)}</span>'


def _text(text: str, most: int = MAX_LETTERS) -> str:
    """Text of any origin: cut, inert, escaped, and isolated in its writing direction."""
    shown = inert(_cut(text, most))
    return f"<bdi>{html.escape(shown)}</bdi>" if shown else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + "…"
