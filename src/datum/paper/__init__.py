"""The older library of this name: what its programs import, on top of this one."""

from datum.older.modules import install

__all__ = ["install"]
