"""Datasets that were written: their splits, records and batches."""

from datum.reading.split import Split
from datum.reading.verify import Problem, VerifyReport

__all__ = ["Problem", "Split", "VerifyReport"]
