"""The boxes of a record: found by the names of features, in fractions of its image."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from datum.cli.pictures.picture import Box, Colour
from datum.cli.records.cells import Cell

__all__ = ["find_boxes"]

MAX_BOXES = 100
SLACK = 1.01  # what rounding may add to a fraction
_SIDES = ("ymin", "xmin", "ymax", "xmax")
_BOXES = ("bbox", "bboxes", "box", "boxes")
_LABELS = ("label", "labels", "class", "classes", "category", "categories", "text")

Legend = list[tuple[Colour, str]]


def find_boxes(
    cells: Sequence[Cell], size: tuple[int, int], colour_of: Callable[[int], Colour]
) -> tuple[list[Box], Legend]:
    """The boxes of an image of this height and width, and what their colours mean.

    Sides are taken for fractions if all are up to 1, else for pixels.
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
    """Boxes x (ymin, xmin, ymax, xmax) in fractions, and what the names of their features share."""
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
    """Whether a value is a number, or an array of them in one dimension."""
    is_array = isinstance(value, (np.ndarray, np.generic))
    return is_array and value.ndim <= 1 and value.dtype.kind in "iuf"


def _normalised(corners: Any, size: tuple[int, int]) -> Any:
    height, width = size
    is_fraction = not len(corners) or corners.max() <= SLACK
    return corners if is_fraction else corners / np.array([height, width, height, width])


def _in_order(cell: Cell, corners: Any, size: tuple[int, int]) -> Any:
    """Four numbers as ymin, xmin, ymax, xmax.

    Fractions are in that order already, as TensorFlow has it. Pixels are mostly xmin, ymin and
    then xmax, ymax, or, where these would be smaller, the width and height.
    """
    order = str((cell.told or {}).get("order", "")).lower()
    if "ymin" in order[:6] or (not order and len(corners) and corners.max() <= SLACK):
        return _normalised(corners, size)
    first, second = corners[:, :2], corners[:, 2:]
    if len(corners) and not (second >= first).all():
        second = first + second
    return _normalised(np.concatenate([first[:, ::-1], second[:, ::-1]], axis=1), size)


def _find_labels(cells: dict[str, Cell], prefix: str, count: int) -> list[tuple[int, str]]:
    """A number for the colour, and the name of the class, of each box."""
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
    """How many labels there are: of one box it may be the label itself."""
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
