"""Records that say which version of the data they are of, and the sources that give them.

Every value of a record follows from its number and its version. So whatever was read can be checked
by itself, a mixture of versions shows, and shards of two versions have the same size.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

FIRST = 1000  # numbers up to 16,383 take two bytes each

Record = tuple[int, int, str, bytes]  # number, version, text, a digest of the rest


def make_row(number: int, version: int) -> dict[str, Any]:
    """One record."""
    seed = hashlib.sha256(f"{number}/{version}".encode()).digest()
    return {
        "id": FIRST + number,
        "version": version,
        "x": np.frombuffer(seed, np.uint8).astype(np.float32),
        "text": seed.hex()[:40],
        "blob": seed * 8,
    }


def make_rows(version: int, count: int) -> list[dict[str, Any]]:
    """The records of a version."""
    return [make_row(number, version) for number in range(count)]


def digest_of(x: np.ndarray, blob: bytes) -> bytes:
    return hashlib.sha256(np.asarray(x, np.float32).tobytes() + bytes(blob)).digest()[:8]


def record_of(row: dict[str, Any]) -> Record:
    """What is compared of a record that was read by itself."""
    return int(row["id"]), int(row["version"]), str(row["text"]), digest_of(row["x"], row["blob"])


def records_of(batch: dict[str, Any]) -> list[Record]:
    """What is compared of a batch, whatever the framework: its values must be NumPy's or lists."""
    return [
        (int(number), int(version), _text(text), digest_of(x, blob))
        for number, version, text, x, blob in zip(
            batch["id"], batch["version"], batch["text"], batch["x"], batch["blob"], strict=True
        )
    ]


def _text(text: Any) -> str:
    return text.decode() if isinstance(text, bytes) else str(text)


def make_csv(path: Path, version: int, count: int) -> None:
    """A table, which is as long in every version."""
    lines = [f"{FIRST + i},{version},{make_row(i, version)['text']}" for i in range(count)]
    path.write_text("\n".join(["id,version,text", *lines, ""]))


def make_images(folder: Path, version: int, count: int) -> None:
    """Images in folders of classes, whose files are as long in every version."""
    for number in range(count):
        pixels = np.full((6, 6, 3), (number % 256, number // 256, version), np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "bmp")
        path = folder / f"class{number % 3}" / f"{number:04}.bmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.getvalue())


class Generator:
    """A callable that gives an iterator, which cannot say whether it has changed."""

    def __init__(self, version: int, count: int) -> None:
        self.version, self.count = version, count

    def __call__(self) -> Iterator[dict[str, Any]]:
        return (make_row(number, self.version) for number in range(self.count))


class Mapped:
    """Records by number in Python, as map-style datasets give them: worker processes read it."""

    def __init__(self, version: int, count: int) -> None:
        self.version, self.count = version, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> dict[str, Any]:
        return make_row(number, self.version)


def make_columns(version: int, count: int) -> dict[str, np.ndarray]:
    """The same as arrays."""
    rows = make_rows(version, count)
    return {
        "id": np.array([row["id"] for row in rows]),
        "version": np.array([row["version"] for row in rows]),
        "x": np.stack([row["x"] for row in rows]),
        "text": np.array([row["text"] for row in rows]),
    }
