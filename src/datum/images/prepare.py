"""Preparation of images for storage: bytes are kept unless options say otherwise."""

from __future__ import annotations

import io
import struct
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from datum.errors import Message, Option, Text, suggest
from datum.images.check import check_decodes, check_sums, read_header
from datum.images.decode import check_channels, decode_pixels, ids_as_grey
from datum.images.header import (
    PNG_START,
    ImageError,
    ImageFormat,
    ImageHeader,
    describe_pixels,
    jpeg_frame,
    name_file,
    open_image,
    parse_header,
    pixels_of,
    read_file,
)
from datum.schema import Feature

__all__ = [
    "FORMATS",
    "ImageOptions",
    "PreparedImage",
    "encode_image",
    "encode_png",
    "prepare",
]

FORMATS = ("jpeg", "png", "webp")  # in which images can be stored again


def _check_range(name: str, value: Any, most: int) -> None:
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if value is not None and not (is_integer and 1 <= value <= most):
        expected = f" to be an integer of 1 to {most}, got {value!r}"
        raise ImageError(Text("expected ", Option(name), expected))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageOptions:
    """Processing of images before they are stored; none by default.

    Attributes:
        max_side: Shrink images whose longer side has more pixels than this.
        quality: Encode JPEG and WebP images again, with this quality of 1 to 100.
        format: Store all images as "jpeg", "png" or "webp". Images that may contain ids, such as
            masks, become PNG in any case: 16-bit grey, and lossless images of a feature with one
            channel; without a feature, grey images and palettes too.
        verify: Decode every image, and reject those that cannot be decoded.
    """

    max_side: int | None = None
    quality: int | None = None
    format: Literal["jpeg", "png", "webp"] | None = None
    verify: bool = False

    def __post_init__(self) -> None:
        _check_range("max_side", self.max_side, 2**31 - 1)
        _check_range("quality", self.quality, 100)
        if self.format is not None and self.format not in FORMATS:
            hint = suggest(str(self.format).lower(), FORMATS)
            problem = Text(
                "expected ", Option("format"), f" jpeg, png or webp, got {self.format!r}"
            )
            raise ImageError(problem, hint=hint)

    @property
    def changes_bytes(self) -> bool:
        """Whether images may be stored with different bytes."""
        return (self.max_side, self.quality, self.format) != (None, None, None)


DEFAULT_QUALITY = 95  # of encoded JPEG and WebP: the loss is hardly visible

_ORIENTATION = 0x0112  # the EXIF tag


def encode_image(image: Any, name: str, *, is_exact: bool, options: ImageOptions) -> bytes:
    """Encode as PNG, JPEG or WebP, shrunk if options say so.

    With `is_exact` pixels are dropped, not mixed. An orientation is stored unchanged beside the
    pixels: boxes and masks refer to pixels as they are stored.
    """
    exif = _keep_orientation(image)
    image = _shrink(image, is_exact, options.max_side)
    image = _fit_mode(image, name, is_exact)
    # Some formats would keep profiles and comments, which nothing reads.
    settings: dict[str, Any] = {"exif": exif, "icc_profile": None, "comment": ""}
    if name != "png":
        settings["quality"] = options.quality or DEFAULT_QUALITY
    file = io.BytesIO()
    image.save(file, name, **settings)
    return file.getvalue()


def _keep_orientation(image: Any) -> bytes:
    """Return EXIF data with only the orientation; empty if there is none."""
    from PIL.Image import Exif

    if getattr(image, "format", None) == "TIFF":  # Pillow applies its orientation
        return b""
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:  # a damaged tag must not cost the image
        return b""
    if orientation not in range(2, 9):
        return b""
    kept = Exif()
    kept[_ORIENTATION] = orientation
    return bytes(kept.tobytes())


