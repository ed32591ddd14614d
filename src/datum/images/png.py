"""PNG images of eight bits: inflated by ISA-L, their filters undone by the native core.

Small ones take a tenth of the time that a general decoder needs; MNIST and the like are of them.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from datum import _core

__all__ = ["decode_png", "png_shape"]

_CHANNELS = {0: 1, 2: 3, 3: 1, 6: 4}  # of each kind of colour; of a palette the ids
_PALETTE = 3
_HEADER = struct.Struct(">IIBBBBB")
_CHUNK = struct.Struct(">I4s")
_FIRST_CHUNK = 33  # after the start, and the header
_CHUNK_BYTES = 12  # length, kind and checksum


def png_shape(data: bytes | memoryview) -> tuple[int, int, int] | None:
    """Height, width and channels that the header of a PNG tells; None where that is not all.

    It is not for palettes, whose channels depend on what is asked for, nor for more than 8 bits.
    """
    if len(data) < _FIRST_CHUNK:
        return None
    width, height, bits, colour, *_ = _HEADER.unpack_from(data, 16)
    is_known = bits == 8 and colour in _CHANNELS and colour != _PALETTE
    return (height, width, _CHANNELS[colour]) if is_known else None


def decode_png(
    data: bytes | memoryview, channels: int, out: NDArray[np.uint8] | None = None
) -> NDArray[np.uint8] | None:
    """The pixels of a whole PNG that has eight bits and so many channels, as it stores them.

    None for every other image, and for a damaged one: Pillow reads them, or says what is wrong.
    With `out`, an array in one piece, pixels are written there, and None is for images of another
    shape, too; without it, the size has to be checked before.
    """
    if len(data) < _FIRST_CHUNK:
        return None
    width, height, bits, colour, method, filtering, interlaced = _HEADER.unpack_from(data, 16)
    if bits != 8 or _CHANNELS.get(colour) != channels or method or filtering or interlaced:
        return None
    shape = (height, width, channels)
    if out is not None and out.shape != shape:
        return None
    packed = _find_pixels(data)
    if packed is None:
        return None
    row_bytes = width * channels
    inflated = _inflate(packed, height * (row_bytes + 1))
    if inflated is None:
        return None
    out = np.empty(shape, np.uint8) if out is None else out
    return out if _core.undo_png_filters(inflated, row_bytes, channels, out) else None


def _find_pixels(data: bytes | memoryview) -> bytes | memoryview | None:
    """What lies in the chunks of pixels, each checked; None where one is not as it should be."""
    found: list[bytes | memoryview] = []
    view = memoryview(data)
    if isal_zlib.crc32(view[12:29]) != int.from_bytes(view[29:33], "big"):
        return None
    at, size = _FIRST_CHUNK, len(view)
    while at + _CHUNK_BYTES <= size:
        length, kind = _CHUNK.unpack_from(view, at)
        end = at + 8 + length
        if kind == b"IEND":
            return found[0] if len(found) == 1 else b"".join(found) or None
        if end + 4 > size or kind == b"acTL":  # cut, or animated
            return None
        if kind == b"IDAT":
            if isal_zlib.crc32(view[at + 4 : end]) != int.from_bytes(view[end : end + 4], "big"):
                return None
            found.append(view[at + 8 : end])
        at = end + 4
    return None


def _inflate(packed: bytes | memoryview, nbytes: int) -> bytes | None:
    """Exactly so many bytes; None if there are more, fewer, or the stream is damaged."""
    stream: Any = isal_zlib.decompressobj()
    try:
        inflated: bytes = stream.decompress(packed, nbytes + 1)
    except isal_zlib.error:
        return None
    return inflated if stream.eof and len(inflated) == nbytes else None
