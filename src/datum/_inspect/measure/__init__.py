"""Measurements of a pipeline on this machine, stage by stage."""
