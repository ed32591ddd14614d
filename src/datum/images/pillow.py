"""Pillow's images: opened by their format, and their pixels exactly as they are stored."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["describe_pixels", "open_image", "pixels_of"]

# Opened by their own classes: `Image.open` would guess the format anew, and warn of large images.
_CLASSES = {
    "bmp": ("PIL.BmpImagePlugin", "BmpImageFile"),
    "gif": ("PIL.GifImagePlugin", "GifImageFile"),
    "jpeg": ("PIL.JpegImagePlugin", "JpegImageFile"),
    "png": ("PIL.PngImagePlugin", "PngImageFile"),
    "tiff": ("PIL.TiffImagePlugin", "TiffImageFile"),
    "webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
}
_CHANNELS = {"1": 1, "L": 1, "P": 3, "RGB": 3, "RGBX": 3, "CMYK": 3, "YCbCr": 3}
_CHANNELS |= {"HSV": 3, "LA": 4, "La": 4, "PA": 4, "RGBA": 4, "RGBa": 4}
_OPAQUE_16 = 65535


def open_image(data: bytes, name: str) -> Any:
    """Pillow's image of `data`, its pixels not yet decoded; raises whatever Pillow raises."""
    module, kind = _CLASSES[name]
    return getattr(importlib.import_module(module), kind)(io.BytesIO(data))


def describe_pixels(image: Any) -> tuple[int, Literal["uint8", "uint16"]] | None:
    """Channels and type of what `pixels_of` gives; None for pixels it cannot give exactly."""
    mode = image.mode
    if mode.startswith("I;16"):
        return 1, "uint16"
    if mode not in _CHANNELS:
        return None
    stored = _stored_mode(image)
    if ";16" in stored:  # which Pillow narrows to eight bits
        return (_CHANNELS[mode], "uint16") if stored[:-1] == f"{mode};16" else None
    is_transparent = mode == "P" and "transparency" in image.info
    return 4 if is_transparent else _CHANNELS[mode], "uint8"


def pixels_of(image: Any, channels: int) -> NDArray[Any]:
    """An array of height x width x `channels`, of type uint8 or uint16.

    Palettes give their ids for one channel, and their colours for more.
    """
    if image.mode.startswith("I"):
        return _fit_channels(_to_uint16(np.asarray(image)[..., None]), channels)
    if ";16" in _stored_mode(image):
        return _fit_channels(_read_colours_of_16_bits(image), channels)
    if channels == 1:
        is_direct = image.mode in ("P", "L")
        band = image if is_direct else _single_band(image)
        return np.asarray(band)[..., None]
    if image.mode in ("P", "PA"):
        image = image.convert("RGBA")  # the way that knows every kind of transparency
    return np.asarray(image.convert("RGB" if channels == 3 else "RGBA"))


def _single_band(image: Any) -> Any:
    if image.mode in ("PA", "LA", "La"):
        return image.getchannel(0)
    return image.convert("L")


def _stored_mode(image: Any) -> str:
    """How pixels lie in the file, in Pillow's words, if they are not decoded yet."""
    tiles = getattr(image, "tile", None) or [(None, None, None, "")]
    args = tiles[0][3]
    mode = args[0] if isinstance(args, tuple) and args else args
    return mode if isinstance(mode, str) else ""


def _read_colours_of_16_bits(image: Any) -> NDArray[np.uint16]:
    """Decode twice: Pillow keeps the high byte of two, and the low one if their order is lied."""
    stored = _stored_mode(image)
    native = "L" if sys.byteorder == "little" else "B"
    order = stored[-1].replace("N", native)
    lied = stored[:-1] + ("B" if order == "L" else "L")
    other = type(image)(io.BytesIO(image.fp.getvalue()))
    for tile in other.tile:
        if _mode_of(tile) != stored:
            raise ValueError(f"expected pixels of one kind, got {stored} and {_mode_of(tile)}")
    other.tile = [_with_mode(tile, lied) for tile in other.tile]
    colours = np.asarray(image).astype(np.uint16)
    colours <<= 8
    colours |= np.asarray(other)
    return colours


def _mode_of(tile: Any) -> str:
    args = tile[3]
    return str(args[0] if isinstance(args, tuple) else args)


def _with_mode(tile: Any, mode: str) -> Any:
    args = tile[3]
    return type(tile)(*tile[:3], (mode, *args[1:]) if isinstance(args, tuple) else mode)


def _to_uint16(array: NDArray[Any]) -> NDArray[np.uint16]:
    if array.dtype.itemsize > 2 and (array.min() < 0 or array.max() > _OPAQUE_16):
        raise ValueError("expected pixels of 16 bits, got larger ones")
    return array.astype(np.uint16)


def _fit_channels(array: NDArray[np.uint16], channels: int) -> NDArray[np.uint16]:
    got = array.shape[-1]
    if got == 1 and channels > 1:
        array = np.repeat(array, 3, axis=-1)
    if channels == 4 and got != 4:
        opaque = np.full((*array.shape[:2], 1), _OPAQUE_16, np.uint16)
        array = np.concatenate([array, opaque], axis=-1)
    return array[..., :channels]
