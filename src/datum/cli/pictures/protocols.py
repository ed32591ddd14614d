"""Pictures in the languages of terminals that show pixels: kitty's, iTerm2's and sixel."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

__all__ = ["encode_iterm", "encode_kitty", "encode_sixel"]

CHUNK_BYTES = 4096  # of one command to kitty, at most
COLOURS = 128  # of a sixel picture; terminals know 256 and more
SIXEL_ROWS = 6


def _png(pixels: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def encode_kitty(pixels: Any, *, columns: int, rows: int) -> str:
    """A command that shows a PNG in so many cells, and asks for no answer."""
    data = base64.b64encode(_png(pixels)).decode()
    chunks = [data[at : at + CHUNK_BYTES] for at in range(0, len(data), CHUNK_BYTES)]
    commands = []
    for at, chunk in enumerate(chunks):
        first = f"a=T,f=100,q=2,c={columns},r={rows}," if at == 0 else ""
        commands.append(f"\x1b_G{first}m={int(at < len(chunks) - 1)};{chunk}\x1b\\")
    return "".join(commands)


def encode_iterm(pixels: Any, *, columns: int, rows: int) -> str:
    """A command that shows a PNG in so many cells."""
    data = _png(pixels)
    options = f"inline=1;size={len(data)};width={columns};height={rows};preserveAspectRatio=1"
    return f"\x1b]1337;File={options}:{base64.b64encode(data).decode()}\x07"


def encode_sixel(pixels: Any, *, columns: int, rows: int) -> str:
    """A sixel picture of the pixels as they are; what is transparent keeps the background."""
    from PIL import Image

    del columns, rows  # its size is that of its pixels
    paletted = Image.fromarray(pixels[..., :3]).quantize(COLOURS)
    ids = np.asarray(paletted).astype(np.int64)
    ids[pixels[..., 3] < 128] = -1
    palette = np.array(paletted.getpalette()).reshape(-1, 3) * 100 // 255
    height, width = ids.shape
    colours = "".join(
        f"#{number};2;{';'.join(map(str, palette[number].tolist()))}"
        for number in np.unique(ids).tolist()
        if number >= 0
    )
    bands = (ids[top : top + SIXEL_ROWS] for top in range(0, height, SIXEL_ROWS))
    body = "-".join("$".join(_encode_band(band)) for band in bands)
    return f'\x1bP0;1;0q"1;1;{width};{height}{colours}{body}\x1b\\'


def _encode_band(band: Any) -> Iterator[str]:
    """Six rows of pixels, colour by colour."""
    weights = 1 << np.arange(len(band))[:, None]
    for number in np.unique(band).tolist():
        if number >= 0:
            bits = ((band == number) * weights).sum(axis=0).tolist()
            yield f"#{number}" + "".join(_encode_run(*run) for run in _runs(bits))


def _runs(bits: list[int]) -> Iterator[tuple[int, int]]:
    for value, items in groupby(bits):
        yield value, sum(1 for _ in items)


def _encode_run(value: int, count: int) -> str:
    letter = chr(63 + value)
    return letter * count if count < 4 else f"!{count}{letter}"
