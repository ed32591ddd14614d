"""Cards: an image with its boxes and mask on it, and below it what they mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.tensorboard.lettering import clean, font_for, shorten, text_width, wrap
from datum.tensorboard.pixels import MAX_SIDE, Pixels, Scale, fit_size

__all__ = ["Box", "Colour", "Sample", "colour_of", "draw_card", "draw_sheet"]

Colour = tuple[int, int, int]

FONT_SIZE = 13
_TAG_SIZE, _TAG_LINE = 11, 15  # of the names of boxes
_MARGIN = 6
_LINE = 18  # pixels from one line of text to the next
_MIN_WIDTH = 128  # of a card, for the sake of its caption
_SHEET_SIDE = 2048  # that the pictures of a sheet share
_CELL_SIDES = 96, 256  # the smallest and the largest in a sheet
_LEGEND_ITEMS = 12
_MAX_COVER = 0.08  # the share of a picture that the names of boxes may hide
_MASK_SHARE = 0.45  # of the mask's colour in that of a pixel

_PAPER = (32, 33, 36)
_INK = (240, 240, 240)
_FAINT = (150, 152, 156)
_BRIGHTNESS = (0.299, 0.587, 0.114)  # what red, green and blue add to it

# Colours of classes, as far from each other as can be, the first ones most of all.
_COLOURS = (
    (230, 57, 70), (42, 157, 255), (82, 204, 92), (255, 190, 11), (181, 92, 255), (0, 206, 201),
    (255, 127, 42), (255, 105, 180), (163, 196, 40), (106, 90, 235), (196, 138, 82), (0, 150, 110),
    (255, 226, 120), (120, 190, 255), (200, 30, 120), (150, 230, 190), (255, 160, 140),
    (120, 120, 40), (90, 130, 170), (210, 180, 255),
)  # fmt: skip
_VOID = 255  # the id that masks give to pixels of no class
_VOID_COLOUR = (235, 235, 235)
_PLAIN_COLOUR = (255, 235, 59)


@dataclass(frozen=True, slots=True)
class Box:
    """A box in fractions of the image's height and width, and the colour and name of its class."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    colour: Colour
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """What there is to draw of one record.

    Attributes:
        pixels: the image; None where the record has none.
        caption: its labels in words.
        boxes: those that are within the image.
        mask: the class id of each pixel, height x width, of any size.
        legend: the colours of the mask and the names of their classes.
        notes: what is odd about the record.
    """

    pixels: Pixels | None
    caption: str = ""
    boxes: Sequence[Box] = ()
    mask: NDArray[np.int64] | None = None
    legend: Sequence[tuple[Colour, str]] = ()
    notes: Sequence[str] = ()


def colour_of(number: int | None) -> Colour:
    """The colour of a class, the same in every picture; that of None is for boxes of no class."""
    if number is None:
        return _PLAIN_COLOUR
    return _VOID_COLOUR if number == _VOID else _COLOURS[(number - 1) % len(_COLOURS)]


