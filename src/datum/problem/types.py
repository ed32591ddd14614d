"""Names of the problems of the paper."""

from __future__ import annotations

from typing import Final

__all__ = ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "PROBLEMS", "TEXT_CLF"]

IMAGE_CLF: Final = "image_clf"
IMAGE_DET: Final = "image_det"
IMAGE_SEG: Final = "image_seg"
TEXT_CLF: Final = "text_clf"
PROBLEMS: Final = (IMAGE_CLF, IMAGE_DET, IMAGE_SEG, TEXT_CLF)
