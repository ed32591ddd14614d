"""Values in a line: short, and telling what is left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.cells import cell_len

from datum import Sparse
from datum.cli.records.bytes import look_at
from datum.cli.records.cells import Cell
from datum.cli.words.wording import count_of, describe_size
from datum.errors import inert

__all__ = ["clean", "describe_type", "describe_value", "shorten", "shorten_name"]

FEW_VALUES = 8  # that are shown whole, without what they range over
WHOLE_VALUES = 32  # up to so many are shown whole where there is room
EDGE_VALUES = 3
UNLIMITED = 1 << 30
DOTS = "…"  # where something is left out


def describe_type(cell: Cell) -> str:
    """The type of a feature in a word or two: `float32 (2, 3)`, `str`, `image`."""
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
    """A value in a line of about so many characters.

    Sizes are told unless the type says them already, beside the value.

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
    r"""A text in one line, whatever a terminal would make of its characters.

    >>> clean("a\n\x1b[31mb")
    'a⏎\\x1b[31mb'
    """
    text = text.replace("\r\n", "⏎").replace("\n", "⏎").replace("\t", " ")
    return inert(text)


def shorten_name(name: str, room: int) -> str:
    """A name cut to so many characters; its end tells more than its start."""
    return name if len(name) <= room else DOTS + name[len(name) + len(DOTS) - room :]


def shorten(text: str, room: int) -> str:
    """A text cut to so many columns, with dots where something is missing.

    >>> shorten("abcdef", 4), shorten("日本語", 5)
    ('abc…', '日本…')
    """
    if len(text) * 2 <= room or (len(text) <= room and cell_len(text) <= room):
        return text
    left = max(0, room - len(DOTS))
    kept = text[:left]  # hardly a character takes less than a column
    while cell_len(kept) > left:
        kept = kept[:-1]
    return kept + DOTS


def _describe_text(text: str, room: int) -> str:
    shown = clean(text[: 4 * room])  # no more than may be seen of a book
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
    """The classes of ids: of a few each, of many how often each occurs."""
    if not names or array.dtype.kind not in "iu" or array.ndim != 1:
        return ""
    words = [clean(names[one]) if 0 <= one < len(names) else "?" for one in array.tolist()]
    if len(words) > FEW_VALUES:
        common = Counter(words).most_common()
        words = [f"{count:,} {word}" for word, count in common]
    more = f", {DOTS}" if len(words) > FEW_VALUES else ""
    return f"  {', '.join(words[:FEW_VALUES])}{more}"


def _describe_range(array: Any) -> str:
    """What many numbers range over, and how many are no numbers."""
    is_number = array.dtype.kind in "iufmM" or array.dtype.name == "bfloat16"
    if array.size <= FEW_VALUES or not is_number:
        return ""
    if array.dtype.kind in "mM":
        is_there = ~np.isnat(array)
    else:
        array = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
        is_there = np.isfinite(array) if array.dtype.kind == "f" else np.ones(array.shape, bool)
    if not is_there.any():
        return "  no number among them"
    low, high = array[is_there].min(), array[is_there].max()
    odd = array.size - int(is_there.sum())
    lost = f", {odd:,} not finite" if odd else ""
    if low == high:
        return f"  all {_short_number(low)}{lost}"
    return f"  {_short_number(low)}..{_short_number(high)}{lost}"


def _short_number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, np.floating) else _describe_number(value)


def _fit(array: Any, room: int) -> str:
    """As many values as there is room for: all, or some from the start and the end."""
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
    """Lists of strings, and rows that differ in length."""
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
    """Byte strings: how long they are together or each, and what the first ones look like."""
    sizes = {len(one) for one in value}
    if len(sizes) == 1 and max(sizes) <= 4:
        more = f" {DOTS}" if len(value) > FEW_VALUES else ""
        return f" of {max(sizes)} B: {' '.join(one.hex() for one in value[:FEW_VALUES])}{more}"
    kinds = dict.fromkeys(look_at(one, UNLIMITED, is_short=True) for one in value[:EDGE_VALUES])
    more = f", {DOTS}" if len(value) > EDGE_VALUES and len(kinds) > 1 else ""
    return f", {describe_size(sum(map(len, value)))}: {', '.join(kinds)}{more}"


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
