"""Profiles and measurements of datasets."""
