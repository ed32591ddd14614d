"""Samples of images written to the log directory of TensorBoard."""

from __future__ import annotations

import io
import itertools
import operator
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum._optional import require
from datum.errors import SchemaError, SourceError, WriteError
from datum.images import ImageError
from datum.tensorboard.drawing import (
    Box,
    Colour,
    Pixels,
    Sample,
    Scale,
    colour_of,
    draw_card,
    draw_sheet,
    read_ids,
)
from datum.tensorboard.records import (
    Choice,
    ClassNames,
    Roles,
    Row,
    count_names,
    describe_label,
    find_roles,
    iterate_records,
    name_class,
)

__all__ = [
    "read_sample",
    "write_images",
]

MAX_BOXES = 200  # drawn per image


def read_sample(row: Row, roles: Roles, names: ClassNames, *, number: int) -> Sample:
    """Make the drawable parts of a record; its number is for messages."""
    name = roles.image
    try:
        pixels = _read_pixels(row[name])
        name = roles.mask or name
        ids = read_ids(row[name]) if roles.mask and pixels and row[name] is not None else None
    except ImageError as error:
        raise SourceError(error, where=f"record {number}, feature {name!r}") from error
    boxes, notes = _read_boxes(row, roles, names, number)
    caption = _describe_sample(row, roles, names)
    if not caption and roles.boxes:
        caption = count_names(box.name or "box" for box in boxes) if boxes else "no boxes"
    if pixels is not None and pixels.not_finite:
        notes.append(f"{pixels.not_finite:,} values not finite")
    return Sample(pixels, caption, boxes, ids, _legend(ids, roles, names), notes)


def _read_pixels(value: Any) -> Pixels | None:
    is_absent = value is None or (isinstance(value, bytes) and not value)
    return None if is_absent else Pixels.of(value)


def _describe_sample(row: Row, roles: Roles, names: ClassNames) -> str:
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
    """Return the boxes to draw, and notes on the others."""
    corners = _read_corners(row, roles, number)
    classes = _read_classes(row, roles, names, len(corners))
    boxes, outside = [], 0
    for corner, (colour, name) in zip(corners, classes, strict=True):
        if (corner <= 0).all():
            continue  # a box of zeros is padding
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
    """Colour and name of each box."""
    values: Any = None if roles.box_label is None else row[roles.box_label]
    if roles.box_label is None or np.shape(values) != (count,):
        return [(colour_of(None), "")] * count
    known = names.of(roles.box_label)
    return [(_colour(value), name_class(value, known)) for value in np.asarray(values).tolist()]


def _colour(value: Any) -> Colour:
    """Colour of an id, or a fixed colour of a name."""
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if isinstance(value, bytes):
        return colour_of(zlib.crc32(value))
    return colour_of(int(value) if isinstance(value, int) else None)


MAX_COUNT = 256  # images per call, which are all in memory
_PNG_LEVEL = 4  # three times as fast as the usual 6, for 1 % more bytes
_PLUGIN = "images"  # of TensorBoard
_BLOBS = 3  # TensorBoard's data class


def write_images(
    data: Any,
    logdir: str | os.PathLike[str],
    *,
    count: int = 16,
    step: int = 0,
    tag: str = "images",
    image: str | None = None,
    label: Choice | Sequence[str] = None,
    boxes: Choice = None,
    mask: Choice = None,
    class_names: Sequence[str] | Mapping[str, Any] | None = None,
) -> int:
    """Write the first `count` images as training sees them, and return their number.

    `tensorboard --logdir` shows them under Images: all in one image called `tag`, and each one as
    `tag/00`, `tag/01` ... Without records, nothing is written.

    Args:
        data: A `tf.data.Dataset` of dicts or of (inputs, targets), in batches or single records; or
            any iterable of records, such as a split. Images are arrays or encoded files.
        logdir: Log directory, created if needed.
        count: Number of images, from 1 to 256.
        step: Training step to show them at.
        tag: Name of the images.
        image: Name of the image feature; by default it is detected.
        label: Feature or features for the caption; False for none.
        boxes: Feature of boxes, each ymin, xmin, ymax, xmax in fractions of the image; or the
            common prefix of four features `<boxes>/ymin` ...; False for none.
        mask: Feature with the class id of each pixel; False for none.
        class_names: Class names as a list, a dict of lists by feature, or the `metadata` of a
            dataset.

    >>> import numpy as np
    >>> digits = [{"image": np.eye(8, dtype=np.uint8) * 255, "label": 3}]
    >>> write_images(digits, "logs", class_names=["zero", "one", "two", "three"])
    1
    """
    tf = require("tensorflow", purpose="writing images for TensorBoard")
    if not 1 <= operator.index(count) <= MAX_COUNT:
        raise SourceError(f"`count`: expected a number from 1 to {MAX_COUNT}, got {count}")
    rows = itertools.islice(iterate_records(data, image=image), count)
    first = next(rows, None)
    if first is None:
        return 0
    roles = find_roles(first, image=image, label=label, boxes=boxes, mask=mask)
    names = ClassNames.read(class_names)
    samples = [
        read_sample(row, roles, names, number=number)
        for number, row in enumerate(itertools.chain([first], rows))
    ]
    _write_events(tf, logdir, dict(_draw(samples, tag)), step)
    return len(samples)


def _draw(samples: Sequence[Sample], tag: str) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the images of all samples, together and one by one, with their tags."""
    kinds: dict[str, list[Pixels]] = {}
    for sample in samples:
        if sample.pixels is not None:
            kinds.setdefault(sample.pixels.kind, []).append(sample.pixels)
    scale_of = {kind: Scale.of(pixels) for kind, pixels in kinds.items()}
    scales = [scale_of[one.pixels.kind] if one.pixels else Scale() for one in samples]
    yield tag, _pack(draw_sheet(samples, scales))
    for at, (sample, scale) in enumerate(zip(samples, scales, strict=True)):
        yield f"{tag}/{at:02}", _pack(draw_card(sample, scale))


def _pack(picture: Any) -> list[bytes]:
    """Width, height and PNG of an image."""
    file = io.BytesIO()
    picture.save(file, "png", compress_level=_PNG_LEVEL)
    return [*(str(length).encode() for length in picture.size), file.getvalue()]


def _write_events(tf: Any, logdir: Any, pictures: Mapping[str, list[bytes]], step: Any) -> None:
    # TensorFlow's plain summary, because its image summary needs TensorBoard.
    kind = tf.compat.v1.SummaryMetadata.PluginData(plugin_name=_PLUGIN)
    metadata = tf.compat.v1.SummaryMetadata(plugin_data=kind, data_class=_BLOBS)
    try:
        writer = tf.summary.create_file_writer(os.fspath(logdir))
        with writer.as_default(), tf.summary.record_if(True):
            for tag, picture in pictures.items():
                tf.summary.write(tag, tf.constant(picture), step=int(step), metadata=metadata)
        writer.close()
    except (tf.errors.OpError, OSError) as error:
        reason = getattr(error, "message", None) or error
        raise WriteError(
            f"expected a directory to write events to: {reason}", where=logdir
        ) from error
