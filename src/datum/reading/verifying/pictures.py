"""Whether the images of records can be decoded, each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from typing import Any

import numpy as np

from datum.columns import BytesColumn, Masked, Ragged
from datum.format import Records
from datum.reading.verifying.findings import Findings
from datum.schema import Feature, Schema

__all__ = ["PictureChecks", "find_fault"]

LOOKED_AT = 16  # values of a feature of bytes that tell whether it holds images

_Task = tuple[int, str, "memoryview[Any]", Feature | None]


class PictureChecks:
    """Decodes the images of one shard.

    Args:
        schema: what the records hold: images are those features that say so.
        pool: where to decode; with None, in the thread that asks.
        guesses: whether features of bytes may hold images too, as in files that nobody described.

    Attributes:
        decoded: how many images could be decoded.
    """

    def __init__(self, schema: Schema, *, pool: Executor | None, guesses: bool = False) -> None:
        self.decoded = 0
        self._pool = pool
        self._images = {n: f for n, f in schema.items() if f.encoding == "image"}
        self._guessed: dict[str, bool] = {}  # features of bytes, and whether they hold images
        self._is_open = {
            name
            for name, feature in schema.items()
            if guesses and feature.dtype == "bytes" and feature.shape == ()
        }

    def check(self, columns: dict[str, Any], records: Records, findings: Findings) -> int:
        """Decode all images of some records; how many records have one that cannot be."""
        tasks = [*self._tasks(columns)]
        run: Callable[[Any, Iterable[_Task]], Iterator[str | None]]
        run = map if self._pool is None else self._pool.map
        faulty = set()
        for (row, name, _, _), fault in zip(tasks, run(_find_fault_of, tasks), strict=True):
            if fault is not None:
                _, number, offset = records.locate(row)
                findings.tell_record("image", fault, (number, offset), feature=name)
                faulty.add(row)
            else:
                self.decoded += 1
        return len(faulty)

    def _tasks(self, columns: dict[str, Any]) -> Iterator[_Task]:
        for name, column in columns.items():
            feature = self._images.get(name)
            if feature is not None or self._holds_images(name, column):
                single = None if feature is None else feature.single_image
                for row, view in _views(column):
                    yield row, name, view, single

    def _holds_images(self, name: str, column: Any) -> bool:
        """Whether most of the first values of a feature of bytes start as images do."""
        if name not in self._is_open:
            return False
        if name not in self._guessed:
            from datum.images import sniff_format  # brings Pillow, which not every dataset needs

            first = [view for _, view in _views(column, LOOKED_AT)]
            if not first:
                return False
            like_images = sum(sniff_format(bytes(view[:16])) is not None for view in first)
            self._guessed[name] = 2 * like_images > len(first)
        return self._guessed[name]


def _views(
    column: BytesColumn | Ragged | Masked, limit: int | None = None
) -> Iterator[tuple[int, memoryview[Any]]]:
    """The bytes of each image where they lie, with the row of its record."""
    strings: Any = column.values if isinstance(column, Masked) else column
    rows = np.arange(len(strings))
    if isinstance(strings, Ragged):
        rows, strings = np.repeat(rows, strings.row_lengths), strings.values
    else:
        rows = np.repeat(rows, math.prod(strings.shape[1:]))
    memory = memoryview(strings.buffer).cast("B")
    present = column.present.tolist() if isinstance(column, Masked) else None
    places = strings.slices.reshape(-1, 2)[:limit].tolist()
    for row, (at, length) in zip(rows.tolist(), places, strict=False):
        if present is None or present[row]:
            yield row, memory[at : at + length]


def _find_fault_of(task: _Task) -> str | None:
    _, _, view, feature = task
    return find_fault(bytes(view), feature)


def find_fault(data: bytes, feature: Feature | None) -> str | None:
    """Why an image cannot be decoded as its feature says, or at all; None if it can.

    >>> find_fault(b"text", None)
    "expected a JPEG, PNG, WebP, GIF, BMP or TIFF image, got bytes that start with b'text'"
    """
    from datum.images import ImageError, decode, decode_pixels
    from datum.images.check import check_sums
    from datum.images.header import parse_header

    try:
        header = parse_header(data)
        check_sums(data, header)
        if feature is None:
            decode_pixels(data, header.channels)
        else:
            decode(data, feature)
    except ImageError as error:
        return error.message.line
    return None
