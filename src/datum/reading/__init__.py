"""Datasets that were written: their splits, records and batches."""

from datum.reading.dataset import Dataset, load
from datum.reading.split import Split
from datum.reading.verify import Problem, VerifyReport

__all__ = ["Dataset", "Problem", "Split", "VerifyReport", "load"]
