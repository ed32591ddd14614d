"""Records as plain values, for programs."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from datum import Sparse
from datum.cli.records.bytes import read_image_header, text_of
from datum.cli.records.cells import Cell
from datum.cli.records.other import fields_of, fields_to_json
from datum.cli.records.places import Place

__all__ = ["payload_to_json", "place_to_json", "record_to_json"]


def place_to_json(place: Place) -> dict[str, Any]:
    """Where a record lies: its split and number there, its file and number there."""
    split = {} if place.split is None else {"split": place.split}
    return {**split, "number": place.number, "file": str(place.file), "record": place.record}


def record_to_json(cells: Sequence[Cell], *, is_full: bool) -> dict[str, Any]:
    """The features of a record.

    Arrays are nested lists, times texts of ISO 8601 (spans counts of their unit), sparse values
    `indices`, `values` and `shape`, complex numbers pairs. Of byte strings and images only the
    size and what they are is told, unless `is_full`, which adds `base64`.
    """
    return {cell.name: _to_json(cell.value, is_full) for cell in cells}


def payload_to_json(payload: bytes, *, is_full: bool) -> dict[str, Any]:
    """A record that is no Example: its size, and its text, or the fields of its message."""
    told: dict[str, Any] = {"bytes": len(payload)}
    text = text_of(payload)
    fields = None if text is not None else fields_of(payload)
    if text is not None:
        told["text"] = text
    elif fields is not None:
        told["fields"] = fields_to_json(fields)
    if is_full:
        told["base64"] = base64.b64encode(payload).decode()
    return told


def _to_json(value: Any, is_full: bool) -> Any:
    if isinstance(value, bytes):
        return _bytes_to_json(value, is_full)
    if isinstance(value, Sparse):
        return {
            "indices": value.indices.tolist(),
            "values": _to_json(np.asarray(value.values), is_full),
            "shape": list(value.dense_shape),
        }
    if isinstance(value, list):
        return [_to_json(item, is_full) for item in value]
    if value is None or isinstance(value, str):
        return value
    return _array_to_json(np.asarray(value), is_full)


def _array_to_json(array: Any, is_full: bool) -> Any:
    if array.dtype.kind == "M":
        return _times_to_json(np.datetime_as_string(array), np.isnat(array))
    if array.dtype.kind == "m":
        return _times_to_json(array.astype(np.int64), np.isnat(array))
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], axis=-1).tolist()
    if array.dtype == object:
        return [_to_json(item, is_full) for item in array.tolist()]
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return array.tolist()


def _times_to_json(values: Any, is_lacking: Any) -> Any:
    shown = np.asarray(values).astype(object)
    shown[is_lacking] = None
    return shown.tolist()


def _bytes_to_json(data: bytes, is_full: bool) -> dict[str, Any]:
    told: dict[str, Any] = {"bytes": len(data)}
    header = read_image_header(data)
    if header is not None:
        told |= {"format": header.format, "height": header.height, "width": header.width}
        told["channels"] = header.channels
    if is_full:
        told["base64"] = base64.b64encode(data).decode()
    return told
