"""What the records of a dataset are like: distributions, classes, duplicates, and warnings."""
