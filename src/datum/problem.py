"""The problems that the paper names: what a dataset on disk is for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Final

__all__ = ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "PROBLEMS", "TEXT_CLF", "types"]

IMAGE_CLF: Final = "image_clf"
IMAGE_DET: Final = "image_det"
IMAGE_SEG: Final = "image_seg"
TEXT_CLF: Final = "text_clf"
PROBLEMS: Final = (IMAGE_CLF, IMAGE_DET, IMAGE_SEG, TEXT_CLF)

# Programs written for the older library say `datum.problem.types.IMAGE_CLF`.
types: Final = SimpleNamespace(
    IMAGE_CLF=IMAGE_CLF, IMAGE_DET=IMAGE_DET, IMAGE_SEG=IMAGE_SEG, TEXT_CLF=TEXT_CLF
)
