"""Images, masks and boxes found in a record."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from datum import images
from datum.cli.record_values import Cell, read_image_header
from datum.cli.terminal_images import Box, Colour, Picture

__all__ = [
    "colour_of",
    "find_boxes",
    "pictures_of",
]

MAX_BOXES = 100
SLACK = 1.01  # tolerance for rounded fractions
_SIDES = ("ymin", "xmin", "ymax", "xmax")
_BOXES = ("bbox", "bboxes", "box", "boxes")
_LABELS = ("label", "labels", "class", "classes", "category", "categories", "text")

Legend = list[tuple[Colour, str]]


def find_boxes(
    cells: Sequence[Cell], size: tuple[int, int], colour_of: Callable[[int], Colour]
) -> tuple[list[Box], Legend]:
    """Return the boxes of an image of this height and width, and a legend of their colours.

    Sides are fractions if all are at most 1, else pixels.
    """
    by_name = {cell.name: cell for cell in cells}
    corners, prefix = _find_corners(by_name, size)
    if not len(corners):
        return [], []
    labels = _find_labels(by_name, prefix, len(corners))
    boxes, legend = [], dict[str, Colour]()
    for corner, (number, name) in zip(corners[:MAX_BOXES].tolist(), labels, strict=False):
        (top, bottom), (left, right) = sorted(corner[::2]), sorted(corner[1::2])
        if bottom <= 0 or right <= 0 or top >= 1 or left >= 1:
            continue
        colour = colour_of(number + 1)
        ymin, xmin, ymax, xmax = np.clip((top, left, bottom, right), 0, 1).tolist()
        boxes.append(Box(ymin, xmin, ymax, xmax, colour))
        if name:
            legend[name] = colour
    return boxes, [(colour, name) for name, colour in legend.items()]


def _last(name: str) -> str:
    return name.rpartition("/")[2].lower()


def _find_corners(cells: dict[str, Cell], size: tuple[int, int]) -> tuple[Any, str]:
    """Boxes x (ymin, xmin, ymax, xmax) in fractions, and the common prefix of their features."""
    for name in cells:
        if _last(name) == "ymin":
            prefix = name[: -len("ymin")]
            sides = [cells.get(prefix + side) for side in _SIDES]
            values = [np.atleast_1d(side.value) for side in sides if side and _is_list(side.value)]
            if len(values) == len(_SIDES) and len({len(side) for side in values}) == 1:
                return _normalised(np.stack(values, axis=1).astype(np.float64), size), prefix
    for name, cell in cells.items():
        value = cell.value
        is_named = _last(name) in _BOXES
        if is_named and isinstance(value, np.ndarray) and value.shape[-1:] == (4,):
            return _in_order(cell, value.reshape(-1, 4).astype(np.float64), size), name
    return np.zeros((0, 4)), ""


def _is_list(value: Any) -> bool:
    """Return whether a value is a number or a one-dimensional array of numbers."""
    is_array = isinstance(value, (np.ndarray, np.generic))
    return is_array and value.ndim <= 1 and value.dtype.kind in "iuf"


def _normalised(corners: Any, size: tuple[int, int]) -> Any:
    height, width = size
    is_fraction = not len(corners) or corners.max() <= SLACK
    return corners if is_fraction else corners / np.array([height, width, height, width])


def _in_order(cell: Cell, corners: Any, size: tuple[int, int]) -> Any:
    """Reorder four numbers to ymin, xmin, ymax, xmax.

    Fractions are already in that order, as in TensorFlow. Pixels are usually xmin, ymin, xmax,
    ymax, or xmin, ymin, width, height if the last two would be smaller.
    """
    order = str((cell.metadata or {}).get("order", "")).lower()
    if "ymin" in order[:6] or (not order and len(corners) and corners.max() <= SLACK):
        return _normalised(corners, size)
    first, second = corners[:, :2], corners[:, 2:]
    if len(corners) and not (second >= first).all():
        second = first + second
    return _normalised(np.concatenate([first[:, ::-1], second[:, ::-1]], axis=1), size)


def _find_labels(cells: dict[str, Cell], prefix: str, count: int) -> list[tuple[int, str]]:
    """Colour number and class name of each box."""
    fitting = [
        cell
        for name, cell in cells.items()
        if _last(name) in _LABELS and _count(cell.value) == count
    ]
    fitting.sort(key=lambda cell: (_is_list(cell.value), _differs(cell.name, prefix)))
    if not fitting:
        return [(0, "")] * count
    cell = fitting[0]
    is_one = isinstance(cell.value, (str, bytes))
    values = [cell.value] if is_one else cell.value
    values = values if isinstance(values, list) else np.atleast_1d(values)
    return [_label(value, cell.class_names) for value in values]


def _count(value: Any) -> int:
    """Number of labels; one box may have a scalar label."""
    if isinstance(value, list):
        return len(value) if all(isinstance(one, (str, bytes)) for one in value) else -1
    if isinstance(value, (str, bytes)):
        return 1
    is_ids = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iu"
    return int(value.size) if is_ids and value.ndim <= 1 else -1


def _differs(name: str, prefix: str) -> int:
    parts = zip(name.split("/"), prefix.split("/"), strict=False)
    return -sum(a == b for a, b in parts)


def _label(value: Any, names: Sequence[str]) -> tuple[int, str]:
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        return zlib.crc32(value.encode(errors="replace")) % 12, value
    number = int(value)
    return number, names[number] if 0 <= number < len(names) else str(number)


MAX_PICTURES = 4  # of one record
MAX_FRAMES = 4  # of a list of images
LEAST_SIDE = 6  # of an array without channels that counts as an image
MAX_MASK_IDS = 64
VOID = 255  # id of pixels without a class in masks

_IMAGE_WORDS = ("image", "img", "pixel", "picture", "photo", "frame", "digit")
_MASK_WORDS = ("mask", "segmentation", "trimap", "annotation")
# Colours of classes; the first ones differ most.
_COLOURS: tuple[Colour, ...] = (
    (230, 57, 70),
    (42, 157, 255),
    (82, 204, 92),
    (255, 190, 11),
    (181, 92, 255),
    (0, 206, 201),
    (255, 127, 42),
    (255, 105, 180),
    (163, 196, 40),
    (106, 90, 235),
    (196, 138, 82),
    (120, 190, 255),
)


def colour_of(number: int) -> Colour:
    """Return the colour of a class, the same in every image; class 0, the background, is dark."""
    if number == 0:
        return (28, 28, 32)
    return (235, 235, 235) if number == VOID else _COLOURS[(number - 1) % len(_COLOURS)]


def pictures_of(cells: Sequence[Cell]) -> list[Picture]:
    """Return the images of a record that can be decoded, photos before masks."""
    found = [(cell, pixels) for cell in cells for pixels in _pixels_of(cell)]
    found = found[: 2 * MAX_PICTURES]
    sizes = [pixels.shape[:2] for _, pixels in found if _channels(pixels) > 1]
    shown, masks = [], []
    for cell, pixels in found:
        if _is_mask(cell, pixels, sizes):
            masks.append(_draw_mask(cell, pixels))
        else:
            shown.append(pixels)
    photos = [Picture(_to_bytes(pixels)) for pixels in shown]
    if photos:
        first = shown[0]
        boxes, legend = find_boxes(cells, first.shape[:2], colour_of)
        photos[0] = Picture(photos[0].pixels, boxes, legend=legend)
    return [*photos, *masks][:MAX_PICTURES]


def _channels(pixels: Any) -> int:
    return 1 if pixels.ndim == 2 else int(pixels.shape[2])


def _pixels_of(cell: Cell) -> list[Any]:
    """Pixels of the one or several images of a feature."""
    value = cell.value
    if isinstance(value, bytes):
        pixels = _decode(cell, value)
        return [] if pixels is None else [pixels]
    if isinstance(value, list):
        frames = [_decode(cell, one) for one in value[:MAX_FRAMES] if isinstance(one, bytes)]
        return [frame for frame in frames if frame is not None]
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf" or not value.size:
        return []
    return _pixels_of_array(cell, value)


def _decode(cell: Cell, data: bytes) -> Any:
    header = read_image_header(data)
    if header is None:
        return None
    try:
        if cell.feature.encoding == "image":
            return images.decode(data, cell.feature.single_image)
        # Masks have palettes: keep the ids, not the colours.
        channels = 1 if header.has_palette and _names(cell, _MASK_WORDS) else header.channels
        return images.decode_pixels(data, channels)
    except images.ImageError:
        return None


def _pixels_of_array(cell: Cell, array: Any) -> list[Any]:
    if array.ndim == 4 and array.shape[3] in (1, 3, 4):
        return list(array[:MAX_FRAMES])
    if array.ndim == 3 and array.shape[2] in (1, 3, 4) and min(array.shape[:2]) > 1:
        return [array]
    is_named = _names(cell, _IMAGE_WORDS) or _names(cell, _MASK_WORDS)
    if array.ndim == 2 and min(array.shape) >= LEAST_SIDE and (is_named or array.dtype == np.uint8):
        return [array]
    side = math.isqrt(array.size)
    if array.ndim == 1 and is_named and side >= LEAST_SIDE and side * side == array.size:
        return [array.reshape(side, side)]
    return []


def _names(cell: Cell, words: Sequence[str]) -> bool:
    return any(word in cell.name.lower() for word in words)


def _is_mask(cell: Cell, pixels: Any, sizes: Sequence[tuple[int, int]]) -> bool:
    """Return whether pixels are class ids, by name, class names, or a photo of the same size."""
    if _channels(pixels) != 1 or pixels.dtype.kind not in "biu":
        return False
    if _names(cell, _MASK_WORDS) or cell.class_names:
        return True
    ids = np.unique(pixels)
    is_few = len(ids) <= MAX_MASK_IDS and (ids[ids != VOID] < MAX_MASK_IDS).all()
    return bool(is_few) and pixels.shape[:2] in sizes


def _draw_mask(cell: Cell, pixels: Any) -> Picture:
    ids = pixels.reshape(pixels.shape[:2])
    known, places = np.unique(ids, return_inverse=True)
    colours = np.array([colour_of(int(one)) for one in known], np.uint8)
    names = cell.class_names
    legend = [
        (colour_of(int(one)), names[int(one)] if 0 <= one < len(names) else str(one))
        for one in known[:12]
        if one != 0 or names
    ]
    return Picture(colours[places.reshape(ids.shape)], is_exact=True, legend=legend)


def _to_bytes(pixels: Any) -> Any:
    """Convert pixels of any type to uint8 with three or four channels."""
    array = pixels if pixels.ndim == 3 else pixels[..., None]
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    elif array.dtype != np.uint8:
        array = _stretch(array.astype(np.float64))
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def _stretch(array: Any) -> Any:
    """Scale numbers to brightness: 0..1 and 0..255 as such, others by their range."""
    array = np.where(np.isfinite(array), array, 0.0)
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif low >= 0 and 16 < high <= 255:
        low, high = 0.0, 255.0
    scaled = (array - low) * (255 / (high - low) if high > low else 0.0)
    return np.rint(np.clip(scaled, 0, 255)).astype(np.uint8)
