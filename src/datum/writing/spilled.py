"""Records that only come one after the other: all are taken in before the first shard is made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from datum.format import Framed
from datum.schema import Schema
from datum.writing.direct import block_bounds
from datum.writing.spill import Run

__all__ = ["RunPiece", "SpilledSplit"]


@dataclass(frozen=True, slots=True, eq=False)
class RunPiece:
    """Some records of a run, that follow one another in the order of the split."""

    run: Run
    first: int
    last: int


class SpilledSplit:
    """A split whose records lie in runs, each put in order when its first shard needs it."""

    def __init__(self, runs: list[Run], schema: Schema) -> None:
        self._runs = runs
        self.schema = schema
        self._starts = np.cumsum([0, *(run.records for run in runs)])
        self.records = int(self._starts[-1])
        self.nbytes = sum(run.nbytes for run in runs)

    def pieces(self, first: int, last: int) -> list[RunPiece]:
        """The records from `first` to before `last`, in pieces that each lie in one run."""
        record_bytes = self.nbytes / max(self.records, 1)
        found = []
        for run, start in zip(self._runs, self._starts.tolist(), strict=False):
            bounds = max(first - start, 0), min(last - start, run.records)
            found += [RunPiece(run, a, b) for a, b in block_bounds(*bounds, record_bytes)]
        return found

    def write_piece(self, piece: RunPiece) -> Framed:
        """The records of a piece."""
        return piece.run.take(piece.first, piece.last, self.schema, threads=1)