def draw_card(sample: Sample, scale: Scale, side: int = MAX_SIDE) -> Any:
    """A picture of the record, as Pillow's image; `side` is that of the image within.

    Boxes bear their names, or, where these would hide too much, are told by the colours below.
    """
    from PIL import Image

    picture = _draw_image(sample, scale, side)
    legend = list(sample.legend)
    if _cover(sample.boxes) <= _MAX_COVER * picture.width * picture.height:
        _draw_tags(picture, sample.boxes)
    else:
        legend += sorted({(box.colour, box.name) for box in sample.boxes}, key=lambda one: one[1])
    width = max(picture.width, min(_MIN_WIDTH, side))
    blocks = [_draw_caption(sample, width), _draw_legend(legend, width)]
    height = picture.height + sum(block.height for block in blocks)
    card = Image.new("RGB", (width, height), _PAPER)
    card.paste(picture, ((width - picture.width) // 2, 0))
    top = picture.height
    for block in blocks:
        card.paste(block, (0, top))
        top += block.height
    return card


def draw_sheet(samples: Sequence[Sample], scales: Sequence[Scale]) -> Any:
    """All records in one picture, row by row."""
    from PIL import Image

    columns = math.ceil(math.sqrt(len(samples)))
    smallest, largest = _CELL_SIDES
    side = max(smallest, min(largest, _SHEET_SIDE // columns))
    cards = [draw_card(one, scale, side) for one, scale in zip(samples, scales, strict=True)]
    rows = [cards[at : at + columns] for at in range(0, len(cards), columns)]
    cell = max(card.width for card in cards) + _MARGIN
    heights = [max(card.height for card in row) + _MARGIN for row in rows]
    sheet = Image.new("RGB", (cell * len(rows[0]) + _MARGIN, sum(heights) + _MARGIN), _PAPER)
    top = _MARGIN
    for row, height in zip(rows, heights, strict=True):
        for at, card in enumerate(row):
            sheet.paste(card, (_MARGIN + at * cell + (cell - _MARGIN - card.width) // 2, top))
        top += height
    return sheet


def _draw_image(sample: Sample, scale: Scale, side: int) -> Any:
    from PIL import Image, ImageDraw

    if sample.pixels is None:
        size = min(_MIN_WIDTH, side)
        picture = Image.new("RGB", (size, size), tuple(value + 20 for value in _PAPER))
        _write(ImageDraw.Draw(picture), (_MARGIN, size // 2 - _LINE // 2), "no image", _FAINT, size)
        return picture
    height, width = fit_size(sample.pixels.values.shape[:2], side)
    picture = Image.fromarray(scale.apply(sample.pixels))
    is_larger = width > picture.width
    picture = picture.resize((width, height), Image.NEAREST if is_larger else Image.LANCZOS)
    if picture.mode == "RGBA":
        picture = Image.alpha_composite(_chequered(width, height), picture).convert("RGB")
    if sample.mask is not None:
        picture = Image.fromarray(_blend(np.asarray(picture), sample.mask))
    _draw_boxes(picture, sample.boxes)
    return picture


def _chequered(width: int, height: int) -> Any:
    """The ground that shows through where an image is transparent."""
    from PIL import Image

    is_dark = (np.arange(height)[:, None] // 8 + np.arange(width) // 8) % 2
    grey = np.where(is_dark, 160, 220).astype(np.uint8)
    return Image.fromarray(grey).convert("RGBA")


def _blend(picture: NDArray[np.uint8], mask: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Colours over all pixels but those of id 0, stronger where one class meets another."""
    height, width = picture.shape[:2]
    rows = np.arange(height) * mask.shape[0] // height
    columns = np.arange(width) * mask.shape[1] // width
    ids = mask[rows[:, None], columns]
    known, places = np.unique(ids, return_inverse=True)
    colours = np.array([colour_of(number) for number in known.tolist()], np.float64)
    share = np.where(ids != 0, _MASK_SHARE, 0.0)
    share[_borders(ids) & (ids != 0)] = 1.0
    colour, share = colours[places.reshape(ids.shape)], share[..., None]
    blended: NDArray[np.uint8] = np.rint(picture * (1 - share) + colour * share).astype(np.uint8)
    return blended


def _borders(ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    found = np.zeros(ids.shape, np.bool_)
    across, down = ids[:, 1:] != ids[:, :-1], ids[1:] != ids[:-1]
    found[:, 1:] |= across
    found[:, :-1] |= across
    found[1:] |= down
    found[:-1] |= down
    return found


def _draw_boxes(picture: Any, boxes: Sequence[Box]) -> None:
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    thickness = 1 if min(picture.size) < 200 else 2
    for box in boxes:
        draw.rectangle(_place(box, picture.size), outline=box.colour, width=thickness)


def _cover(boxes: Sequence[Box]) -> int:
    """The pixels that the names of boxes would hide."""
    return sum(
        (text_width(clean(box.name), _TAG_SIZE) + 4) * _TAG_LINE for box in boxes if box.name
    )


def _draw_tags(picture: Any, boxes: Sequence[Box]) -> None:
    """The name of each box above it, or within where there is no room above."""
    from PIL import ImageDraw

    draw = ImageDraw.Draw(picture)
    for box in boxes:
        if not box.name:
            continue
        left, top, _, _ = _place(box, picture.size)
        text = shorten(clean(box.name), _TAG_SIZE, picture.width - 4)
        width = text_width(text, _TAG_SIZE) + 4
        left = max(0, min(left, picture.width - width))
        top = top - _TAG_LINE + 1 if top >= _TAG_LINE else top
        draw.rectangle((left, top, left + width - 1, top + _TAG_LINE - 1), fill=box.colour)
        is_light = np.dot(box.colour, _BRIGHTNESS) > 140
        ink = (0, 0, 0) if is_light else (255, 255, 255)
        _write(draw, (left + 2, top), text, ink, width, _TAG_SIZE)


def _place(box: Box, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """The first and the last pixel of a box, both within the picture and at least one."""
    width, height = size
    left, top = min(int(box.xmin * width), width - 1), min(int(box.ymin * height), height - 1)
    right, bottom = math.ceil(box.xmax * width) - 1, math.ceil(box.ymax * height) - 1
    return left, top, max(left, right), max(top, bottom)


def _draw_caption(sample: Sample, width: int) -> Any:
    """The labels, at the right the size of the image, and below what is odd."""
    from PIL import Image, ImageDraw

    room = width - 2 * _MARGIN
    lines = [(line, _INK) for line in wrap(clean(sample.caption), FONT_SIZE, room, lines=2)]
    size, free = _size_text(sample), room
    if len(lines) == 1:
        free -= text_width(lines[0][0], FONT_SIZE) + 3 * _MARGIN
    is_beside = len(lines) <= 1 and text_width(size, FONT_SIZE) <= free
    if size and not (is_beside and lines):
        lines.append((size, _FAINT))
        size = ""
    notes = clean(", ".join(sample.notes))
    lines += [(line, _FAINT) for line in wrap(notes, FONT_SIZE, room, lines=2)]
    block = Image.new("RGB", (width, len(lines) * _LINE + _MARGIN if lines else 0), _PAPER)
    draw = ImageDraw.Draw(block)
    for at, (line, ink) in enumerate(lines):
        _write(draw, (_MARGIN, _MARGIN // 2 + at * _LINE), line, ink, room)
    if size:
        place = width - _MARGIN - text_width(size, FONT_SIZE), _MARGIN // 2
        _write(draw, place, size, _FAINT, room)
    return block


def _size_text(sample: Sample) -> str:
    if sample.pixels is None:
        return ""
    height, width = sample.pixels.size
    return f"{width} x {height}"


def _draw_legend(legend: Sequence[tuple[Colour, str]], width: int) -> Any:
    """A square of colour and a name for each class, in as many lines as it takes."""
    from PIL import Image, ImageDraw

    square, room = FONT_SIZE - 3, width - 2 * _MARGIN
    items = [(colour, clean(name)) for colour, name in legend[:_LEGEND_ITEMS]]
    if len(legend) > _LEGEND_ITEMS:
        items.append((_PAPER, f"and {len(legend) - _LEGEND_ITEMS} more"))
    placed, left, line = [], 0, 0
    for colour, name in items:
        name = shorten(name, FONT_SIZE - 1, room - square - 4)
        needed = square + 4 + text_width(name, FONT_SIZE - 1)
        if left and left + needed > room:
            left, line = 0, line + 1
        placed.append((_MARGIN + left, line * _LINE, colour, name))
        left += needed + 2 * _MARGIN
    block = Image.new("RGB", (width, (line + 1) * _LINE + _MARGIN // 2 if placed else 0), _PAPER)
    draw = ImageDraw.Draw(block)
    for x, y, colour, name in placed:
        draw.rectangle((x, y + 4, x + square - 1, y + 3 + square), fill=colour)
        _write(draw, (x + square + 4, y), name, _INK, room, FONT_SIZE - 1)
    return block


def _write(
    draw: Any,
    place: tuple[int, int],
    text: str,
    ink: tuple[int, ...],
    room: int,
    size: int = FONT_SIZE,
) -> None:
    font, drawn = font_for(shorten(text, size, room), size)
    draw.text(place, drawn, fill=ink, font=font)
