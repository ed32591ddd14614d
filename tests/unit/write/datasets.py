"""Datasets that are written and read back by the tests of writing."""

import hashlib
from pathlib import Path

from PIL import Image

import datum


def write(source, out, **options):
    """Write without showing progress."""
    return datum.write(source, out, progress=False, **options)


def read(out, split="train"):
    """The records of a split."""
    return list(datum.load(out)[split])


def values(out, name="x", split="train"):
    """What the records of a split have under one name."""
    return [row[name] for row in read(out, split)]


def digests(folder):
    """What tells whether two datasets are byte for byte the same."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def rows(count):
    """Rows of a number and a text."""
    return [{"x": i, "text": f"t{i}"} for i in range(count)]


def picture(path: Path, shade: int, size=(8, 6)) -> Path:
    """An image file of one colour."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (shade, shade, shade)).save(path)
    return path
