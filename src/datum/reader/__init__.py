"""The paper's way to read a dataset: opening and verification, of any writer."""

import typing

from datum.dataset import Dataset, load, verify

if typing.TYPE_CHECKING:
    from datum._paper.records import DatumParser, Reader

__all__ = ["Dataset", "DatumParser", "Reader", "load", "verify"]


def __getattr__(name: str) -> typing.Any:  # names that only programs for the older library use
    if name not in ("DatumParser", "Reader"):
        raise AttributeError(f"module 'datum.reader' has no attribute {name!r}")
    from datum._paper import records

    return getattr(records, name)
