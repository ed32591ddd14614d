"""From a source to a dataset on disk: schema, order, shards, manifest, published at once."""

from datum.writing.planned import PlannedSplit, WritePlan
from datum.writing.planning import plan
from datum.writing.report import SplitReport, WriteReport
from datum.writing.run import write

__all__ = ["PlannedSplit", "SplitReport", "WritePlan", "WriteReport", "plan", "write"]