def _shrink(image: Any, is_exact: bool, max_side: int | None) -> Any:
    from PIL.Image import Resampling

    longer = max(image.size)
    if max_side is None or longer <= max_side:
        return image
    # The same rounding for an image and its mask.
    width, height = (max(1, (2 * n * max_side + longer) // (2 * longer)) for n in image.size)
    if is_exact:
        return image.resize((width, height), Resampling.NEAREST)
    if hasattr(image, "draft"):
        image.draft(None, (2 * width, 2 * height))  # a JPEG decodes faster to a smaller size
    if image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert(_colour_mode(image))
    return image.resize((width, height), Resampling.LANCZOS, reducing_gap=2.0)


def _colour_mode(image: Any) -> str:
    is_transparent = "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBa")
    if image.mode == "1":
        return "L"
    return "RGBA" if is_transparent else "RGB"


def _fit_mode(image: Any, name: str, is_exact: bool) -> Any:
    """Convert the image to a mode that the format supports."""
    mode = image.mode
    if is_exact and mode == "PA":
        return image.convert("P")
    if name == "png":
        if mode.startswith("I;16"):
            return image if mode == "I;16" else image.convert("I").convert("I;16")
        if mode in ("1", "L", "P", "RGB", "RGBA"):
            return image
        return image.convert(_colour_mode(image))
    if mode.startswith("I"):
        raise ImageError(f"expected 8-bit pixels for {name.upper()}, got 16-bit ones")
    if mode not in ("L", "RGB", "RGBA"):
        image = image.convert(_colour_mode(image))
    if name == "jpeg" and image.mode == "RGBA":
        return image.convert("RGB")  # JPEG has no transparency
    return image


_CMYK = 4  # components of a JPEG
_ANIMATED = 0x02  # a flag of extended WebP
_COLOUR_TYPES = {3: 2, 4: 6}  # of a PNG, by channels
_SUB = 1  # the PNG filter that stores differences to the previous pixel


def _is_portable(data: bytes, header: ImageHeader, channels: int | None) -> bool:
    """Return whether all readers decode an image to the same pixels, with these channels.

    None for the channels means those of the image. Colours converted to grey are not portable:
    readers weigh red, green and blue differently, except for JPEG, which stores grey separately.
    """
    if header.format == "jpeg":  # except CMYK as grey, and odd markers, which Pillow forgives
        frame = jpeg_frame(data)
        return frame is not None and (channels != 1 or frame[2] != _CMYK)
    if channels == 1 < header.channels or header.format == "tiff":
        return False
    if header.format == "gif":  # in colour, opaque, and with a first frame that fills the image
        return header.channels == 3 and _first_frame(data) == (0, 0, header.width, header.height)
    if header.format == "webp":  # not an animation
        return not (data[12:16] == b"VP8X" and data[20] & _ANIMATED)
    return header.format != "bmp" or _is_plain_bmp(data)


def _first_frame(data: bytes) -> tuple[int, ...]:
    """Return left, top, width and height of the first frame of a GIF; empty if there is none."""
    flags = data[10]
    at = 13 + (3 * 2 ** (1 + flags % 8) if flags & 0x80 else 0)
    while at < len(data) - 10:
        if data[at] == 0x2C:
            return struct.unpack_from("<4H", data, at + 1)
        if data[at] != 0x21:
            break
        at += 2
        while at < len(data) and data[at]:  # the blocks of an extension
            at += 1 + data[at]
        at += 1
    return ()


def _is_plain_bmp(data: bytes) -> bool:
    """Return whether it has 24 bits, no compression, and the usual header."""
    if len(data) < 34:
        return False
    head_bytes, _, _, _, bits, compression = struct.unpack_from("<IiiHHI", data, 14)
    return head_bytes >= 40 and (bits, compression) == (24, 0)


def encode_png(array: NDArray[Any]) -> bytes:
    """Return a PNG file of pixels: height x width x 1, 3 or 4, uint8 or uint16."""
    if array.dtype == np.uint16 and array.shape[-1] > 1:
        return _encode_deep_colours(array)  # not supported by Pillow
    from PIL import Image

    file = io.BytesIO()
    flat = array[..., 0] if array.shape[-1] == 1 else array
    Image.fromarray(np.ascontiguousarray(flat)).save(file, "png")
    return file.getvalue()


def _encode_deep_colours(array: NDArray[np.uint16]) -> bytes:
    height, width, channels = array.shape
    stored = np.ascontiguousarray(array.astype(">u2")).view(np.uint8).reshape(height, width, -1)
    rows = np.empty((height, 1 + width * 2 * channels), np.uint8)
    rows[:, 0] = _SUB
    filtered = rows[:, 1:].reshape(height, width, 2 * channels)
    filtered[:, 0] = stored[:, 0]
    np.subtract(stored[:, 1:], stored[:, :-1], out=filtered[:, 1:])
    head = struct.pack(">IIBBBBB", width, height, 16, _COLOUR_TYPES[channels], 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return PNG_START + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """An image ready to be stored.

    Attributes:
        data: Its encoded bytes.
        header: The header of these bytes.
        converted: The original format of the file, if it was converted to PNG because not every
            reader can decode it.
    """

    data: bytes
    header: ImageHeader
    converted: ImageFormat | None = None


_AS_THEY_ARE = ImageOptions()
_DEEP_COLOURS = Message(
    "expected 8-bit colour to shrink or encode again, got 16-bit colour",
    hint=Text(
        "convert it to 8 bits first, or leave out ", Option("max_side"), " and ", Option("quality")
    ),
)


def prepare(
    value: Any, feature: Feature | None = None, options: ImageOptions = _AS_THEY_ARE
) -> PreparedImage:
    """Prepare a file's path, encoded bytes, an array or a Pillow image for storage.

    Arrays are uint8 or uint16 of height x width, or with 1, 3 or 4 channels last; they and Pillow
    images become PNG unless options choose a format. So do files that not every reader decodes
    alike. Raises ImageError if it is not an image, is damaged, or does not fit `feature`.
    """
    try:
        prepared = _prepare(value, feature, options)
        if feature is not None:
            _check_feature(prepared.header, feature)
    except ImageError as error:
        raise (name_file(value, error) if isinstance(value, Path) else error) from None
    return prepared


def _prepare(value: Any, feature: Feature | None, options: ImageOptions) -> PreparedImage:
    if isinstance(value, Path):
        value = read_file(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _prepare_bytes(bytes(value), feature, options)
    if isinstance(value, np.ndarray):
        value = _checked_array(value)
        if value.dtype == np.uint16 and value.ndim == 3:
            return _prepare_deep_colours(value, options)
        image = _from_array(value)
    else:
        image = _checked_pillow(value)
    if image.mode in ("P", "PA") and _holds_ids(feature):
        image = _from_array(pixels_of(image, 1)[..., 0])
    is_exact = _is_exact(image.mode, feature, is_lossy=False)
    return _encode(image, _choose_format("png", is_exact, options), is_exact, options)


def _prepare_bytes(data: bytes, feature: Feature | None, options: ImageOptions) -> PreparedImage:
    header = read_header(data)
    if options.verify:
        check_decodes(data, header)
    if header.has_palette and _holds_ids(feature):
        data = ids_as_grey(data, header)
        header = parse_header(data)
    is_large = options.max_side is not None and max(header.height, header.width) > options.max_side
    is_changed = options.format is not None and options.format != header.format
    is_worsened = options.quality is not None and header.format in ("jpeg", "webp")
    if not (is_large or is_changed or is_worsened):
        return _make_portable(data, header, feature)
    if header.dtype == "uint16" and header.channels > 1:
        raise ImageError(_DEEP_COLOURS)
    check_sums(data, header)
    image = open_image(data, header.format)
    is_exact = _is_exact(image.mode, feature, is_lossy=header.format == "jpeg")
    name = _choose_format(header.format, is_exact, options)
    if name == header.format == "png" and not is_large:
        return PreparedImage(data, header)  # ids must not be stored in a lossy format
    return _encode(image, name, is_exact, options)


def _make_portable(data: bytes, header: ImageHeader, feature: Feature | None) -> PreparedImage:
    """Return the bytes unchanged, or a PNG of the same pixels if readers would disagree on them."""
    wanted = None if feature is None else feature.shape[-1]
    if _is_portable(data, header, wanted):
        return PreparedImage(data, header)
    if wanted != 1 and header.has_palette and header.channels == 3:
        image = open_image(data, header.format)
        made = _encode(image, "png", is_exact=True, options=_AS_THEY_ARE).data
    else:
        made = encode_png(decode_pixels(data, 1 if wanted == 1 else header.channels))
    return PreparedImage(made, parse_header(made), header.format)


def _prepare_deep_colours(array: NDArray[np.uint16], options: ImageOptions) -> PreparedImage:
    is_large = options.max_side is not None and max(array.shape[:2]) > options.max_side
    if is_large or options.format not in (None, "png"):
        raise ImageError(_DEEP_COLOURS)
    data = encode_png(array)
    return PreparedImage(data, parse_header(data))


def _holds_ids(feature: Feature | None) -> bool:
    return feature is not None and feature.shape[-1] == 1


def _is_exact(mode: str, feature: Feature | None, *, is_lossy: bool) -> bool:
    """Return whether pixels may be ids, which must neither be mixed nor change."""
    if mode.startswith("I"):
        return True
    if feature is not None:
        return _holds_ids(feature) and not is_lossy
    return mode in ("1", "L", "P", "PA") and not is_lossy


def _choose_format(name: str, is_exact: bool, options: ImageOptions) -> str:
    if is_exact:
        return "png"
    return options.format or (name if name in FORMATS else "png")


def _encode(image: Any, name: str, is_exact: bool, options: ImageOptions) -> PreparedImage:
    try:
        data = encode_image(image, name, is_exact=is_exact, options=options)
    except ImageError:
        raise
    except Exception as error:  # malicious bytes make decoders raise anything
        raise ImageError(f"expected a whole image, got a damaged one: {error}") from None
    return PreparedImage(data, parse_header(data))


def _checked_pillow(value: Any) -> Any:
    module = sys.modules.get("PIL.Image")  # if it is not loaded, there are no Pillow images
    if module is None or not isinstance(value, module.Image):
        raise ImageError(
            f"expected an image as a path, bytes, an array or a Pillow image, got {type(value)!r}"
        )
    described = describe_pixels(value)
    if described is None or (described[1] == "uint16" and described[0] > 1):
        raise ImageError(
            f"expected a Pillow image of 8 bits, or of 16 and grey, got mode {value.mode!r}",
            hint="convert it, or pass the path of its file",
        )
    return value


def _checked_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return height x width, or x 3 or 4; raise ImageError for other arrays."""
    if array.ndim == 3 and array.shape[-1] == 1:
        array = array[..., 0]
    is_image = array.ndim == 2 or (array.ndim == 3 and array.shape[-1] in (3, 4))
    if not is_image or array.dtype not in (np.uint8, np.uint16) or array.size == 0:
        raise ImageError(
            "expected an array of uint8 or uint16, height x width x 1, 3 or 4,"
            f" got {array.dtype.name} of shape {array.shape}",
            hint="other arrays are stored exactly with encoding='raw'",
        )
    return array


def _from_array(array: NDArray[Any]) -> Any:
    from PIL import Image

    return Image.fromarray(np.ascontiguousarray(array))


def _check_feature(header: ImageHeader, feature: Feature) -> None:
    check_channels(header, feature.shape[-1])
    for wanted, got, side in zip(
        feature.shape, (header.height, header.width), ("height", "width"), strict=False
    ):
        if wanted is not None and wanted != got:
            raise ImageError(f"expected a {side} of {wanted} pixels, got {got}")
