"""Records made one by one from files, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datum.errors import SourceError
from datum.schema import Feature, Schema
from datum.sources.source import Block, Reject

__all__ = ["IMAGE", "FilePart", "UnusableRecordError", "unusable", "warn_of_images"]

_SHOWN = 3  # names of files, where there may be many

# Channels are left open: they are known once every image has been looked at.
IMAGE = Feature("uint8", (None, None, None), encoding="image")


class UnusableRecordError(SourceError):
    """A record that has to be rejected; `where` is the file that is to blame."""


def unusable(path: Path, error: SourceError) -> UnusableRecordError:
    """The error of a file as that of a record."""
    return UnusableRecordError(error.message.beside(path), where=path, hint=error.hint)


def warn_of_images(names: Sequence[str], where: str) -> tuple[str, ...]:
    """The warning for images that are in no record; `where` says where they are."""
    if not names:
        return ()
    more = ", ..." if len(names) > _SHOWN else ""
    count = "1 image is" if len(names) == 1 else f"{len(names):,} images are"
    return (f"{count} left out, {where}: {', '.join(names[:_SHOWN])}{more}",)


@dataclass(eq=False, slots=True)
class FilePart:
    """The records of one split, each made by a call of `make_row` with its number.

    Attributes:
        make_row: gives a record, or raises UnusableRecordError.
        schema, metadata, fingerprint, keys, stored_bytes, is_slow_python: as of `IndexedPart`.
        skipped: files that are no records, by name: those that are no images, or that nothing
            refers to.
        warnings: what looks like a mistake, such as images that are left out.
    """

    make_row: Callable[[int], dict[str, Any]]
    _: KW_ONLY
    schema: Schema | None
    keys: Sequence[str] | None
    fingerprint: str | None
    stored_bytes: int | None
    metadata: Mapping[str, Mapping[str, Any]]
    is_slow_python: bool = False
    skipped: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.keys or ())

    def read(self, numbers: NDArray[np.int64]) -> Block:
        """The records of these numbers, in the order given."""
        rows, kept, rejects = [], [], []
        keys = self.keys or ()
        make_row = self.make_row
        for number in numbers.tolist():
            try:
                rows.append(make_row(number))
                kept.append(number)
            except UnusableRecordError as error:
                rejects.append(Reject(number, keys[number], error.where, error.problem, error.hint))
        return Block(
            rows, np.array(kept, np.int64), [keys[number] for number in kept], tuple(rejects)
        )
