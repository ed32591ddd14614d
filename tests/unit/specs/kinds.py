"""Records of many kinds of features, and what each is read as."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import datum
from datum import Feature, Sparse

__all__ = ["CONTEXT", "IMAGES", "SEQUENCES", "records_of", "write_kinds"]

CONTEXT = {
    "dense": Feature("float32", (2, 3)),
    "small": Feature("int8"),
    "flags": Feature("bool", (4,)),
    "huge": Feature("uint64", (2,)),
    "half": Feature("float16"),
    "brain": Feature("bfloat16", (2,)),
    "raw": Feature("float64", (3, 2)),
    "raw bool": Feature("bool", (3,), encoding="raw"),
    "raw u32": Feature("uint32", (2,), encoding="raw"),
    "raw u64": Feature("uint64", (2,), encoding="raw"),
    "raw brain": Feature("bfloat16", (2,), encoding="raw"),
    "complex": Feature("complex64", (2,)),
    "raw rows": Feature("float64", (None, 2)),
    "ragged": Feature("int64", (None,)),
    "ragged u64": Feature("uint64", (None,)),
    "boxes": Feature("float32", (None, 4)),
    "nested": Feature("int32", (None, None)),
    "deep": Feature("int64", (None, None, None, 2)),
    "nested raw": Feature("float64", (None, None), encoding="values"),
    "sparse": Feature("float32", (5,), encoding="sparse"),
    "sparse u64": Feature("uint64", (5,), encoding="sparse"),
    "sparse 2": Feature("int64", (3, 4), encoding="sparse"),
    "sparse raw": Feature("float64", (7,), encoding="sparse"),
    "text": Feature("str"),
    "words": Feature("str", (None,)),
    "pair": Feature("bytes", (2,)),
    "when": Feature("datetime64[us]"),
    "waits": Feature("timedelta64[s]", (None,)),
    "nothing": Feature("int64", (0, 3)),
    "may lack": Feature("int64", optional=True),
    "may lack text": Feature("str", optional=True),
    "may lack raw": Feature("float64", (2,), optional=True),
    "may lack rows": Feature("float64", (None, 2), optional=True),
    "default": Feature("float32", (2,), default=(1.5, -2.0)),
    "default scalar": Feature("int16", default=-7),
    "default raw": Feature("float64", (2,), default=0.25),
    "default text": Feature("str", default="é"),
    'it\'s "a"\nname': Feature("int64"),
}
SEQUENCES = {
    "steps": Feature("int16", (None,), sequence=True),
    "step rows": Feature("float32", (None, 2), sequence=True),
    "step lists": Feature("str", (None, None), sequence=True),
    "step raw": Feature("float64", (None, 3), sequence=True),
}
IMAGES = {
    "photo": Feature("uint8", (None, None, 3), encoding="image"),
    "icon": Feature("uint8", (4, 4, 1), encoding="image"),
    "depth": Feature("uint16", (None, None, 1), encoding="image"),
    "may lack photo": Feature("uint8", (None, None, 3), encoding="image", optional=True),
    "any shape": Feature("uint8", (None, None, 2), encoding="raw"),
    "may lack shape": Feature("float64", (None, None), optional=True),
}


def _png(array: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return file.getvalue()


def _sparse(number: int, shape: tuple[int, ...], dtype: str) -> Sparse:
    count = number % 3
    places = np.stack([np.arange(count) + dim for dim in range(len(shape))], axis=1)
    values = (np.arange(count) + number + 1).astype(dtype)
    return Sparse(places.reshape(count, len(shape)), values, shape)


def _context(i: int) -> dict[str, Any]:
    steps = np.arange(i % 4)
    row: dict[str, Any] = {
        "dense": np.arange(6, dtype=np.float32).reshape(2, 3) + i,
        "small": np.int8(-i),
        "flags": [i % 2 == 0, True, False, True],
        "huge": np.array([2**64 - 1 - i, i], np.uint64),
        "half": np.float16(i / 4),
        "brain": np.float32([i, 0.5]),
        "raw": np.arange(6, dtype=np.float64).reshape(3, 2) / (i + 1),
        "raw bool": [i % 2 == 0, False, True],
        "raw u32": np.array([2**32 - 1, i], np.uint32),
        "raw u64": np.array([2**64 - 1, i], np.uint64),
        "raw brain": np.float32([i, -2]),
        "complex": np.array([1 + i * 1j, 2], np.complex64),
        "raw rows": np.arange(2.0 * (i % 3)).reshape(-1, 2) + 0.1,
        "ragged": steps,
        "ragged u64": steps.astype(np.uint64) + np.uint64(2**63),
        "boxes": np.arange(4 * (i % 3), dtype=np.float32).reshape(-1, 4),
        "nested": [[i], [], [i, i + 1]][: i % 4],
        "deep": [[[[i, 1]], []], [], [[[2, 3], [4, 5]]]][: i % 4],
        "nested raw": [[i + 0.5], [], [0.1, 0.2]][: i % 4],
        "sparse": _sparse(i, (5,), "float32"),
        "sparse u64": _sparse(i, (5,), "uint64"),
        "sparse 2": _sparse(i, (3, 4), "int64"),
        "sparse raw": _sparse(i, (7,), "float64"),
        "text": f"größe {i}",
        "words": ["a", "bß"][: i % 3],
        "pair": [b"\x01", b"x" * i],
        "when": np.datetime64("2024-01-01T00:00:01", "us") + i,
        "waits": steps.astype("timedelta64[s]"),
        "nothing": np.zeros((0, 3), np.int64),
        'it\'s "a"\nname': i,
    }
    if i % 2:
        row |= {"may lack": i, "may lack text": "there", "may lack raw": [i, 0.5]}
        row |= {"may lack rows": np.ones((i % 3, 2)), "default": [i, i]}
        row |= {"default raw": [i, i], "default scalar": i, "default text": "given"}
    return row


def _sequences(i: int) -> dict[str, Any]:
    steps = i % 3
    return {
        "steps": np.arange(steps) - i,
        "step rows": np.arange(2 * steps).reshape(-1, 2) + i,
        "step lists": [["x", "y"], [], ["ß"]][:steps],
        "step raw": np.arange(3.0 * steps).reshape(-1, 3) / 3,
    }


def _images(i: int) -> dict[str, Any]:
    size = 3 + i % 2
    pixels = np.arange(size * 5 * 3, dtype=np.uint8).reshape(size, 5, 3)
    row: dict[str, Any] = {
        "photo": _png(pixels),
        "icon": _png(np.arange(16, dtype=np.uint8).reshape(4, 4) * i),
        "depth": _png(np.arange(6, dtype=np.uint16).reshape(2, 3) * 9000),
        "any shape": np.arange(size * 3 * 2, dtype=np.uint8).reshape(size, 3, 2),
    }
    if i % 2:
        row |= {"may lack photo": _png(pixels), "may lack shape": np.full((2, i), 0.5)}
    return row


def records_of(*schemas: dict[str, Feature], count: int = 7) -> list[dict[str, Any]]:
    """Some records that hold all features of these schemas."""
    wanted = {name for schema in schemas for name in schema}
    rows = ({**_context(i), **_sequences(i), **_images(i)} for i in range(count))
    return [{name: value for name, value in row.items() if name in wanted} for row in rows]


def write_kinds(folder: Path, *schemas: dict[str, Feature], **options: Any) -> datum.Dataset:
    """A dataset of records that hold all features of these schemas, in two shards."""
    merged = {name: feature for schema in schemas for name, feature in schema.items()}
    datum.write(
        records_of(*schemas),
        folder,
        schema=merged,
        shuffle=False,
        shards=2,
        progress=False,
        **options,
    )
    return datum.load(folder)
