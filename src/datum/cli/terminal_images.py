"""Images in a terminal, by the best protocol that it supports."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, Literal, get_args

import numpy as np
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.text import Text

from datum.cli.terminal import is_plain
from datum.errors import Message

__all__ = [
    "Box",
    "Colour",
    "Picture",
    "Style",
    "ascii_lines",
    "block_lines",
    "choose_style",
    "encode_iterm",
    "encode_kitty",
    "encode_sixel",
    "show_pictures",
]

SHADES = " .:-=+*#%@"  # from dark to bright, as on a dark terminal
OPAQUE = 128  # least alpha of a visible pixel
_BRIGHTNESS = np.array([0.299, 0.587, 0.114])  # weights of red, green and blue

FIRST_COLOUR = 16  # the first 16 depend on the user's theme
_STEPS = (0, 95, 135, 175, 215, 255)
_CUBE = [(red, green, blue) for red in _STEPS for green in _STEPS for blue in _STEPS]
_PALETTE = np.array([*_CUBE, *((grey, grey, grey) for grey in range(8, 248, 10))], np.float64)

_Pixel = tuple[int, int, int, int]


def block_lines(pixels: Any, *, has_all_colours: bool = True) -> list[Text]:
    """Draw two pixels per character, one above the other; transparent ones stay blank.

    Without `has_all_colours`, the nearest of the 240 standard colours are used.

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
    """Replace pixels by the nearest standard colour, its number in the red channel."""
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
    """Draw one letter per two pixels, one above the other, by brightness.

    >>> [line.plain for line in ascii_lines(np.full((2, 2, 4), 255, np.uint8))]
    ['@@']
    """
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    bright = (pixels[..., :3] @ _BRIGHTNESS) * (pixels[..., 3] >= OPAQUE)
    rows = (bright[::2] + bright[1::2]) / 2
    places = np.minimum((rows * len(SHADES) / 256).astype(int), len(SHADES) - 1)
    return [Text("".join(SHADES[at] for at in row).rstrip(), end="") for row in places.tolist()]


CHUNK_BYTES = 4096  # limit of one kitty command
COLOURS = 128  # of a sixel image; terminals support at least 256
SIXEL_ROWS = 6


