"""Datasets made of datasets: laid out anew, repaired, or turned back into files."""

from datum.remaking.exporting import export_to
from datum.remaking.exporting_report import ExportReport
from datum.remaking.repair_report import Loss, RepairReport
from datum.remaking.repairing import repair
from datum.remaking.resharding import reshard

__all__ = ["ExportReport", "Loss", "RepairReport", "export_to", "repair", "reshard"]
