"""Small images, made for tests."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(height: int, width: int, channels: int = 3, *, dtype=np.uint8, most: int = 255):
    """Values that differ from pixel to pixel; always the same."""
    random = np.random.default_rng(height * 1000 + width * 10 + channels)
    shape = (height, width, channels) if channels > 1 else (height, width)
    return random.integers(0, most + 1, shape, dtype=dtype)


def encoded(image, name: str, **settings) -> bytes:
    """An array or a Pillow image as bytes of a format."""
    file = io.BytesIO()
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    image.save(file, name, **settings)
    return file.getvalue()


def palette_image(ids: np.ndarray) -> Image.Image:
    """An image of ids, with colours that are not those ids."""
    image = Image.fromarray(ids).convert("L")
    made = Image.new("P", image.size)
    made.putpalette(palette())
    made.frombytes(image.tobytes())
    return made


def palette() -> list[int]:
    return np.random.default_rng(7).integers(0, 256, 768).tolist()


def save(path: Path, image, name: str = "", **settings) -> Path:
    """An image file, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    format_name = name or {".jpg": "JPEG", ".png": "PNG"}[path.suffix]
    path.write_bytes(encoded(image, format_name, **settings))
    return path


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, bits: int, colour: int, rows: bytes, *extra: bytes) -> bytes:
    """A PNG file from its parts, which Pillow could not write."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    chunks = [png_chunk(b"IHDR", header), *extra, png_chunk(b"IDAT", zlib.compress(rows))]
    return b"".join([b"\x89PNG\r\n\x1a\n", *chunks, png_chunk(b"IEND", b"")])


def png_of_16_bits(array: np.ndarray) -> bytes:
    """Grey, grey with alpha, RGB or RGBA of 16 bits."""
    height, width = array.shape[:2]
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[1 if array.ndim == 2 else array.shape[2]]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in array)
    return png(width, height, 16, colour, rows)


def tiff_of_16_bits(array: np.ndarray, order: str = "<") -> bytes:
    """RGB of 16 bits, not compressed."""
    height, width, channels = array.shape
    data = array.astype(f"{order}u2").tobytes()
    bits_at = 8
    data_at = bits_at + 2 * channels
    entries = [
        (256, 3, 1, width),
        (257, 3, 1, height),
        (258, 3, channels, bits_at),
        (259, 3, 1, 1),
        (262, 3, 1, 2),
        (273, 4, 1, data_at),
        (277, 3, 1, channels),
        (278, 3, 1, height),
        (279, 4, 1, len(data)),
    ]
    directory = struct.pack(f"{order}H", len(entries))
    for tag, kind, count, value in entries:
        directory += struct.pack(f"{order}HHI", tag, kind, count)
        is_short = kind == 3 and count == 1
        directory += struct.pack(f"{order}HH" if is_short else f"{order}I", *_cell(value, is_short))
    directory += struct.pack(f"{order}I", 0)
    start = b"II" if order == "<" else b"MM"
    bits = struct.pack(f"{order}{channels}H", *[16] * channels)
    return start + struct.pack(f"{order}HI", 42, data_at + len(data)) + bits + data + directory


def _cell(value: int, is_short: bool) -> tuple[int, ...]:
    return (value, 0) if is_short else (value,)
