"""Cards for TensorBoard: an image with its boxes, mask and caption."""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.images import ImageError, decode_pixels, read_header
from datum.tensorboard.records import CHANNELS

__all__ = [
    "MAX_SIDE",
    "NOT_FINITE",
    "Box",
    "Colour",
    "Pixels",
    "Sample",
    "Scale",
    "clean",
    "colour_of",
    "draw_card",
    "draw_sheet",
    "fit_size",
    "font_for",
    "read_ids",
    "shorten",
    "text_width",
    "wrap",
]

MAX_LETTERS = 200  # of a text; no image has room for more
_ELLIPSIS = "..."

# Pillow's own font covers little more than ASCII; these are common on systems.
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
    r"""Put a text on one line for drawing, without control characters, cut if very long.

    >>> clean("a\tcat\n\x00\u202eon a mat")
    'a cat on a mat'
    """
    letters = (" " if unicodedata.category(one) in _CONTROLS else one for one in text[:MAX_LETTERS])
    cut = _ELLIPSIS if len(text) > MAX_LETTERS else ""
    return " ".join("".join(letters).split()) + cut


# Control and direction characters, surrogates, line and paragraph separators.
_CONTROLS = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))


def font_for(text: str, size: int) -> tuple[Any, str]:
    """Choose a font for a text; return it with the text as it can be drawn.

    It is the first font that lacks the fewest letters; those are drawn without accents or as code
    points.
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
    """Return whether a font has a letter: a missing one looks like an unassigned one."""
    missing = font.getmask("\U0010fffd")
    mask = font.getmask(letter)
    return letter == " " or mask.size != missing.size or bytes(mask) != bytes(missing)


def _spell(letter: str) -> str:
    bare = unicodedata.normalize("NFKD", letter)[:1]
    return bare if bare.isascii() else letter.encode("ascii", "backslashreplace").decode()


def text_width(text: str, size: int) -> int:
    """Width of a text in pixels."""
    font, drawn = font_for(text, size)
    width: float = font.getlength(drawn)
    return math.ceil(width)


def shorten(text: str, size: int, width: int) -> str:
    """Cut a text to `width` pixels."""
    if text_width(text, size) <= width:
        return text
    fitting = 0
    longest = len(text)
    while fitting < longest:  # longer beginnings are never narrower
        middle = (fitting + longest + 1) // 2
        is_fitting = text_width(text[:middle].rstrip() + _ELLIPSIS, size) <= width
        fitting, longest = (middle, longest) if is_fitting else (fitting, middle - 1)
    return text[:fitting].rstrip() + _ELLIPSIS


def wrap(text: str, size: int, width: int, *, lines: int) -> list[str]:
    """Wrap a text to lines of at most `width` pixels; cut the last line."""
    words, wrapped = text.split(), list[str]()
    while words and len(wrapped) < lines - 1:
        taken = 1
        while taken < len(words) and text_width(" ".join(words[: taken + 1]), size) <= width:
            taken += 1
        wrapped.append(shorten(" ".join(words[:taken]), size, width))
        words = words[taken:]
    return [*wrapped, shorten(" ".join(words), size, width)] if words else wrapped


MAX_SIDE = 512  # pixels; TensorBoard shows nothing larger
SMALL_SIDE = 256  # to which small images are enlarged, by a whole factor
NOT_FINITE = (255, 0, 255)  # colour of NaN and infinity, rare in photos

_Range = tuple[NDArray[np.float64], NDArray[np.float64]]  # lowest and highest value of each channel
_SLACK = 0.25  # margin beyond 0..1 for augmented images
_BITS = (8, 10, 12, 14, 16)  # of cameras and scanners

# Means and deviations of ImageNet models. The first is for blue, green, red.
_CAFFE_MEAN = np.array([103.939, 116.779, 123.68])
_TORCH_MEAN, _TORCH_SCALE = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])


@dataclass(frozen=True, slots=True)
class Pixels:
    """An image, at most as large as it is shown.

    Attributes:
        values: Array of height x width x channels: uint8, or float32 for other types.
        kind: Original type.
        size: Original height and width.
        extremes: Lowest and highest finite value of each channel.
        faults: Mask of non-finite pixels; None without any.
        not_finite: Number of non-finite values.
    """

    values: NDArray[Any]
    kind: Literal["byte", "integer", "float"]
    size: tuple[int, int]
    extremes: _Range
    faults: NDArray[np.bool_] | None = None
    not_finite: int = 0

    @classmethod
    def of(cls, value: Any) -> Pixels:
        """Read the pixels of an array of height x width (x channels), or of an encoded image."""
        array = _decode(value) if isinstance(value, bytes) else np.asarray(value)
        if array.ndim == 2:
            array = array[..., None]
        is_number = array.dtype.kind in "biuf" or array.dtype.name == "bfloat16"
        if array.ndim != 3 or array.shape[-1] not in CHANNELS or not array.size or not is_number:
            raise ImageError(
                "expected an image of height x width x 1, 3 or 4 channels,"
                f" got {array.dtype} of shape {array.shape}"
            )
        if array.dtype == np.bool_:
            array = array.astype(np.uint8) * np.uint8(255)
        return cls._shrunk(array)

    @classmethod
    def _shrunk(cls, array: NDArray[Any]) -> Pixels:
        size = array.shape[:2]
        height, width = fit_size(size, MAX_SIDE, enlarge=False)
        if array.dtype == np.uint8:
            extremes = np.zeros(array.shape[-1]), np.full(array.shape[-1], 255.0)
            return cls(_resize(array, height, width), "byte", size, extremes)
        kind: Literal["integer", "float"] = "integer" if array.dtype.kind in "iu" else "float"
        with np.errstate(over="ignore"):  # overflow in float32 counts as not finite
            array = array.astype(np.float32)
        is_finite = np.isfinite(array)
        lost = int((~is_finite).sum())
        faults = None
        if lost:
            spots = np.where(is_finite.all(-1, keepdims=True), np.float32(0), np.float32(1))
            faults = _resize(spots, height, width)[..., 0] > 0
            array = np.where(is_finite, array, np.float32(0))
        lowest = np.min(array, axis=(0, 1), initial=np.inf, where=is_finite).astype(np.float64)
        highest = np.max(array, axis=(0, 1), initial=-np.inf, where=is_finite).astype(np.float64)
        return cls(_resize(array, height, width), kind, size, (lowest, highest), faults, lost)


@dataclass(frozen=True, slots=True)
class Scale:
    """Mapping of values to brightness, from 0 to 255.

    Attributes:
        factor, offset: Brightness is `value * factor + offset`, for all channels or each.
        is_reversed: Whether channels are blue, green, red.
        is_stretched: Whether each image is scaled by its own range instead.
    """

    factor: Any = 1.0
    offset: Any = 0.0
    is_reversed: bool = False
    is_stretched: bool = False

    @classmethod
    def of(cls, pixels: Sequence[Pixels]) -> Scale:
        """Find one scale for all images of a kind, so that they are comparable.

        uint8 is shown unchanged. Other integers fill 8, 10, 12, 14 or 16 bits. Floats are 0..1,
        -1..1, normalised for ImageNet models (by mean and deviation, or blue, green, red minus
        their means), or 0..255: the first that fits all images. Otherwise each image is scaled
        from its lowest value to its highest.
        """
        if not pixels or pixels[0].kind == "byte":
            return cls()
        channels = {len(one.extremes[0]) for one in pixels}
        lowest = min(float(one.extremes[0].min()) for one in pixels)
        highest = max(float(one.extremes[1].max()) for one in pixels)
        if not np.isfinite([lowest, highest]).all():  # no finite value
            return cls()
        if pixels[0].kind == "integer":
            return _integer_scale(lowest, highest)
        if channels == {3}:
            low = np.min([one.extremes[0] for one in pixels], axis=0)
            high = np.max([one.extremes[1] for one in pixels], axis=0)
            return _float_scale(lowest, highest, (low, high))
        return _float_scale(lowest, highest, None)

    def apply(self, pixels: Pixels) -> NDArray[np.uint8]:
        """Convert an image to uint8 of height x width x 3, or 4 with transparency."""
        if pixels.kind == "byte":
            values = pixels.values
        else:
            scale = _stretch(*pixels.extremes) if self.is_stretched else self
            values = pixels.values * np.asarray(scale.factor) + np.asarray(scale.offset)
            values = values[..., ::-1] if self.is_reversed else values
            values = np.rint(np.clip(values, 0, 255)).astype(np.uint8)
        if values.shape[-1] == 1:
            values = np.repeat(values, 3, axis=-1)
        if pixels.faults is not None:
            values[pixels.faults, :3] = NOT_FINITE
            values[pixels.faults, 3:] = 255
        return values


def _integer_scale(lowest: float, highest: float) -> Scale:
    bits = next((bits for bits in _BITS if highest < 2**bits), None)
    if lowest < 0 or bits is None:
        return Scale(is_stretched=True)
    return Scale(255 / (2**bits - 1))


def _float_scale(lowest: float, highest: float, channels: _Range | None) -> Scale:
    if lowest >= -_SLACK and highest <= 1 + _SLACK:
        return Scale(255)
    if lowest >= -1 - _SLACK and highest <= 1 + _SLACK:
        return Scale(127.5, 127.5)
    if channels is not None and _fits(channels, _TORCH_MEAN, _TORCH_SCALE, 1):
        return Scale(255 * _TORCH_SCALE, 255 * _TORCH_MEAN)
    if lowest >= -1 and 16 < highest <= 256:
        return Scale()
    is_wide = highest - lowest > 64
    if channels is not None and is_wide and _fits(channels, _CAFFE_MEAN, np.ones(3), 255):
        return Scale(1.0, _CAFFE_MEAN, is_reversed=True)
    return Scale(is_stretched=True)


def _fits(channels: _Range, mean: Any, scale: Any, white: float) -> bool:
    """Return whether undoing a normalisation yields values from black to white."""
    lowest, highest = (values * scale + mean for values in channels)
    return bool(lowest.min() >= -0.01 * white and highest.max() <= 1.01 * white)


def _stretch(lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Scale:
    lowest, highest = float(lows.min()), float(highs.max())
    factor = 255 / (highest - lowest) if lowest < highest < np.inf else 0.0
    return Scale(factor, -lowest * factor)


def fit_size(size: tuple[int, int], side: int, *, enlarge: bool = True) -> tuple[int, int]:
    """Return the height and width to show an image in, at most `side` each.

    >>> fit_size((3000, 4000), 512), fit_size((300, 400), 512), fit_size((28, 28), 512)
    ((384, 512), (300, 400), (252, 252))
    """
    longest = max(size)
    if longest > side:
        height, width = (max(1, round(length * side / longest)) for length in size)
        return height, width
    factor = max(1, min(SMALL_SIDE, side) // longest) if enlarge else 1
    return size[0] * factor, size[1] * factor


def read_ids(value: Any) -> NDArray[np.int64]:
    """Read the class ids of a mask; floats are rounded, non-finite values become 0."""
    array = decode_pixels(value, 1) if isinstance(value, bytes) else np.asarray(value)
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    if array.ndim != 2 or not array.size or array.dtype.kind not in "biuf":
        raise ImageError(
            "expected a mask of height x width x 1 class ids,"
            f" got {array.dtype} of shape {array.shape}"
        )
    if array.dtype.kind == "f":
        limit = 2.0**53  # above it, floats are not exact integers
        array = np.rint(np.nan_to_num(np.clip(array.astype(np.float64), -limit, limit)))
    ids: NDArray[np.int64] = array.astype(np.int64)
    return ids


def _decode(data: bytes) -> NDArray[Any]:
    return decode_pixels(data, read_header(data).channels)


def _resize(array: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """Shrink an image with a filter that stays within the range of its values."""
    if array.shape[:2] == (height, width):
        return array.copy()
    from PIL import Image

    bands = [
        Image.fromarray(np.ascontiguousarray(array[..., at])).resize((width, height), Image.HAMMING)
        for at in range(array.shape[-1])
    ]
    return np.stack([np.asarray(band) for band in bands], axis=-1)


Colour = tuple[int, int, int]

FONT_SIZE = 13
_TAG_SIZE, _TAG_LINE = 11, 15  # of the names of boxes
_MARGIN = 6
_LINE = 18  # pixels from one line of text to the next
_MIN_WIDTH = 128  # of a card, to fit its caption
_SHEET_SIDE = 2048  # pixels shared by the images of a sheet
_CELL_SIDES = 96, 256  # the smallest and the largest in a sheet
_LEGEND_ITEMS = 12
_MAX_COVER = 0.08  # share of an image that names of boxes may hide
_MASK_SHARE = 0.45  # of the mask's colour in that of a pixel

_PAPER = (32, 33, 36)
_INK = (240, 240, 240)
_FAINT = (150, 152, 156)
_BRIGHTNESS = (0.299, 0.587, 0.114)  # weights of red, green and blue

# Colours of classes; the first ones differ most.
_COLOURS = (
    (230, 57, 70), (42, 157, 255), (82, 204, 92), (255, 190, 11), (181, 92, 255), (0, 206, 201),
    (255, 127, 42), (255, 105, 180), (163, 196, 40), (106, 90, 235), (196, 138, 82), (0, 150, 110),
    (255, 226, 120), (120, 190, 255), (200, 30, 120), (150, 230, 190), (255, 160, 140),
    (120, 120, 40), (90, 130, 170), (210, 180, 255),
)  # fmt: skip
_VOID = 255  # id of pixels without a class
_VOID_COLOUR = (235, 235, 235)
_PLAIN_COLOUR = (255, 235, 59)


@dataclass(frozen=True, slots=True)
class Box:
    """A box in fractions of the image's height and width, with colour and class name."""

    ymin: float
    xmin: float
    ymax: float
    xmax: float
    colour: Colour
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """The drawable parts of one record.

    Attributes:
        pixels: Image; None if the record has none.
        caption: Labels as text.
        boxes: Boxes within the image.
        mask: Class ids, height x width, of any size.
        legend: Colours and class names of the mask.
        notes: Remarks on unusual values.
    """

    pixels: Pixels | None
    caption: str = ""
    boxes: Sequence[Box] = ()
    mask: NDArray[np.int64] | None = None
    legend: Sequence[tuple[Colour, str]] = ()
    notes: Sequence[str] = ()


