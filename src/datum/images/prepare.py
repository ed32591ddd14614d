"""Images as they are stored: their bytes untouched, unless options ask otherwise."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import Message
from datum.images.check import check_decodes, check_sums, read_header
from datum.images.decode import check_channels, decode_pixels
from datum.images.encode import encode_image
from datum.images.file import name_file, read_file
from datum.images.header import ImageError, ImageFormat, ImageHeader, parse_header
from datum.images.options import FORMATS, ImageOptions
from datum.images.palette import ids_as_grey
from datum.images.pillow import describe_pixels, open_image, pixels_of
from datum.images.portable import encode_png, is_portable
from datum.schema import Feature

__all__ = ["PreparedImage", "prepare"]


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """An image ready to be stored.

    Attributes:
        data: its encoded bytes.
        header: what they say of themselves.
        converted: the format of the file that it came as, if it was made a PNG because not every
            reader has a decoder for it.
    """

    data: bytes
    header: ImageHeader
    converted: ImageFormat | None = None


_AS_THEY_ARE = ImageOptions()
_DEEP_COLOURS = Message(
    "expected 8-bit colour to shrink or encode anew, got 16-bit colour",
    hint="convert it to 8 bits first, or leave `max_side`, `quality` and `format` out",
)


def prepare(
    value: Any, feature: Feature | None = None, options: ImageOptions = _AS_THEY_ARE
) -> PreparedImage:
    """Make a file's path, encoded bytes, an array or a Pillow image ready to be stored.

    Arrays are uint8 or uint16 of height x width, or with 1, 3 or 4 channels last; they and Pillow
    images become PNG unless options choose a format. So do files that not every reader decodes
    alike: see `datum.images.portable`. Raises ImageError for what is no image, is damaged, or
    cannot be read back as `feature` says.
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
        return PreparedImage(data, header)  # ids, which no lossy format may hold
    return _encode(image, name, is_exact, options)


def _make_portable(data: bytes, header: ImageHeader, feature: Feature | None) -> PreparedImage:
    """The bytes as they are, or a PNG of the same pixels where readers would not agree on them."""
    wanted = None if feature is None else feature.shape[-1]
    if is_portable(data, header, wanted):
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
    """Whether pixels may be ids, which must neither be mixed nor change."""
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
    except Exception as error:  # decoders raise what they like on bytes made to harm
        raise ImageError(f"expected a whole image, got a damaged one: {error}") from None
    return PreparedImage(data, parse_header(data))


def _checked_pillow(value: Any) -> Any:
    module = sys.modules.get("PIL.Image")  # where it is not loaded, nothing is of its types
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
    """Height x width, or x 3 or 4; raises ImageError for other arrays."""
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