def _png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def encode_kitty(pixels: Any, *, columns: int, rows: int) -> str:
    """Encode a PNG as a kitty command that expects no answer."""
    data = base64.b64encode(_png(pixels)).decode()
    chunks = [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]
    commands = []
    for at, chunk in enumerate(chunks):
        first = f"a=T,f=100,q=2,c={columns},r={rows}," if at == 0 else ""
        commands.append(f"\x1b_G{first}m={int(at < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(commands)


def encode_iterm(pixels: Any, *, columns: int, rows: int) -> str:
    """Encode a PNG as an iTerm command."""
    data = _png(pixels)
    options = f"inline=1;size={len(data)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={options}:{base64.b64encode(data).decode()}\x07"


def encode_sixel(pixels: Any, *, columns: int, rows: int) -> str:
    """Encode pixels as a sixel image; transparent ones keep the background."""
    from PIL import Image

    del columns, rows  # a sixel image has the size of its pixels
    paletted = Image.fromarray(pixels[..., :3]).quantize(COLOURS)
    ids = np.asarray(paletted).astype(np.int64)
    ids[pixels[..., 3] < 128] = -1
    palette = np.array(paletted.getpalette()).reshape(-1, 3) * 100 // 255
    height, width = ids.shape
    colours = "".join(
        f"#{number};2;{';'.join(map(str, palette[number].tolist()))}"
        for number in np.unique(ids).tolist()
        if number >= 0
    )
    bands = (ids[top : top + SIXEL_ROWS] for top in range(0, height, SIXEL_ROWS))
    body = "-".join("$".join(_encode_band(band)) for band in bands)
    return f'\x1bP0;1;0q"1;1;{width};{height}{colours}{body}\x1b\\'


def _encode_band(band: Any) -> Iterator[str]:
    """Encode six rows of pixels, colour by colour."""
    weights = 1 << np.arange(len(band))[:, None]
    for number in np.unique(band).tolist():
        if number >= 0:
            bits = ((band == number) * weights).sum(axis=0).tolist()
            yield f"#{number}" + "".join(_encode_run(*run) for run in _runs(bits))


def _runs(bits: list[int]) -> Iterator[tuple[int, int]]:
    for value, items in groupby(bits):
        yield value, sum(1 for _ in items)


def _encode_run(value: int, count: int) -> str:
    letter = chr(63 + value)
    return letter * count if count < 4 else f"!{count}{letter}"


ImageStyle = Literal["kitty", "iterm", "sixel", "blocks", "ascii", "none"]
Colour = tuple[int, int, int]

MAX_ROWS = 16
MAX_COLUMNS = 72
LEAST_COLUMNS = 16  # to which small images are enlarged
GAP_COLUMNS = 2
PIXELS_PER_COLUMN = 10  # in protocols that draw pixels; the terminal scales them

_KITTY_PROGRAMS = ("ghostty", "kitty")
_ITERM_PROGRAMS = ("iTerm.app", "WezTerm")
_SIXEL_TERMS = ("foot", "mlterm", "contour", "yaft")
_KONSOLE = 220400  # first version with kitty's protocol


@dataclass(frozen=True, slots=True)
class Box:
    """A coloured box in fractions of the height and width of an image."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    colour: Colour


@dataclass(frozen=True, slots=True)
class Picture:
    """An image to show.

    Attributes:
        pixels: uint8 array of height x width x 3, or 4 with transparency.
        boxes: Boxes to draw.
        is_exact: Whether pixels are classes, which must not be blended.
        legend: Colours and their meanings.
    """

    pixels: Any
    boxes: Sequence[Box] = ()
    is_exact: bool = False
    legend: Sequence[tuple[Colour, str]] = field(default=())


def choose_style(
    console: Console, *, wanted: str | None = None, environ: Mapping[str, str] | None = None
) -> ImageStyle:
    """Choose how to show images: as requested, or by the environment.

    The terminal is not queried, because it might not answer. In tmux and screen, which block such
    protocols, images are drawn with blocks.
    """
    if wanted is not None and wanted != "auto":
        if wanted not in get_args(ImageStyle):
            known = ", ".join(("auto", *get_args(ImageStyle)))
            raise ValueError(Message(f"--picture: expected one of {known}, got {wanted!r}"))
        return wanted  # type: ignore[return-value]
    if not console.is_terminal and wanted is None:
        return "none"
    if console.is_terminal:
        found = _find_protocol(os.environ if environ is None else environ)
        if found is not None:
            return found
    has_colours = console.color_system in ("truecolor", "256") and not console.no_color
    return "blocks" if has_colours and not is_plain(console) else "ascii"


def _find_protocol(environ: Mapping[str, str]) -> ImageStyle | None:
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
    console: Console, pictures: Sequence[Picture], style: ImageStyle, *, indent: int = 2
) -> None:
    """Print images side by side."""
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
    """Draw classes in evenly spaced greys, for terminals without colour."""
    flat = picture.pixels.reshape(-1, picture.pixels.shape[-1])
    known, places = np.unique(flat, axis=0, return_inverse=True)
    greys = np.linspace(0, 255, len(known)).astype(np.uint8)
    pixels = np.repeat(greys[places.reshape(picture.pixels.shape[:2])][..., None], 3, axis=2)
    return replace(picture, pixels=pixels)


def _compose(pictures: Sequence[Picture], columns: int, scale: int) -> Any:
    """Join images side by side, at most `columns` columns of `scale` pixels wide."""
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
    """Resize an image to about this size, and draw its boxes."""
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