def colour_of(number: int | None) -> Colour:
    """Return the colour of a class, the same in every image; None is for boxes without class."""
    if number is None:
        return _PLAIN_COLOUR
    return _VOID_COLOUR if number == _VOID else _COLOURS[(number - 1) % len(_COLOURS)]


def draw_card(sample: Sample, scale: Scale, side: int = MAX_SIDE) -> Any:
    """Draw a record as a Pillow image; `side` is the side of the image within.

    Boxes are labelled with their names, or, if these would hide too much, by a legend of colours.
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
    """Draw all records in one image, row by row."""
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
    """Background of transparent images."""
    from PIL import Image

    is_dark = (np.arange(height)[:, None] // 8 + np.arange(width) // 8) % 2
    grey = np.where(is_dark, 160, 220).astype(np.uint8)
    return Image.fromarray(grey).convert("RGBA")


def _blend(picture: NDArray[np.uint8], mask: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Colour all pixels except id 0, stronger at borders of classes."""
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
    """Number of pixels that the names of boxes would hide."""
    return sum(
        (text_width(clean(box.name), _TAG_SIZE) + 4) * _TAG_LINE for box in boxes if box.name
    )


def _draw_tags(picture: Any, boxes: Sequence[Box]) -> None:
    """Draw the name of each box above it, or inside without room above."""
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
    """First and last pixel of a box within the image, at least one pixel."""
    width, height = size
    left, top = min(int(box.xmin * width), width - 1), min(int(box.ymin * height), height - 1)
    right, bottom = math.ceil(box.xmax * width) - 1, math.ceil(box.ymax * height) - 1
    return left, top, max(left, right), max(top, bottom)


def _draw_caption(sample: Sample, width: int) -> Any:
    """Draw the labels, the size of the image at the right, and notes below."""
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
    """Draw a coloured square and a name for each class."""
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
