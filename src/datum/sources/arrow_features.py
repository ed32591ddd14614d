"""Hugging Face's description of the columns of an Arrow table, in the metadata of its schema."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from datum.columns import Masked, Ragged
from datum.errors import SourceError
from datum.images import sniff_format
from datum.schema import DTYPES

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["METADATA_KEY", "ColumnSpec", "find_specs", "join_files", "shape_arrays"]

METADATA_KEY = b"huggingface"
_FILES = {"Image": "image", "Audio": "file", "Video": "file", "Pdf": "file"}
_SNIFFED_ROWS = 16


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """Properties of a column beyond its type.

    Attributes:
        kind: "image" and "file" are structs of bytes and path; "array" has a shape.
        class_names: The names of the ids.
        shape: The shape of arrays; the first dimension may be None.
        dtype: The dtype of arrays.
    """

    kind: Literal["image", "file", "array", "ids"]
    class_names: tuple[str, ...] = ()
    shape: tuple[int | None, ...] = ()
    dtype: str = ""


def find_specs(table: pa.Table) -> dict[str, ColumnSpec]:
    """Return the specs of a table, from its schema or else its first rows, by flat names."""
    found: dict[str, ColumnSpec] = {}
    metadata = (table.schema.metadata or {}).get(METADATA_KEY)
    if metadata is not None:
        try:
            features = json.loads(metadata)["info"]["features"]
            for name, feature in features.items():
                _add_spec(name, feature, found)
        except (AttributeError, KeyError, TypeError, ValueError):  # written by another program
            found.clear()
    for field in table.schema:
        if field.name not in found and _is_file_struct(field.type):
            kind = _sniff(table.column(field.name))
            if kind is not None:
                found[field.name] = ColumnSpec(kind)
    return found


def _add_spec(name: str, feature: Any, found: dict[str, ColumnSpec]) -> None:
    """Add the specs of a feature, and of those within it."""
    if isinstance(feature, list):
        _add_spec(name, feature[0], found)
        return
    kind = feature.get("_type")
    if kind == "ClassLabel" and feature.get("names"):
        found[name] = ColumnSpec("ids", class_names=tuple(map(str, feature["names"])))
    elif kind in ("Sequence", "List", "LargeList"):
        _add_spec(name, feature["feature"], found)
        if found.get(name, ColumnSpec("ids")).kind != "ids":
            del found[name]  # the Arrow type determines lists of images and arrays
    elif kind in _FILES:
        found[name] = ColumnSpec("image" if kind == "Image" else "file")
    elif isinstance(kind, str) and kind.startswith("Array"):
        shape = tuple(None if size is None else int(size) for size in feature["shape"])
        found[name] = ColumnSpec("array", shape=shape, dtype=str(feature["dtype"]))
    elif not isinstance(kind, str):  # a dict of features, one of which may be named _type
        for inner, one in feature.items():
            _add_spec(f"{name}/{inner}", one, found)


def _is_file_struct(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if not pa.types.is_struct(kind) or {field.name for field in kind} != {"bytes", "path"}:
        return False
    data = kind.field("bytes").type
    return bool(pa.types.is_binary(data) or pa.types.is_large_binary(data))


def _sniff(column: pa.ChunkedArray) -> Literal["image", "file"] | None:
    """Return whether the first files of a column are images; None if it has none."""
    rows = [row["bytes"] for row in column.slice(0, _SNIFFED_ROWS).to_pylist() if row is not None]
    starts = [data[:16] for data in rows if data is not None]
    if not starts:
        return None
    return "image" if all(sniff_format(start) is not None for start in starts) else "file"


def join_files(name: str, data: Any, paths: Any, kind: str) -> Any:
    """Join a struct of bytes and paths into one column; images with only a path stay files."""
    present, has_path = _present(data), _present(paths)
    lacking = ~present & has_path
    if not lacking.any():
        return data
    if kind != "image":
        row = int(np.flatnonzero(lacking)[0])
        raise SourceError(
            f"column {name!r}: expected the bytes of a file, got only its path",
            where=f"record {row}",
            hint="ds.save_to_disk(folder) embeds them; write that folder",
        )
    joined = np.empty(len(present), object)
    texts = (paths.values if isinstance(paths, Masked) else paths).to_list()
    contents: Any = data.values if isinstance(data, Masked) else data
    for row in range(len(joined)):
        joined[row] = contents[row] if present[row] else None
        if lacking[row]:
            joined[row] = Path(texts[row])
    return joined


def _present(column: Any) -> Any:
    return column.present if isinstance(column, Masked) else np.ones(len(column), np.bool_)


def shape_arrays(column: Any, spec: ColumnSpec) -> Any:
    """Convert nested lists to arrays of the spec's shape; return other lists unchanged."""
    if isinstance(column, Masked):
        return _shape_masked(column, spec)
    values, lengths = column, []
    while isinstance(values, Ragged):
        lengths.append(values.row_lengths)
        values = values.values
    if not isinstance(values, np.ndarray) or not lengths:
        return column
    for size, found in zip(spec.shape, lengths, strict=False):
        if size is not None and (found != size).any():
            return column
    if spec.dtype in DTYPES and values.dtype.name != spec.dtype:
        values = values.astype(spec.dtype)
    return _shaped(column, values, spec.shape)


def _shape_masked(column: Masked, spec: ColumnSpec) -> Masked:
    """Convert a column in which some records have no array; those are blank."""
    if not column.present.any():
        return column
    given = shape_arrays(column[np.flatnonzero(column.present)].values, spec)
    if not isinstance(given, np.ndarray):
        return column
    blank = np.zeros((len(column.present), *given.shape[1:]), given.dtype)
    blank[column.present] = given
    return Masked(blank, column.present)


def _shaped(column: Ragged, values: Any, shape: Sequence[int | None]) -> Any:
    sizes = [size or 0 for size in shape[1:]]
    if None in shape[1:]:
        return column
    if shape[0] is None:
        return Ragged(values.reshape(-1, *sizes), column.row_splits)
    count = math.prod([shape[0], *sizes])
    return values.reshape(len(values) // count if count else len(column), shape[0], *sizes)
