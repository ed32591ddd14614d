"""Datasets made of datasets: laid out anew, repaired, or turned back into files."""
