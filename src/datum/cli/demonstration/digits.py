"""The data of the demo: real handwritten digits as files, and as pictures in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.text import Text

from datum import MissingDependencyError
from datum.cli.terminal import is_plain

__all__ = ["draw_digits", "read_digits", "save_images"]

_BRIGHTEST = 16  # the pixels of scikit-learn's digits are 0 to 16
_SHADES = " ░▒▓█"
_ASCII_SHADES = " .:-=+*#%@"


def read_digits() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The 1,797 digits that scikit-learn carries: their pixels (8 x 8, 0 to 255), their labels."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise MissingDependencyError(
            "the handwritten digits of the demo come with the package `scikit-learn`",
            hint="pip install scikit-learn",
        ) from error
    digits: Any = load_digits()
    pixels = np.rint(digits.images * (255 / _BRIGHTEST)).astype(np.uint8)
    return pixels, digits.target.astype(np.int64)


def save_images(
    folder: Path, pixels: NDArray[np.uint8], labels: NDArray[np.int64]
) -> list[tuple[bytes, int]]:
    """Save each image as `folder/LABEL/NUMBER.png`; returns their bytes, with their labels."""
    from PIL import Image

    saved = []
    for number, (image, label) in enumerate(zip(pixels, labels.tolist(), strict=True)):
        path = folder / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        saved.append((path.read_bytes(), label))
    return saved


def draw_digits(pixels: NDArray[np.uint8], console: Console, *, width: int) -> Text:
    """Some images side by side, as many as fit: in grey where there are colours, else in shades."""
    has_colours = console.color_system is not None and not console.no_color
    if has_colours and not is_plain(console):
        count = max(1, width // (pixels.shape[2] + 2))
        return _in_half_blocks(pixels[:count])
    shades = _ASCII_SHADES if is_plain(console) else _SHADES
    count = max(1, width // (2 * pixels.shape[2] + 2))
    return _in_shades(pixels[:count], shades)


def _in_half_blocks(pixels: NDArray[np.uint8]) -> Text:
    """Two rows of pixels to a line: the upper half of a cell is its ink, the lower its paper."""
    text = Text()
    for top in range(0, pixels.shape[1], 2):
        for image in pixels:
            for upper, lower in zip(image[top].tolist(), image[top + 1].tolist(), strict=True):
                text.append("▀", f"rgb({upper},{upper},{upper}) on rgb({lower},{lower},{lower})")
            text.append("  ")
        text.append("\n")
    return text[:-1]


def _in_shades(pixels: NDArray[np.uint8], shades: str) -> Text:
    """A line for each row, two characters for each pixel, so that it is about square."""
    levels = pixels.astype(int) * (len(shades) - 1) // 255
    lines = [
        "  ".join("".join(shades[level] * 2 for level in row) for row in rows).rstrip()
        for rows in levels.transpose(1, 0, 2).tolist()
    ]
    return Text("\n".join(lines))
