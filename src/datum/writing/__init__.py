"""From a source to a dataset on disk: schema, order, shards, manifest, published at once."""

from datum.writing.report import SplitReport, WriteReport
from datum.writing.run import write

__all__ = ["SplitReport", "WriteReport", "write"]
