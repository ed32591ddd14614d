"""Records into samples: pixels, a caption, boxes and a mask, ready to be drawn."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SchemaError, SourceError
from datum.images import ImageError
from datum.tensorboard.drawing import Box, Colour, Sample, colour_of
from datum.tensorboard.labels import ClassNames, count_names, describe_label, name_class
from datum.tensorboard.pixels import Pixels, read_ids
from datum.tensorboard.records import Row
from datum.tensorboard.roles import Roles

__all__ = ["read_sample"]

MAX_BOXES = 200  # of one image that are drawn


def read_sample(row: Row, roles: Roles, names: ClassNames, *, number: int) -> Sample:
    """What there is to draw of a record; its number is for messages."""
    name = roles.image
    try:
        pixels = _read_pixels(row[name])
        name = roles.mask or name
        ids = read_ids(row[name]) if roles.mask and pixels and row[name] is not None else None
    except ImageError as error:
        raise SourceError(error, where=f"record {number}, feature {name!r}") from error
    boxes, notes = _read_boxes(row, roles, names, number)
    caption = _describe(row, roles, names)
    if not caption and roles.boxes:
        caption = count_names(box.name or "box" for box in boxes) if boxes else "no boxes"
    if pixels is not None and pixels.not_finite:
        notes.append(f"{pixels.not_finite:,} values not finite")
    return Sample(pixels, caption, boxes, ids, _legend(ids, roles, names), notes)


def _read_pixels(value: Any) -> Pixels | None:
    is_absent = value is None or (isinstance(value, bytes) and not value)
    return None if is_absent else Pixels.of(value)


def _describe(row: Row, roles: Roles, names: ClassNames) -> str:
    texts = {name: describe_label(row[name], names.of(name)) for name in roles.labels}
    if len(texts) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{name}: {text}" for name, text in texts.items())


def _legend(
    ids: NDArray[np.int64] | None, roles: Roles, names: ClassNames
) -> list[tuple[Colour, str]]:
    if ids is None or roles.mask is None:
        return []
    known = names.of(roles.mask)
    return [(colour_of(id), name_class(id, known)) for id in np.unique(ids).tolist() if id != 0]


def _read_boxes(
    row: Row, roles: Roles, names: ClassNames, number: int
) -> tuple[list[Box], list[str]]:
    """The boxes that can be drawn, and what is to be said of the others."""
    corners = _read_corners(row, roles, number)
    classes = _read_classes(row, roles, names, len(corners))
    boxes, outside = [], 0
    for corner, (colour, name) in zip(corners, classes, strict=True):
        if (corner <= 0).all():
            continue  # padding: a box of nothing but zeros
        (ymin, ymax), (xmin, xmax) = sorted(corner[::2].tolist()), sorted(corner[1::2].tolist())
        is_outside = ymin >= 1 or xmin >= 1 or ymax <= 0 or xmax <= 0
        if is_outside or not np.isfinite(corner).all():
            outside += 1
            continue
        ymin, xmin, ymax, xmax = np.clip((ymin, xmin, ymax, xmax), 0, 1).tolist()
        boxes.append(Box(ymin, xmin, ymax, xmax, colour, name))
    notes = [f"boxes outside the image: {outside:,}"] if outside else []
    if len(boxes) > MAX_BOXES:
        notes.append(f"{MAX_BOXES} of {len(boxes):,} boxes")
    return boxes[:MAX_BOXES], notes


def _read_corners(row: Row, roles: Roles, number: int) -> NDArray[np.float64]:
    """Boxes x (ymin, xmin, ymax, xmax)."""
    given = [row[name] for name in roles.boxes]
    if not given or any(side is None for side in given):
        return np.zeros((0, 4))
    try:
        arrays = [np.asarray(side, np.float64) for side in given]
        if len(arrays) == 1:
            return arrays[0].reshape(-1, 4)
        return np.stack([np.atleast_1d(side) for side in arrays], axis=-1).reshape(-1, 4)
    except (TypeError, ValueError):
        got = ", ".join(str(np.shape(side)) for side in given)
        raise SchemaError(
            f"expected ymin, xmin, ymax and xmax of each box, got values of shape {got}",
            where=f"record {number}, boxes {', '.join(map(repr, roles.boxes))}",
            record=number,
            feature=roles.boxes[0],
        ) from None


def _read_classes(
    row: Row, roles: Roles, names: ClassNames, count: int
) -> list[tuple[Colour, str]]:
    """The colour and the name of each box."""
    values: Any = None if roles.box_label is None else row[roles.box_label]
    if roles.box_label is None or np.shape(values) != (count,):
        return [(colour_of(None), "")] * count
    known = names.of(roles.box_label)
    return [(_colour(value), name_class(value, known)) for value in np.asarray(values).tolist()]


def _colour(value: Any) -> Colour:
    """That of an id, or one that a name always has."""
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if isinstance(value, bytes):
        return colour_of(zlib.crc32(value))
    return colour_of(int(value) if isinstance(value, int) else None)
