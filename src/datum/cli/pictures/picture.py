"""Pictures in a terminal: in the best way that it is known to have."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from rich.console import Console

from datum.cli.pictures.blocks import ascii_lines, block_lines
from datum.cli.pictures.protocols import encode_iterm, encode_kitty, encode_sixel
from datum.cli.terminal import is_plain

__all__ = ["Box", "Colour", "Picture", "Style", "choose_style", "show_pictures"]

Style = Literal["kitty", "iterm", "sixel", "blocks", "ascii", "none"]
Colour = tuple[int, int, int]

MAX_ROWS = 16
MAX_COLUMNS = 72
LEAST_COLUMNS = 16  # that small images are enlarged to, by a whole number
GAP_COLUMNS = 2
PIXELS_PER_COLUMN = 10  # of a terminal that shows pixels; it scales them to its own

_KITTY_PROGRAMS = ("ghostty", "kitty")
_ITERM_PROGRAMS = ("iTerm.app", "WezTerm")
_SIXEL_TERMS = ("foot", "mlterm", "contour", "yaft")
_KONSOLE = 220400  # the first version that knows kitty's protocol


@dataclass(frozen=True, slots=True)
class Box:
    """A box in fractions of the height and width of a picture, and its colour."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    colour: Colour


@dataclass(frozen=True, slots=True)
class Picture:
    """Pixels to show.

    Attributes:
        pixels: height x width x 3, or 4 with transparency; uint8.
        boxes: drawn onto them.
        is_exact: whether pixels stand for classes, and must not be mixed.
        legend: what colours mean.
    """

    pixels: Any
    boxes: Sequence[Box] = ()
    is_exact: bool = False
    legend: Sequence[tuple[Colour, str]] = field(default=())


def choose_style(
    console: Console, *, wanted: str | None = None, environ: Mapping[str, str] | None = None
) -> Style:
    """How to show pictures here: as asked for, or told by the environment alone.

    No terminal is asked what it can do, for it might not answer. Within tmux and screen, which
    keep such protocols from the terminal, blocks are taken.
    """
    if wanted is not None and wanted != "auto":
        if wanted not in get_args(Style):
            known = ", ".join(("auto", *get_args(Style)))
            raise ValueError(f"--picture: expected one of {known}, got {wanted!r}")
        return wanted  # type: ignore[return-value]
    if not console.is_terminal and wanted is None:
        return "none"
    if console.is_terminal:
        found = _find_protocol(os.environ if environ is None else environ)
        if found is not None:
            return found
    has_colours = console.color_system in ("truecolor", "256") and not console.no_color
    return "blocks" if has_colours and not is_plain(console) else "ascii"


def _find_protocol(environ: Mapping[str, str]) -> Style | None:
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if environ.get("TMUX") or environ.get("STY") or term.startswith(("screen", "tmux")):
        return None
    if program in _ITERM_PROGRAMS or environ.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    konsole = environ.get("KONSOLE_VERSION", "")
    is_kitty = (
        "KITTY_WINDOW_ID" in environ
        or term in ("xterm-kitty", "xterm-ghostty")
        or program in _KITTY_PROGRAMS
        or (konsole.isdigit() and int(konsole) >= _KONSOLE)
    )
    if is_kitty:
        return "kitty"
    return "sixel" if term.startswith(_SIXEL_TERMS) or "sixel" in term else None


def show_pictures(
    console: Console, pictures: Sequence[Picture], style: Style, *, indent: int = 2
) -> None:
    """Show pictures side by side, and under them what their colours mean."""
    if style == "none" or not pictures:
        return
    columns = max(8, min(MAX_COLUMNS, console.width - indent - 1))
    scale = PIXELS_PER_COLUMN if style in ("kitty", "iterm", "sixel") else 1
    if style == "ascii":
        pictures = [_with_greys(one) if one.is_exact else one for one in pictures]
    canvas = _compose(pictures, columns, scale)
    if style in ("blocks", "ascii"):
        has_all = console.color_system != "256"
        is_blocks = style == "blocks"
        lines = block_lines(canvas, has_all_colours=has_all) if is_blocks else ascii_lines(canvas)
        for line in lines:
            line.pad_left(indent)
            console.print(line, no_wrap=True, overflow="crop", crop=True)
    else:
        size = canvas.shape[1] // scale, -(-canvas.shape[0] // (2 * scale))
        encode = {"kitty": encode_kitty, "iterm": encode_iterm, "sixel": encode_sixel}[style]
        console.file.write(" " * indent + encode(canvas, columns=size[0], rows=size[1]) + "\n")
        console.file.flush()


def _with_greys(picture: Picture) -> Picture:
    """Classes in greys as far from each other as can be, where there are no colours."""
    flat = picture.pixels.reshape(-1, picture.pixels.shape[-1])
    known, places = np.unique(flat, axis=0, return_inverse=True)
    greys = np.linspace(0, 255, len(known)).astype(np.uint8)
    pixels = np.repeat(greys[places.reshape(picture.pixels.shape[:2])][..., None], 3, axis=2)
    return replace(picture, pixels=pixels)


def _compose(pictures: Sequence[Picture], columns: int, scale: int) -> Any:
    """All pictures in one, side by side, at most so many columns of `scale` pixels wide."""
    share = max(8, (columns - GAP_COLUMNS * (len(pictures) - 1)) // len(pictures))
    parts = [_fit(picture, share * scale, 2 * MAX_ROWS * scale, scale) for picture in pictures]
    height = max(part.shape[0] for part in parts)
    gap = np.zeros((height, GAP_COLUMNS * scale, 4), np.uint8)
    canvas: list[Any] = []
    for part in parts:
        below = np.zeros((height - part.shape[0], part.shape[1], 4), np.uint8)
        canvas += [gap, np.concatenate([part, below])]
    return np.concatenate(canvas[1:], axis=1)


def _fit(picture: Picture, width: int, height: int, scale: int) -> Any:
    """A picture of about this size, with its boxes, and with transparency."""
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture.pixels).convert("RGBA")
    factor = min(width / image.width, height / image.height)
    if factor > 1:
        enough = max(1, LEAST_COLUMNS * scale // max(image.size))
        factor = max(1, min(int(factor), enough))
    size = tuple(max(1, round(length * factor)) for length in image.size)
    is_exact = picture.is_exact or factor >= 1
    image = image.resize(size, Image.Resampling.NEAREST if is_exact else Image.Resampling.BOX)
    draw = ImageDraw.Draw(image)
    for box in picture.boxes:
        left, right = (min(size[0] - 1, int(x * size[0])) for x in (box.xmin, box.xmax))
        top, bottom = (min(size[1] - 1, int(y * size[1])) for y in (box.ymin, box.ymax))
        draw.rectangle(
            (left, top, right, bottom), outline=(*box.colour, 255), width=max(1, scale // 4)
        )
    return np.asarray(image)
