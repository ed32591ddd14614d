"""Pictures made of characters: half blocks in colours, or letters by their brightness."""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
from rich.color import Color
from rich.style import Style
from rich.text import Text

__all__ = ["ascii_lines", "block_lines"]

SHADES = " .:-=+*#%@"  # from dark to bright, as on a dark terminal
OPAQUE = 128  # alpha from which on a pixel is shown
_BRIGHTNESS = np.array([0.299, 0.587, 0.114])  # what red, green and blue add to it

FIRST_COLOUR = 16  # those before it are as the user likes them
_STEPS = (0, 95, 135, 175, 215, 255)
_CUBE = [(red, green, blue) for red in _STEPS for green in _STEPS for blue in _STEPS]
_PALETTE = np.array([*_CUBE, *((grey, grey, grey) for grey in range(8, 248, 10))], np.float64)

_Pixel = tuple[int, int, int, int]


def block_lines(pixels: Any, *, has_all_colours: bool = True) -> list[Text]:
    """Two pixels a character, one above the other; where they are transparent, nothing.

    Of terminals that have not all colours, the nearest of the 240 that are the same everywhere
    are taken.

    >>> [line.plain for line in block_lines(np.full((3, 2, 4), 255, np.uint8))]
    ['▀▀', '▀▀']
    """
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, np.zeros_like(pixels[:1])])
    if not has_all_colours:
        pixels = _to_palette(pixels)
    lines = []
    for top, bottom in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        line = Text(end="")
        pairs = zip(map(tuple, top), map(tuple, bottom), strict=True)
        for pair, alike in groupby(pairs):
            letter, style = _block(*pair, not has_all_colours)
            line.append(letter * sum(1 for _ in alike), style)
        lines.append(line)
    return lines


def _to_palette(pixels: Any) -> Any:
    """Each pixel as the nearest colour of the cube and the greys, its number in place of red."""
    known, places = np.unique(pixels.reshape(-1, 4), axis=0, return_inverse=True)
    offsets = known[:, None, :3].astype(np.float64) - _PALETTE
    nearest = (offsets**2 @ _BRIGHTNESS).argmin(axis=1) + FIRST_COLOUR
    numbered = np.stack([nearest, nearest * 0, nearest * 0, known[:, 3]], axis=1)
    return numbered[places.reshape(-1)].reshape(pixels.shape)


def _colour(pixel: _Pixel, is_numbered: bool) -> Color:
    return Color.from_ansi(pixel[0]) if is_numbered else Color.from_rgb(*pixel[:3])


@lru_cache(maxsize=1 << 14)
def _block(above: _Pixel, below: _Pixel, is_numbered: bool) -> tuple[str, Style]:
    has_above, has_below = above[3] >= OPAQUE, below[3] >= OPAQUE
    upper, lower = _colour(above, is_numbered), _colour(below, is_numbered)
    if has_above and has_below:
        return "▀", Style(color=upper, bgcolor=lower)
    if has_above:
        return "▀", Style(color=upper)
    return ("▄", Style(color=lower)) if has_below else (" ", Style.null())


def ascii_lines(pixels: Any) -> list[Text]:
    """A letter for two pixels, one above the other, by how bright they are.

    >>> [line.plain for line in ascii_lines(np.full((2, 2, 4), 255, np.uint8))]
    ['@@']
    """
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    bright = (pixels[..., :3] @ _BRIGHTNESS) * (pixels[..., 3] >= OPAQUE)
    rows = (bright[::2] + bright[1::2]) / 2
    places = np.minimum((rows * len(SHADES) / 256).astype(int), len(SHADES) - 1)
    return [Text("".join(SHADES[at] for at in row).rstrip(), end="") for row in places.tolist()]
