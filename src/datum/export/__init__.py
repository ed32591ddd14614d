"""The paper's way to write a dataset: a folder on disk, a problem, and settings."""

from datum._paper.export import export_to_tfrecord

__all__ = ["export_to_tfrecord"]
