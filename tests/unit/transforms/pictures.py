"""Encoded images of all kinds, and functions run as a dataset runs them."""

import io

import numpy as np
import tensorflow as tf
from PIL import Image

from tests.unit.images.samples import encoded, palette, pixels, png, png_of_16_bits

BYTES = tf.TensorSpec([], tf.string)


def in_graph(function):
    """A function of bytes within a graph, as `map` calls it."""
    return tf.function(function, input_signature=[BYTES])


def photo(height=60, width=80, **settings) -> bytes:
    """A JPEG of soft colours; each pixel's red tells its column, its green the row."""
    rows, columns = np.mgrid[0:height, 0:width]
    image = np.stack([columns * 255 // width, rows * 255 // height, (rows + columns) % 256], -1)
    return encoded(image.astype(np.uint8), "JPEG", quality=95, **settings)


def ids_png(bits: int, **settings) -> bytes:
    """Ids of so many bits, with colours that are not those ids."""
    count = 2**bits
    ids = np.random.default_rng(bits).integers(0, count, (11, 13), dtype=np.uint8)
    image = Image.new("P", (13, 11))
    image.putpalette(palette()[: 3 * count])
    image.frombytes(ids.tobytes())
    return encoded(image, "PNG", bits=bits, **settings)


def grey_png(bits: int) -> bytes:
    rows = b"".join(b"\0" + bytes(pixels(1, bits, 1)[0] ^ row) for row in range(5))
    return png(8, 5, bits, 0, rows)


def animation(name: str, channels: int) -> bytes:
    frames = [Image.fromarray(pixels(9 + 0 * i, 7, channels) ^ i) for i in range(3)]
    settings = {"lossless": True, "exact": True} if name == "WEBP" else {}
    return encoded(frames[0], name, save_all=True, append_images=frames[1:], **settings)


def png_images() -> dict[str, bytes]:
    found = {f"ids of {bits} bits": ids_png(bits) for bits in (1, 2, 4, 8)}
    found |= {
        f"ids of {bits} bits, some transparent": ids_png(bits, transparency=b"\x07\xc8")
        for bits in (1, 2, 4, 8)
    }
    found |= {f"grey of {bits} bits": grey_png(bits) for bits in (1, 2, 4)}
    for mode in ("L", "LA", "RGB", "RGBA"):
        found[mode] = encoded(Image.fromarray(pixels(9, 7, 4)).convert(mode), "PNG")
    for channels in (1, 3, 4):
        deep = pixels(5, 6, channels, dtype=np.uint16, most=65535)
        found[f"{channels} channels of 16 bits"] = png_of_16_bits(deep)
        found[f"{channels} channels of 16 bits, small"] = png_of_16_bits(deep % 256)
    interlaced = io.BytesIO()
    Image.fromarray(pixels(9, 7)).save(interlaced, "PNG", interlace=True)
    return found | {"interlaced": interlaced.getvalue()}


def webp_images() -> dict[str, bytes]:
    found = {}
    for channels in (3, 4):
        array = pixels(9, 7, channels)
        found[f"{channels} channels"] = encoded(array, "WEBP", quality=70)
        found[f"{channels} channels, lossless"] = encoded(array, "WEBP", lossless=True)
        found[f"{channels} channels, animated"] = animation("WEBP", channels)
    exif = Image.Exif()
    exif[0x0112] = 6
    return found | {"with EXIF": encoded(pixels(9, 7), "WEBP", exif=exif)}
