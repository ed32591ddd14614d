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


MAX_COUNT = 256  # of images of one call, which are all in memory
_PNG_LEVEL = 4  # a third of the time of the customary 6, and 1 % more bytes
_PLUGIN = "images"  # of TensorBoard
_BLOBS = 3  # what TensorBoard calls the class of such data


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
    """Write the first `count` images, as training would see them; returns how many there were.

    `tensorboard --logdir` shows them under Images: all of them in one picture called `tag`, and
    each by itself as `tag/00`, `tag/01` ... Without any record nothing is written, and 0 returned.

    Args:
        data: a `tf.data.Dataset` of dicts or of (inputs, targets), of batches or single records; or
            any iterable of records, such as a split. Images are arrays, or encoded.
        logdir: the directory; it is made if need be.
        count: how many images, from 1 to 256.
        step: the step of training to show them at.
        tag: what to call them.
        image: the name of the feature that is the image; by default it is found.
        label: the feature, or several, that the caption tells; False for none.
        boxes: the feature of boxes, each ymin, xmin, ymax, xmax in fractions of the image; or what
            the names of four features `<boxes>/ymin` ... begin with; False for none.
        mask: the feature that holds the class id of each pixel; False for none.
        class_names: the names of the classes: a list, a dict of lists by feature, or the `metadata`
            of a dataset.

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
    """The pictures of all samples, together and one by one: tag, and what TensorBoard needs."""
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
    """The width, the height and the PNG of a picture."""
    file = io.BytesIO()
    picture.save(file, "png", compress_level=_PNG_LEVEL)
    return [*(str(length).encode() for length in picture.size), file.getvalue()]


def _write_events(tf: Any, logdir: Any, pictures: Mapping[str, list[bytes]], step: Any) -> None:
    # By the plain summary of TensorFlow: its summary of images needs TensorBoard to be installed.
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
