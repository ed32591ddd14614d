"""Real files read without Datum: what a dataset made of them must hold."""

from __future__ import annotations

import csv
import io
import re
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?|-?\.[0-9]+([eE][-+]?[0-9]+)?")
TRUTH = {"true": True, "false": False}
MAC_ROMAN = ("ahca-polls", "hip-hop-candidate-lyrics", "mad-men", "spam")  # seen by eye
BLANKS = frozenset(("", "NA", "N/A", "n/a", "#N/A", "null", "NULL", "None", "none"))


def class_of_each(root: Path) -> dict[str, str]:
    """The class of each image under folders of classes, by its path."""
    images = sorted(path for path in root.rglob("*") if path.is_file())
    return {
        path.relative_to(root).as_posix(): path.relative_to(root).parts[0]
        for path in images
        if len(path.relative_to(root).parts) > 1
    }


@dataclass(frozen=True)
class Boxes:
    """The objects that a VOC file tells of, their boxes as fractions of the image."""

    names: list[str]
    poses: list[str]
    truncated: list[int]
    difficult: list[int]
    xmin: list[float]
    xmax: list[float]
    ymin: list[float]
    ymax: list[float]


def read_boxes(path: Path) -> Boxes:
    """What a VOC file tells; an image that has none has no objects."""
    if not path.exists():
        return Boxes([], [], [], [], [], [], [], [])
    root = ET.parse(path).getroot()
    width, height = float(root.find("size/width").text), float(root.find("size/height").text)
    objects = root.findall("object")

    def side(name: str, length: float) -> list[float]:
        pixels = [float(one.find(f"bndbox/{name}").text) for one in objects]
        return [np.float32(min(max(pixel / length, 0.0), 1.0)) for pixel in pixels]

    return Boxes(
        [one.findtext("name") for one in objects],
        [one.findtext("pose", "Unspecified") for one in objects],
        [int(one.findtext("truncated", "0")) for one in objects],
        [int(one.findtext("difficult", "0")) for one in objects],
        side("xmin", width),
        side("xmax", width),
        side("ymin", height),
        side("ymax", height),
    )


def read_list(path: Path) -> list[str]:
    """The names in a list of images; lines that start with `#` are comments."""
    lines = path.read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The names of the columns and the rows of a CSV file; blank lines aside.

    A second column of one name gets a number; one without a name is called after its place.
    """
    text = decode_text(path)
    header, *rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    names: list[str] = []
    for place, name in enumerate(header, 1):
        count = header[:place].count(name)
        names.append(f"{name}_{count}" if name and count > 1 else name or f"column_{place}")
    assert len(set(names)) == len(names)
    return names, rows


def decode_text(path: Path) -> str:
    """The text of a file in the first encoding that fits, or in the one seen by eye."""
    data = path.read_bytes()
    for encoding in ("utf-8-sig", "mac_roman" if path.name.startswith(MAC_ROMAN) else "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def type_of(cells: list[str]) -> str | None:
    """The type that all cells of a column have; None if all are empty."""
    there = [cell for cell in cells if cell not in BLANKS]
    if there and all(cell.lower() in TRUTH for cell in there):
        return "bool"
    if there and all(INTEGER.fullmatch(cell) for cell in there):
        return "int64"
    if there and all(map(_is_exact_float, there)):
        return "float64"
    return "str" if any(cells) else None


def _is_exact_float(cell: str) -> bool:
    """Whether a float64 is what is meant: it would change the digits of large integers."""
    return bool(NUMBER.fullmatch(cell)) and (not INTEGER.fullmatch(cell) or abs(int(cell)) <= 2**53)


def value_of(cell: str, dtype: str) -> Any:
    """What a cell of a column of this type means; None if it has no value."""
    if cell == "" or (dtype != "str" and cell in BLANKS):
        return None
    convert = {"bool": lambda text: TRUTH[text.lower()], "int64": int, "float64": float, "str": str}
    return convert[dtype](cell)


def read_libsvm(path: Path) -> Iterator[tuple[float, dict[int, float]]]:
    """The label and the values of each line; places count from 0."""
    for line in path.read_text().splitlines():
        label, *pairs = line.split()
        cells = (pair.split(":") for pair in pairs)
        yield float(label), {int(place) - 1: float(value) for place, value in cells}


def read_wave(path: Path) -> np.ndarray[Any, np.dtype[np.int16]]:
    """The samples of a WAV file of one channel and 16 bits."""
    with wave.open(str(path)) as file:
        assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")
