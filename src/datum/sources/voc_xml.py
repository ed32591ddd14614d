"""Annotations of Pascal VOC: what an XML file says of the objects in an image."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datum.images import ImageError, read_file
from datum.sources.image_part import UnusableRecordError, unusable

__all__ = ["Annotation", "VocObject", "read_annotation"]

MAX_XML_BYTES = 64 * 2**20  # of one image; real ones have kilobytes
MAX_TAGS = 2**20  # some 50,000 objects; a tag of four bytes takes a hundred once parsed
_UNSPECIFIED = "Unspecified"  # how VOC says that it does not know a pose


@dataclass(frozen=True, slots=True)
class VocObject:
    """An object in an image, its box in pixels."""

    name: str
    pose: str
    is_truncated: bool
    is_difficult: bool
    xmin: float
    ymin: float
    xmax: float
    ymax: float


@dataclass(frozen=True, slots=True)
class Annotation:
    """What is known of an image; width and height are 0 if the file does not say."""

    width: float
    height: float
    objects: list[VocObject]


def read_annotation(path: Path) -> Annotation:
    """Read an XML file; raises UnusableRecordError for what is no annotation.

    Entities and external references are refused: they can fill the memory or reach other files.
    """
    try:
        data = read_file(path)
    except ImageError as error:
        raise unusable(path, error) from None
    if len(data) > MAX_XML_BYTES:
        raise UnusableRecordError(
            f"expected at most {MAX_XML_BYTES:,} bytes of XML, got {len(data):,}", where=path
        )
    if data.count(b"<") > MAX_TAGS:
        raise UnusableRecordError(
            f"expected at most {MAX_TAGS:,} tags of XML, got more", where=path
        )
    try:
        root = _parse(data)
        size = root.find("size")
        return Annotation(
            0.0 if size is None else _number(size, "width", default=0.0),
            0.0 if size is None else _number(size, "height", default=0.0),
            [_read_object(element) for element in root.findall("object")],
        )
    except _FaultError as fault:
        raise UnusableRecordError(fault, where=path) from None


class _FaultError(Exception):
    """What is wrong with an annotation."""


def _parse(data: bytes) -> Any:
    import defusedxml.ElementTree

    try:
        return defusedxml.ElementTree.fromstring(data)
    except defusedxml.DefusedXmlException as error:
        raise _FaultError(f"expected XML without entities, got {type(error).__name__}") from None
    except Exception as error:  # parsers raise what they like on bytes made to harm
        raise _FaultError(f"expected XML, got a damaged file: {error}") from None


def _read_object(element: Any) -> VocObject:
    name = _text(element, "name")
    if not name:
        raise _FaultError("expected a name of every object, got none")
    box = element.find("bndbox")
    if box is None:
        raise _FaultError(f"object {name!r}: expected a bndbox, got none")
    xmin, ymin, xmax, ymax = (_number(box, side) for side in ("xmin", "ymin", "xmax", "ymax"))
    if xmin > xmax or ymin > ymax:
        raise _FaultError(
            f"object {name!r}: expected xmin <= xmax and ymin <= ymax,"
            f" got {xmin:g}, {ymin:g}, {xmax:g}, {ymax:g}"
        )
    pose = _text(element, "pose") or _UNSPECIFIED
    is_truncated = _number(element, "truncated", default=0.0) != 0
    is_difficult = _number(element, "difficult", default=0.0) != 0
    return VocObject(name, pose, is_truncated, is_difficult, xmin, ymin, xmax, ymax)


def _text(element: Any, name: str) -> str:
    return (element.findtext(name) or "").strip()


def _number(element: Any, name: str, *, default: float | None = None) -> float:
    text = _text(element, name)
    if not text and default is not None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _FaultError(f"{name}: expected a number, got {text!r}")
    return value
