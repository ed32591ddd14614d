"""The paper's API, and what programs for the older library of this name import."""

from datum._paper.modules import install

__all__ = ["install"]
