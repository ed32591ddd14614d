"""Datasets that were written: their splits, records and batches."""
