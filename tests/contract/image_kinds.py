"""Images of every kind, the pixels that their files hold, and what is to come back of them."""

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from tests.unit.images.samples import encoded, palette, png_of_16_bits, tiff_of_16_bits

HEIGHT, WIDTH = 6, 7


@dataclass(frozen=True)
class Kind:
    """An image file, and its pixels: height x width x channels, uint8 or uint16.

    Attributes:
        data: the file.
        pixels: what it holds.
        ids: of a palette, what a feature of one channel gives.
        is_lossy: whether decoders may differ.
    """

    data: bytes
    pixels: np.ndarray
    ids: np.ndarray | None = None
    is_lossy: bool = False

    @property
    def channels(self) -> int:
        return self.pixels.shape[-1]

    @property
    def is_deep(self) -> bool:
        return self.pixels.dtype == np.uint16

    def expected(self, channels: int, dtype: str) -> np.ndarray:
        """What every reader gives of it, as the guide to images says."""
        array = self.pixels
        if channels == 1:
            if self.ids is not None:
                return self.ids.astype(dtype)
            if self.channels > 1:
                array = _grey(array)
            return array.astype(dtype)
        highest = np.iinfo(array.dtype).max
        if array.shape[-1] == 1:
            array = np.repeat(array, 3, axis=-1)
        if array.shape[-1] < channels:
            opaque = np.full((*array.shape[:2], 1), highest, array.dtype)
            array = np.concatenate([array, opaque], axis=-1)
        array = array[..., :channels]
        if array.dtype == dtype:
            return array
        return array.astype(np.uint16) * 257 if dtype == "uint16" else (array >> 8).astype(np.uint8)


def _grey(array: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(array[..., :3]).convert("L"))[..., None]


def _numbers(channels: int, most: int = 256, dtype=np.uint8) -> np.ndarray:
    """Pixels that differ, black and white among them."""
    random = np.random.default_rng(channels * most)
    array = random.integers(0, most, (HEIGHT, WIDTH, channels)).astype(dtype)
    array[0, 0], array[-1, -1] = 0, most - 1
    return array


def _flat(array: np.ndarray) -> np.ndarray:
    return array[..., 0] if array.shape[-1] == 1 else array


def _plain(array: np.ndarray, name: str, **settings) -> Kind:
    return Kind(encoded(_flat(array), name, **settings), array)


def _decoded(data: bytes, mode: str, *, is_lossy: bool = True) -> Kind:
    image = Image.open(io.BytesIO(data)).convert(mode)
    array = np.asarray(image)
    stored = Image.open(io.BytesIO(data))
    ids = np.asarray(stored)[..., None] if stored.mode == "P" else None
    return Kind(data, array[..., None] if array.ndim == 2 else array, ids, is_lossy)


def _palette_png(bits: int = 8) -> Kind:
    ids = _numbers(1, 2**bits)
    image = Image.new("P", (WIDTH, HEIGHT))
    image.putpalette(palette()[: 3 * 2**bits])
    image.frombytes(ids.tobytes())
    colours = np.array(palette(), np.uint8).reshape(-1, 3)[ids[..., 0]]
    return Kind(encoded(image, "PNG", bits=bits), colours, ids)


def _soft() -> np.ndarray:
    """Colours that JPEG hardly changes."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    return np.stack([rows * 8 + 90, columns * 8 + 60, rows + columns + 100], -1).astype(np.uint8)


def _rotated_jpeg() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(_soft(), "JPEG", quality=95, exif=exif)


def _animation(name: str, **settings) -> bytes:
    frames = [Image.fromarray(_numbers(3) // 64 * 64 + 10 * i) for i in range(3)]
    if name == "GIF":
        frames = [frame.quantize(64) for frame in frames]
    return encoded(frames[0], name, save_all=True, append_images=frames[1:], **settings)


def all_kinds() -> dict[str, Kind]:
    deep = {"most": 65536, "dtype": np.uint16}
    gif = encoded(Image.fromarray(_numbers(3) // 64 * 64).quantize(64), "GIF")
    bits = Image.fromarray(_numbers(1)[..., 0]).convert("1")
    grey_alpha = Image.fromarray(_numbers(4)).convert("LA")
    lossless = {"lossless": True, "exact": True}
    return {
        "grey PNG": _plain(_numbers(1), "PNG"),
        "16-bit grey PNG": Kind(png_of_16_bits(_numbers(1, **deep)[..., 0]), _numbers(1, **deep)),
        "RGB PNG": _plain(_numbers(3), "PNG"),
        "16-bit RGB PNG": Kind(png_of_16_bits(_numbers(3, **deep)), _numbers(3, **deep)),
        "RGBA PNG": _plain(_numbers(4), "PNG"),
        "16-bit RGBA PNG": Kind(png_of_16_bits(_numbers(4, **deep)), _numbers(4, **deep)),
        "LA PNG": _decoded(encoded(grey_alpha, "PNG"), "RGBA", is_lossy=False),
        "palette PNG": _palette_png(),
        "2-bit palette PNG": _palette_png(2),
        "1-bit PNG": _decoded(encoded(bits, "PNG"), "L", is_lossy=False),
        "grey JPEG": _decoded(encoded(_soft()[..., 0], "JPEG", quality=95), "L"),
        "RGB JPEG": _decoded(encoded(_soft(), "JPEG", quality=95), "RGB"),
        "rotated JPEG": _decoded(_rotated_jpeg(), "RGB"),
        "CMYK JPEG": _decoded(
            encoded(Image.fromarray(_soft()).convert("CMYK"), "JPEG", quality=95), "RGB"
        ),
        "RGB WebP": _plain(_numbers(3), "WEBP", **lossless),
        "RGBA WebP": _plain(_numbers(4), "WEBP", **lossless),
        "animated WebP": _decoded(_animation("WEBP", **lossless), "RGB", is_lossy=False),
        "GIF": _decoded(gif, "RGB", is_lossy=False),
        "animated GIF": _decoded(_animation("GIF"), "RGB", is_lossy=False),
        "BMP": _plain(_numbers(3), "BMP"),
        "grey BMP": _plain(_numbers(1), "BMP"),
        "1-bit BMP": _decoded(encoded(bits, "BMP"), "L", is_lossy=False),
        "TIFF": _plain(_numbers(3), "TIFF"),
        "grey TIFF": _plain(_numbers(1), "TIFF"),
        "16-bit grey TIFF": _plain(_numbers(1, **deep), "TIFF"),
        "16-bit RGB TIFF": Kind(tiff_of_16_bits(_numbers(3, **deep)), _numbers(3, **deep)),
    }
