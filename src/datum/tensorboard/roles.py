"""Which features of a record are its image, label, boxes and mask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from datum.errors import SchemaError, suggest
from datum.images import ImageError, read_header, sniff_format
from datum.tensorboard.records import CHANNELS, IMAGE_NAMES, Row, last_part

__all__ = ["Choice", "Roles", "find_roles"]

Choice = str | Literal[False] | None  # the name of a feature; False for none; None to find one

# The last parts of names, in small letters; the first that is there is taken.
_MASKS = ("mask", "masks", "segmentation", "segmentation_mask", "seg", "trimap", "annotation")
_LABELS = (
    "label",
    "labels",
    "class",
    "classes",
    "category",
    "categories",
    "target",
    "targets",
    "y",
)
_BOXES = ("bbox", "bboxes", "box", "boxes")
_SIDES = ("ymin", "xmin", "ymax", "xmax")


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the features to draw.

    Attributes:
        image: the image.
        labels: what the caption tells.
        boxes: one feature of four sides each, or four features; empty if there are none.
        box_label: the class of each box.
        mask: the class of each pixel.
    """

    image: str
    labels: tuple[str, ...] = ()
    boxes: tuple[str, ...] = ()
    box_label: str | None = None
    mask: str | None = None


def find_roles(
    row: Row,
    *,
    image: str | None = None,
    label: Choice | Sequence[str] = None,
    boxes: Choice = None,
    mask: Choice = None,
) -> Roles:
    """The features that were named, and by their names and values those that were not."""
    names = [name for name in row.columns if not _is_presence(name, row)]
    image = _check("image", image, names) if image is not None else _find_image(row, names)
    others = [name for name in names if name != image]
    if boxes is None:
        sides = _find_boxes(row, others)
    else:
        sides = _named_boxes(boxes, names) if boxes is not False else ()
    others = [name for name in others if name not in sides]
    if mask is None:
        mask = _find_mask(row, others, _size(row[image]))
    elif mask is not False:
        mask = _check("mask", mask, names)
    labels = _named_labels(label, names) if label else ()
    if label is None:
        labels = _rank_by_name([name for name in others if name != mask], _LABELS)
        labels = tuple(name for name in labels if np.ndim(row[name]) <= 1)
    box_label = _find_box_label(row, labels, sides) if sides else None
    labels = tuple(name for name in labels if name != box_label)
    return Roles(image, labels if label else labels[:1], sides, box_label, mask or None)


def _is_presence(name: str, row: Row) -> bool:
    return name.endswith("_present") and name.removesuffix("_present") in row.columns


def _rank_by_name(names: Iterable[str], wanted: Sequence[str]) -> tuple[str, ...]:
    """Those whose last part is wanted, the most wanted first."""
    found = [name for name in names if last_part(name) in wanted]
    return tuple(sorted(found, key=lambda name: wanted.index(last_part(name))))


def _check(option: str, name: Any, names: Sequence[str]) -> str:
    if name in names:
        return str(name)
    hint = suggest(name, names, f"there are {', '.join(map(repr, names))}")
    raise SchemaError(
        f"`{option}`: expected the name of a feature, got {name!r}", hint=hint, feature=str(name)
    )


def _find_image(row: Row, names: Sequence[str]) -> str:
    named = _rank_by_name(names, IMAGE_NAMES)
    fitting = [name for name in named if row[name] is None or _is_image(row[name], at_least=2)]
    if fitting:
        return fitting[0]
    found = [name for name in names if _is_image(row[name]) and last_part(name) not in _MASKS]
    if len(found) == 1:
        return found[0]
    if found:
        got, hint = ", ".join(map(repr, found)), f"image={found[0]!r} takes the first"
    else:
        got = ", ".join(f"{name!r} ({_describe(row[name])})" for name in names) or "no features"
        hint = "an image is height x width x 1, 3 or 4 channels, or an encoded file"
    raise SchemaError(f"expected one feature that is an image, got {got}", hint=hint)


def _is_image(value: Any, *, at_least: int = 3) -> bool:
    if isinstance(value, bytes):
        return sniff_format(value) is not None
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biufV":
        return False
    return at_least <= value.ndim <= 3 and (value.ndim == 2 or value.shape[-1] in CHANNELS)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    return "absent" if value is None else type(value).__name__


def _size(value: Any) -> tuple[int, ...]:
    """Height and width; nothing for what is no image."""
    if isinstance(value, bytes):
        try:
            header = read_header(value)
        except ImageError:
            return ()
        return header.height, header.width
    return np.shape(value)[:2] if np.ndim(value) in (2, 3) else ()


def _find_mask(row: Row, names: Sequence[str], size: tuple[int, ...]) -> str | None:
    named = _rank_by_name(names, _MASKS)
    found = [name for name in named if _is_mask(row[name], size, "biuf")]
    others = [name for name in names if name not in named]
    found += _rank_by_name((n for n in others if _is_mask(row[n], size, "biu")), _LABELS)
    if found:
        return found[0]
    found = [name for name in others if _is_mask(row[name], size, "iu")]
    return found[0] if len(found) == 1 else None


def _is_mask(value: Any, size: tuple[int, ...], kinds: str) -> bool:
    """Whether a value has one class id for each pixel of the image."""
    if not size or _size(value) != size:
        return False
    if isinstance(value, bytes):
        header = read_header(value)
        return header.channels == 1 or header.has_palette
    return value.dtype.kind in kinds and value.shape[2:] in ((), (1,))


def _find_boxes(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if last_part(name) == _SIDES[0]:
            sides = tuple(name[: -len(_SIDES[0])] + side for side in _SIDES)
            if set(sides) <= set(names):
                return sides
    for name in _rank_by_name(names, _BOXES):
        shape = np.shape(row[name])
        if len(shape) in (1, 2) and shape[-1] in (0, 4):
            return (name,)
    return ()


def _named_boxes(name: str, names: Sequence[str]) -> tuple[str, ...]:
    sides = tuple(f"{name}/{side}" for side in _SIDES)
    return sides if set(sides) <= set(names) else (_check("boxes", name, names),)


def _named_labels(label: str | Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    given = (label,) if isinstance(label, str) else tuple(label)
    return tuple(_check("label", name, names) for name in given)


def _find_box_label(row: Row, labels: Sequence[str], sides: Sequence[str]) -> str | None:
    """The label with a value for each box; of several the one whose name begins as theirs do."""
    first = row[sides[0]]
    count = 0 if first is None else np.size(first) // (4 if len(sides) == 1 else 1)
    fitting = [name for name in labels if _is_list(row[name], count)]
    fitting.sort(key=lambda name: (-_shared(name, sides[0]), not name.endswith("s")))
    return fitting[0] if fitting else None


def _is_list(value: Any, count: int) -> bool:
    """Whether a value is a list of so many ids or names."""
    return np.shape(value) == (count,) and np.asarray(value).dtype.kind != "f"


def _shared(name: str, other: str) -> int:
    """How many parts of two names are the same from the start on."""
    pairs = zip(name.split("/")[:-1], other.split("/"), strict=False)
    same = [a == b for a, b in pairs]
    return same.index(False) if False in same else len(same)
