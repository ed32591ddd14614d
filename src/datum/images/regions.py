"""Regions of an image: polygons and run-length codes as masks, as COCO defines them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.images.header import ImageError

__all__ = [
    "box_of_mask",
    "counts_of_mask",
    "mask_of_counts",
    "mask_of_polygons",
    "read_counts",
]

_SCALE = 5  # polygons are drawn on a grid that is finer than the pixels by this factor
_MAX_COORDINATE = 2.0**20  # of a polygon: far beyond any image, and small enough for the grid


def mask_of_polygons(
    polygons: Iterable[Sequence[float]], height: int, width: int
) -> NDArray[np.uint8]:
    """Return the union of polygons as a mask of zeros and ones, (height, width).

    The pixels are exactly those of COCO's own rasterisation: a polygon is drawn on a grid five
    times as fine, and a pixel belongs to it if its centre does.

    Args:
        polygons: The outline of each polygon in pixels: x, y, x, y, ...
        height: Height of the image.
        width: Width of the image.

    >>> mask_of_polygons([[1, 0, 3, 0, 3, 2, 1, 2]], 3, 4)
    array([[0, 1, 1, 0],
           [0, 1, 1, 0],
           [0, 0, 0, 0]], dtype=uint8)
    """
    mask = np.zeros((height, width), np.uint8)
    for polygon in polygons:
        points = _points_of(polygon)
        if len(points) > 2:  # fewer enclose nothing
            mask |= _fill(points, height, width)
    return mask


def _points_of(polygon: Sequence[float]) -> NDArray[np.float64]:
    try:
        flat = np.asarray(polygon, np.float64)
    except (TypeError, ValueError):
        raise ImageError("expected a polygon of numbers, got other values") from None
    if flat.ndim != 1 or len(flat) % 2:
        raise ImageError(f"expected a polygon as x, y, x, y, ..., got {flat.size} numbers")
    if not (np.abs(flat) < _MAX_COORDINATE).all():
        raise ImageError("expected a polygon near the image, got a point far away from it")
    return flat.reshape(-1, 2)


def _fill(points: NDArray[np.float64], height: int, width: int) -> NDArray[np.uint8]:
    u, v = _outline(points)
    # A pixel's column is inside from one crossing of its middle to the next.
    crosses = np.flatnonzero(u[1:] != u[:-1]) + 1
    left = np.minimum(u[crosses], u[crosses - 1])
    columns = (left + 0.5) / _SCALE - 0.5
    rows = (np.minimum(v[crosses], v[crosses - 1]) + 0.5) / _SCALE - 0.5
    rows = np.ceil(np.clip(rows, 0, height))
    is_centre = (columns == np.floor(columns)) & (columns >= 0) & (columns <= width - 1)
    turns = (columns[is_centre] * height + rows[is_centre]).astype(np.int64)
    count = np.bincount(turns, minlength=height * width + 1)[: height * width]
    return (np.cumsum(count) % 2).astype(np.uint8).reshape(width, height).T


def _outline(points: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the points of the fine grid along the whole outline, edge after edge."""
    grid = np.trunc(points * _SCALE + 0.5).astype(np.int64)
    pieces = [
        _edge(*start, *end) for start, end in zip(grid, np.roll(grid, -1, axis=0), strict=True)
    ]
    return np.concatenate([u for u, _ in pieces]), np.concatenate([v for _, v in pieces])


def _edge(x0: int, y0: int, x1: int, y1: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    dx, dy = abs(x1 - x0), abs(y1 - y0)
    is_flat = dx >= dy
    is_backward = x0 > x1 if is_flat else y0 > y1
    if is_backward:
        x0, y0, x1, y1 = x1, y1, x0, y0
    steps = np.arange((dx if is_flat else dy) + 1)
    if is_backward:
        steps = steps[::-1]
    if is_flat:
        slope = (y1 - y0) / dx if dx else 0.0
        return steps + x0, np.trunc(y0 + slope * steps + 0.5).astype(np.int64)
    slope = (x1 - x0) / dy
    return np.trunc(x0 + slope * steps + 0.5).astype(np.int64), steps + y0


def read_counts(counts: Any) -> list[int]:
    """Return the run lengths of a run-length code: a list of numbers, or COCO's packed text.

    The first run is of zeros; runs go down the columns, from left to right.

    >>> read_counts("52203"), read_counts([5, 2, 2, 2, 1])
    ([5, 2, 2, 2, 5], [5, 2, 2, 2, 1])
    """
    if isinstance(counts, (str, bytes)):
        return _unpack(counts.encode("latin-1", "replace") if isinstance(counts, str) else counts)
    if not isinstance(counts, list) or not all(type(count) is int for count in counts):
        raise ImageError("expected the counts of a mask as whole numbers or as text")
    return counts


def _unpack(text: bytes) -> list[int]:
    """Return numbers of five bits a character, from '0' on; from the fourth on, differences."""
    counts: list[int] = []
    value = shift = 0
    for char in text:
        bits = char - 48
        if not 0 <= bits < 64 or shift > 60:
            raise ImageError("expected packed counts of a mask, got other text")
        value |= (bits & 0x1F) << shift
        shift += 5
        if bits & 0x20:
            continue
        if bits & 0x10:
            value -= 1 << shift
        counts.append(value + counts[-2] if len(counts) > 2 else value)
        value = shift = 0
    if shift:
        raise ImageError("expected packed counts of a mask, got truncated text")
    return counts


def mask_of_counts(counts: Any, height: int, width: int) -> NDArray[np.uint8]:
    """Return a run-length code as a mask of zeros and ones, (height, width).

    >>> mask_of_counts([5, 2, 2, 2, 1], 3, 4)
    array([[0, 0, 1, 1],
           [0, 0, 0, 1],
           [0, 1, 0, 0]], dtype=uint8)
    """
    runs = np.array(read_counts(counts), np.int64)
    if (runs < 0).any() or (runs > height * width).any() or runs.sum() != height * width:
        raise ImageError(f"expected counts of a mask of {width} x {height} pixels, got others")
    values = np.arange(len(runs), dtype=np.uint8) & 1
    return np.repeat(values, runs).reshape(width, height).T


def counts_of_mask(mask: NDArray[np.uint8]) -> str:
    """Return a mask as COCO's packed run lengths; the reverse of `mask_of_counts`.

    >>> counts_of_mask(np.array([[0, 1], [1, 1]], np.uint8))
    '13'
    """
    flat = (mask.T.ravel() != 0).astype(np.int8)
    turns = np.flatnonzero(np.diff(flat, prepend=np.int8(0)))  # the first run is of zeros
    runs = np.diff(turns, prepend=0, append=len(flat)).tolist()
    return "".join(
        _pack(run - runs[place - 2] if place > 2 else run) for place, run in enumerate(runs)
    )


def _pack(value: int) -> str:
    chars = []
    while True:
        bits, value = value & 0x1F, value >> 5
        is_last = value == (-1 if bits & 0x10 else 0)
        chars.append(chr(48 + (bits if is_last else bits | 0x20)))
        if is_last:
            return "".join(chars)


def box_of_mask(mask: NDArray[np.uint8]) -> tuple[int, int, int, int]:
    """Return the left, top, width and height of what a mask covers; zeros if that is nothing.

    >>> box_of_mask(np.array([[0, 0, 0], [0, 1, 1]], np.uint8))
    (1, 1, 2, 1)
    """
    columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    if not len(columns):
        return 0, 0, 0, 0
    left, top = int(columns[0]), int(rows[0])
    return left, top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1
