"""The API of the Datum paper and of the older library of this name."""

from datum._paper.modules import install

__all__ = ["install"]
