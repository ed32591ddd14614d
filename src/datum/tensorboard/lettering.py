"""Text that fits its place, in a font that has its letters."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Iterator
from typing import Any

__all__ = ["clean", "font_for", "shorten", "text_width", "wrap"]

MAX_LETTERS = 200  # of any text: no picture has room for more
_ELLIPSIS = "..."

# Pillow's own font knows ASCII and little more; these are where systems have them.
_FONTS = (
    "DejaVuSans.ttf",
    "NotoSans-Regular.ttf",
    "Arial Unicode.ttf",
    "arial.ttf",
    "NotoSansCJK-Regular.ttc",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "msyh.ttc",
)


def clean(text: str) -> str:
    r"""A text as one line that can be drawn: without controls, and cut if it is very long.

    >>> clean("a\tcat\n\x00\u202eon a mat")
    'a cat on a mat'
    """
    letters = (" " if unicodedata.category(one) in _CONTROLS else one for one in text[:MAX_LETTERS])
    cut = _ELLIPSIS if len(text) > MAX_LETTERS else ""
    return " ".join("".join(letters).split()) + cut


# Controls, marks of direction, halves of letters, and separators of lines and paragraphs.
_CONTROLS = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def font_for(text: str, size: int) -> tuple[Any, str]:
    """A font, and the text as it can be drawn with it.

    It is the first of those that lack the fewest letters; these are written without their accents,
    or by their number.
    """
    letters = set(text)
    font = min(_fonts(size), key=lambda font: sum(not _has(font, letter) for letter in letters))
    return font, "".join(one if _has(font, one) else _spell(one) for one in text)


def _fonts(size: int) -> Iterator[Any]:
    for name in (None, *_FONTS):
        font = _open_font(name, size)
        if font is not None:
            yield font


@functools.cache
def _open_font(name: str | None, size: int) -> Any:
    from PIL import ImageFont

    if name is None:
        return ImageFont.load_default(size)
    try:
        return ImageFont.truetype(name, size)
    except OSError:
        return None


@functools.lru_cache(maxsize=4096)
def _has(font: Any, letter: str) -> bool:
    """Whether a font can draw a letter: one that it cannot looks like one that nobody has."""
    missing = font.getmask("\U0010fffd")
    mask = font.getmask(letter)
    return letter == " " or mask.size != missing.size or bytes(mask) != bytes(missing)


def _spell(letter: str) -> str:
    bare = unicodedata.normalize("NFKD", letter)[:1]
    return bare if bare.isascii() else letter.encode("ascii", "backslashreplace").decode()


def text_width(text: str, size: int) -> int:
    """How many pixels a text needs."""
    font, drawn = font_for(text, size)
    width: float = font.getlength(drawn)
    return math.ceil(width)


def shorten(text: str, size: int, width: int) -> str:
    """As much of the text as fits into `width` pixels."""
    if text_width(text, size) <= width:
        return text
    fitting = 0
    longest = len(text)
    while fitting < longest:  # the widths of beginnings only grow
        middle = (fitting + longest + 1) // 2
        is_fitting = text_width(text[:middle].rstrip() + _ELLIPSIS, size) <= width
        fitting, longest = (middle, longest) if is_fitting else (fitting, middle - 1)
    return text[:fitting].rstrip() + _ELLIPSIS


def wrap(text: str, size: int, width: int, *, lines: int) -> list[str]:
    """The text in lines of at most `width` pixels; what does not fit the last is left out."""
    words, wrapped = text.split(), list[str]()
    while words and len(wrapped) < lines - 1:
        taken = 1
        while taken < len(words) and text_width(" ".join(words[: taken + 1]), size) <= width:
            taken += 1
        wrapped.append(shorten(" ".join(words[:taken]), size, width))
        words = words[taken:]
    return [*wrapped, shorten(" ".join(words), size, width)] if words else wrapped
