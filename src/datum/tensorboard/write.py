"""A sample of images into the log directory of TensorBoard."""

from __future__ import annotations

import io
import itertools
import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from datum._optional import require
from datum.errors import SourceError, WriteError
from datum.tensorboard.drawing import Sample, draw_card, draw_sheet
from datum.tensorboard.labels import ClassNames
from datum.tensorboard.pixels import Pixels, Scale
from datum.tensorboard.records import iterate_records
from datum.tensorboard.roles import Choice, find_roles
from datum.tensorboard.samples import read_sample

__all__ = ["write_images"]

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
