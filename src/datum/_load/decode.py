"""Images of a batch, decoded straight into one array."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum import _core
from datum._load.collate import as_objects
from datum._load.options import LoadOptions
from datum.columns import BytesColumn, Masked, Ragged
from datum.errors import Message
from datum.format.layout import stand_in
from datum.images.decode import decode_png, png_shape
from datum.images.header import MAX_PIXELS, PNG_START
from datum.schema import Feature, Schema

__all__ = [
    "BatchImageLists",
    "BatchImages",
    "Decoders",
    "encoded_images",
    "find_decoders",
    "kept_images",
    "open_images",
]

_COLOURS = {1: "GRAY", 3: "RGB", 4: "RGBA"}
_JPEG_START = b"\xff\xd8\xff"


@dataclass(frozen=True, slots=True)
class Decoders:
    """Features to decode: as images, and by a function of the user."""

    images: Mapping[str, Feature]
    functions: Mapping[str, Callable[[bytes], Any]]


def find_decoders(schema: Schema, options: LoadOptions) -> Decoders:
    """The decoder of each feature; by default every image is decoded."""
    images: dict[str, Feature] = {}
    functions: dict[str, Callable[[bytes], Any]] = {}
    decode: Any = options.decode
    for name, feature in schema.items():
        is_image = feature.encoding == "image"
        how = decode.get(name, is_image) if isinstance(decode, Mapping) else decode and is_image
        if not isinstance(how, bool) and not callable(how):
            raise TypeError(
                Message(
                    f"expected `decode` of {name!r} to be True, False or a function, got {how!r}"
                )
            )
        if not how:
            continue
        if not is_image and (not feature.is_string or len(feature.shape) > 1):
            raise ValueError(
                Message(
                    "expected `decode` of a feature that holds the bytes of an image, got"
                    f" {name!r}:"
                    f" {feature!r}"
                )
            )
        if callable(how):
            is_list = bool(stand_in(feature).shape)
            functions[name] = functools.partial(_call_for_each, how) if is_list else how
        else:
            images[name] = feature if is_image else _as_image(feature)
    return Decoders(images, functions)


def _call_for_each(function: Callable[[bytes], Any], images: Iterable[bytes]) -> list[Any]:
    return [function(image) for image in images]


def _as_image(feature: Feature) -> Feature:
    shape = (*feature.shape, None, None, 3)
    return Feature("uint8", shape, encoding="image", optional=feature.optional)


def open_images(
    feature: Feature, column: Any, *, is_stacked: bool = True, is_kept: bool = False
) -> BatchImages | BatchImageLists:
    """The images of a parsed column, not yet decoded."""
    if feature.holds_images:
        return BatchImageLists(feature, column, is_stacked=is_stacked, is_kept=is_kept)
    return BatchImages(feature, encoded_images(column), is_stacked=is_stacked, is_kept=is_kept)


def kept_images(feature: Feature, rows: list[Any]) -> BatchImages | BatchImageLists:
    """Decoded images from the cache."""
    if feature.holds_images:
        return BatchImageLists(feature, None, decoded=rows, is_kept=True)
    return BatchImages(feature, [None] * len(rows), decoded=rows, is_stacked=False, is_kept=True)


def encoded_images(column: BytesColumn | Masked) -> list[memoryview | None]:
    """Views of the bytes of each image; None for a record without one."""
    if isinstance(column, Masked):
        views, present = encoded_images(column.values), column.present.tolist()
        return [view if there else None for view, there in zip(views, present, strict=True)]
    memory = memoryview(column.buffer).cast("B")
    return [memory[at : at + length] for at, length in column.slices.tolist()]


class BatchImages:
    """The images of one feature in one batch; several threads may decode them.

    The pixels are those of `datum.images.decode`. JPEG and PNG are decoded straight to their place
    in the array of the batch if all images have one shape, by the schema or by their headers.

    Args:
        feature: Feature of the images.
        encoded: Bytes of each image; None for a record without one, or if it is decoded.
        decoded: Images that were decoded before; None if there are none.
        is_stacked: Whether to make one array of the batch if possible. Otherwise each image has its
            own memory.
        is_kept: Whether the cache shares the images, so that only copies may be returned.
    """

    def __init__(
        self,
        feature: Feature,
        encoded: list[memoryview | None],
        *,
        decoded: list[NDArray[Any] | None] | None = None,
        is_stacked: bool = True,
        is_kept: bool = False,
    ) -> None:
        self.feature = feature
        self._is_kept = is_kept
        self.rows: list[NDArray[Any] | None] = decoded or [None] * len(encoded)
        self._encoded = encoded
        channels: Any = feature.shape[-1]
        self._is_fast = feature.dtype == "uint8" and channels in (None, *_COLOURS)
        self._block: NDArray[Any] | None = None
        self._is_in_block = True  # whether all images decoded so far are in it
        shape = self._common_shape() if is_stacked and encoded and self._is_fast else None
        if shape is not None:
            self._block = _empty((len(encoded), *shape))

    def _common_shape(self) -> tuple[int, ...] | None:
        """The shape of all images, if it is known before they are decoded."""
        height, width = self.feature.shape[-3:-1]
        if None not in self.feature.shape:  # the schema claims it
            is_small = height * width <= MAX_PIXELS  # type: ignore[operator]
            return self.feature.shape if is_small else None  # type: ignore[return-value]
        common = None
        for view in self._encoded:
            if view is not None:
                shape = self._header_shape(view)
                if shape is None or (common is not None and shape != common):
                    return None
                common = shape
        return common

    def _header_shape(self, view: memoryview) -> tuple[int, ...] | None:
        """The shape of an image by its header; None if it is known only after decoding."""
        if view[:3] == _JPEG_START:
            found = _jpeg_shape(view)
        else:
            found = png_shape(view) if view[:8] == PNG_START else None
        if found is None:
            return None
        shape = (*found[:2], self.feature.shape[-1] or found[2])
        fits = all(want in (None, n) for want, n in zip(self.feature.shape, shape, strict=True))
        return shape if fits and 0 < found[0] * found[1] <= MAX_PIXELS else None

    def decode(self, row: int) -> None:
        """Decode one image, if there is one; raise ImageError if it cannot be decoded."""
        view = self._encoded[row]
        if view is None:
            if self._block is not None:
                self._block[row] = 0
            return
        array = self._decode_in_place(row, view) if self._is_fast else None
        if array is None:
            from datum.images import decode  # imports Pillow, which not every dataset needs

            array = np.require(decode(bytes(view), self.feature), requirements="W")
            if self._block is not None and array.shape == self._block.shape[1:]:
                self._block[row] = array
                array = self._block[row]
            else:
                self._is_in_block = False
        self.rows[row] = array
        self._encoded[row] = None

    def _decode_in_place(self, row: int, view: memoryview) -> NDArray[Any] | None:
        """Decode a JPEG or PNG without a copy; return None for what another decoder must try."""
        is_png = view[:8] == PNG_START
        if not is_png and view[:3] != _JPEG_START:
            return None
        if self._block is not None:
            place = self._block[row]
        else:
            shape = self._header_shape(view)
            if shape is None:
                return None
            place = _empty(shape)
        if is_png:
            return decode_png(view, place.shape[-1], place)
        return _decode_jpeg(view, place)

    @property
    def block(self) -> NDArray[Any] | None:
        """The array of all images, if each was decoded to its place in it."""
        return self._block if self._is_in_block else None

    def value(self, row: int, blank: NDArray[Any]) -> NDArray[Any]:
        """One decoded image, or `blank` for a record without one."""
        found = self.rows[row]
        if found is None or self._is_kept:
            return (blank if found is None else found).copy()
        return found

    def column(self) -> NDArray[Any]:
        """All images: one array, or an object array of arrays with None for absent ones."""
        if self._block is not None and self._is_in_block:
            return self._block
        rows = self.rows
        if self._is_kept and len({array.shape for array in rows if array is not None}) > 1:
            rows = [None if array is None else array.copy() for array in rows]
        return as_objects(rows)  # images of one shape are copied when they are stacked

    @classmethod
    def merged(cls, first: BatchImages, second: BatchImages, order: list[int]) -> BatchImages:
        """The images of both, one after the other, in another order."""
        encoded = [*first._encoded, *second._encoded]
        decoded = [*first.rows, *second.rows]
        return cls(
            first.feature,
            [encoded[at] for at in order],
            decoded=[decoded[at] for at in order],
            is_stacked=False,
            is_kept=True,
        )


class BatchImageLists:
    """The lists of images of one feature in one batch; several threads may decode them.

    Args:
        feature: Feature of the lists.
        column: Parsed column with their bytes; None if all are decoded.
        decoded: Decoded images of each record; None if there are none.
        is_stacked: Whether to make one array of all images of the batch if possible.
        is_kept: Whether the cache shares the images, so that only copies may be returned.
    """

    def __init__(
        self,
        feature: Feature,
        column: Any,
        *,
        decoded: list[Any] | None = None,
        is_stacked: bool = True,
        is_kept: bool = False,
    ) -> None:
        self.feature = feature
        self._is_kept = is_kept
        self._pending: list[tuple[BatchImages, range] | None]  # the images of each row
        self._all: BatchImages | None = None
        if decoded is not None:
            self.rows: list[Any] = decoded
            self._pending = [None] * len(decoded)
            return
        present = column.present.tolist() if isinstance(column, Masked) else None
        values: Any = column.values if isinstance(column, Masked) else column
        self._splits = np.arange(len(values) + 1) * (feature.shape[0] or 0)
        if isinstance(values, Ragged):
            self._splits, values = values.row_splits, values.values
        views = encoded_images(values)
        ends = self._splits.tolist()
        self.rows = [None] * (len(ends) - 1)
        if present is not None:  # an absent list of a fixed length has places, but no images
            for row, is_there in enumerate(present):
                views[ends[row] : ends[row + 1]] = [
                    view if is_there else None for view in views[ends[row] : ends[row + 1]]
                ]
        has_gaps = present is not None and feature.shape[0] is not None
        images = BatchImages(feature.single_image, views, is_stacked=is_stacked and not has_gaps)
        self._all = images
        self._pending = [
            (images, range(*pair)) if present is None or present[row] else None
            for row, pair in enumerate(pairwise(ends))
        ]

    def decode(self, row: int) -> None:
        """Decode the images of one record; raise ImageError if one cannot be decoded."""
        pending = self._pending[row]
        if pending is None:
            return
        images, places = pending
        for at in places:
            images.decode(at)
        from datum.images.decode import stack_images

        block = images.block
        if block is not None:
            self.rows[row] = block[places.start : places.stop]
        else:
            found: list[Any] = [images.rows[at] for at in places]
            self.rows[row] = stack_images(found, self.feature)
        self._pending[row] = None

    def value(self, row: int, blank: NDArray[Any]) -> Any:
        """The images of one record, or `blank` if it has none."""
        found = self.rows[row]
        return blank.copy() if found is None else _copied(found) if self._is_kept else found

    def column(self) -> Any:
        """All images: one array or `Ragged`, or an object array with None for absent lists."""
        block = None if self._all is None else self._all.block
        if block is None or self._is_kept:
            return as_objects([_copied(row) for row in self.rows] if self._is_kept else self.rows)
        count = self.feature.shape[0]
        if count is None:
            return Ragged(block, self._splits)
        return block.reshape(-1, count, *block.shape[1:])

    @classmethod
    def merged(
        cls, first: BatchImageLists, second: BatchImageLists, order: list[int]
    ) -> BatchImageLists:
        """The lists of both, one after the other, in another order."""
        rows, pending = [*first.rows, *second.rows], [*first._pending, *second._pending]
        made = cls(first.feature, None, decoded=[rows[at] for at in order], is_kept=True)
        made._pending = [pending[at] for at in order]
        return made


def _copied(images: Any) -> Any:
    if isinstance(images, list):
        return [image.copy() for image in images]
    return None if images is None else images.copy()


def _jpeg_shape(view: memoryview) -> tuple[int, int, int] | None:
    import simplejpeg

    try:
        height, width, colours, _ = simplejpeg.decode_jpeg_header(view)
    except (ValueError, RuntimeError):
        return None
    return height, width, 1 if colours == "Gray" else 3


def _decode_jpeg(view: memoryview, place: NDArray[Any]) -> NDArray[Any] | None:
    """Decode with libjpeg-turbo; return None for faults that Pillow may forgive."""
    import simplejpeg

    try:
        made = simplejpeg.decode_jpeg(view, _COLOURS[place.shape[-1]], buffer=place)
    except (ValueError, RuntimeError):
        return None
    return place if made.shape == place.shape else None


def _empty(shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """An array in memory of earlier batches: new pages cost a tenth of decoding into them.

    It is aligned so that frameworks use it without a copy.
    """
    return _core.allocate(math.prod(shape)).reshape(shape)
