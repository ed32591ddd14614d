"""From a source to a dataset on disk: schema, order, shards, manifest, published at once."""

from datum.writing.planned import PlannedSplit, WritePlan
from datum.writing.planning import plan
from datum.writing.report import FloatReport, SplitReport, WriteReport
from datum.writing.run import write
from datum.writing.sidecars import write_sidecars

__all__ = [
    "FloatReport",
    "PlannedSplit",
    "SplitReport",
    "WritePlan",
    "WriteReport",
    "plan",
    "write",
    "write_sidecars",
]
