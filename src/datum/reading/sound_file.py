"""A damaged file as if it held nothing but its sound records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from datum.errors import Damage
from datum.format import RecordFile, Records

__all__ = ["SoundFile"]


class SoundFile(RecordFile):
    """The sound records of a file, numbered from 0 without gaps; `damage` lists what is not.

    Args:
        source: the path of the file.
        left_out: records that are whole, but of no use, by their numbers where each damaged place
            counts as one.

    >>> from datum.format import frame
    >>> with open("damaged.tfrecord", "wb") as target:
    ...     target.write(frame([b"one", b"two"]).to_bytes() + b"?" * 20 + frame([b"x"]).to_bytes())
    75
    >>> file = SoundFile("damaged.tfrecord", left_out=[0])
    >>> len(file), file[1]
    (2, b'x')
    """

    def __init__(self, source: str | os.PathLike[str], *, left_out: Sequence[int] = ()) -> None:
        super().__init__(source, recovery="skip", use_index=False)
        self._left_out = np.array(sorted(left_out), np.int64)

    def _scan(
        self,
        next_size: Callable[[], int],
        damage: list[Damage],
        *,
        check_payloads: bool,
        max_bytes: int,
    ) -> Iterator[Records]:
        seen = 0
        runs = super()._scan(next_size, damage, check_payloads=check_payloads, max_bytes=max_bytes)
        for found in runs:
            kept = ~np.isin(found.numbers, self._left_out)
            count = int(kept.sum())
            if count:
                yield replace(
                    found,
                    starts=found.starts[kept],
                    lengths=found.lengths[kept],
                    numbers=np.arange(seen, seen + count),
                )
            seen += count
