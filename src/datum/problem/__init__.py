"""The problems that the paper names: what a dataset on disk is for."""

from datum.problem import types
from datum.problem.types import IMAGE_CLF, IMAGE_DET, IMAGE_SEG, PROBLEMS, TEXT_CLF

__all__ = ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "PROBLEMS", "TEXT_CLF", "types"]
