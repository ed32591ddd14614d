"""Names of the problems of the paper: the purpose of a dataset on disk."""

from datum.problem import types
from datum.problem.types import IMAGE_CLF, IMAGE_DET, IMAGE_SEG, PROBLEMS, TEXT_CLF

__all__ = ["IMAGE_CLF", "IMAGE_DET", "IMAGE_SEG", "PROBLEMS", "TEXT_CLF", "types"]
