"""Pillow's images into bytes, shrunk if that is asked."""

from __future__ import annotations

import io
from typing import Any

from datum.images.header import ImageError
from datum.images.options import ImageOptions

__all__ = ["encode_image"]

DEFAULT_QUALITY = 95  # of JPEG and WebP that are made anew: the loss is hardly seen

_ORIENTATION = 0x0112  # the EXIF tag


def encode_image(image: Any, name: str, *, is_exact: bool, options: ImageOptions) -> bytes:
    """Encode as PNG, JPEG or WebP, shrunk if options ask for it.

    With `is_exact` pixels are left out, but not mixed. An orientation stays beside the pixels, as
    it was: boxes and masks hold for them as they are stored.
    """
    exif = _keep_orientation(image)
    image = _shrink(image, is_exact, options.max_side)
    image = _fit_mode(image, name, is_exact)
    # Profiles and comments would be taken over, for some formats; nothing reads them.
    settings: dict[str, Any] = {"exif": exif, "icc_profile": None, "comment": ""}
    if name != "png":
        settings["quality"] = options.quality or DEFAULT_QUALITY
    file = io.BytesIO()
    image.save(file, name, **settings)
    return file.getvalue()


def _keep_orientation(image: Any) -> bytes:
    """EXIF data with nothing but the orientation; empty if there is none."""
    from PIL.Image import Exif

    if getattr(image, "format", None) == "TIFF":  # whose orientation Pillow applies
        return b""
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:  # a damaged tag is no reason to lose the image
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
        image.draft(None, (2 * width, 2 * height))  # a JPEG decodes to a smaller size for less
    if image.mode not in ("L", "RGB", "RGBA"):
        image = image.convert(_colour_mode(image))
    return image.resize((width, height), Resampling.LANCZOS, reducing_gap=2.0)


def _colour_mode(image: Any) -> str:
    is_transparent = "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBa")
    if image.mode == "1":
        return "L"
    return "RGBA" if is_transparent else "RGB"


def _fit_mode(image: Any, name: str, is_exact: bool) -> Any:
    """The image in a mode that the format can hold."""
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
