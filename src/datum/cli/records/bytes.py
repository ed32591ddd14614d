"""Byte strings: how long they are, and what they look like."""

from __future__ import annotations

from datum import images
from datum.cli.words.wording import describe_size

__all__ = ["hex_dump", "look_at", "read_image_header", "text_of"]

_STARTS = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"%PDF", "PDF"),
    (b"OggS", "Ogg"),
    (b"fLaC", "FLAC"),
    (b"ID3", "MP3"),
    (b"\x93NUMPY", "NumPy array"),
    (b"\x89HDF", "HDF5"),
    (b"PAR1", "Parquet"),
    (b"ARROW1", "Arrow"),
    (b"\x80\x04\x95", "pickle"),
    (b"\x80\x05\x95", "pickle"),
)
_RIFF = {b"WAVE": "WAV", b"AVI ": "AVI"}
HEX_BYTES = 16  # in a line


def look_at(data: bytes, room: int, *, is_short: bool = False) -> str:
    r"""How long a byte string is, and what it looks like.

    >>> look_at(b"\x1f\x8b\x08\x00", 80), look_at(b"hello", 80)
    ('4 B, gzip', '5 B, text "hello"')
    """
    size = describe_size(len(data))
    header = read_image_header(data)
    if header is not None:
        image = f"{header.format.upper()} {header.width} x {header.height}{_colours(header)}"
        return image if is_short else f"{image}, {size}"
    kind = kind_of(data)
    if kind is not None or not data:
        return f"{size}, {kind}" if kind else size
    text = text_of(data)
    if text is not None:
        shown = text[: max(8, room - len(size) - 10)]
        more = "…" if len(shown) < len(text) else ""
        return f'{size}, text "{shown}{more}"'
    start = data[: 4 if is_short else 12].hex(" ")
    return f"{size}, {start}{' …' if len(data) > 12 else ''}"


def _colours(header: images.ImageHeader) -> str:
    if header.has_palette:
        return ", palette"
    names = {1: ", grey", 4: ", with transparency"}
    bits = ", 16 bits" if header.dtype == "uint16" else ""
    return names.get(header.channels, "") + bits


def kind_of(data: bytes) -> str | None:
    """What the first bytes tell, other than images."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return "MP4"
    return next((kind for start, kind in _STARTS if data.startswith(start)), None)


def read_image_header(data: bytes) -> images.ImageHeader | None:
    """The header of an image; None for what is none, or is damaged."""
    if images.sniff_format(data) is None:
        return None
    try:
        return images.read_header(data)
    except images.ImageError:
        return None


def text_of(data: bytes) -> str | None:
    """The text that bytes hold in UTF-8, if they look like one; lines are kept."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    odd = sum(not one.isprintable() and one not in "\n\r\t" for one in text[:4096])
    return text if odd == 0 else None


def hex_dump(data: bytes, *, lines: int = 4) -> list[str]:
    """The first bytes, sixteen a line: where they are, in hexadecimal, and as letters."""
    shown = []
    for at in range(0, min(len(data), lines * HEX_BYTES), HEX_BYTES):
        part = data[at : at + HEX_BYTES]
        letters = "".join(chr(one) if 32 <= one < 127 else "." for one in part)
        shown.append(f"{at:06x}  {part.hex(' '):<{3 * HEX_BYTES - 1}}  {letters}")
    return shown
