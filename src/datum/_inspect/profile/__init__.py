"""Profiles of datasets: distributions, classes, duplicates and warnings."""
