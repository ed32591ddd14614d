"""Generated Python source: literals, calls broken into lines, and dicts."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datum.errors import Message
from datum.format.layout import stand_in
from datum.schema import Feature, Schema

__all__ = [
    "Call",
    "Choice",
    "Code",
    "join_parts",
    "list_files",
    "literal",
    "quote",
    "quote_files",
    "render",
    "render_dict",
    "render_list",
    "with_listed_bytes",
]

MAX_LINE = 99  # accepted by most formatters


@dataclass(frozen=True, slots=True)
class Call:
    """An expression in brackets, broken into a line for each item if it is too long.

    >>> print(render(Call("tf.cast(", ("x", "tf.bool")), indent=0))
    tf.cast(x, tf.bool)
    """

    opening: str
    items: tuple[Code, ...]
    closing: str = ")"

    def __str__(self) -> str:
        return f"{self.opening}{', '.join(map(str, self.items))}{self.closing}"


@dataclass(frozen=True, slots=True)
class Choice:
    """A conditional expression, in brackets and three lines if it is too long."""

    value: Code
    condition: str
    other: Code

    def __str__(self) -> str:
        return f"{self.value} if {self.condition} else {self.other}"


Code = str | Call | Choice


def with_listed_bytes(features: Mapping[str, Feature]) -> Schema:
    """Return the schema that code is written for, with lists of images as lists of bytes."""
    return Schema(
        {name: stand_in(one) if one.holds_images else one for name, one in features.items()}
    )


def quote(text: str) -> str:
    r"""Return a text as a Python literal in double quotes.

    >>> print(quote("it's"), quote('"a"'), quote("tab\t"))
    "it's" '"a"' "tab\t"
    """
    # An apostrophe at the front makes `repr` choose double quotes.
    return repr(text) if '"' in text else '"' + repr("'" + text)[2:]


def literal(value: Any) -> str:
    """Return plain values, possibly in lists, as Python literals; NaN and infinities by name."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    return repr(value)


def render(code: Code, *, indent: int, before: int = 0, after: int = 0) -> str:
    """Render an expression in a line at `indent`, with characters before and after it."""
    flat = str(code)
    if isinstance(code, str) or indent + before + len(flat) + after <= MAX_LINE:
        return flat
    inner = " " * (indent + 4)
    if isinstance(code, Choice):
        value, other = (render(one, indent=indent + 4) for one in (code.value, code.other))
        lines = (f"{value}\n", f"{inner}if {code.condition}\n", f"{inner}else {other}\n")
        return f"(\n{inner}{''.join(lines)}{' ' * indent})"
    items = "".join(f"{inner}{render(one, indent=indent + 4, after=1)},\n" for one in code.items)
    return f"{code.opening}\n{items}{' ' * indent}{code.closing}"


def render_dict(
    entries: Mapping[str, Code], *, indent: int = 0, notes: Mapping[str, str] | None = None
) -> str:
    """Render a dict, an entry per line, with comments above entries that have a note."""
    if not entries:
        return "{}"
    inner = " " * (indent + 4)
    lines = []
    for name, code in entries.items():
        note = (notes or {}).get(name)
        lines += [f"{inner}# {note}"] if note else []
        key = f"{quote(name)}: "
        value = render(code, indent=indent + 4, before=len(key), after=1)
        lines.append(f"{inner}{key}{value},")
    return "\n".join(["{", *lines, " " * indent + "}"])


def render_list(items: Sequence[str], *, indent: int) -> str:
    """Render a list of many short items, filling the lines."""
    flat = f"[{', '.join(items)}]"
    if indent + len(flat) <= MAX_LINE:
        return flat
    inner = " " * (indent + 4)
    lines = [inner]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > MAX_LINE and lines[-1] != inner:
            lines.append(inner)
        lines[-1] += f"{item}, "
    return "\n".join(["[", *(line.rstrip() for line in lines), " " * indent + "]"])


def join_parts(parts: Iterable[str]) -> str:
    """Join parts of a file with the blank lines of formatters: two around functions."""
    text = ""
    is_function = False
    for part in parts:
        was_function, is_function = is_function, part.startswith(("def ", "@"))
        if text:
            text += "\n\n\n" if is_function or was_function else "\n\n"
        text += part
    return text + "\n"


def list_files(files: str | Sequence[str]) -> tuple[str, bool]:
    """Return an expression for the files of paths and patterns, and whether it calls `glob`.

    >>> list_files("digits/train-*.tfrecord")
    ('sorted(glob("digits/train-*.tfrecord"))', True)
    """
    names, is_pattern = quote_files(files)
    if not is_pattern:
        return render(Call("[", tuple(names), "]"), indent=0, before=8), False
    if len(names) == 1:
        return f"sorted(glob({names[0]}))", True
    patterns = f"({', '.join(names)})"
    return f"[file for pattern in {patterns} for file in sorted(glob(pattern))]", True


def quote_files(files: str | Sequence[str]) -> tuple[list[str], bool]:
    """Return paths and patterns as Python literals, and whether one is a pattern.

    >>> quote_files("digits/train-*.tfrecord")
    (['"digits/train-*.tfrecord"'], True)
    """
    given: Iterable[str] = [files] if isinstance(files, str) else files
    names = [str(name) for name in given]
    if not names:
        raise ValueError(Message("`files`: expected paths or patterns of TFRecord files, got none"))
    # An existing file is a file, whatever characters are in its name.
    are_patterns = (glob.has_magic(name) and not Path(name).exists() for name in names)
    return [quote(name) for name in names], any(are_patterns)
